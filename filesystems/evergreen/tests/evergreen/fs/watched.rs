//! A store in memory that counts requests, fails on demand, and keeps all batches.

use std::{
    ops::ControlFlow,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use senesce_evergreen::{Batch, Change, Error, KeyValue, Live, ModelStore, Result};

use super::rig::large;

/// The requests to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub gets: u64,
    pub scans: u64,
    /// Keys and values that scans returned.
    pub scanned: u64,
    pub batches: u64,
    pub changes: u64,
    pub syncs: u64,
}

pub struct Watched {
    inner: ModelStore,
    asked: Mutex<Asked>,
    batches: Mutex<Vec<Batch>>,
    keeps: Keeps,
    fails: AtomicBool,
}

/// The data to keep in addition to the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing.
    Entries,
    /// Nothing, and no blocks of files, which would not fit into memory.
    NoBlocks,
    /// All batches.
    Batches,
}

impl Watched {
    pub fn new(keeps: Keeps) -> Self {
        Self::on(large(), keeps)
    }

    pub fn on(inner: ModelStore, keeps: Keeps) -> Self {
        Self { inner, asked: Mutex::default(), batches: Mutex::default(), keeps, fails: AtomicBool::new(false) }
    }

    pub fn entries(&self) -> Vec<(Bytes, Bytes)> {
        self.inner.entries()
    }

    /// The requests since the last call.
    pub fn take(&self) -> Asked {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    pub fn batches(&self) -> Vec<Batch> {
        self.batches.lock().unwrap().clone()
    }

    /// Sets whether batches fail.
    pub fn set_failing(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    fn count(&self, count: impl FnOnce(&mut Asked)) {
        count(&mut self.asked.lock().unwrap());
    }
}

impl KeyValue for Watched {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.count(|asked| asked.gets += 1);
        self.inner.get(key)
    }

    fn scan(&self, from: &[u8], to: &[u8], sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>) -> Result<()> {
        self.count(|asked| asked.scans += 1);
        self.inner.scan(from, to, &mut |key, value| {
            self.count(|asked| asked.scanned += 1);
            sink(key, value)
        })
    }

    fn apply(&self, batch: Batch) -> Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::Invalid { what: "a failure of the test".to_owned() });
        }
        self.count(|asked| {
            asked.batches += 1;
            asked.changes += batch.changes().len() as u64;
        });
        match self.keeps {
            Keeps::Entries => self.inner.apply(batch),
            Keeps::NoBlocks => {
                let is_block = |change: &&Change| matches!(change, Change::One { key, .. } if key[0] == b'd');
                let mut rest =
                    Batch::from(batch.changes().iter().filter(|change| !is_block(change)).cloned().collect::<Vec<_>>());
                rest.claim = batch.claim;
                self.inner.apply(rest)
            }
            Keeps::Batches => {
                self.inner.apply(batch.clone())?;
                self.batches.lock().unwrap().push(batch);
                Ok(())
            }
        }
    }

    fn sync(&self) -> Result<()> {
        self.count(|asked| asked.syncs += 1);
        self.inner.sync()
    }

    fn max_batch_bytes(&self) -> usize {
        self.inner.max_batch_bytes()
    }

    fn live(&self) -> Live {
        self.inner.live()
    }
}
