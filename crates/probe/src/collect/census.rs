//! A census: size, depth, time of modification and optionally the number of extents of every file
//! below a directory.
//!
//! Several threads list directories and read the metadata of inodes. The census reads no content,
//! crosses no mount and writes nothing. It describes the files of a machine. In contrast,
//! [`collect_survey`](super::collect_survey) reports where each file is stored.
//!
//! ```no_run
//! use senesce_probe::collect::{CensusOptions, collect_census};
//!
//! let options = CensusOptions { threads: 8, with_extents: false };
//! let census = collect_census("/home".as_ref(), &options)?;
//! let directories: u64 = census.directories_by_depth.iter().sum();
//! println!("{} files in {directories} directories", census.files.len());
//! # Ok::<(), senesce_probe::Error>(())
//! ```

use std::{
    collections::HashSet,
    ffi::OsStr,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    sync::{Condvar, Mutex},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Statx, StatxFlags},
    io::Errno,
};

use super::{extents::map_file, ioctl::Fiemap, walk::ItemError};
use crate::Error;

/// Options of a census.
#[derive(Clone, Copy, Debug)]
pub struct CensusOptions {
    /// The number of threads that query the kernel concurrently (0 counts as 1).
    pub threads: usize,
    /// Whether to count the extents of files. Every file is opened for that.
    pub with_extents: bool,
}

/// A regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CensusFile {
    /// Size of its content, bytes.
    pub size_bytes: u64,
    /// Components of its directory's path below the root: 0 in the root itself.
    pub depth: u32,
    /// The time of its last content change, seconds since 1970.
    pub modified_unix_seconds: i64,
    /// Extents that are not adjacent on the device. None if they were not requested, or if the file
    /// system does not report them.
    pub extents: Option<u32>,
}

/// The result of a census.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Every file once, even with several names. Sorted, so that the result does not depend on
    /// threads.
    pub files: Vec<CensusFile>,
    /// Directories at each depth; the root has depth 0.
    pub directories_by_depth: Vec<u64>,
    /// Further names of files that were counted.
    pub further_links: u64,
    /// Mount points that were not entered.
    pub mounts_passed: u64,
    /// Entries that disappeared during the census.
    pub vanished: u64,
    /// The first errors of single entries.
    pub errors: Vec<ItemError>,
    /// The number of all errors.
    pub errors_count: u64,
}

/// The number of errors that are kept.
const ERRORS_KEPT: usize = 100;

/// Takes the census of the tree below `root`.
///
/// Errors: `root` cannot be opened. Every other failure is in the figures. Cost: 32 bytes of memory
/// a file; about 1 to 2 microseconds of CPU time a file if everything is cached, and three times
/// that with extents.
pub fn collect_census(root: &Path, options: &CensusOptions) -> Result<Census, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root_fd = rustix::fs::openat(CWD, root, flags, Mode::empty())
        .map_err(|source| Error::system("open directory", root, source))?;
    let stat = look_at(root_fd.as_fd(), c"", AtFlags::EMPTY_PATH).map_err(|e| Error::system("stat", root, e))?;
    let shared = Shared {
        root: root_fd.as_fd(),
        mount: mount_of(&stat),
        with_extents: options.with_extents,
        queue: Mutex::new(Queue { waiting: vec![(Vec::new(), 0)], at_work: 0 }),
        changed: Condvar::new(),
        linked: Mutex::default(),
    };
    let parts: Vec<Census> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(|| work(&shared))).collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut all = Census::default();
    for part in parts {
        all.add(part);
    }
    all.files.sort_unstable();
    all.errors.sort_by(|a, b| a.path.cmp(&b.path));
    all.errors.truncate(ERRORS_KEPT);
    Ok(all)
}

/// Directories that are not listed yet.
struct Queue {
    /// Path from the root, and its depth.
    waiting: Vec<(Vec<u8>, u32)>,
    /// Threads that may still find more.
    at_work: usize,
}

struct Shared<'a> {
    root: BorrowedFd<'a>,
    mount: (u64, u64),
    with_extents: bool,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Device and inode of files with several names.
    linked: Mutex<HashSet<(u64, u64)>>,
}

fn work(shared: &Shared<'_>) -> Census {
    let mut worker = Worker {
        shared,
        census: Census::default(),
        list: Vec::with_capacity(64 << 10),
        fiemap: Fiemap::without_writing(),
    };
    let mut queue = shared.queue.lock().expect("no thread panics while it holds the queue");
    loop {
        if let Some((path, depth)) = queue.waiting.pop() {
            queue.at_work += 1;
            drop(queue);
            let found = worker.list(&path, depth);
            queue = shared.queue.lock().expect("no thread panics while it holds the queue");
            queue.at_work -= 1;
            queue.waiting.extend(found);
            shared.changed.notify_all();
        } else if queue.at_work == 0 {
            return worker.census;
        } else {
            queue = shared.changed.wait(queue).expect("no thread panics while it holds the queue");
        }
    }
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    census: Census,
    list: Vec<u8>,
    fiemap: Box<Fiemap>,
}

impl Worker<'_> {
    /// Counts everything in a directory, and returns its subdirectories.
    fn list(&mut self, path: &[u8], depth: u32) -> Vec<(Vec<u8>, u32)> {
        let mut below = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = if path.is_empty() { b"." } else { path };
        let opened = rustix::fs::openat(self.shared.root, OsStr::from_bytes(name), flags, Mode::empty());
        let directory = match opened {
            Ok(directory) => directory,
            Err(errno) => {
                self.failed("open directory", path, errno);
                return below;
            }
        };
        match look_at(directory.as_fd(), c"", AtFlags::EMPTY_PATH) {
            Ok(stat) if mount_of(&stat) != self.shared.mount => {
                self.census.mounts_passed += 1;
                return below;
            }
            Ok(_) => {}
            Err(errno) => self.failed("stat", path, errno),
        }
        let level = depth as usize;
        if self.census.directories_by_depth.len() <= level {
            self.census.directories_by_depth.resize(level + 1, 0);
        }
        self.census.directories_by_depth[level] += 1;
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        let mut entries = RawDir::new(directory.as_fd(), list.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => {
                    self.failed("list", path, errno);
                    break;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = entry.file_type();
            if kind == FileType::Directory {
                below.push((join(path, name.to_bytes()), depth + 1));
            } else if matches!(kind, FileType::RegularFile | FileType::Unknown) {
                match look_at(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
                        FileType::RegularFile => self.count(directory.as_fd(), name, &stat, path, depth),
                        FileType::Directory => below.push((join(path, name.to_bytes()), depth + 1)),
                        _ => {}
                    },
                    Err(errno) => self.failed("stat", &join(path, name.to_bytes()), errno),
                }
            }
        }
        self.list = list;
        below
    }

    fn count(&mut self, directory: BorrowedFd<'_>, name: &std::ffi::CStr, stat: &Statx, path: &[u8], depth: u32) {
        if stat.stx_nlink > 1 {
            let device = u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor);
            let mut linked = self.shared.linked.lock().expect("no thread panics while it holds the set");
            if !linked.insert((device, stat.stx_ino)) {
                self.census.further_links += 1;
                return;
            }
        }
        let mut extents = None;
        if self.shared.with_extents {
            match count_extents(directory, name, &mut self.fiemap) {
                Ok(found) => extents = Some(found),
                Err(Errno::OPNOTSUPP | Errno::NOTTY) => {}
                Err(errno) => self.failed("map the extents of", &join(path, name.to_bytes()), errno),
            }
        }
        let modified_unix_seconds = stat.stx_mtime.tv_sec;
        self.census.files.push(CensusFile { size_bytes: stat.stx_size, depth, modified_unix_seconds, extents });
    }

    fn failed(&mut self, operation: &'static str, path: &[u8], errno: Errno) {
        if errno == Errno::NOENT {
            self.census.vanished += 1;
            return;
        }
        self.census.errors_count += 1;
        if self.census.errors.len() < ERRORS_KEPT {
            self.census.errors.push(ItemError::new(operation, path, errno));
        }
    }
}

impl Census {
    fn add(&mut self, other: Census) {
        self.files.extend(other.files);
        if self.directories_by_depth.len() < other.directories_by_depth.len() {
            self.directories_by_depth.resize(other.directories_by_depth.len(), 0);
        }
        for (sum, part) in self.directories_by_depth.iter_mut().zip(other.directories_by_depth) {
            *sum += part;
        }
        self.further_links += other.further_links;
        self.mounts_passed += other.mounts_passed;
        self.vanished += other.vanished;
        self.errors.extend(other.errors);
        self.errors_count += other.errors_count;
    }
}

/// The number of extents that are not adjacent.
fn count_extents(directory: BorrowedFd<'_>, name: &std::ffi::CStr, fiemap: &mut Fiemap) -> Result<u32, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let mut count = 0u32;
    let mut end = None;
    for raw in map_file(file.as_fd(), fiemap)? {
        if end != Some((raw.extent.logical, raw.extent.physical)) {
            count += 1;
        }
        end = Some((raw.extent.logical + raw.extent.length, raw.extent.physical + raw.extent.length));
    }
    Ok(count)
}

fn look_at(directory: BorrowedFd<'_>, name: &std::ffi::CStr, flags: AtFlags) -> Result<Statx, Errno> {
    rustix::fs::statx(directory, name, flags | AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

/// The mount, or the device if the kernel does not report mounts.
fn mount_of(stat: &Statx) -> (u64, u64) {
    match StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID) {
        true => (stat.stx_mnt_id, 0),
        false => (0, u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor)),
    }
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    match path.is_empty() {
        true => name.to_vec(),
        false => [path, b"/", name].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_counted_once_by_any_threads() {
        let root = tempfile::tempdir().unwrap();
        for at in 0..40 {
            let directory = root.path().join(format!("d{}/e{}", at % 4, at % 8));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(format!("f{at}")), vec![1; at]).unwrap();
        }
        std::fs::write(root.path().join("top"), "12345").unwrap();
        std::fs::hard_link(root.path().join("top"), root.path().join("d0/again")).unwrap();
        std::os::unix::fs::symlink("/", root.path().join("away")).unwrap();
        let take = |threads| collect_census(root.path(), &CensusOptions { threads, with_extents: false }).unwrap();
        let census = take(1);
        assert_eq!(census.files.len(), 41);
        assert_eq!(census.directories_by_depth, [1, 4, 8]);
        assert_eq!((census.further_links, census.errors_count), (1, 0));
        assert_eq!(
            census.files.iter().filter(|file| file.depth == 2).map(|file| file.size_bytes).sum::<u64>(),
            39 * 20
        );
        let many = take(7);
        // The order of two names of a file depends on the threads; its size does not.
        let sizes = |census: &Census| census.files.iter().map(|file| file.size_bytes).collect::<Vec<_>>();
        assert_eq!(sizes(&many), sizes(&census));
    }

    #[test]
    fn a_missing_root_is_an_error() {
        assert!(
            collect_census(Path::new("/nowhere/at/all"), &CensusOptions { threads: 2, with_extents: false }).is_err()
        );
    }
}
