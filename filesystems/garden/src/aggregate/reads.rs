//! Reading file contents, some of which may be in objects. Other threads use the aggregate while
//! missing blocks are fetched.

use std::ops::Range;

use senesce_fsapi::FsResult;

use crate::{fs::VolumeFs, store::Fetches};

/// The range of blocks to read ahead for a sequential reader.
enum Window {
    /// The read was not recorded yet.
    Unknown,
    Wanted(Range<u64>),
    /// There is no range, or it was read.
    Done,
}

/// A read in progress.
pub(crate) struct Read {
    ino: u64,
    offset: u64,
    window: Window,
    fetches: Fetches,
}

impl Read {
    pub fn new(ino: u64, offset: u64) -> Self {
        Self { ino, offset, window: Window::Unknown, fetches: Fetches::of_reading() }
    }

    /// Reads the range, or returns `None` after recording which blocks must be fetched first.
    pub fn attempt(&mut self, fs: &VolumeFs, out: &mut [u8]) -> Option<FsResult<usize>> {
        let Self { ino, offset, window, fetches } = self;
        let space = fs.space;
        let done = fs.read_only(|store| {
            store.do_without_waiting(fetches, |store| {
                store.regular(space, *ino)?;
                if let Window::Unknown = window {
                    let noted = store.note_read(space, *ino, *offset, out.len() as u64)?;
                    *window = noted.map_or(Window::Done, Window::Wanted);
                }
                if let Window::Wanted(blocks) = window {
                    store.read_ahead(space, *ino, blocks.clone())?;
                    if !store.wants_objects() {
                        *window = Window::Done;
                    }
                }
                Ok(store.read_file(space, *ino, *offset, out)?)
            })
        });
        // A read does not wait for blocks that are only read ahead.
        (done.is_ok() || !self.fetches.are_wanted()).then_some(done)
    }

    /// Completes the read, waiting for blocks that must be fetched.
    pub fn finish(mut self, fs: &VolumeFs, out: &mut [u8]) -> FsResult<usize> {
        loop {
            self.fetches.fetch();
            if let Some(done) = self.attempt(fs, out) {
                return done;
            }
        }
    }
}
