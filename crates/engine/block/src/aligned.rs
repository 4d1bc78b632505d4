//! Memory that requests past the page cache may use.

use crate::DIRECT_ALIGNMENT;

/// Memory that begins at a multiple of [`DIRECT_ALIGNMENT`], and grows where needed.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer(Vec<u8>);

impl AlignedBuffer {
    /// `len` bytes of it, with any content.
    pub(crate) fn memory(&mut self, len: usize) -> &mut [u8] {
        let most = len + DIRECT_ALIGNMENT as usize;
        if self.0.len() < most {
            self.0.resize(most, 0);
        }
        let start = self.0.as_ptr().align_offset(DIRECT_ALIGNMENT as usize);
        &mut self.0[start..start + len]
    }
}
