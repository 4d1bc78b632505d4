//! The grep test: measures the time to read a whole tree, by a search for a pattern that no file
//! contains.

use std::{
    collections::HashSet,
    ffi::CStr,
    fs,
    os::{
        fd::BorrowedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, Stat};
use senesce_core::{Bytes, Clock, Nanos, Stop};

use super::{
    rusage::{CpuTimes, collect_thread_times},
    search::{READ_BYTES, Search},
    walk::{ItemError, Order, Visitor, walk},
};
use crate::Error;

/// Options of a grep test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepOptions {
    /// The order of the walk within each directory.
    pub order: Order,
    /// The pattern. No file may contain it, see [`super::compute_pattern`].
    pub pattern: Vec<u8>,
}

/// The result of a grep test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrepFigures {
    /// Wall time of the walk with all reads.
    pub wall: Nanos,
    /// Bytes read from files (for GNU grep: the sum of the files' sizes).
    pub read_bytes: u64,
    /// Regular files read; a file with two names is read twice, as `grep -r` does.
    pub files: u64,
    /// Directories listed, including the root.
    pub directories: u64,
    /// CPU time in user mode of the scanning thread (or of the grep process), seconds.
    pub user_seconds: f64,
    /// CPU time of the same in the kernel, seconds.
    pub system_seconds: f64,
    /// Allocated size of the tree as `du -s` counts it: every file, directory and symlink once,
    /// bytes.
    pub allocated_bytes: u64,
    /// Unreadable files and directories: the first [`GrepFigures::ERRORS_KEPT`] of them.
    pub errors: Vec<ItemError>,
    /// The number of all unreadable files and directories. A test with errors did not read the
    /// whole tree.
    pub errors_count: u64,
}

impl GrepFigures {
    /// The number of errors that are kept with their paths.
    pub const ERRORS_KEPT: usize = 100;
    /// From this ratio of CPU time to wall time on, the CPU and not the device limited the speed.
    pub const CPU_BOUND_SHARE: f64 = 0.9;

    /// The grep cost: wall seconds per GiB of allocated size; none for a tree without allocated
    /// space.
    pub fn seconds_per_gib(&self) -> Option<f64> {
        (self.allocated_bytes > 0).then(|| self.wall.as_secs_f64() / Bytes(self.allocated_bytes).as_gib())
    }

    /// CPU time as a share of wall time; none if no time passed.
    pub fn cpu_share(&self) -> Option<f64> {
        (self.wall.0 > 0).then(|| (self.user_seconds + self.system_seconds) / self.wall.as_secs_f64())
    }

    /// Whether the CPU limited the speed. The figure then says little about the device.
    pub fn is_cpu_bound(&self) -> bool {
        self.cpu_share().is_some_and(|share| share >= Self::CPU_BOUND_SHARE)
    }

    fn fail(&mut self, error: ItemError) {
        self.errors_count += 1;
        if self.errors.len() < Self::ERRORS_KEPT {
            self.errors.push(error);
        }
    }
}

/// Reads every regular file below `root` with one thread, searches for the pattern, and measures
/// the time.
///
/// In: `root`, a directory; `clock`, whose nanoseconds are the wall time; `stop`, called before
/// every entry and every read. The caller makes the cache cold or warm. Out: see [`GrepFigures`].
/// Symlinks are not followed, and special files are not opened. The allocated size comes from the
/// files' own `fstat` during the scan. The size of symlinks is read after the clock has stopped.
///
/// Errors: `root` cannot be listed, the pattern is empty or found, the clock went backwards,
/// [`Error::Stopped`]. Single unreadable files are in the figures. Cost: four system calls per
/// small file, 128 KiB of memory, and the paths of the symlinks.
pub fn collect_grep(
    root: &Path,
    options: &GrepOptions,
    clock: &dyn Clock,
    stop: Stop<'_>,
) -> Result<GrepFigures, Error> {
    if options.pattern.is_empty() {
        return Err(Error::BadPattern { pattern: String::new(), problem: "is empty, and so would match every file" });
    }
    let search = Search::new(&options.pattern, READ_BYTES);
    let mut scan = Scan { root, search: Some(search), figures: GrepFigures::default(), sizes: Sizes::default(), stop };
    let cpu_before = collect_thread_times();
    let before = clock.now();
    walk(root, options.order, &mut scan)?;
    let after = clock.now();
    let cpu = collect_thread_times().since(cpu_before);
    let wall = compute_wall("the grep test", before, after)?;
    Ok(scan.finish(wall, cpu))
}

/// Counts the tree below `root` without reading files: the figures that GNU grep does not report.
pub(super) fn collect_sizes(root: &Path, wall: Nanos, cpu: CpuTimes, stop: Stop<'_>) -> Result<GrepFigures, Error> {
    let mut scan = Scan { root, search: None, figures: GrepFigures::default(), sizes: Sizes::default(), stop };
    walk(root, Order::Readdir, &mut scan)?;
    Ok(scan.finish(wall, cpu))
}

/// The time between two readings of a clock.
pub(super) fn compute_wall(measure: &'static str, before: Nanos, after: Nanos) -> Result<Nanos, Error> {
    if after < before {
        return Err(Error::ClockWentBackwards { measure, before, after });
    }
    Ok(after.since(before))
}

/// Allocated size as `du` counts it.
#[derive(Default)]
struct Sizes {
    allocated_bytes: u64,
    /// Device and inode of files with several names that are counted already.
    linked: HashSet<(u64, u64)>,
    /// Symlinks and special files, to be counted after the measurement.
    later: Vec<PathBuf>,
}

impl Sizes {
    fn add(&mut self, blocks: u64, links: u64, device: u64, inode: u64) {
        if links < 2 || self.linked.insert((device, inode)) {
            self.allocated_bytes += blocks * 512;
        }
    }
}

/// The visitor of the grep test; without a search it only counts.
struct Scan<'a> {
    root: &'a Path,
    search: Option<Search>,
    figures: GrepFigures,
    sizes: Sizes,
    stop: Stop<'a>,
}

impl Scan<'_> {
    fn finish(mut self, wall: Nanos, cpu: CpuTimes) -> GrepFigures {
        for path in std::mem::take(&mut self.sizes.later) {
            match fs::symlink_metadata(self.root.join(&path)) {
                Ok(m) => self.sizes.add(m.blocks(), m.nlink(), m.dev(), m.ino()),
                Err(source) => self.figures.fail(ItemError::new("stat", path.as_os_str().as_bytes(), source)),
            }
        }
        GrepFigures {
            wall,
            user_seconds: cpu.user_seconds,
            system_seconds: cpu.system_seconds,
            allocated_bytes: self.sizes.allocated_bytes,
            ..self.figures
        }
    }

    /// Reads one whole file. Out: whether it contains the pattern.
    fn read(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Result<bool, (&'static str, rustix::io::Errno)> {
        let Some(search) = &mut self.search else {
            let stat =
                rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).map_err(|e| ("stat", e))?;
            add_stat(&mut self.sizes, &stat);
            self.figures.files += 1;
            self.figures.read_bytes += stat.st_size as u64;
            return Ok(false);
        };
        // The flags of GNU grep: the walk does not block on a file that became a pipe, and does not
        // follow one that became a symlink.
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(|e| ("open", e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| ("stat", e))?;
        add_stat(&mut self.sizes, &stat);
        let size = stat.st_size as u64;
        let mut read_bytes = 0;
        search.start();
        // The size saves the final read that would return "end of file".
        while read_bytes < size && !(self.stop)() {
            let length = match rustix::io::read(&file, search.space()) {
                Ok(0) => break,
                Ok(length) => length,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    self.figures.read_bytes += read_bytes;
                    return Err(("read", error));
                }
            };
            read_bytes += length as u64;
            if search.found(length) {
                return Ok(true);
            }
        }
        self.figures.files += 1;
        self.figures.read_bytes += read_bytes;
        Ok(false)
    }
}

fn add_stat(sizes: &mut Sizes, stat: &Stat) {
    sizes.add(stat.st_blocks as u64, stat.st_nlink, stat.st_dev, stat.st_ino);
}

impl Visitor for Scan<'_> {
    fn directory(&mut self, _directory: BorrowedFd<'_>, stat: &Stat, _path: &[u8]) {
        self.figures.directories += 1;
        // A directory has many links but one name.
        self.sizes.allocated_bytes += stat.st_blocks as u64 * 512;
    }

    fn file(&mut self, directory: BorrowedFd<'_>, name: &CStr, path: &[u8]) -> Result<(), Error> {
        match self.read(directory, name) {
            Ok(false) => self.check(),
            Ok(true) => Err(Error::PatternFound { path: self.root.join(std::ffi::OsStr::from_bytes(path)) }),
            Err((operation, source)) => {
                self.figures.fail(ItemError::new(operation, path, source));
                Ok(())
            }
        }
    }

    fn check(&mut self) -> Result<(), Error> {
        if (self.stop)() { Err(Error::Stopped { measure: "the grep test" }) } else { Ok(()) }
    }

    fn other(&mut self, path: &[u8]) {
        self.sizes.later.push(PathBuf::from(std::ffi::OsStr::from_bytes(path)));
    }

    fn failed(&mut self, error: ItemError) {
        self.figures.fail(error);
    }
}
