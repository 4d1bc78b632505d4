//! Reads the locations of files by FIEMAP, or by FIBMAP where a file system has nothing else.

use std::{
    collections::HashSet,
    ffi::CStr,
    fs::File,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};
use senesce_core::{Extent, RelPath, Space, Stop, never};

use super::{
    ioctl::{Fiemap, block_size, find_block},
    walk::{ItemError, Order, Visitor, walk},
};
use crate::{
    Error,
    map::{ExtentFlags, FileExtents, RawExtent},
};

/// `statfs` magic of Btrfs.
pub(super) const BTRFS_MAGIC: u64 = 0x9123_683E;

/// Files per thread and batch; bounds the memory.
const FILES_PER_BATCH: usize = 512;

/// The result of mapping a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeExtentsFigures {
    /// The address space of every extent.
    pub space: Space,
    /// Files passed to the visitor.
    pub files: u64,
    /// Further names of files that were passed already.
    pub further_links: u64,
    /// Directories passed to the visitor; 0 unless they were requested.
    pub directories: u64,
    /// Directories whose location the file system does not report: all of XFS and Btrfs.
    pub untold_directories: u64,
    /// Files that could not be mapped. A map with errors does not cover the whole tree.
    pub errors: Vec<ItemError>,
}

/// The address space of FIEMAP's answers for the file system that holds `path`: logical on Btrfs,
/// the device elsewhere.
pub fn collect_space(path: &Path) -> Result<Space, Error> {
    let info = rustix::fs::statfs(path).map_err(|source| Error::system("statfs", path, source))?;
    Ok(if info.f_type as u64 & 0xFFFF_FFFF == BTRFS_MAGIC { Space::BtrfsLogical } else { Space::Device })
}

/// Returns the extents of an open file in file order, as the kernel reports them, without merging.
///
/// Dirty data is written first, so that every extent has a position. Holes are left out. Errors:
/// the file system supports neither FIEMAP nor, for root, FIBMAP (`EOPNOTSUPP`), or cannot read its
/// map. `path` is only for messages. Cost: one call per 256 extents; with FIBMAP, as JFS and
/// ReiserFS have it, one for each block.
pub fn collect_extents(file: &File, path: &Path) -> Result<Vec<RawExtent>, Error> {
    map_file(file.as_fd(), &mut Fiemap::new()).map_err(|source| Error::system("map the extents of", path, source))
}

pub(super) fn map_file(file: BorrowedFd<'_>, fiemap: &mut Fiemap) -> rustix::io::Result<Vec<RawExtent>> {
    let mut extents = Vec::new();
    let mut start = 0u64;
    loop {
        let batch = match fiemap.call(file, start) {
            Err(Errno::OPNOTSUPP) => return map_blocks(file, fiemap.writes()),
            batch => batch?,
        };
        let Some(last) = batch.last() else { return Ok(extents) };
        let end = last.logical.saturating_add(last.length);
        let is_last = last.flags & ExtentFlags::LAST.0 != 0;
        extents.extend(batch.iter().map(|raw| RawExtent {
            extent: Extent { logical: raw.logical, physical: raw.physical, length: raw.length },
            flags: ExtentFlags(raw.flags),
        }));
        if is_last || end <= start || end == u64::MAX {
            return Ok(extents);
        }
        start = end;
    }
}

/// The most blocks of a file that are mapped one by one.
const MOST_BLOCKS: u64 = 1 << 22;

/// Maps a file block by block.
fn map_blocks(file: BorrowedFd<'_>, writes: bool) -> rustix::io::Result<Vec<RawExtent>> {
    let stat = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::OPNOTSUPP);
    }
    if writes {
        rustix::fs::fsync(file)?;
    }
    let size = block_size(file)?;
    let blocks = (stat.st_size as u64).div_ceil(size);
    if blocks > MOST_BLOCKS {
        return Err(Errno::FBIG);
    }
    let mut extents: Vec<RawExtent> = Vec::new();
    // An empty file also shows whether there is such a call.
    for number in 0..blocks.max(1) {
        let block = match find_block(file, number as i32) {
            // Without the right to this call, or without the call, there is no map.
            Err(Errno::PERM | Errno::INVAL | Errno::NOTTY) => return Err(Errno::OPNOTSUPP),
            block => u64::from(block?),
        };
        if block == 0 {
            continue;
        }
        let (logical, physical) = (number * size, block * size);
        match extents.last_mut().map(|last| &mut last.extent) {
            Some(last) if last.logical + last.length == logical && last.physical + last.length == physical => {
                last.length += size;
            }
            _ => extents
                .push(RawExtent { extent: Extent { logical, physical, length: size }, flags: ExtentFlags::default() }),
        }
    }
    Ok(extents)
}

/// Maps every regular file below `root`, and passes each to `visit` in the order of the directory
/// listings, so that the distance between adjacent files can be scored. A file with several names
/// comes once, under the first.
///
/// In: `threads` is the number of threads that query the kernel concurrently (0 counts as 1); the
/// order does not depend on it. `stop` is called for every entry, and by every thread before every
/// file.
///
/// Errors: `root` cannot be listed; [`Error::NotSupported`] if the file system maps no file;
/// [`Error::Stopped`]. Failures of single files are in the figures. Cost: memory for 512 files'
/// maps per thread; dirty data is written first.
pub fn collect_tree_extents(
    root: &Path,
    threads: usize,
    stop: Stop<'_>,
    visit: &mut dyn FnMut(FileExtents),
) -> Result<TreeExtentsFigures, Error> {
    let mut files_only = |item: TreeItem| {
        if let TreeItem::File(file) = item {
            visit(file);
        }
    };
    map_tree(root, threads, false, stop, &mut files_only)
}

/// The same with the directories' own extents. Each directory comes when the walk enters it, before
/// its entries, as [`crate::score::LayoutScorer::add_directory`] expects.
///
/// ext4 reports the location of its directories. The figures count the directories of file systems
/// that do not.
pub fn collect_tree_map(
    root: &Path,
    threads: usize,
    visit: &mut dyn FnMut(TreeItem),
) -> Result<TreeExtentsFigures, Error> {
    map_tree(root, threads, true, &never, visit)
}

/// An item of [`collect_tree_map`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeItem {
    /// A directory; its size is that of its listing.
    Directory(FileExtents),
    /// A regular file.
    File(FileExtents),
}

fn map_tree(
    root: &Path,
    threads: usize,
    with_directories: bool,
    stop: Stop<'_>,
    visit: &mut dyn FnMut(TreeItem),
) -> Result<TreeExtentsFigures, Error> {
    let space = collect_space(root)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root_fd = rustix::fs::openat(CWD, root, flags, Mode::empty())
        .map_err(|source| Error::system("open directory", root, source))?;
    let figures = TreeExtentsFigures {
        space,
        files: 0,
        further_links: 0,
        directories: 0,
        untold_directories: 0,
        errors: Vec::new(),
    };
    let threads = threads.max(1);
    let (batch, linked) = (Vec::new(), HashSet::new());
    let mut mapper = Mapper { root_fd, threads, with_directories, batch, linked, stop, visit, figures };
    walk(root, Order::Readdir, &mut mapper)?;
    mapper.flush();
    mapper.check()?;
    let figures = mapper.figures;
    if figures.files == 0 && !figures.errors.is_empty() && figures.errors.iter().all(is_unsupported) {
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

/// A mapped file or directory.
struct Mapped {
    is_directory: bool,
    size_bytes: u64,
    /// Device and inode, if it has more than one name.
    link: Option<(u64, u64)>,
    extents: Vec<RawExtent>,
}

struct Mapper<'a> {
    root_fd: OwnedFd,
    threads: usize,
    with_directories: bool,
    /// Entries that are not mapped yet, and whether each is a directory.
    batch: Vec<(Vec<u8>, bool)>,
    linked: HashSet<(u64, u64)>,
    stop: Stop<'a>,
    visit: &'a mut dyn FnMut(TreeItem),
    figures: TreeExtentsFigures,
}

impl Mapper<'_> {
    /// Maps the gathered files and passes them on in their order.
    fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let share = batch.len().div_ceil(self.threads).max(1);
        let (root, stop) = (self.root_fd.as_fd(), self.stop);
        let map_share = |paths: &[(Vec<u8>, bool)]| -> Vec<Result<Option<Mapped>, ItemError>> {
            let mut fiemap = Fiemap::new();
            let until_stop = paths.iter().take_while(|_| !stop());
            until_stop.map(|(path, is_directory)| map_path(root, path, *is_directory, &mut fiemap)).collect()
        };
        let results = if self.threads == 1 {
            map_share(&batch)
        } else {
            std::thread::scope(|scope| {
                let started: Vec<_> = batch.chunks(share).map(|paths| scope.spawn(|| map_share(paths))).collect();
                let mut results = Vec::with_capacity(batch.len());
                for thread in started {
                    results.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                }
                results
            })
        };
        if stop() {
            // The threads skipped files, so the results do not match the paths.
            return;
        }
        for ((path, is_directory), result) in batch.iter().zip(results) {
            match result {
                Ok(Some(mapped)) => self.hand_over(path, mapped),
                Ok(None) => {}
                Err(error) if *is_directory && is_unsupported(&error) => self.figures.untold_directories += 1,
                Err(error) => self.figures.errors.push(error),
            }
        }
    }

    fn hand_over(&mut self, path: &[u8], mapped: Mapped) {
        if mapped.link.is_some_and(|link| !self.linked.insert(link)) {
            self.figures.further_links += 1;
            return;
        }
        let path = RelPath::new(path).expect("the walk makes relative paths of names the kernel gave");
        let item = FileExtents { path, size_bytes: mapped.size_bytes, extents: mapped.extents };
        if mapped.is_directory {
            self.figures.directories += 1;
            (self.visit)(TreeItem::Directory(item));
        } else {
            self.figures.files += 1;
            (self.visit)(TreeItem::File(item));
        }
    }

    fn take(&mut self, path: &[u8], is_directory: bool) {
        self.batch.push((path.to_owned(), is_directory));
        if self.batch.len() >= FILES_PER_BATCH * self.threads {
            self.flush();
        }
    }
}

/// Whether the file system does not support the map, in contrast to a failure.
fn is_unsupported(error: &ItemError) -> bool {
    error.errno.is_some_and(|errno| [Errno::OPNOTSUPP, Errno::NOTTY].map(Errno::raw_os_error).contains(&errno))
}

/// Opens and maps one file or directory; none if its type changed.
fn map_path(
    root: BorrowedFd<'_>,
    path: &[u8],
    is_directory: bool,
    fiemap: &mut Fiemap,
) -> Result<Option<Mapped>, ItemError> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The root has no name of its own.
    let name = if path.is_empty() { b"." } else { path };
    let file = rustix::fs::openat(root, std::ffi::OsStr::from_bytes(name), flags, Mode::empty())
        .map_err(|source| ItemError::new("open", path, source))?;
    let stat = rustix::fs::fstat(&file).map_err(|source| ItemError::new("stat", path, source))?;
    let wanted = if is_directory { FileType::Directory } else { FileType::RegularFile };
    if FileType::from_raw_mode(stat.st_mode) != wanted {
        return Ok(None);
    }
    let extents =
        map_file(file.as_fd(), fiemap).map_err(|source| ItemError::new("map the extents of", path, source))?;
    // A directory has many links but one name.
    let link = (stat.st_nlink > 1 && !is_directory).then_some((stat.st_dev, stat.st_ino));
    Ok(Some(Mapped { is_directory, size_bytes: stat.st_size as u64, link, extents }))
}

impl Visitor for Mapper<'_> {
    fn directory(&mut self, _directory: BorrowedFd<'_>, _stat: &Stat, path: &[u8]) {
        if self.with_directories {
            self.take(path, true);
        }
    }

    fn file(&mut self, _directory: BorrowedFd<'_>, _name: &CStr, path: &[u8]) -> Result<(), Error> {
        self.take(path, false);
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        if (self.stop)() { Err(Error::Stopped { measure: "the map of extents" }) } else { Ok(()) }
    }

    fn failed(&mut self, error: ItemError) {
        self.figures.errors.push(error);
    }
}
