//! What an open aggregate offers about cold blocks: writing them to objects, and what becomes of these.
//!
//! The object store is asked while nobody waits for the aggregate, one call after the other; and cold
//! blocks are read while nobody waits but those who want them. What the store does not do costs nothing but the space that would have become free.

use std::{
    collections::BTreeSet,
    ops::{AddAssign, Range},
    sync::{Arc, MutexGuard, PoisonError},
};

use senesce_objects::{ObjectErrorKind, ObjectStore};

use crate::{
    engine::Garden,
    error::{Error, Result},
    format::{
        Damage,
        object::{self, ObjectRecord},
    },
    store::{Filling, Tiering},
};

/// Blocks that are looked at before others may use the aggregate.
const AT_ONCE: u64 = 256;

/// What a pass over a volume did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Blocks of the volume that were looked at, cold ones among them.
    pub looked: u64,
    /// Blocks that lie in objects from now on.
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

/// A pass over a volume that writes cold blocks to objects. It is asked for step by step.
#[derive(Clone, Debug)]
pub struct Tier {
    space: u32,
    tiering: Tiering,
    filling: Filling,
    counts: TierCounts,
    /// The VVBN to go on with; `None` if all blocks were looked at.
    next: Option<u64>,
}

impl Tier {
    /// What was looked at and done so far.
    pub fn counts(&self) -> TierCounts {
        self.counts
    }

    /// Whether it is over what has the volume's name now: one that was deleted may have left it to another.
    pub(crate) fn is_over(&self, garden: &Garden, volume: &[u8]) -> bool {
        garden.space_of(volume).is_ok_and(|space| space == self.space)
    }

    /// Whether all blocks were looked at, and what was found is in objects.
    pub fn is_done(&self) -> bool {
        self.next.is_none() && self.filling.is_empty()
    }
}

/// The blocks in objects, as the state in memory has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColdReport {
    /// Objects, with those that wait to be deleted.
    pub objects: u64,
    /// Objects that nothing needs and that were not deleted yet.
    pub deletable: u64,
    /// Blocks that they hold.
    pub blocks: u64,
    /// Of these, blocks that are still wanted.
    pub live: u64,
}

impl Garden {
    /// Begins a pass over a volume. Errors: `Invalid` if there is no such volume, or no object store was given; those of a consistency
    /// point, which is made before, so that all blocks lie somewhere.
    pub fn begin_tier(&self, volume: &[u8], tiering: Tiering) -> Result<Tier> {
        let space = self.space_of(volume)?;
        self.objects()?;
        self.shared().lock().reserve_object_numbers();
        self.consistency_point()?;
        Ok(Tier { space, tiering, filling: Filling::default(), counts: TierCounts::default(), next: Some(0) })
    }

    /// Goes on with a pass, over so many blocks at most; others may use the aggregate in between. An object is put when it is full, and
    /// at the end of the pass. The drives' space is free after the next consistency point, which the caller makes.
    ///
    /// Errors: `ColdStore`, after which the step may be asked for again; `ForeignObjects`; `NoSpace` for maps. Cost: reads maps, and what
    /// is cold; the first object after opening, a list of all.
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

    /// Whole passes over all volumes, with a consistency point, and deletes what is not needed any more. Errors: those of the steps.
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

    /// Puts an object, and lets the container maps name it.
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
            // No other object of this aggregate ever had the number.
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
            // Nobody knows of it. If it cannot be deleted now, it is found later.
            let _ = door.delete(&key);
        }
        if self.shared().lock().is_due() {
            self.consistency_point()?;
        }
        named
    }

    /// A range of an object. Others may use the aggregate meanwhile. Errors: `ColdStore`; `Damaged` if it is not there; `Invalid` if no object store was
    /// given.
    pub(crate) fn get_range(&self, object: u64, range: Range<u64>) -> Result<Vec<u8>> {
        let door = self.objects()?;
        let key = {
            let mut store = self.shared().lock();
            store.counts.object_gets += 1;
            store.object_key(object)
        };
        door.get_range(&key, range).map_err(|error| match error.kind {
            // That one is lost; others are not.
            ObjectErrorKind::Absent => {
                Error::damaged(format!("object {key}"), Damage::new("object", "answer", error, "the object"))
            }
            _ => Error::cold(&key, &error),
        })
    }

    /// Deletes the objects that the last consistency point does not need, and says how many. That they are gone is durable with
    /// the next one. The log tells of that point before: without its superblock no older one, which wants them, is opened in silence.
    ///
    /// Errors: `ColdStore`; what is not deleted is so the next time. `ForeignObjects`. Cost: the first time after opening, a list of all; one
    /// flush of the log, if there is anything to be deleted and nothing was written there since the point; another point, if something waits that
    /// is in no record.
    pub fn delete_objects(&self) -> Result<u64> {
        let turn = self.lock_objects();
        // Not what a later point leaves, of which nothing may tell yet.
        let deletable = self.shared().lock().objects.deletable.clone();
        if deletable.is_empty() {
            return Ok(0);
        }
        let door = self.own_objects(&turn)?;
        self.tell_point()?;
        let mut deleted = 0;
        for number in deletable {
            let key = self.shared().lock().object_key(number);
            door.delete(&key).map_err(|error| Error::cold(&key, &error))?;
            self.with_space(|store| store.forget_object(number))?;
            deleted += 1;
        }
        Ok(deleted)
    }

    /// Deletes objects of this aggregate that it does not know: they were put, and power was lost before a consistency point named
    /// them. Says how many.
    ///
    /// Errors: `ColdStore`; `ForeignObjects`, and nothing is deleted, for a store that is not this aggregate's as it is: an object that
    /// is wanted is not there, or one is that this aggregate cannot have put yet. Of two aggregates with one identity, an older
    /// copy among them, that tells the one that has put less. Cost: lists all objects.
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

    /// The object store, before anything is changed there: what lies in it is looked at once. An older copy of the aggregate would
    /// take numbers that are taken, and another directory in the place of the own one would take objects that nobody finds later.
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

    /// Keeps in mind whether the store is this aggregate's, until it is opened again. Errors: `ForeignObjects`, if it is not.
    fn judge_objects(&self, judged: std::result::Result<(), String>) -> Result<()> {
        self.shared().lock().objects.judged = Some(judged.clone());
        judged.map_err(|what| Error::ForeignObjects { what })
    }

    /// Errors: why these cannot be all objects of this aggregate.
    fn check_listed(&self, listed: &BTreeSet<u64>) -> std::result::Result<(), String> {
        let store = self.shared().lock();
        // Not those that it reserves now: another one may have put them.
        let (folder, next) = (object::folder(store.uuid()), store.objects.next);
        if let Some(number) = listed.last().filter(|number| **number >= next) {
            return Err(format!(
                "{folder} has object {number}, and this garden has put none from {next} on: they are those of another one of \
                 its identity, or of a later state of it; nothing was put or deleted"
            ));
        }
        let wanted = |(_, record): &(&u64, &ObjectRecord)| record.live > 0;
        match store.objects.records().iter().filter(wanted).find(|(number, _)| !listed.contains(number)) {
            None => Ok(()),
            Some((number, record)) => Err(format!(
                "{folder} does not have object {number}, in which {} cold blocks lie: this is not the store they were put \
                 into, or it has lost some; nothing was put or deleted",
                record.live
            )),
        }
    }

    /// What lies in objects. Cost: with their number.
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

    /// The object store. Errors: `Invalid` if none was given.
    fn objects(&self) -> Result<Arc<dyn ObjectStore>> {
        let door = self.shared().lock().objects.door.clone();
        door.ok_or_else(|| Error::invalid("no object store was given: name one with --objects"))
    }

    /// Whoever changes objects does so alone.
    pub(crate) fn lock_objects(&self) -> MutexGuard<'_, ()> {
        self.shared().objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
