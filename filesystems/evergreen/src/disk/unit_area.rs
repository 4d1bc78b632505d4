//! Reads and writes of units.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use senesce_block::BlockDevice;

use super::{BLOCK, Extent, Geometry};
use crate::{Error, Result};

/// The units of a device, which hold the nodes and the map of nodes.
#[derive(Clone)]
pub struct Area {
    device: Arc<dyn BlockDevice>,
    geometry: Geometry,
}

impl Area {
    /// The area of a device with this geometry.
    pub fn new(device: Arc<dyn BlockDevice>, geometry: Geometry) -> Self {
        Self { device, geometry }
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// The layout of the device.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Reads `len` bytes from `offset` on of the concatenated extents.
    ///
    /// Errors: `Device`; `Invalid` if the range exceeds the extents. Cost: a request of whole
    /// blocks for each extent in the range.
    pub fn read(&self, extents: &[Extent], offset: u64, len: usize) -> Result<Bytes> {
        self.read_counting(extents, offset, len).map(|(bytes, _)| bytes)
    }

    /// Like [`read`](Self::read); also returns the number of requests.
    pub fn read_counting(&self, extents: &[Extent], offset: u64, len: usize) -> Result<(Bytes, u64)> {
        let (block, end) = (BLOCK as u64, offset + len as u64);
        self.expect_room(extents, end)?;
        let (from, to) = (offset / block * block, end.next_multiple_of(block));
        let (mut bytes, mut requests) = (vec![0; (to - from) as usize], 0);
        self.for_each_piece(extents, from, to, |at, part| {
            requests += 1;
            let part = (part.start - from) as usize..(part.end - from) as usize;
            Ok(self.device.read_at(at, &mut bytes[part])?)
        })?;
        let skipped = (offset - from) as usize;
        Ok((Bytes::from(bytes).slice(skipped..skipped + len), requests))
    }

    /// Writes bytes to the concatenated extents, with zeros up to the end of the last block.
    /// Durable after the next flush.
    ///
    /// Errors: `Device`; `Invalid` if the bytes exceed the extents.
    pub fn write(&self, extents: &[Extent], mut bytes: Vec<u8>) -> Result<()> {
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        let len = bytes.len() as u64;
        self.expect_room(extents, len)?;
        self.for_each_piece(extents, 0, len, |at, part| {
            Ok(self.device.write_at(at, &bytes[part.start as usize..part.end as usize])?)
        })
    }

    fn expect_room(&self, extents: &[Extent], bytes: u64) -> Result<()> {
        let units: u64 = extents.iter().map(|extent| u64::from(extent.count)).sum();
        let capacity = units * u64::from(self.geometry.unit_bytes);
        if bytes <= capacity {
            return Ok(());
        }
        Err(Error::Invalid { what: format!("{bytes} bytes in {units} units, which hold {capacity}") })
    }

    /// Calls `each` for the parts of the bytes `from..to`: with the offset on the device, and the
    /// range.
    fn for_each_piece(
        &self,
        extents: &[Extent],
        from: u64,
        to: u64,
        mut each: impl FnMut(u64, std::ops::Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        for extent in extents {
            let end = start + u64::from(extent.count) * u64::from(self.geometry.unit_bytes);
            let part = from.max(start)..to.min(end);
            if part.start < part.end {
                each(self.geometry.unit_at(extent.first) + (part.start - start), part)?;
            }
            start = end;
        }
        Ok(())
    }
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Area").field("device", &self.device.name()).field("geometry", &self.geometry).finish()
    }
}

#[cfg(test)]
mod tests {
    use senesce_block::{MemoryDevice, TracedDevice};
    use senesce_core::{Bytes as Size, ManualClock};

    use super::*;

    #[test]
    fn pieces_are_read_from_any_byte() {
        let device = Arc::new(MemoryDevice::new("disk", Size(4 << 20)));
        let area = Area::new(device, Geometry::plan(4 << 20, 8192, Some(64 << 10)).unwrap());
        let extents = [Extent { first: 7, count: 2 }, Extent { first: 3, count: 1 }];
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at / 7) as u8).collect();
        area.write(&extents, bytes.clone()).unwrap();
        for (offset, len) in [(0, 20_000), (1, 5), (8190, 9000), (16_000, 4000), (19_999, 1), (5, 0)] {
            assert_eq!(area.read(&extents, offset as u64, len).unwrap(), bytes[offset..offset + len], "{offset}+{len}");
        }
        assert_eq!(area.read(&extents[1..], 20_000 - 16_384, 400).unwrap(), [0; 400][..], "zeros to the block's end");
        assert!(area.read(&extents, 24_570, 7).is_err());
        assert!(area.write(&extents, vec![1; 24_577]).is_err());
    }

    #[test]
    fn each_piece_is_one_request() {
        let device =
            Arc::new(TracedDevice::new(MemoryDevice::new("disk", Size(4 << 20)), Arc::new(ManualClock::default())));
        let area = Area::new(device.clone(), Geometry::plan(4 << 20, 8192, Some(64 << 10)).unwrap());
        let extents = [Extent { first: 7, count: 2 }, Extent { first: 3, count: 1 }];
        area.write(&extents, vec![1; 24_000]).unwrap();
        let mut requests = 0;
        for (offset, len) in [(100, 20_000), (100, 5), (16_383, 1), (16_383, 2)] {
            requests += area.read_counting(&extents, offset, len).unwrap().1;
        }
        let counts = device.counts();
        assert_eq!((counts.writes, counts.reads, requests), (2, 6, 6));
    }
}
