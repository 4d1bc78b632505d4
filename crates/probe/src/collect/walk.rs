//! The walk over a tree: depth first, relative to open directories. It skips `stat` calls that the
//! entry's type makes needless.

use std::{
    borrow::Cow,
    ffi::{CStr, OsStr},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat},
    io::Errno,
    path::Arg,
};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The order of the entries of each directory. The content of a directory comes at the position of
/// the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The order of the file system's listing, which `grep -r` sees.
    #[default]
    Readdir,
    /// By name, byte by byte.
    Sorted,
    /// By inode number.
    Inode,
}

/// A file or directory that could not be measured. The walk continues with the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemError {
    /// The failed operation.
    pub operation: Cow<'static, str>,
    /// Its path, from the root of the walk.
    pub path: PathBuf,
    /// The system's error message.
    pub message: String,
    /// The error number (`errno`), if it is an error of the system.
    pub errno: Option<i32>,
}

impl ItemError {
    pub(crate) fn new(operation: &'static str, path: &[u8], source: impl Into<io::Error>) -> Self {
        let path = PathBuf::from(OsStr::from_bytes(path));
        let source = source.into();
        Self { operation: operation.into(), path, message: source.to_string(), errno: source.raw_os_error() }
    }
}

/// The type of an entry, as far as the walk needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Other,
}

/// Receives the entries of the walk. `path` is relative to the root; `name` opens relative to
/// `directory`.
pub(crate) trait Visitor {
    /// Additional flags to open directories. If the file system does not permit them, the call is
    /// repeated without them.
    fn open_flags(&self) -> OFlags {
        OFlags::empty()
    }
    /// Whether to enter an opened directory; not called for the root.
    fn enters(&mut self, _directory: BorrowedFd<'_>, _stat: &Stat, _path: &[u8]) -> bool {
        true
    }
    /// An opened directory that will be listed; the root comes first, with an empty path.
    fn directory(&mut self, _directory: BorrowedFd<'_>, _stat: &Stat, _path: &[u8]) {}
    /// A regular file.
    fn file(&mut self, directory: BorrowedFd<'_>, name: &CStr, path: &[u8]) -> Result<(), Error>;
    /// Returns an error to stop the walk; called for every entry.
    fn check(&mut self) -> Result<(), Error> {
        Ok(())
    }
    /// A symlink or special file. No walk opens these.
    fn other(&mut self, _path: &[u8]) {}
    /// An entry that could not be opened or listed.
    fn failed(&mut self, error: ItemError);
}

struct Entry {
    name_at: usize,
    name_len: usize,
    inode: u64,
    kind: Kind,
}

/// An open directory with its entries, all read before the first is visited (as fts does for
/// `grep -r`).
struct Frame {
    fd: OwnedFd,
    /// The entries' names, each with its terminating NUL.
    names: Vec<u8>,
    entries: Vec<Entry>,
    next: usize,
    path_len: usize,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// Walks the tree below `root`, which may be a symlink to a directory; no other symlink is
/// followed.
///
/// Errors: the root cannot be opened or listed, or the visitor returns an error. Cost: one
/// descriptor per level, and memory for the entries of the directories on the current path.
pub(crate) fn walk(root: &Path, order: Order, visitor: &mut impl Visitor) -> Result<(), Error> {
    let mut list = Vec::<u8>::with_capacity(32 * 1024);
    let mut path = Vec::<u8>::new();
    let more = visitor.open_flags();
    let root_fd = open_directory(CWD, root, DIRECTORY.difference(OFlags::NOFOLLOW), more)
        .map_err(|source| Error::system("open directory", root, source))?;
    let stat = rustix::fs::fstat(&root_fd).map_err(|source| Error::system("stat", root, source))?;
    visitor.directory(root_fd.as_fd(), &stat, &path);
    let frame = read_directory(root_fd, order, 0, &mut list).map_err(|source| Error::system("list", root, source))?;
    let mut stack = vec![frame];
    while let Some(frame) = stack.last_mut() {
        path.truncate(frame.path_len);
        let Some(entry) = frame.entries.get(frame.next) else {
            stack.pop();
            continue;
        };
        visitor.check()?;
        frame.next += 1;
        let name = CStr::from_bytes_with_nul(&frame.names[entry.name_at..entry.name_at + entry.name_len])
            .expect("names have a terminating NUL");
        if frame.path_len > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        match entry.kind {
            Kind::File => visitor.file(frame.fd.as_fd(), name, &path)?,
            Kind::Other => visitor.other(&path),
            Kind::Directory => match enter(frame.fd.as_fd(), name, order, &path, &mut list, visitor) {
                Ok(Some(below)) => stack.push(below),
                Ok(None) => {}
                Err((operation, source)) => visitor.failed(ItemError::new(operation, &path, source)),
            },
        }
    }
    Ok(())
}

/// Opens and lists a subdirectory; none if the visitor rejects it.
fn enter(
    parent: BorrowedFd<'_>,
    name: &CStr,
    order: Order,
    path: &[u8],
    list: &mut Vec<u8>,
    visitor: &mut impl Visitor,
) -> Result<Option<Frame>, (&'static str, Errno)> {
    let fd =
        open_directory(parent, name, DIRECTORY, visitor.open_flags()).map_err(|errno| ("open directory", errno))?;
    let stat = rustix::fs::fstat(&fd).map_err(|errno| ("stat", errno))?;
    if !visitor.enters(fd.as_fd(), &stat, path) {
        return Ok(None);
    }
    visitor.directory(fd.as_fd(), &stat, path);
    read_directory(fd, order, path.len(), list).map(Some).map_err(|errno| ("list", errno))
}

/// Opens a directory with additional flags if they are permitted (only a file's owner may preserve
/// its access time).
fn open_directory(
    parent: BorrowedFd<'_>,
    name: impl Arg + Copy,
    flags: OFlags,
    more: OFlags,
) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat(parent, name, flags | more, Mode::empty()) {
        Err(Errno::PERM) if !more.is_empty() => rustix::fs::openat(parent, name, flags, Mode::empty()),
        result => result,
    }
}

fn read_directory(fd: OwnedFd, order: Order, path_len: usize, list: &mut Vec<u8>) -> rustix::io::Result<Frame> {
    let mut names = Vec::with_capacity(1024);
    let mut entries = Vec::with_capacity(32);
    list.clear();
    let mut dir = RawDir::new(fd.as_fd(), list.spare_capacity_mut());
    while let Some(entry) = dir.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            // Some file systems leave the type out of their listings.
            let stat = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW);
            kind = stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
        }
        let kind = match kind {
            FileType::Directory => Kind::Directory,
            FileType::RegularFile => Kind::File,
            _ => Kind::Other,
        };
        let bytes = name.to_bytes_with_nul();
        entries.push(Entry { name_at: names.len(), name_len: bytes.len(), inode: entry.ino(), kind });
        names.extend_from_slice(bytes);
    }
    match order {
        Order::Readdir => {}
        Order::Sorted => {
            entries.sort_unstable_by(|a, b| {
                names[a.name_at..a.name_at + a.name_len].cmp(&names[b.name_at..b.name_at + b.name_len])
            });
        }
        Order::Inode => entries.sort_by_key(|entry| entry.inode),
    }
    Ok(Frame { fd, names, entries, next: 0, path_len })
}
