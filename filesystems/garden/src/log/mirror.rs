//! The copies of the log in use: every commit is written to all of them.
//!
//! A copy that fails receives no more writes. The next superblock records this before anything is
//! acknowledged that only the other copies hold.

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
    /// The number of the copy.
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
    /// Whether the copy holds all acknowledged operations.
    pub is_whole: bool,
}

pub(crate) struct Mirror {
    copies: Vec<Option<Arc<dyn BlockDevice>>>,
    /// Whether all copies are on one device, which needs one flush.
    is_shared: bool,
    /// A bit for each copy that does not hold all commits.
    lost: AtomicU32,
    /// The bits of `lost` that the last durable superblock names.
    noted: AtomicU32,
    /// For each copy, the generation of the label that counts.
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

    /// Writes records to all copies and makes them durable.
    ///
    /// Errors: no copy holds them; the flush of a device with all copies fails.
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
                // The next flush of the device may succeed without making these writes durable.
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

    /// Runs `act` on each copy in use; a copy that fails is not used any more.
    ///
    /// Errors: no copy is left.
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
            // A closed channel means that the receiver wants no more reports.
            let _ = watch.send(LogFailure { copy, device, why, is_left_out });
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(format!("copy {number} of the log failed: {error}"));
        error
    }

    /// Sends the failure of each copy from now on; `None` stops that.
    pub fn watch(&self, sender: Option<Sender<LogFailure>>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }

    /// The device of each copy, and whether it holds all commits.
    pub fn states(&self) -> Vec<LogCopyReport> {
        let lost = self.lost.load(SeqCst);
        let state = |(number, device): (usize, &Option<Arc<dyn BlockDevice>>)| LogCopyReport {
            device: device.as_ref().map(|device| device.name().to_owned()),
            is_whole: device.is_some() && lost >> number & 1 == 0,
        };
        self.copies.iter().enumerate().map(state).collect()
    }

    /// Whether any copy holds all commits.
    pub fn is_live(&self) -> bool {
        self.live().next().is_some()
    }

    /// Whether a copy holds all commits.
    pub fn is_in_use(&self, number: usize) -> bool {
        self.lost.load(SeqCst) >> number & 1 == 0
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Arc<dyn BlockDevice>)> {
        let lost = self.lost.load(SeqCst);
        let live = move |(number, device)| Some((number, Option::as_ref(device)?));
        self.copies.iter().enumerate().filter_map(live).filter(move |(number, _)| lost >> number & 1 == 0)
    }

    /// The state for the next superblock.
    pub fn state(&self) -> LogState {
        LogState { without: self.lost.load(SeqCst), generations: *self.generations() }
    }

    fn generations(&self) -> MutexGuard<'_, [u64; MAX_COPIES]> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of copies that hold all commits, and of all copies.
    pub fn count(&self) -> (u32, u32) {
        (self.live().count() as u32, self.copies.len() as u32)
    }

    /// Bytes written to all copies together, and flushes.
    pub fn written(&self) -> (u64, u64) {
        (self.written.0.load(Relaxed), self.written.1.load(Relaxed))
    }

    /// Takes a copy into use that holds all commits, with the generation of its label.
    pub fn restore(&self, number: usize, generation: u64) {
        self.generations()[number] = generation;
        self.lost.fetch_and(!(1 << number), SeqCst);
    }

    /// Whether the next superblock has to name other copies than the last one.
    pub fn has_news(&self) -> bool {
        self.lost.load(SeqCst) != self.noted.load(SeqCst)
    }

    /// Records that a superblock with these lost copies is durable.
    pub fn note(&self, lost: u32) {
        self.noted.store(lost, SeqCst);
    }

    /// Failures of copies since the opening.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Bits of the copies that are not trusted: lost ones, those that the superblock excludes, and
/// devices whose copy was replaced.
///
/// A copy without a readable label may be such a device. It is trusted if no copy was ever lost,
/// if another copy is trusted, or if `accepted`.
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

/// Why a copy that a device holds is not trusted.
pub(crate) fn why_unbelieved(copies: &Copies, state: &LogState, number: usize) -> String {
    let wanted = state.generations[number];
    match copies.generations[number] {
        _ if state.without >> number & 1 == 1 => "older than the last superblock".to_owned(),
        Some(found) => format!("replaced by another device: its label has generation {found}, the superblock {wanted}"),
        None => "perhaps replaced: a copy of the log was lost, and neither label of this one can be read".to_owned(),
    }
}
