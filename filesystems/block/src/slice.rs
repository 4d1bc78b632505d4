//! A part of a device.

use std::io::{IoSlice, IoSliceMut};

use senesce_core::Bytes;

use crate::{BlockDevice, BlockOperation, BlockResult, check_range::check_range};

/// A byte range of another device, as a device. Several slices of a device may be adjacent. A flush
/// is one of the whole device.
#[derive(Debug)]
pub struct SliceDevice<D> {
    inner: D,
    name: String,
    start: u64,
    size: Bytes,
}

impl<D: BlockDevice> SliceDevice<D> {
    /// The `size` bytes of `inner` from byte `start` on. Both should be multiples of the device's
    /// alignment.
    ///
    /// Errors: `OutOfRange` if the slice exceeds the device.
    pub fn new(inner: D, start: u64, size: Bytes) -> BlockResult<Self> {
        check_range(&inner, BlockOperation::Open, start, size.0)?;
        let name = format!("{} from byte {start}", inner.name());
        Ok(Self { inner, name, start, size })
    }
}

impl<D: BlockDevice> BlockDevice for SliceDevice<D> {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, out.len() as u64)?;
        self.inner.read_at(self.start + offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        self.inner.write_at(self.start + offset, data)
    }

    fn read_parts_at(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> BlockResult<()> {
        check_range(self, BlockOperation::Read, offset, parts.iter().map(|part| part.len() as u64).sum())?;
        self.inner.read_parts_at(self.start + offset, parts)
    }

    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, parts.iter().map(|part| part.len() as u64).sum())?;
        self.inner.write_parts_at(self.start + offset, parts)
    }

    fn write_durably_at(&self, offset: u64, data: &[u8]) -> BlockResult<()> {
        check_range(self, BlockOperation::Write, offset, data.len() as u64)?;
        self.inner.write_durably_at(self.start + offset, data)
    }

    fn flush(&self) -> BlockResult<()> {
        self.inner.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> BlockResult<()> {
        check_range(self, BlockOperation::Discard, offset, len)?;
        self.inner.discard(self.start + offset, len)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn adjacent_slices_are_separate() {
        let whole = Arc::new(MemoryDevice::new("disk", Bytes(100)));
        let slice = |start, size| SliceDevice::new(whole.clone(), start, Bytes(size));
        let (first, second) = (slice(0, 60).unwrap(), slice(60, 40).unwrap());
        first.write_at(50, &[1; 10]).unwrap();
        second.write_at(0, &[2; 10]).unwrap();
        let mut got = [0; 20];
        whole.read_at(50, &mut got).unwrap();
        assert_eq!(got, [[1; 10], [2; 10]].concat()[..]);
        second.read_at(20, &mut got).unwrap();
        assert_eq!((got, second.size(), second.name()), ([0; 20], Bytes(40), "disk from byte 60"));
        assert!(first.write_at(55, &[3; 6]).is_err(), "the write exceeds the slice");
        assert!(
            first.write_parts_at(55, &[IoSlice::new(&[3; 4]), IoSlice::new(&[3; 2])]).is_err(),
            "the parts exceed the slice"
        );
        assert!(second.read_at(u64::MAX, &mut [0]).is_err());
        assert!(slice(60, 41).is_err());
    }
}
