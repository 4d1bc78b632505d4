//! The files of a tree, and their places on the device.

use std::{
    fs::File,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, IFlags, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};
use senesce_core::{RelPath, Space, Stop};
use senesce_probe::{
    collect::{
        EntryKind, SurveyFigures, Surveyed, collect_btrfs_free_space_as_it_is, collect_free_extents_as_it_is,
        collect_survey,
    },
    map::{BtrfsFreeSpace, BtrfsGroupType, FreeExtent},
};

use crate::{Error, apply::Skip};

/// A listed tree.
pub struct Tree {
    root: OwnedFd,
    path: PathBuf,
    /// Files and directories, in the order in which the file system lists them.
    pub entries: Vec<Surveyed>,
    /// The counts and errors of the survey.
    pub figures: SurveyFigures,
}

/// Lists the tree below `root`.
///
/// Errors: `root` cannot be listed; the file system does not report extents; [`Error::Stopped`].
/// Cost: one survey; about 200 bytes of memory for each entry.
pub fn collect_tree(root: &Path, threads: usize, stop: Stop<'_>) -> Result<Tree, Error> {
    let directory = open_root(root)?;
    let mut entries = Vec::new();
    let figures = collect_survey(root, threads, &mut |entry| {
        entries.push(entry);
        !stop()
    })?;
    if stop() {
        return Err(Error::Stopped);
    }
    Ok(Tree { root: directory, path: root.to_owned(), entries, figures })
}

fn open_root(root: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, root, flags, Mode::empty()).map_err(Error::sys("open", root))
}

impl Tree {
    /// A tree with these entries, such as those of a simulated file system. `root` is a directory
    /// that exists.
    ///
    /// Errors: `root` cannot be opened.
    pub fn with_entries(root: &Path, entries: Vec<Surveyed>) -> Result<Self, Error> {
        let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count() as u64;
        let figures = SurveyFigures {
            space: Space::Device,
            files: count(EntryKind::File),
            directories: count(EntryKind::Directory),
            further_links: 0,
            mounts_passed: 0,
            vanished: 0,
            errors: Vec::new(),
            errors_count: 0,
        };
        Ok(Self { root: open_root(root)?, path: root.to_owned(), entries, figures })
    }

    /// The path of the root, as the caller named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The free extents of the file system as (start, length), bytes. Without root there is no map
    /// of them, and all free space counts as one extent.
    ///
    /// Errors: the file system does not report its free space.
    pub fn free_extents(&self) -> Result<Vec<(u64, u64)>, Error> {
        let pair = |free: FreeExtent| (free.start_bytes, free.length_bytes);
        if let Some(space) = self.groups() {
            return Ok(space.free_extents(BtrfsGroupType::DATA).map(pair).collect());
        }
        if let Ok(free) = collect_free_extents_as_it_is(&self.path) {
            return Ok(free.into_iter().map(pair).collect());
        }
        let space = rustix::fs::statvfs(&self.path).map_err(Error::sys("read the free space of", &self.path))?;
        Ok(vec![(0, space.f_bavail * space.f_frsize)])
    }

    /// Bytes of the file system that are free.
    pub(crate) fn free_bytes(&self) -> Result<u64, Skip> {
        let space = rustix::fs::fstatvfs(&self.root).map_err(Skip::of)?;
        Ok(space.f_bavail * space.f_frsize)
    }

    /// Reads the space of the block groups. `None` if the file system has none, or the caller may
    /// not read them.
    pub(crate) fn groups(&self) -> Option<BtrfsFreeSpace> {
        collect_btrfs_free_space_as_it_is(&self.path).ok()
    }

    /// The indices of the files, in the order in which the file system lists them.
    pub fn files(&self) -> impl Iterator<Item = usize> + '_ {
        let is_file = |(_, entry): &(usize, &Surveyed)| entry.kind == EntryKind::File;
        self.entries.iter().enumerate().filter(is_file).map(|(at, _)| at)
    }

    /// Opens a file of the tree with this access. Fails with [`Skip::Changed`] if inode, size or
    /// time differ from the survey.
    ///
    /// Follows no symbolic link, and enters no other mount: a user who can write to the tree cannot
    /// make this open another file. Access times do not change, if the caller may prevent it.
    pub(crate) fn open(&self, entry: usize, access: OFlags) -> Result<(File, Stat), Skip> {
        let surveyed = &self.entries[entry];
        let file = self.open_path(surveyed.path.as_bytes(), access)?;
        let stat = rustix::fs::fstat(&file).map_err(Skip::of)?;
        let is_same = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_ino == surveyed.inode
            && stat.st_size as u64 == surveyed.size_bytes
            && stat.st_mtime == surveyed.modified_unix_seconds;
        if !is_same {
            return Err(Skip::Changed);
        }
        // A file system without flags has none that forbid a move.
        let flags = rustix::fs::ioctl_getflags(&file).unwrap_or(IFlags::empty());
        if flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND) {
            return Err(Skip::Refused);
        }
        // The donor of a Btrfs file has checksums, and the kernel shares no blocks with a file
        // without.
        if flags.contains(IFlags::NOCOW) {
            return Err(Skip::NotSupported);
        }
        Ok((File::from(file), stat))
    }

    /// Creates a file without a name in the directory of one of these entries, or in the root. It
    /// is gone when it is closed, also after a kill.
    ///
    /// Errors: those of the root, if no directory accepts it.
    pub(crate) fn create_unnamed(&self, beside: impl IntoIterator<Item = usize>) -> Result<File, Skip> {
        /// The number of directories to try.
        const TRIES: usize = 16;
        let mut directories: Vec<&[u8]> = beside.into_iter().map(|at| parent(&self.entries[at].path)).collect();
        directories.dedup();
        directories.truncate(TRIES);
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let create = |directory: &[u8]| {
            let directory = std::ffi::OsStr::from_bytes(if directory.is_empty() { b"." } else { directory });
            rustix::fs::openat2(&self.root, directory, flags, mode, resolve).map(File::from).map_err(Skip::of)
        };
        directories.into_iter().find_map(|directory| create(directory).ok()).map_or_else(|| create(b""), Ok)
    }

    fn open_path(&self, path: &[u8], access: OFlags) -> Result<OwnedFd, Skip> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = access | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = std::ffi::OsStr::from_bytes(path);
        let open = |flags| rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve);
        match open(flags | OFlags::NOATIME) {
            // Only the owner and root may use O_NOATIME.
            Err(Errno::PERM) => open(flags),
            opened => opened,
        }
        .map_err(Skip::of)
    }
}

/// The directory of an entry, without the separator.
fn parent(path: &RelPath) -> &[u8] {
    let path = path.as_bytes();
    path.iter().rposition(|&byte| byte == b'/').map_or(b"", |at| &path[..at])
}
