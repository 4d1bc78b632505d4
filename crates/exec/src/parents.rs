//! Which directories were seen to be real ones, so that a symbolic link cannot lead an operation out of the volume.
//!
//! openat2 can refuse links on the way, mkdirat and unlinkat cannot; and a check before each operation would cost a
//! tenth of its time. A directory stays one until it is removed or renamed, so each is checked once.

use std::{collections::HashSet, io, os::fd::BorrowedFd};

use crate::posix::open_beneath;

/// Directories known to be reached without symbolic links; with each one all those above it.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    known: HashSet<Box<[u8]>>,
    last: Vec<u8>,
}

/// Above this many the set is emptied and learnt anew, so that memory does not grow with the tree.
const MOST: usize = 1 << 16;

impl Parents {
    /// Makes sure that the parent of `path` is a directory reached without symbolic links.
    ///
    /// Errors: ELOOP for a link on the way, ENOENT, ENOTDIR; no space never.
    pub fn check(&mut self, root: BorrowedFd<'_>, path: &[u8]) -> io::Result<()> {
        let Some(end) = path.iter().rposition(|&b| b == b'/') else { return Ok(()) };
        let parent = &path[..end];
        if parent == self.last || self.known.contains(parent) {
            return Ok(());
        }
        drop(open_beneath(root, parent)?);
        if self.known.len() > MOST {
            self.known.clear();
        }
        let ends = parent.iter().enumerate().filter(|&(_, &b)| b == b'/').map(|(at, _)| at);
        for end in ends.chain([parent.len()]) {
            if !self.known.contains(&parent[..end]) {
                self.known.insert(parent[..end].into());
            }
        }
        self.last.clear();
        self.last.extend_from_slice(parent);
        Ok(())
    }

    /// Forgets `path` and what is below it, because it is no longer what it was.
    pub fn forget(&mut self, path: &[u8]) {
        let below =
            |known: &[u8]| known.strip_prefix(path).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')));
        // What is below a directory is only known together with the directory itself.
        if self.known.contains(path) || path == b"." {
            self.known.retain(|known| path != b"." && !below(known));
        }
        if path == b"." || below(&self.last) {
            self.last.clear();
        }
    }
}
