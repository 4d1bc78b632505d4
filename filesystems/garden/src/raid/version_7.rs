//! Drives of version 7, presented with the fixed slots of version 8.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::Arc,
};

use senesce_block::{BlockDevice, BlockResult};
use senesce_core::Bytes;

use super::LABELS;
use crate::format::SLOT;

const SLOT_BYTES: u64 = SLOT as u64;
/// The offset of the second label, which version 7 does not have.
const ABSENT: u64 = LABELS[1] * SLOT_BYTES;

/// A drive with one label. Reads of the second label return the first one; writes to it do nothing.
pub(crate) struct OldDrive {
    inner: Arc<dyn BlockDevice>,
}

impl OldDrive {
    pub fn new(inner: Arc<dyn BlockDevice>) -> Self {
        Self { inner }
    }
}

/// Maps an offset to the drive. No request crosses the boundaries of the second label.
fn moved(offset: u64) -> u64 {
    match offset {
        before if before < ABSENT => before,
        label if label < ABSENT + SLOT_BYTES => label - ABSENT,
        behind => behind - SLOT_BYTES,
    }
}

fn is_absent(offset: u64) -> bool {
    (ABSENT..ABSENT + SLOT_BYTES).contains(&offset)
}

impl BlockDevice for OldDrive {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> Bytes {
        Bytes(self.inner.size().0.saturating_add(SLOT_BYTES))
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        self.inner.read_at(moved(offset), out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        if is_absent(offset) { Ok(()) } else { self.inner.write_at(moved(offset), data) }
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        self.inner.read_parts_at(moved(offset), parts)
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        if is_absent(offset) { Ok(()) } else { self.inner.write_parts_at(moved(offset), parts) }
    }

    fn flush(&self) -> BlockResult<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        if is_absent(offset) { Ok(()) } else { self.inner.discard(moved(offset), len) }
    }
}
