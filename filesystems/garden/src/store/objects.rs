//! Objects of the aggregate: the number of blocks in use of each, and reading them.
//!
//! The container map names a place in an object like one on a drive. A place that leaves the map
//! decrements the count of its object. An object without blocks in use is deleted once the
//! consistency point that says so is durable. After its deletion the record is removed. So an
//! object that a map names always exists, whatever fails. An object that was put and never named is
//! found by its number.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use senesce_objects::ObjectStore;

use super::{
    AGGREGATE, Key, Store, aggregate,
    fetches::{Answer, Fetches},
};
use crate::{
    error::{Error, Result},
    format::{
        Damage, SLOT,
        object::{self, MAX_OBJECTS, ObjectHead, ObjectRecord, PER_BLOCK, RECORD},
        page::Page,
        pointer::{ObjectPlace, Physical},
        slot,
    },
    raid::Want,
};

/// The most blocks that change when the record of an object is removed.
const FORGETTING_BLOCKS: u64 = 8;

/// The state of the objects.
#[derive(Default)]
pub(crate) struct Objects {
    /// The object store, if one was given.
    pub door: Option<Arc<dyn ObjectStore>>,
    /// Whether the store belongs to this aggregate, and why not, once it was checked.
    pub judged: Option<std::result::Result<(), String>>,
    /// The records of all objects.
    records: BTreeMap<u64, ObjectRecord>,
    /// Objects that became empty since the last consistency point.
    emptied: BTreeSet<u64>,
    /// Objects that the last consistency point does not need.
    pub deletable: BTreeSet<u64>,
    /// The number of the next object.
    pub next: u64,
    /// The fetches of the running operation, if it can restart.
    pub(super) fetches: Option<Fetches>,
}

impl Objects {
    /// The most blocks of the file of records that can change, with those above them.
    pub fn table_blocks(&self) -> u64 {
        let (first, last) = (self.records.keys().next(), self.records.keys().next_back());
        match (first, last) {
            (Some(first), Some(last)) => 3 * (last / PER_BLOCK - first / PER_BLOCK + 1),
            _ => 0,
        }
    }

    /// Ends a consistency point: objects that it does not name are not needed.
    pub(super) fn end_point(&mut self) {
        self.deletable.append(&mut self.emptied);
    }

    /// All objects, by their numbers.
    pub fn records(&self) -> &BTreeMap<u64, ObjectRecord> {
        &self.records
    }
}

/// Why a block was not read from its place.
pub(super) enum Unread {
    /// The block is not the wanted one.
    Wrong(Damage),
    /// The place cannot be read.
    Away(Error),
    /// The block must be fetched from an object, and the operation will restart.
    Later,
}

impl Unread {
    pub fn is_for_later(&self) -> bool {
        matches!(self, Self::Later)
    }
}

impl Store {
    /// Loads the records of all objects.
    pub(super) fn load_objects(&mut self) -> Result<()> {
        self.objects.next = self.sb.next_object;
        let mut from = 0;
        while let Some(block) = self.find_block(AGGREGATE, aggregate::OBJECTS, from, MAX_OBJECTS / PER_BLOCK, true)? {
            let data = *self.get(Key::new(AGGREGATE, aggregate::OBJECTS, 0, block))?;
            for (number, bytes) in (block * PER_BLOCK..).zip(data.as_chunks::<RECORD>().0) {
                let found = ObjectRecord::decode(bytes);
                let found = found.map_err(|damage| Error::damaged(format!("object {number}"), damage))?;
                let Some(record) = found else { continue };
                self.objects.records.insert(number, record);
                if record.live == 0 {
                    self.objects.deletable.insert(number);
                }
            }
            from = block + 1;
        }
        Ok(())
    }

    /// The key of an object in the store.
    pub fn object_key(&self, object: u64) -> String {
        object::key(self.aggregate.uuid, object)
    }

    /// Whether a volume's block is in an object.
    pub(super) fn is_cold(&mut self, space: u32, vvbn: u64) -> Result<bool> {
        Ok(self.container(space, vvbn)?.is_some_and(|at| at.in_object().is_some()))
    }

    /// Sets the record of a new object, all of whose blocks are named from now on; `None` removes
    /// the record.
    pub(super) fn put_object_record(&mut self, object: u64, record: Option<ObjectRecord>) -> Result<()> {
        let (key, at) = record_place(object);
        self.modify(key)?[at..at + RECORD].copy_from_slice(&ObjectRecord::encode(record));
        match record {
            Some(record) => self.objects.records.insert(object, record),
            None => self.objects.records.remove(&object),
        };
        Ok(())
    }

    /// Decrements the count of an object: one of its blocks is not named any more.
    pub(super) fn leave_object(&mut self, object: u64) -> Result<()> {
        let Some(record) = self.objects.records.get(&object).copied().filter(|record| record.live > 0) else {
            let damage = Damage::new("object record", "living blocks", 0, "1 at least");
            return Err(Error::damaged(format!("object {object}"), damage));
        };
        let record = ObjectRecord { live: record.live - 1, ..record };
        self.put_object_record(object, Some(record))?;
        self.sb.cold = self.sb.cold.saturating_sub(1);
        if record.live == 0 {
            self.objects.emptied.insert(object);
            // The object is deleted after the next consistency point. A replay of the operations
            // before it could not read it.
            self.log.note_other_changes();
        }
        Ok(())
    }

    /// The identity of the aggregate.
    pub fn uuid(&self) -> [u8; 16] {
        self.aggregate.uuid
    }

    /// Removes the record of a deleted object. Errors: `NoSpace`, before any change.
    pub fn forget_object(&mut self, object: u64) -> Result<()> {
        self.reserve_release(FORGETTING_BLOCKS, 0)?;
        self.objects.deletable.remove(&object);
        self.counts.object_deletes += 1;
        self.put_object_record(object, None)
    }

    /// Reads adjacent blocks of an object. Each result is the block or the reason why not.
    pub(super) fn read_cold(&mut self, first: ObjectPlace, wants: &[Want]) -> Vec<std::result::Result<Page, Unread>> {
        let bytes = match self.read_object(first.object, object::slot_at(first.slot), (wants.len() * SLOT) as u64) {
            Answer::Bytes(bytes) => bytes,
            Answer::Refused(why) => return wants.iter().map(|_| Err(Unread::Away(why.clone().into()))).collect(),
            Answer::Later => return wants.iter().map(|_| Err(Unread::Later)).collect(),
        };
        self.counts.cold_reads += wants.len() as u64;
        let one = |(at, want): (usize, &Want)| {
            let place = ObjectPlace { slot: first.slot + at as u64, ..first };
            let slot = object::slot_of(bytes.get(at * SLOT..).unwrap_or_default()).map_err(Unread::Wrong)?;
            let judged = slot::decode(&slot).and_then(|context| want.check(&context, place.pvbn()));
            judged.map(|()| slot.into()).map_err(Unread::Wrong)
        };
        wants.iter().enumerate().map(one).collect()
    }

    pub(super) fn damaged_object(&self, place: ObjectPlace, damage: Damage) -> Error {
        Error::damaged(format!("block {} of object {}", place.slot, self.object_key(place.object)), damage)
    }

    /// Reads a block of a volume from a place on a drive or in an object.
    pub(super) fn read_place(&mut self, space: u32, vvbn: u64, at: Physical) -> std::result::Result<Page, Unread> {
        let Some(place) = at.in_object() else { return self.read_at(space, vvbn, at).map_err(Unread::Wrong) };
        let want = self.want_of_volume(space, vvbn, at);
        let none = || Err(Unread::Wrong(Damage::new("object", "answer", "nothing", "a block")));
        self.read_cold(place, std::slice::from_ref(&want)).pop().unwrap_or_else(none)
    }

    /// Restores a block that is wrong at its place in the container map, by parity. Errors: no
    /// other source exists.
    pub(super) fn repair_place(&mut self, space: u32, vvbn: u64, at: Physical, why: Unread) -> Result<Page> {
        match (why, at.in_object()) {
            (Unread::Away(error), _) => Err(error),
            (Unread::Later, _) => Err(Error::invalid("a block of an object was not fetched yet")),
            (Unread::Wrong(damage), None) => self.repair_at(space, vvbn, at, damage),
            (Unread::Wrong(damage), Some(place)) => Err(self.damaged_object(place, damage)),
        }
    }

    /// Decodes the head of an object. Errors: damage.
    pub(super) fn decode_object_head(&self, object: u64, bytes: &[u8]) -> Result<ObjectHead> {
        let head = ObjectHead::decode(bytes).and_then(|head| {
            let is_own = head.uuid == self.aggregate.uuid && head.object == object;
            if is_own { Ok(head) } else { Err(Damage::new("object", "number", head.object, object)) }
        });
        head.map_err(|damage| Error::damaged(format!("object {}", self.object_key(object)), damage))
    }
}

/// The block and offset of an object's record.
pub(super) fn record_place(object: u64) -> (Key, usize) {
    let (block, within) = (object / PER_BLOCK, object % PER_BLOCK);
    (Key::new(AGGREGATE, aggregate::OBJECTS, 0, block), within as usize * RECORD)
}
