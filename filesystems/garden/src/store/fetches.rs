//! Requests to objects that an operation waits for, while other threads use the state.
//!
//! An operation that can restart is run again. At the first cold block it records the range of the
//! object that it needs, and fails before it changes anything. Its caller releases the state, sends
//! the requests, and runs the operation again with the results. The bytes of an object never
//! change. Whether they are still the wanted ones is decided as usual: the maps are read again, and
//! a block that moved meanwhile is read from its new place.

use std::sync::Arc;

use senesce_objects::ObjectStore;

use super::Store;
use crate::error::Error;

/// A range of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    object: u64,
    start: u64,
    bytes: u64,
}

impl Part {
    fn holds(&self, other: &Self) -> bool {
        let end = |part: &Self| part.start + part.bytes;
        self.object == other.object && self.start <= other.start && end(self) >= end(other)
    }
}

/// Why a store did not return a range.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub object: String,
    pub why: String,
    pub is_absent: bool,
}

impl From<Refusal> for Error {
    fn from(Refusal { object, why, is_absent }: Refusal) -> Self {
        Self::ColdStore { object, why, is_absent }
    }
}

impl Refusal {
    fn of(object: &str, error: &senesce_objects::ObjectError) -> Self {
        Self { object: object.to_owned(), why: error.to_string(), is_absent: error.is_absent() }
    }
}

/// The ranges that one operation needs, and the results of requests.
#[derive(Default)]
pub(crate) struct Fetches {
    /// With the keys of the objects.
    wanted: Vec<(Part, String)>,
    got: Vec<(Part, std::result::Result<Vec<u8>, Refusal>)>,
    door: Option<Arc<dyn ObjectStore>>,
    /// Requests that are not counted yet.
    asked: u64,
    /// Whether the operation only reads: then it can restart after any change.
    only_reads: bool,
}

impl Fetches {
    /// For an operation that only reads. Other operations can restart only before their first
    /// change.
    pub fn of_reading() -> Self {
        Self { only_reads: true, ..Self::default() }
    }

    /// Requests all wanted ranges. The caller must not hold the state, because this may take long.
    pub fn fetch(&mut self) {
        let Some(door) = &self.door else { return };
        for (part, key) in self.wanted.drain(..) {
            let got = door.get_range(&key, part.start..part.start + part.bytes);
            self.asked += 1;
            self.got.push((part, got.map_err(|error| Refusal::of(&key, &error))));
        }
    }

    /// Whether a wanted range was not requested yet.
    pub fn are_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The result of a requested range.
    fn find(&self, wanted: &Part) -> Option<std::result::Result<Vec<u8>, Refusal>> {
        let (part, got) = self.got.iter().find(|(part, _)| part.holds(wanted))?;
        let within = |bytes: &Vec<u8>| {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            let start = wanted.start - part.start;
            bytes[at(start)..at(start + wanted.bytes)].to_vec()
        };
        Some(got.as_ref().map(within).map_err(Refusal::clone))
    }
}

/// The result of reading an object.
pub(super) enum Answer {
    Bytes(Vec<u8>),
    Refused(Refusal),
    /// The range was recorded as wanted.
    Later,
}

impl Store {
    /// Runs an operation that can restart. Cold blocks that it needs are recorded, and it fails
    /// without waiting. If ranges [are wanted](Fetches::are_wanted) then, the caller fetches them
    /// and runs it again. An operation that has made a change waits here for later cold blocks,
    /// with the state locked.
    pub fn do_without_waiting<T>(&mut self, fetches: &mut Fetches, act: impl FnOnce(&mut Self) -> T) -> T {
        self.counts.object_gets += std::mem::take(&mut fetches.asked);
        self.objects.fetches = Some(std::mem::take(fetches));
        let done = act(self);
        *fetches = self.objects.fetches.take().unwrap_or_default();
        done
    }

    /// Whether the running operation needs ranges of objects and will be run again.
    pub fn wants_objects(&self) -> bool {
        self.objects.fetches.as_ref().is_some_and(Fetches::are_wanted)
    }

    /// Reads a range of an object.
    ///
    /// Cost: a request under the lock, unless the operation can restart.
    pub(super) fn read_object(&mut self, object: u64, start: u64, bytes: u64) -> Answer {
        let (part, key) = (Part { object, start, bytes }, self.object_key(object));
        let Some(door) = self.objects.door.clone() else {
            let why = "no object store was given: name the one that it was put in with --objects".to_owned();
            return Answer::Refused(Refusal { object: key, why, is_absent: false });
        };
        let touched = self.touched;
        if let Some(fetches) = &mut self.objects.fetches {
            match fetches.find(&part) {
                Some(Ok(bytes)) => return Answer::Bytes(bytes),
                Some(Err(refusal)) => return Answer::Refused(refusal),
                None if fetches.only_reads || !touched => {
                    if !fetches.wanted.iter().any(|(wanted, _)| wanted.holds(&part)) {
                        fetches.door = Some(door);
                        fetches.wanted.push((part, key));
                    }
                    return Answer::Later;
                }
                None => {}
            }
        }
        self.counts.object_gets += 1;
        match door.get_range(&key, start..start + bytes) {
            Ok(bytes) => Answer::Bytes(bytes),
            Err(error) => Answer::Refused(Refusal::of(&key, &error)),
        }
    }
}
