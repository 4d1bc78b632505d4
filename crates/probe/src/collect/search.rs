//! Searches for a pattern in a stream that arrives buffer by buffer.

use memchr::memmem::Finder;
use senesce_core::{Rng, Seed};

/// The largest number of bytes of one read: the default readahead window. With it the scanner makes
/// the same number of device requests on a cold cache as GNU grep (`benches/scan.rs` counts them).
pub(crate) const READ_BYTES: usize = 128 * 1024;

/// A pattern that no file contains: 32 letters and digits drawn from `seed`, 190 bits.
///
/// GNU grep accepts letters and digits unchanged. If a file does contain the pattern (it was made
/// from the same seed), the grep test fails with an error.
pub fn compute_pattern(seed: Seed) -> Vec<u8> {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut rng = Rng::for_purpose(seed, "grep-pattern");
    (0..32).map(|_| LETTERS[rng.below(LETTERS.len() as u64) as usize]).collect()
}

/// Searches streams for a pattern, also across two buffers. It reuses one buffer and copies only
/// the overlap.
pub(crate) struct Search {
    finder: Finder<'static>,
    /// The end of the previous read, too short to contain the pattern, followed by space for one
    /// read.
    buffer: Vec<u8>,
    kept: usize,
}

impl Search {
    /// A search for `pattern`, which must not be empty.
    pub(crate) fn new(pattern: &[u8], read_bytes: usize) -> Self {
        assert!(!pattern.is_empty(), "an empty pattern matches everything");
        let finder = Finder::new(pattern).into_owned();
        Self { finder, buffer: vec![0; pattern.len() - 1 + read_bytes], kept: 0 }
    }

    /// Forgets earlier reads: the next buffer starts a new stream.
    pub(crate) fn start(&mut self) {
        self.kept = 0;
    }

    /// The destination of the next read.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.kept..]
    }

    /// Processes the first `length` bytes of [`Search::space`]. Out: whether the pattern ends
    /// within them.
    pub(crate) fn found(&mut self, length: usize) -> bool {
        let filled = self.kept + length;
        if self.finder.find(&self.buffer[..filled]).is_some() {
            return true;
        }
        let keep = filled.min(self.finder.needle().len() - 1);
        self.buffer.copy_within(filled - keep..filled, 0);
        self.kept = keep;
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_come_from_the_seed() {
        assert_eq!(compute_pattern(Seed(1)), compute_pattern(Seed(1)));
        assert_ne!(compute_pattern(Seed(1)), compute_pattern(Seed(2)));
        assert_eq!(compute_pattern(Seed(1)).len(), 32);
    }

    proptest! {
        #[test]
        fn stream_and_buffer_search_agree(
            text in prop::collection::vec(0u8..3, 0..60),
            pattern in prop::collection::vec(0u8..3, 1..6),
            reads in prop::collection::vec(1usize..9, 1..20),
        ) {
            let mut search = Search::new(&pattern, 8);
            let mut rest = &text[..];
            let mut found = false;
            let mut reads = reads.iter().cycle();
            while !rest.is_empty() && !found {
                let length = rest.len().min(*reads.next().unwrap()).min(search.space().len());
                search.space()[..length].copy_from_slice(&rest[..length]);
                found = search.found(length);
                rest = &rest[length..];
            }
            prop_assert_eq!(found, text.windows(pattern.len()).any(|w| w == pattern));
            // A new stream does not see the end of the previous one.
            search.start();
            search.space()[0] = pattern[pattern.len() - 1];
            prop_assert_eq!(search.found(1), pattern.len() == 1);
        }
    }
}
