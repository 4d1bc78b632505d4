//! Settling: the calling thread does work that the kernel would otherwise do later, on any
//! processor and at any time. On ext4 and Btrfs, the layout then follows from the operations alone.
//! On XFS, this holds in short runs only.
//!
//! Three behaviours of the kernel give two runs of the same operations different layouts:
//!
//! - It chooses blocks when it writes back, in a worker thread. ext4 chooses by the processor of
//!   that thread. [`Settler::write_back`] writes back here, right after the write.
//! - It finishes work in other threads: Btrfs inserts extents and delayed items, XFS frees the
//!   blocks of removed files. [`Settler::write_back`] and [`Settler::count`] wait for it.
//!   [`settle_mount`] and [`Settler::open`] keep other threads of Btrfs from starting.
//! - Freed blocks can be used again after a commit, which a timer or a worker starts.
//!   [`Settler::count`] commits after a number of operations, long before any timer.
//!
//! The caller pins its thread ([`Pinned`]), because allocators also keep state for each processor.
//! If memory is short, or another process calls sync or dirties many pages, the kernel still writes
//! at a time that no plan determines.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{OFlags, SeekFrom},
    io::{Errno, retry_on_intr},
    mount::mount_remount,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::{
    Error, FileSystemKind, Result,
    host::{
        btrfs_attributes::{MetadataSpace, read_ahead, set_read_ahead},
        parse_mount_options, settle_calls as calls,
    },
};

/// The most operations between two commits of Btrfs. An operation adds up to three delayed items. A
/// worker inserts them as soon as there are 128.
const BTRFS_MOST_OPERATIONS: u64 = 32;

/// If less space for metadata is free, Btrfs commits early. This is more than any operation
/// reserves, so no operation waits for the worker that reclaims space. That worker would continue
/// after the wait, at the same time as the next operation. A rename reserves most, 9.75 MiB: 13
/// items, and 26 references to extents, each with 16 KiB for both halves of a node at 8 levels.
const BTRFS_LEAST_METADATA_BYTES: u64 = 12 << 20;

/// No block group of Btrfs is smaller, except for a remainder at the end of the device.
const BTRFS_SMALLEST_GROUP_BYTES: u64 = 1 << 20;

/// The read-ahead of files on Btrfs, KiB: the 128 pages that a request to a loop device can have.
/// By default it is 4 MiB. Then the sizes of requests depend on which pages are adjacent in memory.
const BTRFS_READ_AHEAD_KIB: u32 = 512;

/// The mount option that keeps ext4 from starting a thread which reads bitmaps at a random time in
/// the first five seconds. Empty for other file systems.
pub fn settled_mount_option(kind: FileSystemKind) -> &'static str {
    if kind == FileSystemKind::Ext4 { "no_prefetch_block_bitmaps" } else { "" }
}

/// Bytes of one write to the device on Btrfs: 256 pages, the most that fit if no two are adjacent
/// in memory. Larger writes have random sizes. Btrfs inserts the checksums of each write together,
/// so the nodes of its tree would depend on them.
const BTRFS_WRITE_BYTES: u64 = 1 << 20;

/// The options of the first step of a mount that settles. [`settle_mount`] is the second step.
///
/// A Btrfs is mounted read-only first. If a new one is mounted writable at once, a thread checks
/// its tree of UUIDs, and starts a transaction at a random time.
pub(crate) fn first_mount_options(kind: FileSystemKind, options: String) -> String {
    if kind == FileSystemKind::Btrfs { format!("{options},ro") } else { options }
}

/// Completes a mount with these options. Blocks then follow from the operations, and requests of a
/// cold read follow from the layout. If the kernel does not offer the read-ahead, this is no error;
/// see [`find_unsettled`].
pub(crate) fn settle_mount(mount: &Path, kind: FileSystemKind, options: &str) -> Result<()> {
    if kind != FileSystemKind::Btrfs {
        return Ok(());
    }
    let flags = parse_mount_options(options)?.flags;
    mount_remount(mount, flags, c"").map_err(Error::io("make writable", mount))?;
    let set = set_read_ahead(open_root(mount)?, BTRFS_READ_AHEAD_KIB);
    set.map(|_| ()).map_err(Error::std("set the read-ahead of", mount))
}

/// Returns what this kernel could not settle on a mount, and the effect. `None` if it is settled.
pub fn find_unsettled(mount: &Path, kind: FileSystemKind) -> Result<Option<String>> {
    if kind != FileSystemKind::Btrfs {
        return Ok(None);
    }
    let kib = read_ahead(open_root(mount)?).map_err(Error::std("read the read-ahead of", mount))?;
    let found = match kib {
        Some(BTRFS_READ_AHEAD_KIB) => return Ok(None),
        Some(kib) => format!("it is {kib} KiB"),
        None => "/sys/fs/btrfs has no bdi/read_ahead_kb".to_owned(),
    };
    Ok(Some(format!(
        "the read-ahead of Btrfs cannot be set to {BTRFS_READ_AHEAD_KIB} KiB ({found}): requests of a cold read can \
         differ between two runs"
    )))
}

fn open_root(mount: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(mount, flags, 0.into()).map_err(Error::io("open", mount))
}

/// Settles one mounted file system.
#[derive(Debug)]
pub struct Settler {
    root: OwnedFd,
    kind: FileSystemKind,
    /// Operations between two commits.
    every: u64,
    operations: u64,
    /// Only on a Btrfs whose metadata and data do not share their space.
    metadata: Option<MetadataSpace>,
}

impl Settler {
    /// Opens the root of a mounted volume, and commits. Drop the settler before an unmount. It
    /// commits after every `every` operations, on Btrfs after at most 32, or earlier if less than
    /// 12 MiB of its space for metadata are free. On Btrfs it discards free space, if the device
    /// can.
    pub fn open(mount: &Path, kind: FileSystemKind, every: u64) -> Result<Self> {
        let root = open_root(mount)?;
        let (most, metadata) = match kind {
            FileSystemKind::Btrfs => {
                let space = MetadataSpace::open(&root).map_err(Error::std("query the metadata space of", mount))?;
                (BTRFS_MOST_OPERATIONS, space)
            }
            _ => (u64::MAX, None),
        };
        let mut settler = Self { root, kind, every: every.clamp(1, most), operations: 0, metadata };
        // The timers of XFS started at the mount, which may be long ago.
        settler.settle().map_err(Error::std("settle", mount))?;
        if kind == FileSystemKind::Btrfs {
            settler.load_free_space().map_err(Error::io("load the free space of", mount))?;
        }
        Ok(settler)
    }

    /// After a mount, Btrfs loads the free space of a block group in a thread, at the first
    /// allocation. This allocation would use only the part that is already loaded.
    fn load_free_space(&self) -> std::result::Result<(), Errno> {
        match calls::trim(&self.root, BTRFS_SMALLEST_GROUP_BYTES) {
            // The device cannot discard, and no other call waits for that thread. The discard only
            // helps, so this is no error.
            Err(Errno::OPNOTSUPP | Errno::IO | Errno::REMOTEIO) => Ok(()),
            done => done,
        }
    }

    /// Writes a file back, and waits until its extents are in the file system's maps. The kernel
    /// chooses the blocks in this thread.
    ///
    /// Cost: at least one write to the device.
    pub fn write_back(&self, file: impl AsFd) -> io::Result<()> {
        if self.kind == FileSystemKind::Btrfs {
            write_back_in_parts(&file)?;
        }
        match retry_on_intr(|| calls::sync_extents(&file)) {
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => rustix::fs::fdatasync(&file)?,
            done => done?,
        }
        Ok(())
    }

    /// Counts an operation, and settles after every `every` of them. `removed`: the operation may
    /// have removed a file.
    pub fn count(&mut self, removed: bool) -> io::Result<()> {
        // XFS frees the blocks of removed files in a thread of each processor.
        if removed && self.kind == FileSystemKind::Xfs {
            calls::free_removed_xfs(&self.root)?;
        }
        self.operations += 1;
        let is_short = match &self.metadata {
            Some(space) => space.free_bytes()? < BTRFS_LEAST_METADATA_BYTES,
            None => false,
        };
        if is_short || self.operations >= self.every { self.settle() } else { Ok(()) }
    }

    /// Commits everything, and waits until the file system has no postponed work.
    pub fn settle(&mut self) -> io::Result<()> {
        self.operations = 0;
        // After a signal nothing is measured, and the exit must not find a frozen volume.
        if self.kind == FileSystemKind::Xfs && crate::interrupted().is_none() {
            // A sync does not restart the timers of 30 s; a freeze and a thaw do.
            calls::freeze(&self.root)?;
            return Ok(calls::thaw(&self.root)?);
        }
        rustix::fs::syncfs(&self.root)?;
        // The kernel does not pass syncfs to a FUSE server.
        if self.kind.is_engine() { Ok(rustix::fs::fsync(&self.root)?) } else { Ok(()) }
    }
}

/// Writes the data of a file back in parts of [`BTRFS_WRITE_BYTES`], and skips its holes. It moves
/// the position of the descriptor.
fn write_back_in_parts(file: impl AsFd) -> io::Result<()> {
    let mut start = 0;
    loop {
        let data = match rustix::fs::seek(&file, SeekFrom::Data(start)) {
            Err(Errno::NXIO) => return Ok(()),
            data => data?,
        };
        let end = rustix::fs::seek(&file, SeekFrom::Hole(data))?;
        start = data - data % BTRFS_WRITE_BYTES;
        // The first call chooses the blocks of all dirty pages that are adjacent in the file.
        while start < end {
            retry_on_intr(|| calls::write_range(&file, start, BTRFS_WRITE_BYTES))?;
            start += BTRFS_WRITE_BYTES;
        }
    }
}

/// Keeps the calling thread on one processor until it is dropped.
#[derive(Debug)]
pub struct Pinned(CpuSet);

impl Pinned {
    /// Pins the calling thread to the first processor that it may use. Threads that it starts
    /// inherit this.
    pub fn new() -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).ok_or(Errno::INVAL)?;
        one.set(first);
        sched_setaffinity(None, &one)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If the available processors changed, this can fail. Then the thread stays pinned.
        let _ = sched_setaffinity(None, &self.0);
    }
}
