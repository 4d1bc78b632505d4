//! Aligned memory for requests that bypass the page cache.

use crate::DIRECT_ALIGNMENT;

/// Memory aligned to [`DIRECT_ALIGNMENT`], which grows if needed.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer(Vec<u8>);

impl AlignedBuffer {
    /// Returns `len` bytes of it, with arbitrary contents.
    pub(crate) fn memory(&mut self, len: usize) -> &mut [u8] {
        let most = len + DIRECT_ALIGNMENT as usize;
        if self.0.len() < most {
            self.0.resize(most, 0);
        }
        let start = self.0.as_ptr().align_offset(DIRECT_ALIGNMENT as usize);
        &mut self.0[start..start + len]
    }
}
