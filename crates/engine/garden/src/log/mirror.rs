//! The copies of the log while it is in use: every commit goes to all of them.
//!
//! A copy that fails is not written any more. The next superblock says so before anything is acknowledged that only the others hold.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    mpsc::Sender,
};

use senesce_block::BlockDevice;

use super::{
    Batch,
    devices::{Copies, Place},
};
use crate::{
    error::{Error, Result},
    format::{label::MAX_COPIES, superblock::LogState},
};

/// A copy of the log that failed while the aggregate was in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFailure {
    /// Its number.
    pub copy: u32,
    /// The name of its device.
    pub device: String,
    /// The failure, in words.
    pub why: String,
    /// Whether another copy continues without it. Otherwise nothing can be acknowledged any more.
    pub is_left_out: bool,
}

/// A place for a copy of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCopyReport {
    /// The name of the device, if there is one.
    pub device: Option<String>,
    /// Whether it holds all that was acknowledged.
    pub is_whole: bool,
}

pub(crate) struct Mirror {
    copies: Vec<Option<Arc<dyn BlockDevice>>>,
    /// All are on one device, which needs one flush.
    is_shared: bool,
    /// Copies, bit by bit, that do not hold all that was committed.
    lost: AtomicU32,
    /// Those that the last durable superblock names.
    noted: AtomicU32,
    /// By number, what the label of a copy says that counts.
    generations: Mutex<[u64; MAX_COPIES]>,
    failures: Mutex<Vec<String>>,
    /// Receives the failure of each copy.
    watch: Mutex<Option<Sender<LogFailure>>>,
    /// Bytes written, and flushes.
    written: (AtomicU64, AtomicU64),
}

impl Mirror {
    pub fn new(copies: &Copies, lost: u32, noted: &LogState) -> Self {
        Self {
            copies: copies.places.iter().map(|place| place.device().cloned()).collect(),
            is_shared: copies.shape.is_shared,
            lost: AtomicU32::new(lost),
            noted: AtomicU32::new(noted.without),
            generations: Mutex::new(noted.generations),
            failures: Mutex::default(),
            watch: Mutex::default(),
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

    /// Does something with each copy that is in use; one that fails is not used any more. Errors: no copy is left.
    pub fn each(&self, act: impl Fn(&dyn BlockDevice) -> Result<()>) -> Result<()> {
        let mut last = None;
        for (number, device) in self.live() {
            last = act(device).err().map(|error| self.fail(number, error)).or(last);
        }
        match last {
            Some(error) if !self.is_live() => Err(error),
            _ => Ok(()),
        }
    }

    /// Stops using a copy.
    pub fn fail(&self, number: usize, error: impl Into<Error>) -> Error {
        let before = self.lost.fetch_or(1 << number, SeqCst);
        let error = error.into();
        if before >> number & 1 == 0
            && let Some(watch) = &*self.watch.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let device = self.copies[number].as_ref().map_or(String::new(), |device| device.name().to_owned());
            let (copy, why, is_left_out) = (number as u32, error.to_string(), self.is_live());
            // A receiver that is gone wants no reports.
            let _ = watch.send(LogFailure { copy, device, why, is_left_out });
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(format!("copy {number} of the log failed: {error}"));
        error
    }

    /// Sends the failure of each copy from now on; `None` ends that.
    pub fn watch(&self, sender: Option<Sender<LogFailure>>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }

    /// The device of each copy, and whether it holds all that was committed.
    pub fn states(&self) -> Vec<LogCopyReport> {
        let lost = self.lost.load(SeqCst);
        let state = |(number, device): (usize, &Option<Arc<dyn BlockDevice>>)| LogCopyReport {
            device: device.as_ref().map(|device| device.name().to_owned()),
            is_whole: device.is_some() && lost >> number & 1 == 0,
        };
        self.copies.iter().enumerate().map(state).collect()
    }

    /// Whether any copy holds all that was committed.
    pub fn is_live(&self) -> bool {
        self.live().next().is_some()
    }

    /// Whether a copy holds all that was committed.
    pub fn is_in_use(&self, number: usize) -> bool {
        self.lost.load(SeqCst) >> number & 1 == 0
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Arc<dyn BlockDevice>)> {
        let lost = self.lost.load(SeqCst);
        let live = move |(number, device)| Some((number, Option::as_ref(device)?));
        self.copies.iter().enumerate().filter_map(live).filter(move |(number, _)| lost >> number & 1 == 0)
    }

    /// What the next superblock is to say.
    pub fn state(&self) -> LogState {
        LogState { without: self.lost.load(SeqCst), generations: *self.generations() }
    }

    fn generations(&self) -> MutexGuard<'_, [u64; MAX_COPIES]> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies that hold all that was committed, and all copies.
    pub fn count(&self) -> (u32, u32) {
        (self.live().count() as u32, self.copies.len() as u32)
    }

    /// Bytes written to all copies together, and flushes.
    pub fn written(&self) -> (u64, u64) {
        (self.written.0.load(Relaxed), self.written.1.load(Relaxed))
    }

    /// A copy holds all again, and its label says this.
    pub fn restore(&self, number: usize, generation: u64) {
        self.generations()[number] = generation;
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

/// Bits of the copies that are not believed: those that are lost, that a superblock calls so, and devices whose copy was replaced since.
///
/// A copy without a label that can be read may be such a device, of either copy. It is believed if none was ever lost, beside another one
/// that is believed, and if that is `accepted`.
pub(crate) fn unbelieved(copies: &Copies, state: &LogState, accepted: bool) -> u32 {
    let mut bits = state.without;
    let mut unknown = Vec::new();
    for (number, (place, generation)) in copies.places.iter().zip(&copies.generations).enumerate() {
        let wanted = state.generations[number];
        match (place, generation) {
            (Place::Here(_), None) if *state != LogState::default() => unknown.push(number),
            (Place::Here(_), None) => {}
            (Place::Here(_), Some(generation)) if *generation == wanted => {}
            _ => bits |= 1 << number,
        }
    }
    let is_known = |number: &usize| bits >> number & 1 == 0 && !unknown.contains(number);
    if !accepted && !(0..copies.places.len()).any(|number| is_known(&number)) {
        unknown.iter().for_each(|number| bits |= 1 << number);
    }
    bits
}

/// What a device is that holds a copy and is not believed.
pub(crate) fn why_unbelieved(copies: &Copies, state: &LogState, number: usize) -> String {
    let wanted = state.generations[number];
    match copies.generations[number] {
        _ if state.without >> number & 1 == 1 => "older than the last superblock".to_owned(),
        Some(found) => format!("replaced by another device: its label has generation {found}, the superblock {wanted}"),
        None => "perhaps replaced: a copy of the log was lost, and neither label of this one can be read".to_owned(),
    }
}
