//! A pass-through file system: the least that an engine with the same FUSE adapter can cost.
//!
//! Every call becomes system calls on a directory of a kernel file system. It keeps nothing but
//! descriptors.

use std::{
    collections::HashMap,
    ffi::OsStr,
    ops::ControlFlow,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_OMIT},
    io::Errno,
    process::{Gid, Resource, Rlimit, Uid},
};
use senesce_fsapi::{
    Attributes, Caller, DirEntry, FallocateMode, FileKind, FileSystem, FsError, FsResult, Ino, NewNode, RenameMode,
    SeekTo, SetAttributes, SetXattrMode, SpaceReport, Timestamp,
};

/// An inode that the kernel knows.
struct Node {
    /// Opened with `O_PATH`, or to read and write if this process made it.
    place: OwnedFd,
    contents: OnceLock<OwnedFd>,
    is_made: bool,
    held: Mutex<u64>,
}

impl Node {
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.place.as_raw_fd())
    }

    fn contents(&self) -> FsResult<&OwnedFd> {
        if self.is_made {
            return Ok(&self.place);
        }
        if let Some(contents) = self.contents.get() {
            return Ok(contents);
        }
        let how = OFlags::RDWR | OFlags::CLOEXEC;
        let contents = rustix::fs::open(self.path(), how, Mode::empty()).map_err(failed)?;
        Ok(self.contents.get_or_init(|| contents))
    }
}

/// One name of a directory, as it is listed.
struct Listed {
    name: Vec<u8>,
    ino: Ino,
    kind: FileKind,
}

/// A directory of another file system.
pub struct Floor {
    root: u64,
    nodes: Mutex<HashMap<Ino, Arc<Node>>>,
    listings: Mutex<HashMap<Ino, Arc<Vec<Listed>>>>,
}

fn failed(error: impl Into<std::io::Error>) -> FsError {
    let error: std::io::Error = error.into();
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => FsError::NotFound,
        Some(Errno::EXIST) => FsError::Exists,
        Some(Errno::NOTEMPTY) => FsError::NotEmpty,
        Some(Errno::NOTDIR) => FsError::NotDirectory,
        Some(Errno::ISDIR) => FsError::IsDirectory,
        Some(Errno::NOSPC) => FsError::NoSpace,
        Some(Errno::INVAL) => FsError::Invalid { what: "what the file system below refuses" },
        _ => FsError::Io { what: "the file system below failed", source: error.into() },
    }
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::File,
    }
}

fn name_of(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

impl Floor {
    /// Serves a directory. Errors: it cannot be opened.
    pub fn new(directory: &Path) -> FsResult<Self> {
        // One descriptor or two for each inode that the kernel knows.
        let most = rustix::process::getrlimit(Resource::Nofile).maximum;
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).map_err(failed)?;
        let place = rustix::fs::open(directory, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let root = rustix::fs::fstat(&place).map_err(failed)?.st_ino;
        let node = Arc::new(Node { place, contents: OnceLock::new(), is_made: false, held: Mutex::new(1) });
        let nodes = Mutex::new(HashMap::from([(Ino::ROOT, node)]));
        Ok(Self { root, nodes, listings: Mutex::default() })
    }

    fn node(&self, ino: Ino) -> FsResult<Arc<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(&ino).cloned().ok_or(FsError::Stale)
    }

    fn ino(&self, below: u64) -> Ino {
        if below == self.root { Ino::ROOT } else { Ino(below) }
    }

    fn attributes_of(&self, stat: &Stat) -> Attributes {
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        Attributes {
            ino: self.ino(stat.st_ino),
            generation: 0,
            kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
            permissions: stat.st_mode & 0o7777,
            links: stat.st_nlink as u32,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: stat.st_size as u64,
            allocated: stat.st_blocks as u64 * 512,
            device: stat.st_rdev as u32,
            accessed: time(stat.st_atime, stat.st_atime_nsec as u32),
            modified: time(stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: time(stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }

    /// Keeps a descriptor, unless the inode has one.
    fn keep(&self, place: OwnedFd, is_made: bool) -> FsResult<Attributes> {
        let found = self.attributes_of(&rustix::fs::fstat(&place).map_err(failed)?);
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = || Arc::new(Node { place, contents: OnceLock::new(), is_made, held: Mutex::new(0) });
        nodes.entry(found.ino).or_insert_with(node);
        Ok(found)
    }

    fn forget_listing(&self, directory: Ino) {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).remove(&directory);
    }

    fn list(&self, directory: Ino) -> FsResult<Arc<Vec<Listed>>> {
        let node = self.node(directory)?;
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(node.path(), how, Mode::empty()).map_err(failed)?;
        let mut listed = Vec::new();
        for entry in Dir::new(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = kind_of(entry.file_type());
            listed.push(Listed { name: name.to_vec(), ino: self.ino(entry.ino()), kind });
        }
        Ok(Arc::new(listed))
    }
}

impl FileSystem for Floor {
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = rustix::fs::openat(&self.node(directory)?.place, name_of(name), how, Mode::empty());
        self.keep(place.map_err(failed)?, false)
    }

    fn attributes(&self, ino: Ino) -> FsResult<Attributes> {
        let stat = rustix::fs::fstat(&self.node(ino)?.place).map_err(failed)?;
        Ok(self.attributes_of(&stat))
    }

    fn set_attributes(&self, _: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes> {
        let node = self.node(ino)?;
        let path = node.path();
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
            rustix::fs::chownat(&node.place, "", uid, gid, AtFlags::EMPTY_PATH).map_err(failed)?;
        }
        if let Some(bits) = change.permissions {
            rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(bits), AtFlags::empty()).map_err(failed)?;
        }
        if let Some(size) = change.size {
            rustix::fs::ftruncate(node.contents()?, size).map_err(failed)?;
        }
        if change.accessed.is_some() || change.modified.is_some() {
            let spec = |time: Option<Timestamp>| match time {
                Some(time) => Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() },
                None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            };
            let times = Timestamps { last_access: spec(change.accessed), last_modification: spec(change.modified) };
            rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).map_err(failed)?;
        }
        self.attributes(ino)
    }

    fn make_node(&self, _: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes> {
        self.forget_listing(directory);
        let (parent, name) = (self.node(directory)?, name_of(name));
        let mode = Mode::from_raw_mode(node.permissions);
        match node.kind {
            FileKind::File => {
                let how = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
                let made = rustix::fs::openat(&parent.place, name, how, mode).map_err(failed)?;
                self.keep(made, true)
            }
            FileKind::Directory => {
                rustix::fs::mkdirat(&parent.place, name, mode).map_err(failed)?;
                self.lookup(directory, name.as_bytes())
            }
            _ => Err(FsError::Unsupported),
        }
    }

    fn symlink(&self, _: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes> {
        self.forget_listing(directory);
        let place = &self.node(directory)?.place;
        rustix::fs::symlinkat(name_of(target), place, name_of(name)).map_err(failed)?;
        self.lookup(directory, name)
    }

    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>> {
        let target = rustix::fs::readlinkat(&self.node(ino)?.place, "", Vec::new()).map_err(failed)?;
        Ok(target.into_bytes())
    }

    fn link(&self, _: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.forget_listing(directory);
        let (from, parent) = (self.node(ino)?.path(), self.node(directory)?);
        rustix::fs::linkat(CWD, &from, &parent.place, name_of(name), AtFlags::SYMLINK_FOLLOW).map_err(failed)?;
        self.attributes(ino)
    }

    fn unlink(&self, _: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.forget_listing(directory);
        rustix::fs::unlinkat(&self.node(directory)?.place, name_of(name), AtFlags::empty()).map_err(failed)
    }

    fn rmdir(&self, _: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.forget_listing(directory);
        rustix::fs::unlinkat(&self.node(directory)?.place, name_of(name), AtFlags::REMOVEDIR).map_err(failed)
    }

    fn rename(&self, _: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()> {
        self.forget_listing(from.0);
        self.forget_listing(to.0);
        let flags = match how {
            RenameMode::Replace => RenameFlags::empty(),
            RenameMode::NoReplace => RenameFlags::NOREPLACE,
            RenameMode::Exchange => RenameFlags::EXCHANGE,
        };
        let (old, new) = (self.node(from.0)?, self.node(to.0)?);
        rustix::fs::renameat_with(&old.place, name_of(from.1), &new.place, name_of(to.1), flags).map_err(failed)
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        let node = self.node(ino)?;
        let file = node.contents()?;
        let mut done = 0;
        while done < out.len() {
            match rustix::io::pread(file, &mut out[done..], offset + done as u64).map_err(failed)? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    fn write(&self, _: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        rustix::io::pwrite(self.node(ino)?.contents()?, data, offset).map_err(failed)
    }

    fn allocate(&self, _: &Caller, _: Ino, _: FallocateMode, _: u64, _: u64) -> FsResult<()> {
        Err(FsError::Unsupported)
    }

    fn seek(&self, _: Ino, _: u64, _: SeekTo) -> FsResult<u64> {
        Err(FsError::Unsupported)
    }

    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()> {
        let kept = self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(&directory).cloned();
        let listed = match kept {
            Some(listed) if cookie > 0 => listed,
            _ => {
                let listed = self.list(directory)?;
                let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
                listings.insert(directory, listed.clone());
                listed
            }
        };
        for (number, entry) in listed.iter().enumerate().skip(cookie as usize) {
            // A listing with attributes asks for inodes that the kernel does not know yet.
            if self.lookup(directory, &entry.name).is_err() {
                continue;
            }
            let found = DirEntry { ino: entry.ino, kind: entry.kind, cookie: number as u64 + 1, name: &entry.name };
            if sink(found).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        let mut value = vec![0; 1 << 16];
        match rustix::fs::getxattr(self.node(ino)?.path(), name_of(name), &mut value[..]) {
            Ok(bytes) => {
                value.truncate(bytes);
                Ok(value)
            }
            Err(Errno::NODATA) => Err(FsError::NoAttribute),
            Err(error) => Err(failed(error)),
        }
    }

    fn set_xattr(&self, _: &Caller, _: Ino, _: &[u8], _: &[u8], _: SetXattrMode) -> FsResult<()> {
        Err(FsError::Unsupported)
    }

    fn list_xattrs(&self, _: Ino) -> FsResult<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    fn remove_xattr(&self, _: &Caller, _: Ino, _: &[u8]) -> FsResult<()> {
        Err(FsError::NoAttribute)
    }

    fn open(&self, ino: Ino) -> FsResult<()> {
        *self.node(ino)?.held.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Ok(())
    }

    fn release(&self, ino: Ino, _: Timestamp) -> FsResult<()> {
        let node = self.node(ino)?;
        let mut held = node.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = held.saturating_sub(1);
        if *held == 0 {
            self.nodes.lock().unwrap_or_else(PoisonError::into_inner).remove(&ino);
        }
        Ok(())
    }

    fn sync(&self, ino: Ino) -> FsResult<()> {
        let node = self.node(ino)?;
        let opened = rustix::fs::open(node.path(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        rustix::fs::fsync(opened).map_err(failed)
    }

    fn sync_all(&self) -> FsResult<()> {
        let path = self.node(Ino::ROOT)?.path();
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        rustix::fs::syncfs(opened).map_err(failed)
    }

    fn space(&self) -> FsResult<SpaceReport> {
        let found = rustix::fs::fstatvfs(&self.node(Ino::ROOT)?.place).map_err(failed)?;
        Ok(SpaceReport {
            block_bytes: found.f_bsize as u32,
            blocks: found.f_blocks,
            free: found.f_bfree,
            available: found.f_bavail,
            inodes: found.f_files,
            free_inodes: found.f_ffree,
        })
    }
}
