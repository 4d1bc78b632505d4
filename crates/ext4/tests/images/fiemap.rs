//! The kernel's view of a mounted tree: the place of each file by FIEMAP, and the results of `stat`
//! and `getdents`.

use std::{
    ffi::c_void,
    fs::{File, Metadata},
    os::{
        fd::AsFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::Path,
    time::SystemTime,
};

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use senesce_core::Extent;
use senesce_ext4::{ExtentState, MappedExtent};

/// `struct fiemap_extent` of `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const ROOM: usize = 128;

/// `struct fiemap` with space for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; ROOM],
}

struct Fiemap<'a>(&'a mut Request);

// SAFETY: 0xC020660B is FS_IOC_FIEMAP, which accesses a `struct fiemap` with space for `count`
// extents. The pointer is valid for the life of the borrow, and the result stays in the structure.
unsafe impl Ioctl for Fiemap<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        0xC020_660B
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// The extents of an open file or directory, flushed first, neighbours of one state merged.
pub fn collect_extents(file: impl AsFd) -> Vec<MappedExtent> {
    let mut all: Vec<MappedExtent> = Vec::new();
    let extents = [RawExtent::default(); ROOM];
    let mut request =
        Request { start: 0, length: u64::MAX, flags: 1, mapped: 0, count: ROOM as u32, reserved: 0, extents };
    loop {
        request.length = u64::MAX - request.start;
        // SAFETY: see the implementation of `Ioctl`.
        unsafe { rustix::ioctl::ioctl(&file, Fiemap(&mut request)) }.unwrap();
        for raw in &request.extents[..request.mapped as usize] {
            assert_eq!(
                raw.flags & !0x1B01,
                0,
                "flags other than last, unwritten, inline, not aligned, merged: {:#x}",
                raw.flags
            );
            let state = match (raw.flags & 0x200 != 0, raw.flags & 0x800 != 0) {
                (true, _) => ExtentState::Inline,
                (_, true) => ExtentState::Unwritten,
                _ => ExtentState::Written,
            };
            let extent = Extent { logical: raw.logical, physical: raw.physical, length: raw.length };
            match all.last_mut() {
                Some(last) if last.state == state && last.extent.continues_into(&extent) => {
                    last.extent.length += extent.length;
                }
                _ => all.push(MappedExtent { extent, state }),
            }
            request.start = raw.logical + raw.length;
            if raw.flags & 1 != 0 {
                return all;
            }
        }
        if request.mapped == 0 {
            return all;
        }
    }
}

/// The kernel's data of one name.
#[derive(Debug)]
pub struct Known {
    /// The path below the mount point; empty for the root.
    pub path: Vec<u8>,
    pub metadata: Metadata,
    pub created: Option<SystemTime>,
    /// `None` for entries that cannot be opened: symlinks and special files.
    pub extents: Option<Vec<MappedExtent>>,
}

impl Known {
    pub fn inode(&self) -> u32 {
        self.metadata.ino() as u32
    }
}

/// The whole tree below a mount point, in the listing order of the kernel.
pub fn collect_known(root: &Path) -> Vec<Known> {
    let mut all = Vec::new();
    add(root, root, &mut all);
    all
}

fn add(root: &Path, path: &Path, all: &mut Vec<Known>) {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    let can_open = metadata.is_file() || metadata.is_dir();
    let extents = can_open.then(|| collect_extents(File::open(path).unwrap()));
    let relative = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
    let created = metadata.created().ok();
    let is_directory = metadata.is_dir();
    all.push(Known { path: relative, metadata, created, extents });
    if is_directory {
        for entry in std::fs::read_dir(path).unwrap() {
            add(root, &entry.unwrap().path(), all);
        }
    }
}
