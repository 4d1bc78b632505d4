//! The trait [`BlockDevice`].

use std::{
    io::{IoSlice, IoSliceMut},
    sync::Arc,
};

use senesce_core::Bytes;

use crate::BlockResult;

/// A byte array of fixed size.
///
/// - A read returns the last written bytes, durable or not. Unwritten ranges are zero on a new
///   device of this crate, and arbitrary on a used device.
/// - A write is *not* durable when it returns. [`flush`](Self::flush) makes all earlier writes
///   durable. Until then a loss of power may keep any subset of the writes, each cut at any
///   multiple of 512 bytes. Only a sector is atomic. [`write_durably_at`](Self::write_durably_at)
///   makes one write durable.
/// - Several threads may call every method. Of concurrent writes to the same place, either wins.
///
/// Errors: each has the device's name, the operation, its offset and length, and the cause. After a
/// failed write or flush, the range has the old or the new contents, or a mixture of sectors.
pub trait BlockDevice: Send + Sync {
    /// The name for messages: a path, or a name of a test.
    fn name(&self) -> &str;

    /// The size, which never changes.
    fn size(&self) -> Bytes;

    /// The alignment of offsets and lengths of reads, writes and discards; a power of two, 1 for
    /// none.
    fn alignment(&self) -> u32 {
        1
    }

    /// Fills `out` from `offset` on. An empty read has no effect. Errors: out of range if a byte is
    /// after the end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()>;

    /// Writes `data` at `offset`. Durable after the next flush.
    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()>;

    /// Fills `parts` in order from `offset` on, in one request like [`read_at`](Self::read_at). A
    /// device avoids a copy if it can.
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

    /// Writes `parts` in order at `offset`, in one request like [`write_at`](Self::write_at). A
    /// device avoids a copy if it can.
    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        let mut all = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| all.extend_from_slice(part));
        self.write_at(offset, &all)
    }

    /// Writes `data` at `offset`, and returns when it is durable. Other writes need not be durable:
    /// a device that can make one range durable does not wait for the rest.
    fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        self.write_at(offset, data)?;
        self.flush()
    }

    /// Makes all earlier writes and discards durable.
    fn flush(&self) -> BlockResult<()>;

    /// Discards a range. Until it is written again, reads return arbitrary bytes: the old ones,
    /// zeros, or a mixture.
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
