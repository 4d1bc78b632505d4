//! The set of existing files, with a uniform random choice.

use senesce_core::Rng;

/// Bytes of a block, the unit of used space.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// A file of the tree. Its name is `f` and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub directory: u32,
    pub number: u64,
    pub size_bytes: u64,
}

impl File {
    /// Bytes that its blocks occupy.
    pub fn block_bytes(&self) -> u64 {
        self.size_bytes.next_multiple_of(BLOCK_BYTES)
    }
}

/// All existing files, with the sums of their sizes.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: Vec<File>,
    content_bytes: u64,
    block_bytes: u64,
}

impl Files {
    pub fn add(&mut self, file: File) {
        self.content_bytes += file.size_bytes;
        self.block_bytes += file.block_bytes();
        self.files.push(file);
    }

    /// Removes one file and returns it. Each file has the same probability.
    pub fn take_any(&mut self, rng: &mut Rng) -> Option<File> {
        if self.files.is_empty() {
            return None;
        }
        let file = self.files.swap_remove(rng.below(self.files.len() as u64) as usize);
        self.content_bytes -= file.size_bytes;
        self.block_bytes -= file.block_bytes();
        Some(file)
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }
}
