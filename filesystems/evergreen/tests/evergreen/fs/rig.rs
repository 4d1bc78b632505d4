//! A file system over the store in memory that can be reopened and checked.

use senesce_evergreen::{EvergreenFs, FsOptions, KeyValue, ModelStore, check_files, disk::KeyOrder};
use senesce_fsapi::{FileSystem, FsResult, conformance::Subject};

/// A file system over a store.
pub struct Rig<S: KeyValue> {
    fs: Option<EvergreenFs<S>>,
    inodes_kept: usize,
}

impl<S: KeyValue> Rig<S> {
    pub fn new(store: S, keys: KeyOrder) -> Self {
        Self { fs: Some(EvergreenFs::format(store, FsOptions { keys }).unwrap()), inodes_kept: 1000 }
    }

    /// Limits the inodes in memory.
    pub fn keeping(self, inodes_kept: usize) -> Self {
        Self { fs: self.fs.map(|fs| fs.keeping_inodes(inodes_kept)), inodes_kept }
    }

    pub fn fs(&self) -> &EvergreenFs<S> {
        self.fs.as_ref().expect("it is open")
    }
}

impl<S: KeyValue + 'static> Subject for Rig<S> {
    fn file_system(&self) -> &dyn FileSystem {
        self.fs()
    }

    fn reopen(&mut self) -> FsResult<()> {
        let store = self.fs.take().expect("it is open").into_store();
        self.fs = Some(EvergreenFs::open(store)?.keeping_inodes(self.inodes_kept));
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let findings = check_files(self.fs().store()).map_err(|error| error.to_string())?;
        if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
    }
}

/// A store with ample space.
pub fn large() -> ModelStore {
    ModelStore::new(1 << 40, 1 << 20)
}

pub fn make() -> Box<dyn Subject> {
    Box::new(Rig::new(large(), KeyOrder::BirthPath))
}

/// With so few inodes in memory that they are often read again.
pub fn make_forgetful() -> Box<dyn Subject> {
    Box::new(Rig::new(large(), KeyOrder::BirthPath).keeping(2))
}

pub fn make_by_number() -> Box<dyn Subject> {
    Box::new(Rig::new(large(), KeyOrder::InodeNumber))
}
