//! The FUSE side: translates requests for the recorder and makes no decisions.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::io::Errno as SystemErrno;

use crate::{
    backing::kind,
    changes::Wanted,
    recorder::{Answer, Recorder, Who},
    relay::{LARGEST_WRITE, NAMELESS},
};

/// All changes pass through this mount, so cached entries stay valid.
const VALID: Duration = Duration::from_secs(60);

/// The file system of the kernel's FUSE driver. `None` after the recording.
pub(crate) struct RecordFs(pub Arc<Mutex<Option<Recorder>>>);

impl RecordFs {
    fn lock(&self) -> MutexGuard<'_, Option<Recorder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Recorder) -> Answer<T>) -> Result<T, Errno> {
        let mut recorder = self.lock();
        let recorder = recorder.as_mut().ok_or(Errno::EIO)?;
        act(recorder).map_err(said)
    }
}

fn said(errno: SystemErrno) -> Errno {
    Errno::from_i32(errno.raw_os_error())
}

fn who(request: &Request) -> Who {
    Who { pid: request.pid(), uid: request.uid(), gid: request.gid() }
}

fn entry(reply: ReplyEntry, found: Result<(FileAttr, u64), Errno>) {
    match found {
        Ok((found, generation)) => reply.entry(&VALID, &found, Generation(generation)),
        Err(errno) => reply.error(errno),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn xattr(reply: ReplyXattr, size: u32, found: Result<(Vec<u8>, usize), Errno>) {
    match found {
        Ok((_, length)) if size == 0 => reply.size(length as u32),
        Ok((bytes, _)) => reply.data(&bytes),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for RecordFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(LARGEST_WRITE);
        let _ = config.add_capabilities(InitFlags::FUSE_CACHE_SYMLINKS);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.with(|recorder| recorder.lookup(parent.0, name)));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.with(|recorder| recorder.getattr(ino.0)) {
            Ok(found) => reply.attr(&VALID, &found),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let handle = handle.map(|handle| handle.0);
        let wanted = Wanted { mode, uid, gid, size, accessed, modified, handle };
        match self.with(|recorder| recorder.setattr(who(request), ino.0, &wanted)) {
            Ok(found) => reply.attr(&VALID, &found),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.with(|recorder| recorder.readlink(ino.0)) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, self.with(|recorder| recorder.mknod(who(request), parent.0, name, mode, device)));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        entry(reply, self.with(|recorder| recorder.mkdir(who(request), parent.0, name, mode)));
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.with(|recorder| recorder.unlink(who(request), parent.0, name)));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.with(|recorder| recorder.rmdir(who(request), parent.0, name)));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        entry(reply, self.with(|recorder| recorder.symlink(who(request), parent.0, name, target)));
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        empty(reply, self.with(|recorder| recorder.rename(who(request), from, to, flags.bits())));
    }

    fn link(&self, request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.with(|recorder| recorder.link(who(request), ino.0, parent.0, name)));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = self.with(|recorder| match name == NAMELESS {
            true => recorder.create_nameless(who(request), parent.0, mode, flags),
            false => recorder.create(who(request), parent.0, name, mode, flags),
        });
        match created {
            Ok((found, generation, handle)) => {
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&VALID, &found, Generation(generation), FileHandle(handle), flags);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.with(|recorder| recorder.open(ino.0, flags.0)) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE),
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.with(|recorder| recorder.read(handle.0, offset, size)) {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.with(|recorder| recorder.write(who(request), handle.0, offset, bytes)) {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(errno),
        }
    }

    fn release(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let released = self.with(|recorder| {
            recorder.release(who(request), handle.0);
            Ok(())
        });
        empty(reply, released);
    }

    fn fsync(&self, request: &Request, ino: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        empty(reply, self.with(|recorder| recorder.fsync(who(request), ino.0, Some(handle.0), data_only)));
    }

    fn fsyncdir(&self, request: &Request, ino: INodeNo, _: FileHandle, data_only: bool, reply: ReplyEmpty) {
        empty(reply, self.with(|recorder| recorder.fsync(who(request), ino.0, None, data_only)));
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.with(|recorder| recorder.opendir(ino.0)) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.with(|recorder| recorder.listing(handle.0, offset == 0)) {
            Ok(entries) => {
                for (index, (name, ino, file_type)) in entries.iter().enumerate().skip(offset as usize) {
                    let name = OsStr::from_bytes(name.as_bytes());
                    if reply.add(INodeNo(*ino), index as u64 + 1, kind(*file_type), name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        let released = self.with(|recorder| {
            recorder.handles.remove(&handle.0);
            Ok(())
        });
        empty(reply, released);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.with(|recorder| rustix::fs::fstatfs(recorder.backing.root())) {
            Ok(found) => reply.statfs(
                found.f_blocks,
                found.f_bfree,
                found.f_bavail,
                found.f_files,
                found.f_ffree,
                found.f_bsize as u32,
                found.f_namelen as u32,
                found.f_frsize as u32,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.with(|recorder| recorder.setxattr(who(request), ino.0, name, value, flags)));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        xattr(reply, size, self.with(|recorder| recorder.getxattr(ino.0, name, size)));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        xattr(reply, size, self.with(|recorder| recorder.listxattr(ino.0, size)));
    }

    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.with(|recorder| recorder.removexattr(who(request), ino.0, name)));
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.with(|recorder| recorder.fallocate(who(request), handle.0, offset, length, mode)));
    }

    fn lseek(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        match self.with(|recorder| recorder.seek(handle.0, offset, whence)) {
            Ok(at) => reply.offset(at),
            Err(errno) => reply.error(errno),
        }
    }
}
