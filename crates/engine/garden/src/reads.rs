//! Reading contents of files, some of which may lie in objects: what is not here is fetched while others use the aggregate.

use std::ops::Range;

use senesce_fsapi::FsResult;

use crate::{fs::VolumeFs, store::Fetches};

/// What is read at once because somebody reads in order.
enum Window {
    /// It was not noted yet that somebody reads.
    Unknown,
    Wanted(Range<u64>),
    /// There is none, or it was read.
    Done,
}

/// A read that is begun, and how far it is.
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

    /// Reads, unless something has to be fetched before that: then it is known what.
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
        // What is only read ahead is not waited for.
        (done.is_ok() || !self.fetches.are_wanted()).then_some(done)
    }

    /// Reads, and waits for what has to be fetched.
    pub fn finish(mut self, fs: &VolumeFs, out: &mut [u8]) -> FsResult<usize> {
        loop {
            self.fetches.fetch();
            if let Some(done) = self.attempt(fs, out) {
                return done;
            }
        }
    }
}
