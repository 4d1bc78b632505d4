//! How long clients of a mount wait: every call of a file system, timed.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use senesce_core::{Clock, Extent, Nanos};
use senesce_fsapi::{
    Attributes, Caller, DirEntry, FallocateMode, FileSystem, FsResult, Ino, NewNode, ReadBegun, RenameMode, SeekTo,
    SetAttributes, SetXattrMode, SpaceReport, Timestamp,
};

/// Operations that are kept until a client asks; of more, the later ones are dropped.
const KEPT: usize = 1 << 20;

/// A file system, and how long each of its operations took.
pub struct Timed<C> {
    fs: Arc<dyn FileSystem>,
    clock: Arc<C>,
    waits: Arc<Waits>,
}

#[derive(Default)]
struct Waits(Mutex<Vec<Nanos>>);

impl Waits {
    fn note(&self, begun: Nanos, now: Nanos) {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.len() < KEPT {
            waits.push(Nanos(now.0.saturating_sub(begun.0)));
        }
    }
}

impl<C: Clock> Timed<C> {
    pub fn new(fs: Arc<dyn FileSystem>, clock: Arc<C>) -> Self {
        Self { fs, clock, waits: Arc::default() }
    }

    /// Another file system whose operations are noted with these.
    pub fn beside(&self, fs: Arc<dyn FileSystem>) -> Self {
        Self { fs, clock: self.clock.clone(), waits: self.waits.clone() }
    }

    /// What was noted since the last time.
    pub fn take(&self) -> Vec<Nanos> {
        std::mem::take(&mut self.waits.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn timed<T>(&self, act: impl FnOnce(&dyn FileSystem) -> T) -> T {
        let begun = self.clock.now();
        let done = act(&*self.fs);
        self.waits.note(begun, self.clock.now());
        done
    }
}

impl<C: Clock + 'static> FileSystem for Timed<C> {
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.timed(|fs| fs.lookup(directory, name))
    }

    fn attributes(&self, ino: Ino) -> FsResult<Attributes> {
        self.timed(|fs| fs.attributes(ino))
    }

    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes> {
        self.timed(|fs| fs.set_attributes(caller, ino, change))
    }

    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes> {
        self.timed(|fs| fs.make_node(caller, directory, name, node))
    }

    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes> {
        self.timed(|fs| fs.symlink(caller, directory, name, target))
    }

    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>> {
        self.timed(|fs| fs.read_link(ino))
    }

    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.timed(|fs| fs.link(caller, ino, directory, name))
    }

    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.timed(|fs| fs.unlink(caller, directory, name))
    }

    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.timed(|fs| fs.rmdir(caller, directory, name))
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()> {
        self.timed(|fs| fs.rename(caller, from, to, how))
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        self.timed(|fs| fs.read(ino, offset, out))
    }

    fn begin_read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> ReadBegun {
        let begun = self.clock.now();
        match self.fs.begin_read(ino, offset, out) {
            ReadBegun::Done(done) => {
                self.waits.note(begun, self.clock.now());
                ReadBegun::Done(done)
            }
            ReadBegun::Waits(rest) => {
                let (waits, clock) = (self.waits.clone(), self.clock.clone());
                ReadBegun::Waits(Box::new(move |out| {
                    let done = rest(out);
                    waits.note(begun, clock.now());
                    done
                }))
            }
        }
    }

    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        self.timed(|fs| fs.write(caller, ino, offset, data))
    }

    fn keeps_reservations(&self) -> bool {
        self.fs.keeps_reservations()
    }

    fn allocate(&self, caller: &Caller, ino: Ino, how: FallocateMode, offset: u64, len: u64) -> FsResult<()> {
        self.timed(|fs| fs.allocate(caller, ino, how, offset, len))
    }

    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        self.timed(|fs| fs.clone_range(caller, from, to, len))
    }

    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        self.timed(|fs| fs.seek(ino, offset, what))
    }

    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()> {
        self.timed(|fs| fs.read_dir(directory, cookie, sink))
    }

    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        self.timed(|fs| fs.get_xattr(ino, name))
    }

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrMode) -> FsResult<()> {
        self.timed(|fs| fs.set_xattr(caller, ino, name, value, how))
    }

    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
        self.timed(|fs| fs.list_xattrs(ino))
    }

    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()> {
        self.timed(|fs| fs.remove_xattr(caller, ino, name))
    }

    // The kernel asks for these three on its own, when it likes.
    fn open(&self, ino: Ino) -> FsResult<()> {
        self.fs.open(ino)
    }

    fn release(&self, ino: Ino, now: Timestamp) -> FsResult<()> {
        self.fs.release(ino, now)
    }

    fn space(&self) -> FsResult<SpaceReport> {
        self.fs.space()
    }

    fn sync(&self, ino: Ino) -> FsResult<()> {
        self.timed(|fs| fs.sync(ino))
    }

    fn sync_all(&self) -> FsResult<()> {
        self.timed(|fs| fs.sync_all())
    }

    fn extents(&self, ino: Ino) -> FsResult<Vec<Extent>> {
        self.timed(|fs| fs.extents(ino))
    }
}
