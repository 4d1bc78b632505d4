//! Translates requests of the kernel into calls of the trait.

use std::{
    cell::RefCell,
    ffi::OsStr,
    io,
    ops::Deref,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use senesce_fsapi::{
    Attributes, Caller, FileKind, FileSystem, FsError, FsResult, Ino, MAX_NAME_BYTES, NewNode, ReadBegun,
    SetAttributes, SetXattrMode,
};

use crate::{
    Alarm,
    convert::{allocate_how, errno, file_attr, rename_how, seek_to, time_or_now, timestamp},
    copy::copy_range,
    held_inodes::Holds,
    mount::{End, Now, is_mounted},
    remote_reads::Waiting,
    reply::{attributes, check_xattr, data, empty, ino, not_there, sized, written},
    write_modes::{KernelNotifier, KernelPages, Writing, drop_with, write_all},
};

/// The validity of cached attributes and names: all changes come through the mount.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);
/// The largest write request. The kernel limits it further, usually to 1 MiB.
const LARGEST_WRITE: u32 = 1 << 20;

// xattr(7)
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

thread_local! {
    /// The buffer for replies to reads.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The FUSE server of one file system.
pub(crate) struct Adapter {
    fs: Arc<dyn FileSystem>,
    now: Now,
    holds: Holds,
    writing: Writing,
    /// The source of the mount in the list of mounts.
    source: String,
    end: Arc<Mutex<End>>,
    waiting: Waiting,
    alarm: Arc<Alarm>,
}

/// The caller of a request that changes something. Dropping it after the call raises the alarm.
pub(crate) struct Changer<'a> {
    caller: Caller,
    alarm: &'a Alarm,
}

impl Deref for Changer<'_> {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Drop for Changer<'_> {
    fn drop(&mut self) {
        self.alarm.note_change();
    }
}

impl Adapter {
    pub(crate) fn new(
        fs: Arc<dyn FileSystem>,
        (source, end): (String, Arc<Mutex<End>>),
        now: Now,
        pages: KernelPages,
        alarm: Arc<Alarm>,
    ) -> Self {
        let (holds, writing) = (Holds::default(), Writing::new(pages));
        Self { fs, now, holds, writing, source, end, waiting: Waiting::default(), alarm }
    }

    pub(crate) fn notifier(&self) -> KernelNotifier {
        self.writing.notifier()
    }

    pub(crate) fn fs(&self) -> &dyn FileSystem {
        self.fs.as_ref()
    }

    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }

    pub(crate) fn forget_once(&self, ino: Ino) -> FsResult<()> {
        self.holds.forget(self.fs(), ino, 1, (self.now)())
    }

    /// The caller of a request that changes something; it must live until the change is complete.
    fn caller(&self, request: &Request) -> Changer<'_> {
        let caller = Caller { uid: request.uid(), gid: request.gid(), now: (self.now)() };
        Changer { caller, alarm: &self.alarm }
    }

    /// Replies with an inode, and counts that the kernel knows it.
    fn entry(&self, reply: ReplyEntry, found: FsResult<Attributes>) {
        match found.and_then(|found| self.holds.hold(self.fs(), found.ino).map(|()| found)) {
            Ok(found) => reply.entry(&FOR_EVER, &file_attr(&found), Generation(found.generation)),
            Err(error) => reply.error(errno(&error)),
        }
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The kernel's own limit applies if it is smaller.
        let _ = config.set_max_write(LARGEST_WRITE);
        // A mount works without each of these, so the error for an unsupported one is ignored.
        // FUSE_ASYNC_DIO is not enabled: after asynchronous direct writes, pages that were read
        // meanwhile would stay outdated.
        for capability in [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_EXPORT_SUPPORT,
            InitFlags::FUSE_BIG_WRITES,
            InitFlags::FUSE_MAX_PAGES,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_NO_OPEN_SUPPORT,
            InitFlags::FUSE_NO_OPENDIR_SUPPORT,
            InitFlags::FUSE_CACHE_SYMLINKS,
            // Otherwise the kernel requests the capabilities of a file before every write.
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
        ] {
            let _ = config.add_capabilities(capability);
        }
        self.writing.agree(config);
        Ok(())
    }

    fn destroy(&mut self) {
        // The kernel removes an unmounted file system from the list before it closes the
        // connection.
        let is_aborted = is_mounted(&self.source);
        self.waiting.join();
        let released = self.holds.forget_all(self.fs(), (self.now)());
        // Sync even if the removal of nameless inodes failed: all written data must be durable.
        let synced = self.fs.sync_all();
        let end = End { not_durable: synced.err(), not_removed: released.err(), is_aborted };
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = match name.as_bytes() {
            // The inode itself, which may be any kind: a program or a file server kept a handle of
            // it.
            b"." => self.fs.attributes(ino(parent)),
            name => self.fs.lookup(ino(parent), name),
        };
        match found {
            Err(FsError::NotFound) => reply.entry(&FOR_EVER, &not_there(), Generation(0)),
            found => self.entry(reply, found),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        // The request has no reply. If it fails, the next opening of the file system removes the
        // inode.
        let _ = self.holds.forget(self.fs(), ino(number), times, (self.now)());
        // The call may have removed an inode without a name.
        self.alarm.note_change();
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attributes(reply, self.fs.attributes(ino(number)));
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let caller = self.caller(request);
        let mut change = SetAttributes {
            permissions: mode.map(|mode| mode & 0o7777),
            uid,
            gid,
            size,
            accessed: accessed.map(|time| time_or_now(time, caller.now)),
            modified: modified.map(|time| time_or_now(time, caller.now)),
            changed: changed.map(timestamp),
        };
        let done = drop_with(self.fs(), &caller, request.pid(), ino(number), &mut change)
            .and_then(|()| self.fs.set_attributes(&caller, ino(number), &change));
        attributes(reply, done);
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.fs.read_link(ino(number)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(errno(&error)),
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
        let Some(kind) = FileKind::from_mode(mode) else { return reply.error(Errno::EINVAL) };
        let node = NewNode { kind, permissions: mode & 0o7777, device };
        self.entry(reply, self.fs.make_node(&self.caller(request), ino(parent), name.as_bytes(), &node));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let node = NewNode::directory(mode & 0o7777);
        self.entry(reply, self.fs.make_node(&self.caller(request), ino(parent), name.as_bytes(), &node));
    }

    /// Creates and opens a file, if writes can bypass its pages, which needs a handle. Otherwise
    /// the kernel uses `mknod` from then on. It then opens the file itself, which saves the request
    /// to release it.
    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        open: i32,
        reply: ReplyCreate,
    ) {
        if !self.writing.has_handles() {
            return reply.error(Errno::ENOSYS);
        }
        let node = NewNode::file(mode & 0o7777);
        let made = self.fs.make_node(&self.caller(request), ino(parent), name.as_bytes(), &node);
        match made.and_then(|made| self.holds.hold(self.fs(), made.ino).map(|()| made)) {
            Ok(made) => {
                let (found, generation) = (file_attr(&made), Generation(made.generation));
                let (handle, flags) = self.writing.open_new(open);
                reply.created(&FOR_EVER, &found, generation, handle, flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.fs.unlink(&self.caller(request), ino(parent), name.as_bytes()));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.fs.rmdir(&self.caller(request), ino(parent), name.as_bytes()));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        self.entry(reply, self.fs.symlink(&self.caller(request), ino(parent), name.as_bytes(), target));
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
        let Some(how) = rename_how(flags) else { return reply.error(Errno::EINVAL) };
        let (from, to) = ((ino(parent), name.as_bytes()), (ino(new_parent), new_name.as_bytes()));
        empty(reply, self.fs.rename(&self.caller(request), from, to, how));
    }

    fn link(&self, request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, self.fs.link(&self.caller(request), ino(number), ino(parent), name.as_bytes()));
    }

    // The error ENOSYS makes the kernel open files without a request from then on.

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    /// Releases a handle of `create`.
    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            let own = &mut buffer[..size as usize];
            match self.fs.begin_read(ino(number), offset, own) {
                ReadBegun::Done(done) => data(reply, own, done),
                ReadBegun::Waits(rest) => self.waiting.begin(rest, size as usize, reply),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let caller = self.caller(request);
        let before = self.writing.before_write(self.fs(), &caller, (ino(number), handle), flags);
        let done = before.and_then(|()| match flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            true => write_all(self.fs(), &caller, ino(number), offset, bytes).map(|()| bytes.len()),
            false => self.fs.write(&caller, ino(number), offset, bytes),
        });
        written(reply, done.map(|bytes| bytes as u64));
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.fs.sync(ino(number)));
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.fs.sync(ino(number)));
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.list_names(ino(number), offset, reply);
    }

    fn readdirplus(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.list_attributes(ino(number), offset, reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.fs.space() {
            Ok(space) => reply.statfs(
                space.blocks,
                space.free,
                space.available,
                space.inodes,
                space.free_inodes,
                space.block_bytes,
                MAX_NAME_BYTES as u32,
                space.block_bytes,
            ),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let how = match flags {
            0 => SetXattrMode::Any,
            XATTR_CREATE => SetXattrMode::Create,
            XATTR_REPLACE => SetXattrMode::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let done =
            check_xattr(name).and_then(|name| self.fs.set_xattr(&self.caller(request), ino(number), name, value, how));
        empty(reply, done);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        sized(reply, size, check_xattr(name).and_then(|name| self.fs.get_xattr(ino(number), name)));
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.fs.list_xattrs(ino(number));
        let joined = names.map(|names| names.into_iter().flat_map(|name| [name, vec![0]].concat()).collect());
        sized(reply, size, joined);
    }

    fn removexattr(&self, request: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = check_xattr(name).and_then(|name| self.fs.remove_xattr(&self.caller(request), ino(number), name));
        empty(reply, done);
    }

    fn fallocate(
        &self,
        request: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(how) = allocate_how(mode, self.fs.keeps_reservations()) else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        empty(reply, self.fs.allocate(&self.caller(request), ino(number), how, offset, len));
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _: FileHandle,
        to_offset: u64,
        len: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let (from, to) = ((ino(from), from_offset), (ino(to), to_offset));
        written(reply, copy_range(self.fs(), &self.caller(request), from, to, len));
    }

    fn lseek(&self, _: &Request, number: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        // The kernel has data that the engine does not have yet. Without a reply the kernel treats
        // the whole file as data.
        if self.writing.is_kept() {
            return reply.error(Errno::ENOSYS);
        }
        let Some(what) = seek_to(whence) else { return reply.error(Errno::EINVAL) };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        match self.fs.seek(ino(number), offset, what) {
            Ok(at) => reply.offset(at as i64),
            Err(error) => reply.error(errno(&error)),
        }
    }
}
