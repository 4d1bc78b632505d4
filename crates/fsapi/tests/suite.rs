//! Each part of the suite finds the wrong engines that it is meant to find.

use std::ops::ControlFlow;

use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    Attributes, Caller, DirEntry, FallocateMode, FileKind, FileSystem, FsError, FsResult, Ino, ModelFs, NewNode,
    RenameMode, SeekTo, SetAttributes, SetXattrMode, SpaceReport, Timestamp,
    conformance::{SequenceOptions, Subject, run_cases, run_read_dir, run_sequence},
};

/// The mistake of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// Loses the last byte of a write that ends at the end of a page.
    LosesLastByteOfPage,
    /// A renamed file keeps its time of change.
    KeepsTimeOfRenamed,
    /// Bytes that a truncation removed within a page return when the file grows.
    GrowsByOldBytes,
    /// Cookies are positions.
    CookiesArePositions,
    /// Extended attributes vanish when the file is closed.
    ForgetsXattrs,
    /// Reports holes as data and data as holes.
    SeeksBackwards,
    /// Returns `NotFound` for files that are not directories.
    WrongError,
    /// Lists names that do not exist.
    ListsGhosts,
    /// The target of a clone keeps its time of modification.
    KeepsTimeOfClones,
}

struct Wrong {
    inner: ModelFs,
    mistake: Mistake,
}

impl Wrong {
    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }
}

impl Subject for Wrong {
    fn file_system(&self) -> &dyn FileSystem {
        self
    }

    fn reopen(&mut self) -> FsResult<()> {
        self.inner.reopen();
        if self.is(Mistake::ForgetsXattrs) {
            for ino in (1..100).map(Ino) {
                for name in self.inner.list_xattrs(ino).unwrap_or_default() {
                    let caller = Caller { now: self.inner.attributes(ino)?.changed, ..Caller::default() };
                    self.inner.remove_xattr(&caller, ino, &name)?;
                }
            }
        }
        Ok(())
    }
}

impl FileSystem for Wrong {
    fn lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        match self.inner.lookup(directory, name) {
            Err(FsError::NotDirectory) if self.is(Mistake::WrongError) => Err(FsError::NotFound),
            answer => answer,
        }
    }

    fn attributes(&self, ino: Ino) -> FsResult<Attributes> {
        self.inner.attributes(ino)
    }

    fn set_attributes(&self, caller: &Caller, ino: Ino, change: &SetAttributes) -> FsResult<Attributes> {
        let old = self.inner.attributes(ino)?.size;
        let done = self.inner.set_attributes(caller, ino, change)?;
        if self.is(Mistake::GrowsByOldBytes) && change.size > Some(old) && !old.is_multiple_of(4096) {
            self.inner.write(caller, ino, old, b"?")?;
        }
        Ok(done)
    }

    fn make_node(&self, caller: &Caller, directory: Ino, name: &[u8], node: &NewNode) -> FsResult<Attributes> {
        self.inner.make_node(caller, directory, name, node)
    }

    fn symlink(&self, caller: &Caller, directory: Ino, name: &[u8], target: &[u8]) -> FsResult<Attributes> {
        self.inner.symlink(caller, directory, name, target)
    }

    fn read_link(&self, ino: Ino) -> FsResult<Vec<u8>> {
        self.inner.read_link(ino)
    }

    fn link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        self.inner.link(caller, ino, directory, name)
    }

    fn unlink(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.inner.unlink(caller, directory, name)
    }

    fn rmdir(&self, caller: &Caller, directory: Ino, name: &[u8]) -> FsResult<()> {
        self.inner.rmdir(caller, directory, name)
    }

    fn rename(&self, caller: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameMode) -> FsResult<()> {
        let before = self.inner.lookup(from.0, from.1);
        self.inner.rename(caller, from, to, how)?;
        if let (true, Ok(before)) = (self.is(Mistake::KeepsTimeOfRenamed), before) {
            let change = SetAttributes { changed: Some(before.changed), ..SetAttributes::default() };
            self.inner.set_attributes(caller, before.ino, &change)?;
        }
        Ok(())
    }

    fn read(&self, ino: Ino, offset: u64, out: &mut [u8]) -> FsResult<usize> {
        self.inner.read(ino, offset, out)
    }

    fn write(&self, caller: &Caller, ino: Ino, offset: u64, data: &[u8]) -> FsResult<usize> {
        let end = offset.saturating_add(data.len() as u64);
        if self.is(Mistake::LosesLastByteOfPage) && !data.is_empty() && end.is_multiple_of(4096) {
            let mut data = data.to_vec();
            *data.last_mut().expect("not empty") = 0;
            return self.inner.write(caller, ino, offset, &data);
        }
        self.inner.write(caller, ino, offset, data)
    }

    fn allocate(&self, caller: &Caller, ino: Ino, how: FallocateMode, offset: u64, len: u64) -> FsResult<()> {
        self.inner.allocate(caller, ino, how, offset, len)
    }

    fn clone_range(&self, caller: &Caller, from: (Ino, u64), to: (Ino, u64), len: u64) -> FsResult<u64> {
        let before = self.inner.attributes(to.0)?.modified;
        let done = self.inner.clone_range(caller, from, to, len)?;
        if self.is(Mistake::KeepsTimeOfClones) && done > 0 {
            let change = SetAttributes { modified: Some(before), ..SetAttributes::default() };
            self.inner.set_attributes(caller, to.0, &change)?;
        }
        Ok(done)
    }

    fn seek(&self, ino: Ino, offset: u64, what: SeekTo) -> FsResult<u64> {
        let what = match (self.is(Mistake::SeeksBackwards), what) {
            (true, SeekTo::Data) => SeekTo::Hole,
            (true, SeekTo::Hole) => SeekTo::Data,
            (false, what) => what,
        };
        self.inner.seek(ino, offset, what)
    }

    fn read_dir(
        &self,
        directory: Ino,
        cookie: u64,
        sink: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> FsResult<()> {
        if self.is(Mistake::ListsGhosts) && cookie == 0 {
            let ghost = DirEntry { ino: directory, kind: FileKind::Directory, cookie: 1, name: b"ghost" };
            if sink(ghost).is_break() {
                return Ok(());
            }
        }
        if !self.is(Mistake::CookiesArePositions) {
            return self.inner.read_dir(directory, cookie, sink);
        }
        let mut position = 0;
        self.inner.read_dir(directory, 0, &mut |entry| {
            position += 1;
            if position > cookie { sink(DirEntry { cookie: position, ..entry }) } else { ControlFlow::Continue(()) }
        })
    }

    fn get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        self.inner.get_xattr(ino, name)
    }

    fn set_xattr(&self, caller: &Caller, ino: Ino, name: &[u8], value: &[u8], how: SetXattrMode) -> FsResult<()> {
        self.inner.set_xattr(caller, ino, name, value, how)
    }

    fn list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
        self.inner.list_xattrs(ino)
    }

    fn remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()> {
        self.inner.remove_xattr(caller, ino, name)
    }

    fn open(&self, ino: Ino) -> FsResult<()> {
        self.inner.open(ino)
    }

    fn release(&self, ino: Ino, now: Timestamp) -> FsResult<()> {
        self.inner.release(ino, now)
    }

    fn sync(&self, ino: Ino) -> FsResult<()> {
        self.inner.sync(ino)
    }

    fn sync_all(&self) -> FsResult<()> {
        self.inner.sync_all()
    }

    fn space(&self) -> FsResult<SpaceReport> {
        self.inner.space()
    }
}

fn wrong(mistake: Mistake) -> Box<dyn Subject> {
    Box::new(Wrong { inner: ModelFs::new(Bytes(Bytes::GIB)), mistake })
}

/// The first difference that sequences find.
fn sequences(mistake: Mistake) -> Option<String> {
    let options = SequenceOptions { operations: 1000, ..SequenceOptions::default() };
    let differs = |seed| run_sequence(&|| wrong(mistake), Seed(seed), &options).err();
    (0..10).find_map(differs).map(|difference| difference.to_string())
}

#[test]
fn sequences_find_and_shorten_mistakes() {
    for mistake in [
        Mistake::LosesLastByteOfPage,
        Mistake::KeepsTimeOfRenamed,
        Mistake::GrowsByOldBytes,
        Mistake::ForgetsXattrs,
        Mistake::SeeksBackwards,
        Mistake::WrongError,
        Mistake::ListsGhosts,
        Mistake::KeepsTimeOfClones,
    ] {
        let error = sequences(mistake).unwrap_or_else(|| panic!("{mistake:?} was not found"));
        let operations = error.lines().count() - 1;
        assert!((1..=4).contains(&operations), "{mistake:?}: {error}");
    }
    assert_eq!(sequences(Mistake::None), None);
}

#[test]
fn cookies_as_positions_are_found() {
    let error = run_read_dir(&|| wrong(Mistake::CookiesArePositions), Seed(1), 50).unwrap_err();
    assert!(error.0.contains("was listed twice") || error.0.contains("was not listed"), "{error}");
}

#[test]
fn cases_name_the_command_with_another_answer() {
    let error = run_cases(&|| wrong(Mistake::WrongError)).unwrap_err();
    let line = "names: nothing is below what is no directory: \"create f/x\" answers";
    assert!(error.0.contains(line) || error.0.contains("stat f/x"), "{error}");
    run_cases(&|| wrong(Mistake::None)).unwrap();
}
