//! Both halves of the log in all copies: reading, merging and judging their units.

use std::{borrow::Cow, ops::Range, sync::Arc};

use senesce_block::{BlockDevice, BlockError};

use super::{
    UNIT,
    devices::{Copies, Place},
    lost_checkpoint::Later,
    stripe_intents::Unfinished,
};
use crate::{
    check::Finding,
    format::{
        BLOCK, Damage,
        label::LogShape,
        log_half::Half,
        log_lap::{Lap, Stamps},
        log_record::{Record, RecordKind, Stamp, is_whole, stamp_of},
    },
};

/// A half in all copies that are trusted. All have the same length.
pub(crate) struct HalfCopies {
    pub unit: usize,
    pub stamps: Stamps,
    /// The bytes of each copy, by number; `None` for a copy that is not trusted.
    pub copies: Vec<Option<Vec<u8>>>,
    /// Parts that a device of a copy fails to read.
    pub silent: Vec<Silent>,
}

impl HalfCopies {
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.copies.iter().filter_map(Option::as_deref)
    }

    /// Whether no copy is trusted.
    pub fn is_empty(&self) -> bool {
        self.each().next().is_none()
    }

    /// The half as one sequence of units. Prefers a whole unit with the stamp of the lap, then one
    /// with the stamp, then one that is not unreadable. Among equals, the first copy counts.
    pub fn merged(&self, lap: &Lap) -> Cow<'_, [u8]> {
        let mut each = self.each();
        let first = each.next().unwrap_or(&[]);
        let others: Vec<&[u8]> = each.filter(|other| *other != first).collect();
        if others.is_empty() {
            return Cow::Borrowed(first);
        }
        let mut merged = first.to_vec();
        for (number, own) in merged.chunks_exact_mut(self.unit).enumerate() {
            let place = number * self.unit..(number + 1) * self.unit;
            let worth = |unit: &[u8]| match stamp_of(unit, lap) {
                Some(_) => 2 + u8::from(self.is_whole(unit)),
                None => u8::from(!unit.iter().all(|&byte| byte == UNREADABLE)),
            };
            // The first of the best units.
            for other in others.iter().filter_map(|copy| copy.get(place.clone())) {
                if worth(other) > worth(own) {
                    own.copy_from_slice(other);
                }
            }
        }
        Cow::Owned(merged)
    }

    /// Whether a unit is as it was written. Without checksums (version 7), always true.
    pub fn is_whole(&self, unit: &[u8]) -> bool {
        self.stamps == Stamps::Plain || is_whole(unit)
    }

    /// The read failure of a unit that no other copy has.
    fn find_silent(&self, unit: usize) -> Option<&Silent> {
        self.silent_at(unit).filter(|_| !self.is_known(unit))
    }

    fn silent_at(&self, unit: usize) -> Option<&Silent> {
        self.silent.iter().find(|silent| silent.block == unit * self.unit / PART)
    }

    /// Whether a copy of a unit is whole, so that its contents are known. The filler of an
    /// unreadable unit is not whole. Plain stamps cannot show that, but their log has only one
    /// copy.
    fn is_known(&self, unit: usize) -> bool {
        if self.stamps == Stamps::Plain && self.silent_at(unit).is_some() {
            return false;
        }
        let place = unit * self.unit..(unit + 1) * self.unit;
        self.each().any(|copy| copy.get(place.clone()).is_some_and(|unit| self.is_whole(unit)))
    }

    /// Whether all copies are equal and every unit is whole.
    pub fn is_settled(&self) -> bool {
        let Some(first) = self.each().next() else { return false };
        self.each().all(|other| other == first) && first.chunks_exact(self.unit).all(|unit| self.is_whole(unit))
    }

    /// Units of the [settled](Self::settled) bytes that may be wrong, because no copy of the unit
    /// is whole.
    pub fn find_unsettled(&self, settled: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let units = settled.chunks_exact(self.unit).enumerate();
        let is_wrong = |(number, unit): &(usize, &[u8])| !self.is_whole(unit) || self.find_silent(*number).is_some();
        units.filter(is_wrong).map(|(number, _)| number * self.unit..(number + 1) * self.unit)
    }

    /// Units of a copy that are damaged. They are not whole, or they lack a commit of one of these
    /// laps that was durable in all copies because a later commit was started.
    pub fn find_damaged(&self, copy: &[u8], laps: &[Lap]) -> Vec<usize> {
        let units = || copy.chunks_exact(self.unit).enumerate();
        let mut damaged: Vec<usize> =
            units().filter(|(_, unit)| !self.is_whole(unit)).map(|(number, _)| number).collect();
        for lap in laps.iter().filter(|lap| !lap.intents) {
            let merged = self.merged(lap);
            let stamps = || merged.chunks_exact(self.unit).map(|unit| stamp_of(unit, lap));
            let Some(last_begun) = stamps().flatten().map(|stamp| stamp.first).max() else { continue };
            let lacks = |(stamp, (_, unit)): &(Option<Stamp>, (usize, &[u8]))| {
                stamp.is_some_and(|stamp| stamp.first < last_begun) && stamp_of(unit, lap).is_none()
            };
            damaged.extend(stamps().zip(units()).filter(lacks).map(|(_, (number, _))| number));
        }
        damaged.sort_unstable();
        damaged.dedup();
        damaged
    }

    /// The bytes that all copies should hold: units of these laps from any copy that has them,
    /// other units from the first copy in which they are whole. A unit that is whole in no copy
    /// stays as it is, because it may hold a whole record.
    pub fn settled(&self, laps: &[Lap]) -> Vec<u8> {
        let merged: Vec<(&Lap, Cow<'_, [u8]>)> = laps.iter().map(|lap| (lap, self.merged(lap))).collect();
        // Readers take records from the first lap.
        let mut settled = merged.first().map_or(Vec::new(), |(_, bytes)| bytes.to_vec());
        for (number, out) in settled.chunks_exact_mut(self.unit).enumerate() {
            let place = number * self.unit..(number + 1) * self.unit;
            let of_lap = merged
                .iter()
                .find_map(|(lap, bytes)| bytes.get(place.clone()).filter(|unit| stamp_of(unit, lap).is_some()));
            let is_kept = |unit: &&[u8]| self.is_whole(unit) && unit.iter().any(|&byte| byte != 0);
            let of_any = || self.each().find_map(|copy| copy.get(place.clone()).filter(is_kept));
            if let Some(unit) = of_lap.or_else(of_any) {
                out.copy_from_slice(unit);
            }
        }
        settled
    }
}

/// The contents of both halves since a consistency point.
pub(crate) struct Halves {
    pub(super) operations: [Half; 2],
    pub(super) intents: [Half; 2],
    pub(super) later: Option<Later>,
    /// The laps of these contents.
    pub(super) laps: Vec<Lap>,
    pub(super) copies: [HalfCopies; 2],
    /// A bit for each copy that was not trusted.
    pub(super) without: u32,
}

impl Halves {
    /// Reads the records of both halves since the consistency point `point`. `without` has a bit
    /// for each copy that is not trusted.
    pub fn read(found: &Copies, without: u32, uuid: [u8; 16], point: u64) -> Self {
        let copies = read_copies(found, without);
        let of = |intents| Lap { uuid, point, intents, stamps: found.stamps };
        let half = |lap: Lap| copies.each_ref().map(|half| Half::read(&half.merged(&lap), &lap, half.unit));
        let later = Later::find(&copies, uuid, point);
        let laps = [of(false), of(true)].into_iter().chain(later.iter().flat_map(|later| later.laps.clone())).collect();
        Self { operations: half(of(false)), intents: half(of(true)), later, laps, copies, without }
    }

    /// Operations after the record `applied`, by half.
    pub fn live(&self, applied: u64) -> [Vec<&Record>; 2] {
        self.operations.each_ref().map(|half| half.records.iter().filter(|record| is_live(record, applied)).collect())
    }

    /// The first record that was acknowledged and cannot be read. `applied` is the last one that
    /// the superblock includes.
    pub fn find_damaged(&self, applied: u64) -> Option<u64> {
        let last = self.operations.iter().flat_map(|half| &half.records).map(|record| record.sequence).max();
        let wanted = last.unwrap_or(0).max(applied).checked_add(1)?;
        self.operations.iter().any(|half| half.was_written(wanted)).then_some(wanted)
    }

    /// The first unreadable part that no copy has and that may hold records. The search starts
    /// where the readable records end. It stops at a whole unit of another lap: nothing after that
    /// was acknowledged.
    pub fn find_silent(&self) -> Option<&Silent> {
        let behind = |half: &Half, copies: &HalfCopies| {
            let units = copies.each().next().map_or(0, <[u8]>::len) / copies.unit;
            let is_unknown = |unit: &usize| half.is_stamped(*unit) || !copies.is_known(*unit);
            (half.end_unit()..units).take_while(is_unknown).find(|unit| copies.find_silent(*unit).is_some())
        };
        (0..2).find_map(|half| {
            let copies = &self.copies[half];
            let unit = [&self.operations, &self.intents].into_iter().find_map(|laps| behind(&laps[half], copies))?;
            copies.find_silent(unit)
        })
    }

    /// The half to write first if both are empty. It is not the half with the operations of the
    /// last point, because these can replace the point if its superblock is damaged.
    pub fn find_idle(&self, applied: u64) -> usize {
        let has_last = |half: &HalfCopies| {
            half.each().any(|bytes| {
                let last = Half::read_any(bytes, half.stamps, half.unit).records.pop();
                last.is_some_and(|last| last.kind == RecordKind::Operation && last.sequence == applied)
            })
        };
        usize::from(has_last(&self.copies[0]))
    }

    /// The stripes that an unfinished consistency point was writing.
    pub fn unfinished(&self) -> Unfinished {
        let mut unfinished = Unfinished::default();
        self.intents.iter().flat_map(|half| &half.records).for_each(|record| unfinished.add(record));
        unfinished
    }
}

fn is_live(record: &Record, applied: u64) -> bool {
    record.kind == RecordKind::Operation && record.sequence > applied
}

/// Both halves in all copies except those in `without`.
pub(crate) fn read_copies(found: &Copies, without: u32) -> [HalfCopies; 2] {
    let device = |(number, place): (usize, &Place)| match place {
        Place::Here(device) if without >> number & 1 == 0 => Some(device.clone()),
        _ => None,
    };
    let devices: Vec<Option<Arc<dyn BlockDevice>>> = found.places.iter().enumerate().map(device).collect();
    let unit = devices.iter().flatten().map(unit_of).max().unwrap_or(UNIT);
    let read = |half| {
        let mut silent = Vec::new();
        let mut of_copy = |device: &Arc<dyn BlockDevice>| {
            let (bytes, own) = read_half(device, &found.shape, half);
            silent.extend(own);
            bytes
        };
        let copies = devices.iter().map(|device| device.as_ref().map(&mut of_copy)).collect();
        HalfCopies { unit, stamps: found.stamps, copies, silent }
    };
    [read(0), read(1)]
}

/// A part of a half that a device fails to read.
pub(crate) struct Silent {
    half: u64,
    block: usize,
    why: BlockError,
}

/// The field of a damage that stands for a failed read of the log.
pub(super) const SILENT: &str = "answer";

impl Silent {
    pub fn finding(&self) -> Finding {
        let place = format!("log, half {}, block {}", self.half, self.block);
        Finding { place, damage: self.damage() }
    }

    pub fn damage(&self) -> Damage {
        Damage::new("log", SILENT, &self.why, "a block")
    }
}

/// The records of both halves of a copy, of any lap.
pub(crate) fn read_any_halves(device: &Arc<dyn BlockDevice>, shape: &LogShape, version: u32) -> [Vec<Record>; 2] {
    let read = |half| Half::read_any(&read_half(device, shape, half).0, Stamps::of(version), unit_of(device)).records;
    [read(0), read(1)]
}

/// Bytes of each read after a read of the whole half failed.
const PART: usize = BLOCK;

/// Reads a half of a copy. Returns also the parts that its device fails to read: another copy may
/// have them.
fn read_half(device: &Arc<dyn BlockDevice>, shape: &LogShape, half: u64) -> (Vec<u8>, Vec<Silent>) {
    let mut silent = Vec::new();
    let start = BLOCK as u64 + half * shape.half_bytes;
    let mut bytes = vec![0; shape.half_bytes as usize];
    if device.read_at(start, &mut bytes).is_err() {
        for (block, part) in bytes.chunks_mut(PART).enumerate() {
            if let Err(why) = device.read_at(start + (block * PART) as u64, part) {
                part.fill(UNREADABLE);
                silent.push(Silent { half, block, why });
            }
        }
    }
    (bytes, silent)
}

/// The filler of unreadable parts: a unit of this byte is not whole.
const UNREADABLE: u8 = 0xa5;

pub(crate) fn unit_of(device: &Arc<dyn BlockDevice>) -> usize {
    UNIT.max(device.alignment() as usize)
}
