//! Objects: their records against the container maps, and their contents against both.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use senesce_objects::{ObjectErrorKind, ObjectStore};

use super::{CheckReport, aggregate::Contents, media::Media};
use crate::{
    Damage,
    error::{Error, Result},
    format::{
        object::{self, HEAD, MAX_OBJECTS, ObjectHead, ObjectRecord, PER_BLOCK, RECORD, SLOTS},
        pointer::ObjectPlace,
        slot::{self, Context, Kind},
    },
};

/// Places in objects that container maps name, each with the container, the VVBN and the tag.
pub(super) type Named = BTreeMap<u64, (u64, u64, u16)>;

/// The trailers of blocks in objects, by their places.
#[derive(Debug, Default)]
pub(super) struct ColdBlocks {
    /// Whether an object store was given.
    has_store: bool,
    /// The first object that was not checked, because the store was away.
    away_from: Option<u64>,
    contexts: BTreeMap<u64, Context>,
}

impl ColdBlocks {
    /// The trailer of a valid block. Invalid ones were reported.
    pub fn get(&self, pvbn: u64) -> Option<&Context> {
        self.contexts.get(&pvbn)
    }

    /// Whether the object of a block was checked.
    pub fn is_seen(&self, pvbn: u64) -> bool {
        let is_there = |from: u64| ObjectPlace::of(pvbn).is_some_and(|place| place.object < from);
        self.has_store && self.away_from.is_none_or(is_there)
    }
}

/// Checks the records against the maps, and the objects against both if a store is given. If the
/// store is away, the check stops reading objects. That is one finding, and the skipped objects are
/// counted.
///
/// Errors: the store cannot list its objects.
pub(super) fn check(
    media: &Media,
    report: &mut CheckReport,
    table: &Contents,
    named: &Named,
    store: Option<&Arc<dyn ObjectStore>>,
) -> Result<ColdBlocks> {
    let records = read(report, table);
    let mut by_object: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for place in named.keys().filter_map(|pvbn| ObjectPlace::of(*pvbn)) {
        by_object.entry(place.object).or_default().insert(place.slot);
    }
    let none = BTreeSet::new();
    for (&number, record) in &records {
        let own = by_object.get(&number).unwrap_or(&none);
        let place = || format!("object {number}");
        report.expect(place, "object record", "living blocks", record.live.into(), own.len() as u64);
        if let Some(last) = own.last().filter(|last| **last >= record.blocks.into()) {
            report
                .find(place(), Damage::new("object record", "blocks", record.blocks, format!("{} at least", last + 1)));
        }
        if number >= media.sb.next_object || record.cp > media.sb.cp {
            let expected = format!("below {}, of CP {} at most", media.sb.next_object, media.sb.cp);
            report
                .find(place(), Damage::new("object record", "number", format!("{number}, CP {}", record.cp), expected));
        }
    }
    for number in by_object.keys().filter(|number| !records.contains_key(number)) {
        report.find(format!("object {number}"), Damage::new("object record", "record", "none", "one"));
    }
    report.expect(|| "superblock".to_owned(), "superblock", "cold blocks", media.sb.cold, named.len() as u64);
    report.objects = records.len() as u64;
    report.cold_blocks = named.len() as u64;
    let Some(store) = store else { return Ok(ColdBlocks::default()) };
    let mut cold = ColdBlocks { has_store: true, ..ColdBlocks::default() };
    for (&number, record) in records.iter().filter(|(_, record)| record.live > 0) {
        if cold.away_from.is_some() {
            report.objects_unread += 1;
            continue;
        }
        let key = object::key(media.uuid, number);
        let read = store.get_range(&key, 0..object::slot_at(record.blocks.into()));
        if read.as_ref().is_err_and(|error| error.kind == ObjectErrorKind::Away) {
            cold.away_from = Some(number);
            report.objects_unread += 1;
        }
        let read = read.map_err(|error| Damage::new("object", "answer", error, "the object"));
        let found = read.and_then(|bytes| check_object(media, number, record, &bytes, named, &mut cold, report));
        if let Err(damage) = found {
            report.find(format!("object {key}"), damage);
        }
    }
    if cold.away_from.is_some() {
        return Ok(cold);
    }
    let keys = store.list(&object::folder(media.uuid));
    let keys = keys.map_err(|error| Error::cold(&object::folder(media.uuid), &error))?;
    let numbers = keys.iter().filter_map(|key| object::number(media.uuid, key));
    report.orphan_objects = numbers.filter(|number| !records.contains_key(number)).count() as u64;
    Ok(cold)
}

fn read(report: &mut CheckReport, table: &Contents) -> BTreeMap<u64, ObjectRecord> {
    let mut records = BTreeMap::new();
    for (&block, data) in table {
        for (number, bytes) in (block * PER_BLOCK..).zip(data.as_chunks::<RECORD>().0) {
            match ObjectRecord::decode(bytes) {
                Ok(None) => {}
                Ok(Some(record)) if number < MAX_OBJECTS => drop(records.insert(number, record)),
                Ok(Some(_)) => {
                    let damage = Damage::new("object record", "number", number, format!("below {MAX_OBJECTS}"));
                    report.find(format!("object {number}"), damage);
                }
                Err(damage) => report.find(format!("object {number}"), damage),
            }
        }
    }
    records
}

/// Checks the head and all named blocks. The outer error concerns the object as a whole.
fn check_object(
    media: &Media,
    number: u64,
    record: &ObjectRecord,
    bytes: &[u8],
    named: &Named,
    cold: &mut ColdBlocks,
    report: &mut CheckReport,
) -> std::result::Result<(), Damage> {
    let head = ObjectHead::decode(bytes)?;
    if (head.uuid, head.object) != (media.uuid, number) {
        return Err(Damage::new("object", "number", head.object, number));
    }
    if head.blocks.len() != usize::from(record.blocks) {
        return Err(Damage::new("object", "blocks", head.blocks.len(), record.blocks));
    }
    let first = ObjectPlace { object: number, slot: 0 }.pvbn();
    for (&pvbn, &(owner, vvbn, tag)) in named.range(first..first + SLOTS as u64) {
        let slot = pvbn - first;
        let at = HEAD + slot as usize * crate::format::SLOT;
        let listed = head.blocks.get(slot as usize).copied();
        let judged = object::slot_of(bytes.get(at..).unwrap_or_default())
            .and_then(|slot| slot::decode(&slot))
            .and_then(|context| {
                let found = (context.kind, context.pvbn, context.owner, context.block, context.tag, listed);
                let expected = (Kind::Volume, pvbn, owner, vvbn, tag, Some((owner, vvbn)));
                let damage = || Damage::new("trailer", "context", format!("{found:?}"), format!("{expected:?}"));
                if found == expected { Ok(context) } else { Err(damage()) }
            });
        match judged {
            Ok(context) => drop(cold.contexts.insert(pvbn, context)),
            Err(damage) => report.find(format!("object {number}, block {slot}"), damage),
        }
    }
    Ok(())
}
