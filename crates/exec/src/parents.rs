//! The directories that were checked to be real ones, so that a symbolic link cannot lead an
//! operation out of the volume.
//!
//! openat2 can refuse links in a path, mkdirat and unlinkat cannot. A check before each operation
//! would cost a tenth of its time. A directory stays a directory until it is removed or renamed, so
//! each is checked once.

use std::{collections::HashSet, io, os::fd::BorrowedFd};

use crate::posix::open_beneath;

/// Directories that are reached without symbolic links. For each, all its ancestors are in the set.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    known: HashSet<Box<[u8]>>,
    known_bytes: usize,
    last: Vec<u8>,
}

/// Above this number of directories, or of bytes of their paths, the set is emptied and filled
/// again. So memory does not grow with the tree.
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 16 << 20;

impl Parents {
    /// Checks that the parent of `path` is a directory that is reached without symbolic links.
    ///
    /// Errors: ELOOP for a link in the path, ENOENT, ENOTDIR; never a lack of space.
    pub fn check(&mut self, root: BorrowedFd<'_>, path: &[u8]) -> io::Result<()> {
        let Some(end) = path.iter().rposition(|&b| b == b'/') else { return Ok(()) };
        let parent = &path[..end];
        if parent == self.last || self.known.contains(parent) {
            return Ok(());
        }
        drop(open_beneath(root, parent)?);
        if self.known.len() > MOST || self.known_bytes > MOST_BYTES {
            self.known.clear();
            self.known_bytes = 0;
        }
        self.remember(parent);
        self.last.clear();
        self.last.extend_from_slice(parent);
        Ok(())
    }

    /// Adds a directory and all its ancestors. Returns the number of directories that it looked up.
    ///
    /// Starts at the lowest directory and stops at a known one, because all ancestors of a known
    /// directory are known. Starting at the top would cost the cube of the depth for a chain of
    /// directories.
    fn remember(&mut self, directory: &[u8]) -> usize {
        let (mut rest, mut looked_up) = (Some(directory), 0);
        while let Some(directory) = rest {
            looked_up += 1;
            if !self.known.insert(directory.into()) {
                break;
            }
            self.known_bytes += directory.len();
            rest = directory.iter().rposition(|&b| b == b'/').map(|at| &directory[..at]);
        }
        looked_up
    }

    /// Forgets `path` and the directories below it, because they may have been replaced.
    pub fn forget(&mut self, path: &[u8]) {
        let below =
            |known: &[u8]| known.strip_prefix(path).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')));
        // A directory is known only together with its ancestors.
        if self.known.contains(path) || path == b"." {
            self.known.retain(|known| path != b"." && !below(known));
        }
        if path == b"." || below(&self.last) {
            self.last.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chained_directories_are_looked_up_once_each() {
        let (mut parents, mut path) = (Parents::default(), b"d".to_vec());
        let mut looked_up = 0;
        for _ in 0..1500 {
            looked_up += parents.remember(&path);
            path.extend_from_slice(b"/d");
        }
        assert_eq!((parents.known.len(), looked_up), (1500, 2 * 1500 - 1));
    }

    #[test]
    fn ancestors_of_a_remembered_directory_are_known() {
        let mut parents = Parents::default();
        assert_eq!(parents.remember(b"a/b/c"), 3);
        assert!([&b"a"[..], b"a/b", b"a/b/c"].iter().all(|path| parents.known.contains(*path)));
    }
}
