//! Tiering: writing cold blocks to objects, and deleting these objects.
//!
//! Requests to the object store run one after another, without the lock of the aggregate. Only
//! readers of cold blocks wait for the store. If the store fails, the only cost is the space on the
//! drives that is not freed.

use std::{
    collections::BTreeSet,
    ops::{AddAssign, Range},
    sync::{Arc, MutexGuard, PoisonError},
};

use senesce_objects::{ObjectErrorKind, ObjectStore};

use crate::{
    aggregate::Garden,
    error::{Error, Result},
    format::{
        Damage,
        object::{self, ObjectRecord},
    },
    store::{Filling, Tiering},
};

/// Blocks that are scanned under one lock.
const AT_ONCE: u64 = 256;

/// The result of a pass over a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Blocks of the volume that were scanned, cold or not.
    pub looked: u64,
    /// Blocks that moved to objects.
    pub tiered: u64,
    /// Objects that were put.
    pub objects: u64,
    /// Blocks that could not be read; they stay.
    pub unread: u64,
}

impl AddAssign for TierCounts {
    fn add_assign(&mut self, other: Self) {
        self.looked += other.looked;
        self.tiered += other.tiered;
        self.objects += other.objects;
        self.unread += other.unread;
    }
}

/// A pass over a volume that writes cold blocks to objects. It runs in steps.
#[derive(Clone, Debug)]
pub struct Tier {
    space: u32,
    tiering: Tiering,
    filling: Filling,
    counts: TierCounts,
    /// The VVBN at which the pass continues; `None` after the last one.
    next: Option<u64>,
}

impl Tier {
    /// The counts of the pass so far.
    pub fn counts(&self) -> TierCounts {
        self.counts
    }

    /// Whether the pass is over the volume that has this name now. Another volume may have the name
    /// of a deleted one.
    pub(crate) fn is_over(&self, garden: &Garden, volume: &[u8]) -> bool {
        garden.space_of(volume).is_ok_and(|space| space == self.space)
    }

    /// Whether all blocks were scanned, and all cold ones are in objects.
    pub fn is_done(&self) -> bool {
        self.next.is_none() && self.filling.is_empty()
    }
}

/// The blocks in objects, in the state in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColdReport {
    /// Objects, including those that wait for deletion.
    pub objects: u64,
    /// Objects that nothing needs and that were not deleted yet.
    pub deletable: u64,
    /// Blocks that the objects hold.
    pub blocks: u64,
    /// Blocks of the objects that are in use.
    pub live: u64,
}

impl Garden {
    /// Starts a pass over a volume.
    ///
    /// Errors: `Invalid` if the volume does not exist or no object store was given; those of a
    /// consistency point, which gives all blocks a place first.
    pub fn begin_tier(&self, volume: &[u8], tiering: Tiering) -> Result<Tier> {
        let space = self.space_of(volume)?;
        self.objects()?;
        self.shared().lock().reserve_object_numbers();
        self.consistency_point()?;
        Ok(Tier { space, tiering, filling: Filling::default(), counts: TierCounts::default(), next: Some(0) })
    }

    /// Continues a pass over up to `blocks` blocks. Other threads may use the aggregate in between.
    /// An object is put when it is full, and at the end of the pass. The space on the drives is
    /// free after the next consistency point, which the caller makes.
    ///
    /// Errors: `ColdStore`, after which the caller may repeat the step; `ForeignObjects`; `NoSpace`
    /// for maps.
    ///
    /// Cost: reads maps and cold blocks; the first object after an opening lists all objects.
    pub fn tier_step(&self, tier: &mut Tier, blocks: u64) -> Result<()> {
        let turn = self.lock_objects();
        let until = tier.counts.looked.saturating_add(blocks.max(1));
        while !tier.is_done() && tier.counts.looked < until {
            if let Some(from) = tier.next.filter(|_| tier.filling.room() > 0) {
                let mut store = self.shared().lock();
                let most = AT_ONCE.min(until - tier.counts.looked);
                let done = store.collect_cold(tier.space, from, tier.tiering, most, &mut tier.filling)?;
                store.shrink_cache();
                tier.counts.looked += done.looked;
                tier.counts.unread += done.unread;
                tier.next = done.next;
            }
            if tier.filling.room() == 0 || tier.next.is_none() && !tier.filling.is_empty() {
                tier.counts.tiered += self.put_object(&turn, &tier.filling)?;
                tier.counts.objects += 1;
                tier.filling = Filling::default();
            }
        }
        Ok(())
    }

    /// Runs a pass over each volume, makes a consistency point, and deletes objects that nothing
    /// needs.
    ///
    /// Errors: those of the steps.
    pub fn tier(&self, tiering: Tiering) -> Result<TierCounts> {
        let mut all = TierCounts::default();
        for volume in self.volumes() {
            let mut tier = self.begin_tier(&volume, tiering)?;
            while !tier.is_done() {
                self.tier_step(&mut tier, u64::MAX)?;
            }
            all += tier.counts();
        }
        self.consistency_point()?;
        self.delete_objects()?;
        Ok(all)
    }

    /// Puts an object, and names it in the container maps. Returns the number of blocks that it
    /// holds.
    pub(crate) fn put_object(&self, turn: &MutexGuard<'_, ()>, filling: &Filling) -> Result<u64> {
        let door = self.own_objects(turn)?;
        let (number, key, bytes) = loop {
            let mut store = self.shared().lock();
            if let Some(number) = store.take_object_number()? {
                break (number, store.object_key(number), filling.encode(store.uuid(), number));
            }
            drop(store);
            self.consistency_point()?;
        };
        door.put(&key, &bytes).map_err(|error| match error.kind {
            // No other object of this aggregate ever had this number.
            ObjectErrorKind::Taken => {
                let what = error.to_string();
                self.shared().lock().objects.judged = Some(Err(what.clone()));
                Error::ForeignObjects { what }
            }
            _ => Error::cold(&key, &error),
        })?;
        self.shared().lock().counts.object_puts += 1;
        let named = self.with_space(|store| store.name_object(number, filling));
        if !matches!(named, Ok(live) if live > 0) {
            // Nothing names the object. If the deletion fails, a later pass finds the object.
            let _ = door.delete(&key);
        }
        if self.shared().lock().is_due() {
            self.consistency_point()?;
        }
        named
    }

    /// Reads a range of an object. Other threads may use the aggregate meanwhile.
    ///
    /// Errors: `ColdStore`; `Damaged` if the object does not exist; `Invalid` if no object store
    /// was given.
    pub(crate) fn get_range(&self, object: u64, range: Range<u64>) -> Result<Vec<u8>> {
        let door = self.objects()?;
        let key = {
            let mut store = self.shared().lock();
            store.counts.object_gets += 1;
            store.object_key(object)
        };
        door.get_range(&key, range).map_err(|error| match error.kind {
            // This object is lost; others are not.
            ObjectErrorKind::Absent => {
                Error::damaged(format!("object {key}"), Damage::new("object", "answer", error, "the object"))
            }
            _ => Error::cold(&key, &error),
        })
    }

    /// Deletes the objects that the last consistency point does not need, and returns their number.
    /// The deletion is durable with the next point. Before, the log proves the last point:
    /// otherwise opening could fall back silently to an older point that needs these objects.
    ///
    /// Errors: `ColdStore`, after which the next call deletes the rest; `ForeignObjects`.
    ///
    /// Cost: the first call after an opening lists all objects. One flush of the log, if objects
    /// are deleted and nothing was logged since the point; another point, if a change has no
    /// record.
    pub fn delete_objects(&self) -> Result<u64> {
        let turn = self.lock_objects();
        // Excludes objects that a later point empties, because the log does not prove that point
        // yet.
        let deletable = self.shared().lock().objects.deletable.clone();
        if deletable.is_empty() {
            return Ok(0);
        }
        let door = self.own_objects(&turn)?;
        self.log_checkpoint()?;
        let mut deleted = 0;
        for number in deletable {
            let key = self.shared().lock().object_key(number);
            door.delete(&key).map_err(|error| Error::cold(&key, &error))?;
            self.with_space(|store| store.forget_object(number))?;
            deleted += 1;
        }
        Ok(deleted)
    }

    /// Deletes orphans, and returns their number. An orphan is an object of this aggregate that was
    /// put before a loss of power, and that no consistency point names.
    ///
    /// Errors: `ColdStore`; `ForeignObjects` for a store that does not match the aggregate, in
    /// which nothing is deleted. An object in use is absent, or an object has a number that this
    /// aggregate cannot have used. Of two aggregates with one UUID, for example an older copy, this
    /// detects the one that put fewer objects.
    ///
    /// Cost: lists all objects.
    pub fn reclaim_objects(&self) -> Result<u64> {
        let turn = self.lock_objects();
        let (door, listed) = self.list_own_objects(&turn)?;
        let mut deleted = 0;
        for number in listed {
            let (is_known, key) = {
                let store = self.shared().lock();
                (store.objects.records().contains_key(&number), store.object_key(number))
            };
            if !is_known {
                door.delete(&key).map_err(|error| Error::cold(&key, &error))?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// The object store, for a change. Checks its contents once. Otherwise an older copy of the
    /// aggregate would reuse numbers, and objects put into a wrong directory would not be found
    /// later.
    fn own_objects(&self, turn: &MutexGuard<'_, ()>) -> Result<Arc<dyn ObjectStore>> {
        let judged = self.shared().lock().objects.judged.clone();
        match judged {
            Some(Ok(())) => self.objects(),
            Some(Err(what)) => Err(Error::ForeignObjects { what }),
            None => Ok(self.list_own_objects(turn)?.0),
        }
    }

    fn list_own_objects(&self, _turn: &MutexGuard<'_, ()>) -> Result<(Arc<dyn ObjectStore>, BTreeSet<u64>)> {
        let (door, uuid) = (self.objects()?, self.shared().lock().uuid());
        let keys = door.list(&object::folder(uuid)).map_err(|error| Error::cold(&object::folder(uuid), &error))?;
        let listed: BTreeSet<u64> = keys.iter().filter_map(|key| object::number(uuid, key)).collect();
        let judged = self.check_listed(&listed);
        self.judge_objects(judged)?;
        Ok((door, listed))
    }

    /// Remembers until the next opening whether the store belongs to this aggregate.
    ///
    /// Errors: `ForeignObjects`, if it does not.
    fn judge_objects(&self, judged: std::result::Result<(), String>) -> Result<()> {
        self.shared().lock().objects.judged = Some(judged.clone());
        judged.map_err(|what| Error::ForeignObjects { what })
    }

    /// Checks whether these can be all objects of this aggregate.
    ///
    /// Errors: the reason why not.
    fn check_listed(&self, listed: &BTreeSet<u64>) -> std::result::Result<(), String> {
        let store = self.shared().lock();
        // Numbers that are reserved only now do not count: another aggregate may have used them.
        let (folder, next) = (object::folder(store.uuid()), store.objects.next);
        if let Some(number) = listed.last().filter(|number| **number >= next) {
            return Err(format!(
                "{folder} has object {number}, but this garden has put none from {next} on: the objects belong to \
                 another garden of its identity, or to a later state of it; nothing was put or deleted"
            ));
        }
        let wanted = |(_, record): &(&u64, &ObjectRecord)| record.live > 0;
        match store.objects.records().iter().filter(wanted).find(|(number, _)| !listed.contains(number)) {
            None => Ok(()),
            Some((number, record)) => Err(format!(
                "{folder} does not have object {number}, which holds {} cold blocks: this is not the store they were put \
                 into, or it has lost some; nothing was put or deleted",
                record.live
            )),
        }
    }

    /// Counts of objects and their blocks.
    ///
    /// Cost: proportional to the number of objects.
    pub fn cold(&self) -> ColdReport {
        let store = self.shared().lock();
        let records = store.objects.records();
        ColdReport {
            objects: records.len() as u64,
            deletable: store.objects.deletable.len() as u64,
            blocks: records.values().map(|record| u64::from(record.blocks)).sum(),
            live: store.sb.cold,
        }
    }

    /// The object store.
    ///
    /// Errors: `Invalid` if none was given.
    fn objects(&self) -> Result<Arc<dyn ObjectStore>> {
        let door = self.shared().lock().objects.door.clone();
        door.ok_or_else(|| Error::invalid("no object store was given: name one with --objects"))
    }

    /// Serializes changes of objects.
    pub(crate) fn lock_objects(&self) -> MutexGuard<'_, ()> {
        self.shared().objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
