//! Reads files of a tree into memory before a copy reaches them.
//!
//! A copy by one thread waits for the device at each small file. Its writes must stay in one order,
//! because the order decides the layout of the copy. Its reads need no order: several threads read
//! the next files.

use std::{
    collections::VecDeque,
    fs,
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use rustix::fs::OFlags;

/// The maximum of files that are read before the copy reaches them. It is enough for every thread,
/// and too few to evict pages that the copy has not read.
const FILES_AHEAD: u64 = 256;

/// Bytes of a file that are read in advance. The kernel reads ahead in the rest of it.
const BYTES_AHEAD: u64 = 1 << 20;

/// Threads that read. They wait for the device more than they compute.
pub(crate) const READERS: usize = 8;

/// The order of a walk, shared by its threads and the copy.
#[derive(Default)]
pub(crate) struct ReadAhead {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Files that the walk has found.
    found: u64,
    /// Files that the copy has reached.
    reached: u64,
    /// Found, and not assigned to a reader.
    waiting: VecDeque<PathBuf>,
    /// The walk has found all files, or the copy is over.
    ended: bool,
}

impl ReadAhead {
    /// Finds the files below `from` in the order of readdir, as [`copy_tree`](crate::copy_tree)
    /// does. Returns after the last file, or when [`Self::end`] was called.
    pub fn walk(&self, from: &Path) {
        self.directory(from);
        self.end();
    }

    /// Calls `read` for each file that the walk finds, until the end.
    pub fn serve(&self, read: impl Fn(&Path)) {
        while let Some(path) = self.next() {
            read(&path);
        }
    }

    /// Reports that the copy has reached its next file.
    pub fn reach_file(&self) {
        self.lock().reached += 1;
        self.changed.notify_all();
    }

    /// Stops the walk and the readers.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether to continue. The copy reports a directory that cannot be listed.
    fn directory(&self, from: &Path) -> bool {
        let Ok(entries) = fs::read_dir(from) else { return true };
        for entry in entries.flatten() {
            let goes_on = match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.directory(&entry.path()),
                Ok(kind) if kind.is_file() => self.add(entry.path()),
                _ => true,
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Adds a file as soon as the copy is near it. Returns whether to continue.
    fn add(&self, path: PathBuf) -> bool {
        let mut state = self.lock();
        while !state.ended && state.found >= state.reached + FILES_AHEAD {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.found += 1;
        // The copy itself reads a file that it has reached.
        if state.found > state.reached {
            state.waiting.push_back(path);
            self.changed.notify_all();
        }
        !state.ended
    }

    fn next(&self) -> Option<PathBuf> {
        let mut state = self.lock();
        loop {
            if let Some(path) = state.waiting.pop_front() {
                return Some(path);
            }
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Stops the threads of a [`ReadAhead`] when the copy returns, also after an error.
pub(crate) struct EndOnDrop<'a>(pub &'a ReadAhead);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting.clear();
        self.0.end();
    }
}

/// Reads the start of a file into the page cache. The copy reads the same and reports errors.
pub(crate) fn warm(path: &Path) {
    // Without O_NOATIME, the copy would copy the access time of this read. Only the owner and root
    // may use it.
    let flags = (OFlags::NOFOLLOW | OFlags::NOATIME | OFlags::NONBLOCK).bits() as i32;
    let Ok(file) = fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else { return };
    let mut buffer = [0; 64 << 10];
    let mut file = file.take(BYTES_AHEAD);
    while matches!(file.read(&mut buffer), Ok(1..)) {}
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::atomic::AtomicBool, sync::atomic::Ordering, thread};

    use super::*;

    /// A tree of `3 * files` files in three directories.
    fn tree(files: u64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "b/c"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            (0..files).for_each(|n| fs::write(dir.path().join(format!("{name}/{n}")), b"x").unwrap());
        }
        dir
    }

    #[test]
    fn files_are_read_ahead_up_to_the_limit() {
        let dir = tree(FILES_AHEAD);
        let ahead = ReadAhead::default();
        let (read, changed) = (Mutex::new(BTreeSet::new()), Condvar::new());
        thread::scope(|scope| {
            scope.spawn(|| ahead.walk(dir.path()));
            for _ in 0..READERS {
                scope.spawn(|| {
                    ahead.serve(|path| {
                        assert!(read.lock().unwrap().insert(path.to_owned()), "{} is read twice", path.display());
                        changed.notify_all();
                    });
                });
            }
            for reached in 0..2 * FILES_AHEAD {
                // The file of the copy and those ahead of it are read without the copy.
                let wanted = (reached + FILES_AHEAD) as usize;
                let read = changed.wait_while(read.lock().unwrap(), |read| read.len() < wanted).unwrap();
                assert_eq!(read.len(), wanted, "no file is read too early");
                drop(read);
                ahead.reach_file();
            }
        });
        assert_eq!(read.lock().unwrap().len() as u64, 3 * FILES_AHEAD);
    }

    #[test]
    fn a_failed_copy_stops_all_threads() {
        let dir = tree(FILES_AHEAD);
        let ahead = ReadAhead::default();
        let is_walked = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                ahead.walk(dir.path());
                is_walked.store(true, Ordering::SeqCst);
            });
            scope.spawn(|| ahead.serve(|_| {}));
            drop(EndOnDrop(&ahead));
        });
        assert!(is_walked.load(Ordering::SeqCst));
    }
}
