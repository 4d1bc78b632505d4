//! What an operation wants of objects, and waits for while others have the state.
//!
//! An operation that can be done again from its beginning is: where it meets a cold block for the first time, it is noted which range
//! of which object that lies in, and the operation fails before it changes anything. Whoever runs it gives the state back, asks the
//! store, and runs it again with what came. What came is bytes of an object, which never change; whether they are still the ones wanted
//! is judged as ever: the maps are asked anew, and what moved meanwhile is read from where it is now.

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

/// Why a store did not give a range.
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

/// What one operation wants of objects, and what it got.
#[derive(Default)]
pub(crate) struct Fetches {
    /// With the keys of the objects.
    wanted: Vec<(Part, String)>,
    got: Vec<(Part, std::result::Result<Vec<u8>, Refusal>)>,
    door: Option<Arc<dyn ObjectStore>>,
    /// Requests that are not counted yet.
    asked: u64,
    /// It only reads: it can be done again whatever else was changed by the way.
    only_reads: bool,
}

impl Fetches {
    /// Of an operation that only reads. Others can be done again as long as they have changed nothing.
    pub fn of_reading() -> Self {
        Self { only_reads: true, ..Self::default() }
    }

    /// Asks the store for all that is wanted. For those who do not hold the state: that may take long.
    pub fn fetch(&mut self) {
        let Some(door) = &self.door else { return };
        for (part, key) in self.wanted.drain(..) {
            let got = door.get_range(&key, part.start..part.start + part.bytes);
            self.asked += 1;
            self.got.push((part, got.map_err(|error| Refusal::of(&key, &error))));
        }
    }

    /// Whether something is wanted that was not asked for.
    pub fn are_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What came of a range, if it was asked for.
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

/// What an object gives.
pub(super) enum Answer {
    Bytes(Vec<u8>),
    Refused(Refusal),
    /// It is noted that somebody wants it.
    Later,
}

impl Store {
    /// Does something that can be done again from its beginning: cold blocks that it wants are noted and not waited for, and it fails. If
    /// some [are wanted](Fetches::are_wanted) then, it is to be done again when they were fetched. Of what changes something that is so
    /// only before the first change; a cold block that is wanted behind it is waited for here, by everybody.
    pub fn do_without_waiting<T>(&mut self, fetches: &mut Fetches, act: impl FnOnce(&mut Self) -> T) -> T {
        self.counts.object_gets += std::mem::take(&mut fetches.asked);
        self.objects.fetches = Some(std::mem::take(fetches));
        let done = act(self);
        *fetches = self.objects.fetches.take().unwrap_or_default();
        done
    }

    /// Whether the running operation wants something of objects, and will be done again.
    pub fn wants_objects(&self) -> bool {
        self.objects.fetches.as_ref().is_some_and(Fetches::are_wanted)
    }

    /// A range of an object. Cost: a request, for which everybody waits, unless what runs can be done again.
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
