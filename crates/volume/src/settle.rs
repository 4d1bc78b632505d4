//! Settling: the calling thread does work that the kernel would otherwise do later, on any
//! processor and at any time. On ext4, the layout then follows from the operations alone. On XFS,
//! it does in short runs.
//!
//! Three behaviours of the kernel give two runs of the same operations different layouts:
//!
//! - It chooses blocks when it writes back, in a worker thread. ext4 chooses by the processor of
//!   that thread. [`Settler::write_back`] writes back here, right after the write.
//! - It finishes work in other threads: Btrfs inserts extents and delayed items, XFS frees the
//!   blocks of removed files. [`Settler::write_back`] and [`Settler::count`] wait for it.
//! - Freed blocks can be used again after a commit, which a timer or a worker starts.
//!   [`Settler::count`] commits after a number of operations, long before any timer.
//!
//! The caller pins its thread ([`Pinned`]), because allocators also keep state for each processor.
//! Btrfs still places its metadata differently in long runs.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::OFlags,
    io::{Errno, retry_on_intr},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::{
    Error, FileSystemKind, Result,
    host::{
        btrfs_attributes::{read_ahead, set_read_ahead},
        settle_calls as calls,
    },
};

/// The most operations between two commits of Btrfs. An operation adds up to three delayed items. A
/// worker inserts them as soon as there are 128.
const BTRFS_MOST_OPERATIONS: u64 = 32;

/// The read-ahead of files on Btrfs, KiB: the 128 pages that a request to a loop device can have.
/// By default it is 4 MiB. Then the sizes of requests depend on which pages are adjacent in memory.
const BTRFS_READ_AHEAD_KIB: u32 = 512;

/// The mount option that keeps ext4 from starting a thread which reads bitmaps at a random time in
/// the first five seconds. Empty for other file systems.
pub fn settled_mount_option(kind: FileSystemKind) -> &'static str {
    if kind == FileSystemKind::Ext4 { "no_prefetch_block_bitmaps" } else { "" }
}

/// Prepares a new mount, so that the requests of a cold read follow from the layout. A kernel that
/// does not offer this is no error; see [`find_unsettled`].
pub(crate) fn settle_mount(mount: &Path, kind: FileSystemKind) -> Result<()> {
    if kind != FileSystemKind::Btrfs {
        return Ok(());
    }
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
}

impl Settler {
    /// Opens the root of a mounted volume, and commits. Drop the settler before an unmount. It
    /// commits after every `every` operations, on Btrfs after at most 32.
    pub fn open(mount: &Path, kind: FileSystemKind, every: u64) -> Result<Self> {
        let root = open_root(mount)?;
        let most = if kind == FileSystemKind::Btrfs { BTRFS_MOST_OPERATIONS } else { u64::MAX };
        let mut settler = Self { root, kind, every: every.clamp(1, most), operations: 0 };
        // The timers of XFS started at the mount, which may be long ago.
        settler.settle().map_err(Error::std("settle", mount))?;
        Ok(settler)
    }

    /// Writes a file back, and waits until its extents are in the file system's maps. The kernel
    /// chooses the blocks in this thread.
    ///
    /// Cost: at least one write to the device.
    pub fn write_back(&self, file: impl AsFd) -> io::Result<()> {
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
        if self.operations >= self.every { self.settle() } else { Ok(()) }
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
