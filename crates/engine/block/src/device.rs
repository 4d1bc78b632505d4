//! The trait.

use std::{
    io::{IoSlice, IoSliceMut},
    sync::Arc,
};

use senesce_core::Bytes;

use crate::BlockResult;

/// A device of a fixed size that holds bytes.
///
/// - A read gives what was last written there, durable or not; what was never written reads as zeros on a new device
///   of this room, and as anything on a device that others have used.
/// - A write that has returned is *not* durable. [`flush`](Self::flush) makes everything durable that was written before
///   it was called. Until then, a loss of power may keep any of the writes and lose any other, in no order, and a write
///   that was kept may have ended at any multiple of 512 bytes of the device: no more is atomic than one sector.
///   [`write_durably_at`](Self::write_durably_at) makes one write durable.
/// - Every method may be called by several threads at once; where writes at the same place overlap in time, either wins.
///
/// Errors: each method fails with the device's name, the operation, its offset and length, and the cause. After a write
/// or flush that failed, the range holds either content, or a mixture by sectors.
pub trait BlockDevice: Send + Sync {
    /// What people call it: a path, or a name a test gave.
    fn name(&self) -> &str;

    /// How much it holds. It never changes.
    fn size(&self) -> Bytes;

    /// Offsets and lengths of reads, writes and discards must be multiples of this; a power of two, 1 if anything will do.
    fn alignment(&self) -> u32 {
        1
    }

    /// Fills `out` from `offset` on. An empty read does nothing. Errors: any byte behind the end is out of range.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()>;

    /// Writes all of `data` at `offset`. Not durable before the next flush.
    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()>;

    /// Fills all of `parts`, one behind the other, from `offset` on: one request as [`read_at`](Self::read_at). A device that can do
    /// it without copying does.
    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        let mut all = vec![0; parts.iter().map(|part| part.len()).sum()];
        self.read_at(offset, &mut all)?;
        let mut rest = &all[..];
        for part in parts {
            let (now, later) = rest.split_at(part.len());
            part.copy_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    /// Writes all of `parts`, one behind the other, at `offset`: one request as [`write_at`](Self::write_at). A device that can do
    /// it without copying does.
    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        let mut all = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| all.extend_from_slice(part));
        self.write_at(offset, &all)
    }

    /// Writes all of `data` at `offset`, and returns when it is durable. Other writes need not be: a device that can make one range
    /// durable does not wait for the rest.
    fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.write_at(offset, data)?;
        self.flush()
    }

    /// Everything written or discarded before is durable when it returns.
    fn flush(&self) -> BlockResult<()>;

    /// What lies there is of no more use, until it is written again it reads as anything: old bytes, zeros, a mixture.
    fn discard(&self, offset: u64, len: u64) -> BlockResult<()>;
}

macro_rules! passes_on {
    ($pointer:ty) => {
        impl<T: BlockDevice + ?Sized> BlockDevice for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn size(&self) -> Bytes {
                (**self).size()
            }

            fn alignment(&self) -> u32 {
                (**self).alignment()
            }

            fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
                (**self).read_at(offset, out)
            }

            fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
                (**self).write_at(offset, data)
            }

            fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
                (**self).read_parts_at(offset, parts)
            }

            fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
                (**self).write_parts_at(offset, parts)
            }

            fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
                (**self).write_durably_at(offset, data)
            }

            fn flush(&self) -> BlockResult<()> {
                (**self).flush()
            }

            fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
                (**self).discard(offset, len)
            }
        }
    };
}

passes_on!(Arc<T>);
passes_on!(&T);
