//! Contents of pages that compress. `Zeros`, `Mixed` and `Rows` were chosen before any measurement.
//! `Groups` was fitted to both published figures of E9.

use std::io::Write;

use senesce_core::{Rng, Seed};

/// Bytes of a page of most kinds.
pub const PAGE: usize = 8192;
/// Bytes of a page of `Groups`.
const GROUP: usize = 32_768;
/// `Groups`: the whole blocks of a page, all with the same probability, and the random bytes of its
/// tail.
const WHOLE_BLOCKS: [usize; 3] = [1, 2, 2];
const TAIL: std::ops::RangeInclusive<u64> = 500..=900;
/// Bytes of a row, and of a block of `Ends`.
const ROW: usize = 128;
const BLOCK: usize = 4096;

/// The contents of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This percentage of each 512 bytes is zeros, and the rest is random, as in the buffers of
    /// load generators.
    Zeros(usize),
    /// The same, with a percentage from 60 to 100 drawn for each page.
    Mixed,
    /// Text in rows of 128 bytes. Each has its number, a date, one of 16 states, one of 1,000
    /// names, eight random digits, and blanks.
    Rows,
    /// Pages of 32 KiB. Each is a compression group that keeps one or two whole blocks and a tail
    /// of about 0.8 KiB.
    Groups,
    /// The first write of a page is as in `Mixed`. Later writes are random and do not compress.
    Worn,
    /// Up to 40 percent of each 4 KiB is random, and zeros follow: for compaction alone.
    Ends,
}

impl Kind {
    /// Blocks of a compression group; 0 for none.
    pub fn group_blocks(self) -> u8 {
        match self {
            Self::Ends => 0,
            Self::Groups => 8,
            Self::Zeros(_) | Self::Mixed | Self::Rows | Self::Worn => 2,
        }
    }

    /// Bytes of a page.
    pub fn page_bytes(self) -> usize {
        if self == Self::Groups { GROUP } else { PAGE }
    }

    /// The contents of a page for its write number `written`.
    pub fn make(self, page: u64, written: u32) -> Vec<u8> {
        let mut rng = Rng::for_purpose(Seed(page << 24 | u64::from(written)), "a page");
        let mut bytes = vec![0; self.page_bytes()];
        match self {
            Self::Worn if written > 1 => rng.fill(&mut bytes),
            Self::Groups => {
                let whole = WHOLE_BLOCKS[rng.below(WHOLE_BLOCKS.len() as u64) as usize];
                let tail = rng.between(*TAIL.start(), *TAIL.end()) as usize;
                rng.fill(&mut bytes[..whole * BLOCK + tail]);
            }
            Self::Zeros(percent) => fill(&mut bytes, percent, &mut rng),
            Self::Mixed | Self::Worn => {
                let percent = 60 + rng.below(41) as usize;
                fill(&mut bytes, percent, &mut rng);
            }
            Self::Ends => {
                for block in bytes.chunks_exact_mut(BLOCK) {
                    let random = rng.below(2 * BLOCK as u64 / 5) as usize;
                    rng.fill(&mut block[..random]);
                }
            }
            Self::Rows => {
                for (row, number) in bytes.chunks_exact_mut(ROW).zip(page * (PAGE / ROW) as u64..) {
                    write_row(row, number, &mut rng);
                }
            }
        }
        bytes
    }
}

fn fill(bytes: &mut [u8], zeros: usize, rng: &mut Rng) {
    for piece in bytes.chunks_exact_mut(512) {
        rng.fill(&mut piece[..512 * (100 - zeros) / 100]);
    }
}

fn write_row(row: &mut [u8], number: u64, rng: &mut Rng) {
    row.fill(b' ');
    let (day, second) = (1 + number / 86_400 % 28, number % 86_400);
    let (state, name, digits) = (rng.below(16), rng.below(1000), rng.below(100_000_000));
    let mut rest: &mut [u8] = row;
    // A row is longer than all its columns.
    let _ = write!(
        rest,
        "{number:012} 2026-11-{day:02} {:02}:{:02}:{:02} state-{state:02} name-{name:04} {digits:08}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros_of(bytes: &[u8]) -> f64 {
        100.0 * bytes.iter().filter(|&&byte| byte == 0).count() as f64 / bytes.len() as f64
    }

    #[test]
    fn pages_have_their_zeros_and_differ_by_write() {
        let zeros = |kind: Kind| {
            let all: Vec<u8> = (0..200).flat_map(|page| kind.make(page, 1)).collect();
            zeros_of(&all)
        };
        // A random byte is zero once in 256 times.
        for (kind, percent) in [(Kind::Zeros(80), 80.2), (Kind::Mixed, 80.2), (Kind::Ends, 80.2), (Kind::Rows, 0.0)] {
            assert!((zeros(kind) - percent).abs() < 1.5, "{kind:?}: {}", zeros(kind));
            assert_eq!(kind.make(7, 2), kind.make(7, 2));
            assert_ne!(kind.make(7, 2), kind.make(7, 3));
        }
        let compresses = |written| zeros_of(&Kind::Worn.make(9, written)) > 60.0;
        assert!(compresses(1) && !compresses(2));
        // One or two whole blocks of eight, and a tail.
        assert!((zeros(Kind::Groups) - 77.2).abs() < 1.5, "{}", zeros(Kind::Groups));
        assert_eq!(Kind::Groups.make(1, 1).len(), 32_768);
        let row = Kind::Rows.make(3, 1);
        assert!(row.starts_with(b"000000000192 2026-11-01 00:03:12 state-"), "{:?}", &row[..64]);
    }
}
