//! The FUSE side: a directory with one file. Reads, writes, discards and syncs of the file are the
//! disk's requests.
//!
//! The file is opened for direct I/O, so that the kernel caches nothing of it. A loop device with
//! direct I/O on it passes on every request, one by one, in the order of its queue. One thread
//! serves them, in the order of the log.

use std::{
    ffi::OsStr,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::FallocateFlags;

use crate::{ServeConfig, disk::Disk};

const ROOT: INodeNo = INodeNo::ROOT;
const FILE: INodeNo = INodeNo(2);
/// Attributes never change, so they never expire. The kernel needs them even after the death of the
/// server, to find the backing file of the loop device.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
const BLOCK_BYTES: u32 = 4096;

/// The file system that the kernel's FUSE driver calls.
pub(crate) struct DiskFs {
    disk: Arc<Disk>,
    /// The buffer of reads; one is enough, because there is one thread.
    buffer: Mutex<Vec<u8>>,
}

/// The mount options of the disk.
pub(crate) fn mount_config(config: &ServeConfig) -> Config {
    let mut fuse = Config::default();
    fuse.mount_options = vec![MountOption::FSName(config.mount_source()), MountOption::NoExec, MountOption::NoAtime];
    fuse
}

impl DiskFs {
    pub(crate) fn new(disk: Arc<Disk>) -> Self {
        Self { disk, buffer: Mutex::default() }
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, nlink, size) = match ino {
            ROOT => (FileType::Directory, 0o700, 2, 0),
            FILE => (FileType::RegularFile, 0o600, 1, self.disk.size_bytes()),
            _ => return None,
        };
        let time = SystemTime::UNIX_EPOCH;
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: BLOCK_BYTES,
            flags: 0,
        })
    }
}

fn errno(error: &io::Error) -> Errno {
    match error.raw_os_error() {
        Some(number) => Errno::from_i32(number),
        None if error.kind() == io::ErrorKind::StorageFull => Errno::ENOSPC,
        None => Errno::EIO,
    }
}

fn say(reply: ReplyEmpty, done: io::Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // As large as possible: the kernel reduces it to its own limit, usually 1 MiB.
        let _ = config.set_max_write(16 << 20);
        // The loop device passes its queue on, instead of one request at a time.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(found) if parent == ROOT && name == ServeConfig::FILE_NAME => {
                reply.entry(&FOR_EVER, &found, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(found) => reply.attr(&FOR_EVER, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // Times and modes are ignored; the size of a disk is fixed.
        match self.attributes(ino) {
            Some(found) if size.is_none_or(|size| size == found.size) => reply.attr(&FOR_EVER, &found),
            Some(_) => reply.error(Errno::EPERM),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_NOFLUSH
            // The size is fixed, so writers need not be serialised.
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        if ino == FILE { reply.opened(FileHandle(0), flags) } else { reply.error(Errno::EISDIR) }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        match self.disk.read(&mut buffer, offset, size) {
            Ok(()) => reply.data(&buffer),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.disk.write(data, offset) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        say(reply, self.disk.flush());
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // A loop device turns a discard into a hole, and a write of zeros into a zero range.
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        if mode.contains(FallocateFlags::ZERO_RANGE) {
            say(reply, self.disk.zero(offset, length));
        } else if mode.contains(FallocateFlags::PUNCH_HOLE) && self.disk.takes_discards() {
            say(reply, self.disk.discard(offset, length));
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, ServeConfig::FILE_NAME),
        ];
        for (index, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(ino, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device uses the block size as the granularity of discards.
        let blocks = self.disk.size_bytes() / u64::from(BLOCK_BYTES);
        let free = blocks.saturating_sub(self.disk.allocated_bytes() / u64::from(BLOCK_BYTES));
        reply.statfs(blocks, free, free, 1, 0, BLOCK_BYTES, 255, BLOCK_BYTES);
    }
}
