//! A survey: every file and directory of a tree with its extents and times. It causes no write and
//! crosses no mount.
//!
//! The extent map of an experiment ([`collect_tree_extents`](super::collect_tree_extents)) writes
//! dirty data first. A survey reads file systems in use and changes nothing. It also keeps access
//! times, if the caller has the right to.

use std::{
    ffi::{CStr, OsStr},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, Statx, StatxFlags},
    io::Errno,
};
use senesce_core::{RelPath, Space};
use serde::{Deserialize, Serialize};

use super::{
    collect_space,
    extents::map_file,
    ioctl::Fiemap,
    walk::{ItemError, Order, Visitor, walk},
};
use crate::{Error, map::RawExtent};

/// Entries of a part, the unit of work of a thread. The number of parts per thread bounds the
/// memory.
const ENTRIES_PER_PART: usize = 256;
const PARTS_PER_THREAD: usize = 2;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
}

/// A file or directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Its path from the root of the survey; the root itself has the empty path.
    pub path: RelPath,
    /// Its type.
    pub kind: EntryKind,
    /// Its inode number.
    pub inode: u64,
    /// The number of its names.
    pub links: u64,
    /// Whether it is a file that some user may execute.
    pub is_executable: bool,
    /// Size of its content, bytes.
    pub size_bytes: u64,
    /// Its allocated bytes: `st_blocks`.
    pub allocated_bytes: u64,
    /// The time of its last content change, seconds since 1970.
    pub modified_unix_seconds: i64,
    /// The time of its creation, if the file system has it.
    pub born_unix_seconds: Option<i64>,
    /// Its extents in file order; empty if the file system does not report those of directories.
    pub extents: Vec<RawExtent>,
}

/// The result of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SurveyFigures {
    /// The address space of every extent.
    pub space: Space,
    /// Regular files, each once.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Further names of files that came before.
    pub further_links: u64,
    /// Mount points that were not entered.
    pub mounts_passed: u64,
    /// Entries that disappeared during the survey.
    pub vanished: u64,
    /// The first errors of single entries.
    pub errors: Vec<ItemError>,
    /// The number of all errors.
    pub errors_count: u64,
}

impl SurveyFigures {
    /// The number of errors that are kept.
    pub const ERRORS_KEPT: usize = 100;
}

/// Surveys the tree below `root` in the order of its directory listings, and passes each entry to
/// `visit`.
///
/// In: `threads` is the number of threads that query the kernel concurrently (0 counts as 1), while
/// the calling thread lists directories and visits; the order does not depend on it. If `visit`
/// returns `false`, the survey stops. Errors: `root` cannot be listed; [`Error::NotSupported`] if
/// the file system does not report locations. Every other failure is in the figures. Cost: memory
/// for 512 entries per thread, and for the inode numbers of files with several names.
pub fn collect_survey(
    root: &Path,
    threads: usize,
    visit: &mut dyn FnMut(Surveyed) -> bool,
) -> Result<SurveyFigures, Error> {
    let space = collect_space(root)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root_fd = rustix::fs::openat(CWD, root, flags, Mode::empty())
        .map_err(|source| Error::system("open directory", root, source))?;
    let mount = mount_of(root_fd.as_fd()).map_err(|source| Error::system("stat", root, source))?;
    let figures = SurveyFigures {
        space,
        files: 0,
        directories: 0,
        further_links: 0,
        mounts_passed: 0,
        vanished: 0,
        errors: Vec::new(),
        errors_count: 0,
    };
    let (unsupported, figures) = std::thread::scope(|scope| {
        let root_fd = root_fd.as_fd();
        let threads = (0..threads.max(1)).map(|_| {
            let (parts, given) = sync_channel::<Part>(PARTS_PER_THREAD);
            let (answers, answered) = sync_channel(PARTS_PER_THREAD);
            scope.spawn(move || {
                let mut looker = Looker { root: root_fd, fiemap: Fiemap::without_writing(), directory: None };
                // If the survey failed, the receiver is gone.
                given.into_iter().map(|part| looker.look_at(part)).all(|looked| answers.send(looked).is_ok());
            });
            (parts, answered)
        });
        let mut surveyor = Surveyor {
            mount,
            threads: threads.collect(),
            given: 0,
            taken: 0,
            part: Part::default(),
            linked: Default::default(),
            visit,
            goes_on: true,
            unsupported: 0,
            figures,
        };
        walk(root, Order::Readdir, &mut surveyor)?;
        surveyor.give();
        while surveyor.taken < surveyor.given {
            surveyor.take();
        }
        Ok::<_, Error>((surveyor.unsupported, surveyor.figures))
    })?;
    if unsupported > 0 && figures.files == 0 {
        let info = rustix::fs::statfs(root).map_err(|source| Error::system("statfs", root, source))?;
        return Err(Error::NotSupported {
            measure: "the map of extents",
            path: root.into(),
            magic: info.f_type as u64 & 0xFFFF_FFFF,
            hint: "ext4, XFS and Btrfs support it",
        });
    }
    Ok(figures)
}

/// The mount of an open file, or its device if the kernel does not report mounts (before 5.8).
/// Subvolumes of Btrfs have devices of their own, so the mount is the better identity.
fn mount_of(fd: BorrowedFd<'_>) -> rustix::io::Result<(u64, u64)> {
    let flags = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
    let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, flags)?;
    match StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID) {
        true => Ok((stat.stx_mnt_id, 0)),
        false => Ok((0, u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor))),
    }
}

/// Entries of one unit of work, in the order of the walk.
#[derive(Default)]
struct Part {
    /// Their paths, concatenated.
    paths: Vec<u8>,
    /// The type of each, and the end of its path.
    entries: Vec<(EntryKind, usize)>,
}

impl Part {
    fn add(&mut self, kind: EntryKind, path: &[u8]) {
        self.paths.extend_from_slice(path);
        self.entries.push((kind, self.paths.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (EntryKind, &[u8])> {
        let mut start = 0;
        self.entries.iter().map(move |&(kind, end)| (kind, &self.paths[std::mem::replace(&mut start, end)..end]))
    }
}

/// A part with its results.
type Looked = (Part, Vec<Result<Found, (&'static str, Errno)>>);

/// An entry as a thread found it.
struct Found {
    entry: Surveyed,
    /// Device and inode.
    identity: (u32, u32, u64),
}

struct Surveyor<'a> {
    mount: (u64, u64),
    /// Channels to and from the threads, which receive parts in turn.
    threads: Vec<(SyncSender<Part>, Receiver<Looked>)>,
    given: usize,
    taken: usize,
    part: Part,
    linked: std::collections::HashSet<(u32, u32, u64)>,
    visit: &'a mut dyn FnMut(Surveyed) -> bool,
    goes_on: bool,
    unsupported: u64,
    figures: SurveyFigures,
}

impl Surveyor<'_> {
    fn add(&mut self, kind: EntryKind, path: &[u8]) {
        self.part.add(kind, path);
        if self.part.entries.len() >= ENTRIES_PER_PART {
            self.give();
        }
    }

    /// Sends the gathered part to the next thread. If the threads have enough parts, it first
    /// receives one result.
    fn give(&mut self) {
        let part = std::mem::take(&mut self.part);
        if self.given - self.taken >= self.threads.len() * PARTS_PER_THREAD {
            self.take();
        }
        // A failed send means that the thread panicked; the panic continues at the end of the
        // scope.
        let turn = self.given % self.threads.len();
        if self.goes_on && self.threads[turn].0.send(part).is_ok() {
            self.given += 1;
        }
    }

    /// Receives the oldest outstanding part, and passes on its entries.
    fn take(&mut self) {
        let turn = self.taken % self.threads.len();
        self.taken += 1;
        let Ok((part, results)) = self.threads[turn].1.recv() else { return };
        if !self.goes_on {
            return;
        }
        for ((_, path), result) in part.iter().zip(results) {
            match result {
                Ok(found) => self.hand_over(found),
                Err((_, Errno::NOENT | Errno::NOTDIR | Errno::STALE)) => self.figures.vanished += 1,
                Err((operation, errno)) => {
                    self.unsupported += u64::from(matches!(errno, Errno::OPNOTSUPP | Errno::NOTTY));
                    self.failed(ItemError::new(operation, path, errno));
                }
            }
        }
    }

    fn hand_over(&mut self, found: Found) {
        match found.entry.kind {
            EntryKind::Directory => self.figures.directories += 1,
            EntryKind::File if found.entry.links > 1 && !self.linked.insert(found.identity) => {
                self.figures.further_links += 1;
                return;
            }
            EntryKind::File => self.figures.files += 1,
        }
        self.goes_on = self.goes_on && (self.visit)(found.entry);
    }
}

/// The state of one thread.
struct Looker<'a> {
    root: BorrowedFd<'a>,
    fiemap: Box<Fiemap>,
    /// The directory of the last files, so that the kernel need not resolve the path of each one.
    directory: Option<(Vec<u8>, OwnedFd)>,
}

impl Looker<'_> {
    fn look_at(&mut self, part: Part) -> Looked {
        let found = part.iter().map(|(kind, path)| self.look_at_one(kind, path)).collect();
        (part, found)
    }

    /// Opens and maps one entry.
    fn look_at_one(&mut self, kind: EntryKind, path: &[u8]) -> Result<Found, (&'static str, Errno)> {
        let file = self.open(kind, path).map_err(|errno| ("open", errno))?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, wanted).map_err(|errno| ("stat", errno))?;
        let is = FileType::from_raw_mode(u32::from(stat.stx_mode));
        let expected = match kind {
            EntryKind::Directory => FileType::Directory,
            EntryKind::File => FileType::RegularFile,
        };
        if is != expected {
            // The name belongs to another entry now.
            return Err(("open", Errno::NOENT));
        }
        let extents = match map_file(file.as_fd(), &mut self.fiemap) {
            Ok(extents) => extents,
            // Not every file system reports the location of its directories.
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) if kind == EntryKind::Directory => Vec::new(),
            Err(errno) => return Err(("map the extents of", errno)),
        };
        Ok(Found {
            identity: (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino),
            entry: entry(kind, path, &stat, extents),
        })
    }

    fn open(&mut self, kind: EntryKind, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |directory: BorrowedFd<'_>, name: &[u8]| {
            let name = OsStr::from_bytes(name);
            match rustix::fs::openat(directory, name, flags | OFlags::NOATIME, Mode::empty()) {
                Err(Errno::PERM) => rustix::fs::openat(directory, name, flags, Mode::empty()),
                opened => opened,
            }
        };
        let at = path.iter().rposition(|&byte| byte == b'/');
        match (kind, at) {
            (EntryKind::File, Some(at)) => {
                let (above, name) = (&path[..at], &path[at + 1..]);
                if self.directory.as_ref().is_none_or(|(path, _)| path != above) {
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let opened = rustix::fs::openat(self.root, OsStr::from_bytes(above), flags, Mode::empty())?;
                    self.directory = Some((above.to_owned(), opened));
                }
                let directory = self.directory.as_ref().map_or(self.root, |(_, directory)| directory.as_fd());
                open(directory, name)
            }
            _ => open(self.root, if path.is_empty() { b"." } else { path }),
        }
    }
}

fn entry(kind: EntryKind, path: &[u8], stat: &Statx, extents: Vec<RawExtent>) -> Surveyed {
    let knows_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    Surveyed {
        path: match path {
            [] => RelPath::root(),
            path => RelPath::new(path).expect("the walk makes relative paths of names the kernel gave"),
        },
        kind,
        inode: stat.stx_ino,
        links: u64::from(stat.stx_nlink),
        is_executable: kind == EntryKind::File && stat.stx_mode & 0o111 != 0,
        size_bytes: stat.stx_size,
        allocated_bytes: stat.stx_blocks * 512,
        modified_unix_seconds: stat.stx_mtime.tv_sec,
        born_unix_seconds: knows_birth.then_some(stat.stx_btime.tv_sec),
        extents,
    }
}

impl Visitor for Surveyor<'_> {
    fn open_flags(&self) -> OFlags {
        OFlags::NOATIME
    }

    fn enters(&mut self, directory: BorrowedFd<'_>, _stat: &Stat, _path: &[u8]) -> bool {
        let is_here = mount_of(directory).is_ok_and(|mount| mount == self.mount);
        self.figures.mounts_passed += u64::from(!is_here);
        is_here && self.goes_on
    }

    fn directory(&mut self, _directory: BorrowedFd<'_>, _stat: &Stat, path: &[u8]) {
        self.add(EntryKind::Directory, path);
    }

    fn file(&mut self, _directory: BorrowedFd<'_>, _name: &CStr, path: &[u8]) -> Result<(), Error> {
        self.add(EntryKind::File, path);
        Ok(())
    }

    fn failed(&mut self, error: ItemError) {
        self.figures.errors_count += 1;
        if self.figures.errors.len() < SurveyFigures::ERRORS_KEPT {
            self.figures.errors.push(error);
        }
    }
}
