//! The calls that return maps: FIEMAP, GETFSMAP, and the older FIBMAP. Raw kernel structures.

use std::os::fd::AsFd;

use rustix::ioctl::Updater;

/// `struct fiemap_extent`, 56 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FiemapExtent {
    pub(super) logical: u64,
    pub(super) physical: u64,
    pub(super) length: u64,
    reserved64: [u64; 2],
    pub(super) flags: u32,
    reserved: [u32; 3],
}

/// Extents per call of FIEMAP.
pub(super) const FIEMAP_BATCH: usize = 256;

/// `struct fiemap` with space for extents.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [FiemapExtent; FIEMAP_BATCH],
}

/// Write dirty data first, so that every extent has a position.
const FIEMAP_FLAG_SYNC: u32 = 1;

impl Fiemap {
    /// Calls that write dirty data first.
    pub(super) fn new() -> Box<Self> {
        Self::with_flags(FIEMAP_FLAG_SYNC)
    }

    /// Whether calls write dirty data first.
    pub(super) fn writes(&self) -> bool {
        self.flags & FIEMAP_FLAG_SYNC != 0
    }

    /// Calls that cause no write: dirty data has no position then.
    pub(super) fn without_writing() -> Box<Self> {
        Self::with_flags(0)
    }

    fn with_flags(flags: u32) -> Box<Self> {
        let extents = [FiemapExtent::default(); FIEMAP_BATCH];
        Box::new(Self { start: 0, length: 0, flags, mapped: 0, count: 0, reserved: 0, extents })
    }

    /// Returns the extents of the file from byte `start` on, at most [`FIEMAP_BATCH`]; none at the
    /// end.
    pub(super) fn call(&mut self, file: impl AsFd, start: u64) -> rustix::io::Result<&[FiemapExtent]> {
        self.start = start;
        self.length = u64::MAX - start;
        self.mapped = 0;
        self.count = FIEMAP_BATCH as u32;
        // SAFETY: 0xC020660B is FS_IOC_FIEMAP. The kernel writes the header and at most `count`
        // extents, which the structure has. The box keeps it in place and alive during the call.
        unsafe { rustix::ioctl::ioctl(file, Updater::<0xC020_660B, Self>::new(self))? };
        Ok(&self.extents[..(self.mapped as usize).min(FIEMAP_BATCH)])
    }
}

/// The block of the device that holds block `number` of a file; 0 if none does. Errors: no right
/// (`EPERM`), a file system without this call (`EINVAL`), no regular file (`ENOTTY`).
pub(super) fn find_block(file: impl AsFd, number: i32) -> rustix::io::Result<u32> {
    let mut block = number;
    // SAFETY: 1 is FIBMAP. The kernel reads and writes one int.
    unsafe { rustix::ioctl::ioctl(file, Updater::<1, i32>::new(&mut block))? };
    Ok(block.max(0) as u32)
}

/// The size of the blocks that [`find_block`] counts, bytes.
pub(super) fn block_size(file: impl AsFd) -> rustix::io::Result<u64> {
    let mut size = 0i32;
    // SAFETY: 2 is FIGETBSZ. The kernel writes one int.
    unsafe { rustix::ioctl::ioctl(file, Updater::<2, i32>::new(&mut size))? };
    u64::try_from(size).ok().filter(|&size| size > 0).ok_or(rustix::io::Errno::INVAL)
}

/// `struct fsmap`, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fsmap {
    pub(super) device: u32,
    pub(super) flags: u32,
    pub(super) physical: u64,
    pub(super) owner: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
    reserved: [u64; 3],
}

/// Records per call of GETFSMAP.
const FSMAP_BATCH: usize = 4096;

/// `struct fsmap_head` with space for records.
#[repr(C)]
#[derive(Debug)]
struct FsmapHead {
    in_flags: u32,
    out_flags: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Fsmap; 2],
    records: [Fsmap; FSMAP_BATCH],
}

/// A query of GETFSMAP that continues after the last record.
#[derive(Debug)]
pub(super) struct FsmapQuery(Box<FsmapHead>);

impl FsmapQuery {
    /// Flag: `owner` is one of the special owners.
    pub(super) const SPECIAL_OWNER: u32 = 0x10;
    /// Flag: this is the last record.
    pub(super) const LAST: u32 = 0x20;
    /// Special owner: free space.
    pub(super) const OWNER_FREE: u64 = 1;

    /// A query from the first to the last byte of every device of the file system.
    pub(super) fn new() -> Self {
        let high = Fsmap {
            device: u32::MAX,
            flags: u32::MAX,
            physical: u64::MAX,
            owner: u64::MAX,
            offset: u64::MAX,
            ..Fsmap::default() // length and reserved must be zero
        };
        Self(Box::new(FsmapHead {
            in_flags: 0,
            out_flags: 0,
            count: FSMAP_BATCH as u32,
            entries: 0,
            reserved: [0; 6],
            keys: [Fsmap::default(), high],
            records: [Fsmap::default(); FSMAP_BATCH],
        }))
    }

    /// Returns the next records; none at the end.
    pub(super) fn next(&mut self, file: impl AsFd) -> rustix::io::Result<&[Fsmap]> {
        let head = &mut *self.0;
        head.out_flags = 0;
        head.entries = 0;
        // SAFETY: 0xC0C0583B is FS_IOC_GETFSMAP. The kernel writes the header and at most `count`
        // records, which the structure has. The box keeps it in place and alive during the call.
        unsafe { rustix::ioctl::ioctl(file, Updater::<0xC0C0_583B, FsmapHead>::new(head))? };
        let records = &head.records[..(head.entries as usize).min(FSMAP_BATCH)];
        if let Some(last) = records.last() {
            // If the low key is a returned record with its length, the kernel continues after it.
            head.keys[0] = *last;
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<FiemapExtent>(), 56);
        assert_eq!(offset_of!(FiemapExtent, flags), 40);
        assert_eq!(offset_of!(Fiemap, extents), 32);
        assert_eq!(size_of::<Fsmap>(), 64);
        assert_eq!(offset_of!(FsmapHead, keys), 64);
        assert_eq!(offset_of!(FsmapHead, records), 192);
    }
}
