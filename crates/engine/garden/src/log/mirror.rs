//! The copies of the log while it is in use: every commit goes to all of them.
//!
//! A copy that fails is not written any more. The next superblock says so before anything is acknowledged that only the others hold.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
};

use senesce_block::BlockDevice;

use super::{
    Batch,
    devices::{Copies, Place},
};
use crate::error::{Error, Result};

pub(crate) struct Mirror {
    copies: Vec<Option<Arc<dyn BlockDevice>>>,
    /// All are on one device, which needs one flush.
    is_shared: bool,
    /// Copies, bit by bit, that do not hold all that was committed.
    lost: AtomicU32,
    /// Those that the last durable superblock names.
    noted: AtomicU32,
    failures: Mutex<Vec<String>>,
    /// Bytes written, and flushes.
    written: (AtomicU64, AtomicU64),
}

impl Mirror {
    pub fn new(copies: &Copies, lost: u32, noted: u32) -> Self {
        Self {
            copies: copies.places.iter().map(|place| place.device().cloned()).collect(),
            is_shared: copies.shape.is_shared,
            lost: AtomicU32::new(lost),
            noted: AtomicU32::new(noted),
            failures: Mutex::default(),
            written: Default::default(),
        }
    }

    /// Writes records to all copies and makes them durable. Errors: no copy holds them; the flush of a device with all copies fails.
    pub fn commit(&self, batch: &Batch) -> Result<()> {
        let mut last = None;
        for (number, device) in self.live() {
            self.written.0.fetch_add(batch.bytes.len() as u64, Relaxed);
            if let Err(error) = device.write_at(batch.offset, &batch.bytes) {
                last = Some(self.fail(number, error));
            }
        }
        let mut is_flushed = false;
        for (number, device) in self.live() {
            if self.is_shared && is_flushed {
                break;
            }
            self.written.1.fetch_add(1, Relaxed);
            match device.flush() {
                Ok(()) => is_flushed = true,
                // The next flush of a device may succeed without what this one should have made durable.
                Err(error) if self.is_shared => return Err(self.fail(number, error)),
                Err(error) => last = Some(self.fail(number, error)),
            }
        }
        match (self.is_live(), last) {
            (true, _) => Ok(()),
            (false, Some(error)) => Err(error),
            (false, None) => Err(Error::invalid("no copy of the log is left")),
        }
    }

    /// Stops using a copy.
    pub fn fail(&self, number: usize, error: impl Into<Error>) -> Error {
        self.lost.fetch_or(1 << number, SeqCst);
        let error = error.into();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(format!("copy {number} of the log failed: {error}"));
        error
    }

    /// Whether any copy holds all that was committed.
    pub fn is_live(&self) -> bool {
        self.live().next().is_some()
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Arc<dyn BlockDevice>)> {
        let lost = self.lost.load(SeqCst);
        let live = move |(number, device)| Some((number, Option::as_ref(device)?));
        self.copies.iter().enumerate().filter_map(live).filter(move |(number, _)| lost >> number & 1 == 0)
    }

    /// Copies that do not hold all that was committed.
    pub fn lost(&self) -> u32 {
        self.lost.load(SeqCst)
    }

    /// Copies that hold all that was committed, and all copies.
    pub fn count(&self) -> (u32, u32) {
        (self.live().count() as u32, self.copies.len() as u32)
    }

    /// Bytes written to all copies together, and flushes.
    pub fn written(&self) -> (u64, u64) {
        (self.written.0.load(Relaxed), self.written.1.load(Relaxed))
    }

    /// A copy holds all again.
    pub fn restore(&self, number: usize) {
        self.lost.fetch_and(!(1 << number), SeqCst);
    }

    /// Whether a superblock has to name other copies than the last one does.
    pub fn has_news(&self) -> bool {
        self.lost.load(SeqCst) != self.noted.load(SeqCst)
    }

    /// A superblock that names these copies is durable.
    pub fn note(&self, lost: u32) {
        self.noted.store(lost, SeqCst);
    }

    /// Failures of copies since it was opened.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Bits of the copies that are not believed: those that are lost, and those that a superblock names.
pub(crate) fn unbelieved(copies: &Copies, without: u32) -> u32 {
    let is_lost = |place: &Place| !matches!(place, Place::Here(_));
    let lost = copies.places.iter().enumerate().filter(|(_, place)| is_lost(place));
    without | lost.fold(0, |bits, (number, _)| bits | 1 << number)
}
