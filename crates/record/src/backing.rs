//! System calls on the backing directory.

use std::{
    ffi::{CString, OsStr},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use fuser::{FileAttr, FileType, INodeNo};
use rustix::{
    fs::{AtFlags, FileType as Kind, Mode, OFlags, Stat},
    io::Errno,
};
use senesce_core::RelPath;

use crate::{Error, Result, table::ROOT};

/// The directory to which the recorder passes all requests.
#[derive(Debug)]
pub(crate) struct Backing {
    pub path: PathBuf,
    root: OwnedFd,
    stat: Stat,
}

impl Backing {
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened =
            rustix::fs::open(path, flags, Mode::empty()).and_then(|root| Ok((rustix::fs::fstat(&root)?, root)));
        let (stat, root) = opened.map_err(|errno| Error::io("open the backing directory", path)(errno.into()))?;
        Ok(Self { path: path.to_owned(), root, stat })
    }

    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Whether the same directory is still at its path.
    pub fn is_there(&self) -> bool {
        let found = rustix::fs::stat(&self.path);
        found.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (self.stat.st_dev, self.stat.st_ino))
    }

    /// Returns the number of a file for FUSE and the table. Errors: the file is on another file
    /// system.
    pub fn number(&self, stat: &Stat) -> std::result::Result<u64, Errno> {
        match stat.st_ino {
            _ if stat.st_dev != self.stat.st_dev => Err(Errno::XDEV),
            ino if ino == self.stat.st_ino => Ok(ROOT),
            // `ROOT` denotes the root, and no file has this number.
            ROOT => Ok(u64::MAX),
            ino => Ok(ino),
        }
    }

    /// Returns an O_PATH descriptor of the file.
    pub fn place(&self, path: &RelPath) -> std::result::Result<OwnedFd, Errno> {
        rustix::fs::openat(
            &self.root,
            c_path(path).as_c_str(),
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
    }

    pub fn stat(&self, path: &RelPath) -> std::result::Result<Stat, Errno> {
        rustix::fs::statat(&self.root, c_path(path).as_c_str(), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Returns the names in a directory with their types, without `.` and `..`, in the backing
    /// directory's order.
    pub fn list(&self, path: &RelPath) -> std::result::Result<Vec<(CString, u64, Kind)>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&self.root, c_path(path).as_c_str(), flags, Mode::empty())?;
        let mut out = Vec::new();
        for entry in rustix::fs::Dir::new(dir)? {
            let entry = entry?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                out.push((entry.file_name().to_owned(), entry.ino(), entry.file_type()));
            }
        }
        Ok(out)
    }
}

/// Returns a path relative to the root for a system call.
pub(crate) fn c_path(path: &RelPath) -> CString {
    let bytes = if path.is_root() { b"." } else { path.as_bytes() };
    CString::new(bytes).expect("a RelPath holds no NUL")
}

/// Returns a name below a path. Errors: an invalid name.
pub(crate) fn below(parent: &RelPath, name: &OsStr) -> std::result::Result<RelPath, Errno> {
    RelPath::new(name.as_bytes()).map(|name| parent.join(&name)).map_err(|_| Errno::INVAL)
}

/// Returns the kernel's link to an open file. Calls that accept only paths reach exactly that file
/// through it.
pub(crate) fn proc_path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens the file of an O_PATH descriptor.
pub(crate) fn reopen(place: &OwnedFd, flags: OFlags) -> std::result::Result<File, Errno> {
    rustix::fs::open(proc_path(place), flags | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

/// Returns the attributes of a file as FUSE needs them.
pub(crate) fn attributes(ino: u64, stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(ino),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: SystemTime::UNIX_EPOCH,
        kind: kind(Kind::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

pub(crate) fn kind(kind: Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let second = match u64::try_from(seconds) {
        Ok(after) => SystemTime::UNIX_EPOCH + Duration::from_secs(after),
        Err(_) => SystemTime::UNIX_EPOCH - Duration::from_secs(seconds.unsigned_abs()),
    };
    second + Duration::from_nanos(nanoseconds)
}

/// Returns the number of a system error.
pub(crate) fn errno(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}
