//! Bitmaps of inodes and blocks: reads and verifies them, and visits their runs.

use crate::{Damage, Error, FileSystem, Problem, ReadAt, Structure, checksum::crc32c, groups::GroupDescriptor};

/// The kind of a group's bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitmapKind {
    Inodes,
    Blocks,
}

impl BitmapKind {
    fn block(self, descriptor: &GroupDescriptor) -> u64 {
        match self {
            Self::Inodes => descriptor.inode_bitmap,
            Self::Blocks => descriptor.block_bitmap,
        }
    }

    fn structure(self) -> Structure {
        match self {
            Self::Inodes => Structure::InodeBitmap,
            Self::Blocks => Structure::BlockBitmap,
        }
    }
}

/// The largest number of adjacent bitmaps that one call reads. With `flex_bg` bitmaps are adjacent.
const MAX_TOGETHER: usize = 64;

/// Reads bitmaps in the order of groups, several with one call.
#[derive(Debug)]
pub(crate) struct BitmapReader {
    kind: BitmapKind,
    first_block: u64,
    bytes: Vec<u8>,
}

impl BitmapReader {
    pub(crate) fn new(kind: BitmapKind) -> Self {
        Self { kind, first_block: 0, bytes: Vec::new() }
    }

    /// The bitmap of a group. It must have been written: the descriptor says so.
    ///
    /// Errors: the bitmap cannot be read. The inner result has its damage.
    pub(crate) fn read<D: ReadAt>(
        &mut self,
        fs: &FileSystem<D>,
        group: u32,
        descriptor: &GroupDescriptor,
    ) -> Result<Result<&[u8], Damage>, Error> {
        let block_bytes = fs.superblock.block_bytes as usize;
        let block = self.kind.block(descriptor);
        let held = (self.bytes.len() / block_bytes) as u64;
        if block < self.first_block || block >= self.first_block + held {
            self.fill(fs, group, block)?;
        }
        let at = (block - self.first_block) as usize * block_bytes;
        let range = at..at + block_bytes;
        let mut checked = self.check(fs, descriptor, &self.bytes[range.clone()]);
        let mut fresh = *descriptor;
        for _ in 0..fs.retries() {
            if checked.is_ok() {
                break;
            }
            // On a mounted device the descriptor, which has the checksum, changes with its bitmap.
            fs.read_blocks(block, &mut self.bytes[range.clone()])?;
            fresh = fs.read_descriptor(group)?.unwrap_or(fresh);
            checked = self.check(fs, &fresh, &self.bytes[range.clone()]);
        }
        Ok(match checked {
            Ok(()) => Ok(&self.bytes[range]),
            Err(problem) => Err(Damage::of_group(block, self.kind.structure(), group, problem)),
        })
    }

    /// Reads this group's bitmap and those of the following groups that are directly after it.
    fn fill<D: ReadAt>(&mut self, fs: &FileSystem<D>, group: u32, block: u64) -> Result<(), Error> {
        let following = fs.groups.iter().skip(group as usize + 1).take(MAX_TOGETHER - 1);
        let together = following
            .zip(block + 1..)
            .take_while(|(other, expected)| other.as_ref().is_some_and(|other| self.kind.block(other) == *expected))
            .count();
        self.bytes.resize((together + 1) * fs.superblock.block_bytes as usize, 0);
        self.first_block = block;
        let result = fs.read_blocks(block, &mut self.bytes);
        if result.is_err() {
            self.bytes.clear();
        }
        result
    }

    fn check<D: ReadAt>(&self, fs: &FileSystem<D>, descriptor: &GroupDescriptor, bitmap: &[u8]) -> Result<(), Problem> {
        if !fs.verifies() {
            return Ok(());
        }
        let superblock = &fs.superblock;
        let (bits, stored) = match self.kind {
            BitmapKind::Inodes => (u64::from(superblock.group_inodes), descriptor.inode_bitmap_checksum),
            BitmapKind::Blocks => {
                (superblock.group_blocks / superblock.cluster_blocks, descriptor.block_bitmap_checksum)
            }
        };
        let covered = bitmap.get(..(bits / 8) as usize).unwrap_or(bitmap);
        let computed = crc32c(superblock.checksum_seed, covered);
        // Short descriptors have space for half of it.
        let computed = if superblock.descriptor_bytes < 64 { computed & 0xFFFF } else { computed };
        if stored == computed { Ok(()) } else { Err(Problem::Checksum { stored, computed }) }
    }
}

/// Whether bit `n` is set.
pub(crate) fn is_set(bitmap: &[u8], n: usize) -> bool {
    bitmap.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 == 1)
}

/// Passes the runs of zero bits below `bits` to `visit`, as start and length.
pub(crate) fn visit_zero_runs(bitmap: &[u8], bits: u64, mut visit: impl FnMut(u64, u64)) {
    let word_at = |place: u64| {
        let at = (place / 8) as usize;
        let mut bytes = [0xFF; 8]; // no bit after the end is free
        if let Some(rest) = bitmap.get(at..) {
            let length = rest.len().min(8);
            bytes[..length].copy_from_slice(&rest[..length]);
        }
        u64::from_le_bytes(bytes)
    };
    let mut open: Option<u64> = None;
    let mut at = 0;
    while at < bits {
        let word = word_at(at / 64 * 64) >> (at % 64);
        let left_in_word = 64 - at % 64;
        // The number of equal bits from here on, within this word.
        let same = match open {
            Some(_) => u64::from(word.trailing_zeros()),
            None => u64::from((!word).trailing_zeros()),
        };
        if same >= left_in_word {
            at += left_in_word;
            continue;
        }
        at += same;
        if at >= bits {
            break;
        }
        match open.take() {
            Some(start) => visit(start, at - start),
            None => open = Some(at),
        }
    }
    if let Some(start) = open.filter(|start| *start < bits) {
        visit(start, bits - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn zero_runs_match_a_bit_by_bit_walk(bitmap: Vec<u8>, sparse: bool, bits in 0u64..400) {
            let bitmap: Vec<u8> = bitmap.iter().map(|&byte| if sparse && byte > 40 { 0 } else { byte }).collect();
            let mut expected: Vec<(u64, u64)> = Vec::new();
            for n in (0..bits).filter(|&n| n / 8 < bitmap.len() as u64 && !is_set(&bitmap, n as usize)) {
                match expected.last_mut() {
                    Some((start, length)) if *start + *length == n => *length += 1,
                    _ => expected.push((n, 1)),
                }
            }
            let mut got = Vec::new();
            visit_zero_runs(&bitmap, bits, |start, length| got.push((start, length)));
            proptest::prop_assert_eq!(got, expected);
        }
    }
}
