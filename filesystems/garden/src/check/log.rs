//! The log, as the check reads it: the operations that an opening replays, the stripes that were
//! being written, and lost consistency points.
//!
//! The check follows records with its own code, and finds the consistency point of a half in its
//! own way. Only the question whether an unreadable record was acknowledged uses the code of an
//! opening.

use super::CheckReport;
use crate::{
    Damage,
    error::Result,
    format::{
        bytes::{u32_at, u64_at},
        label::Aggregate,
        log_half::Half,
        log_lap::{Durable, FAR, Lap, Stamps},
        log_record::{NO_RECORD, Record, RecordKind, STAMP, read_record, stamp_of},
        superblock::Superblock,
    },
    log::{
        Copies, HalfCopies, LogDevices, Place, Silent, find_blocks, first_operation, high_record, lost_record,
        read_copies, two_halves, unbelieved, why_unbelieved,
    },
    raid::StripeRange,
    store::LOST_POINT,
};

/// Bytes of a range of stripes in a record.
const RUN: usize = 20;

/// Reports the damage of the log, and returns the stripes that an unfinished consistency point was
/// writing.
pub(super) fn check(
    log: &LogDevices,
    aggregate: &Aggregate,
    sb: &Superblock,
    report: &mut CheckReport,
) -> Result<Vec<StripeRange>> {
    let copies = Copies::find(log, aggregate, Some(sb))?;
    for finding in &copies.labels {
        report.find(finding.place.clone(), finding.damage.clone());
    }
    let without = unbelieved(&copies, &sb.logs, false);
    for (number, place) in copies.places.iter().enumerate() {
        let is_stale = without >> number & 1 == 1;
        let why = match place {
            Place::Lost { why } => why.clone(),
            Place::Spare(_) => "a device that holds nothing yet".to_owned(),
            Place::Here(_) if is_stale => why_unbelieved(&copies, &sb.logs, number),
            Place::Here(_) => continue,
        };
        report.find(format!("log copy {number}"), Damage::new("log", "copy", why, "one that holds all"));
    }
    let halves = read_copies(&copies, without);
    if halves[0].is_empty() {
        return Ok(Vec::new());
    }
    let name = copies.name();
    let lap = Lap { uuid: sb.uuid, point: sb.point, intents: false, stamps: copies.stamps };
    check_copies(&halves, &lap, report);
    let sides = halves.each_ref().map(|half| Side::of(half.merged(&lap).into_owned(), half));
    let is_wanted = |record: &Record| record.kind == RecordKind::Operation && record.sequence > sb.applied;
    let wanted_of = |side: &Side| side.records(lap.seed()).into_iter().filter(is_wanted).map(|record| record.sequence);
    let of_sides = sides.each_ref().map(|side| wanted_of(side).collect::<Vec<u64>>());
    let operations = of_sides.concat();
    report.log_operations += operations.len() as u64;
    let last = operations.last().copied().unwrap_or(sb.applied);
    if of_sides.iter().all(|operations| !operations.is_empty()) {
        report.find(name, two_halves());
    } else if let Some(point) = find_lost_point(&halves, sb, &operations) {
        let damage = Damage::new("log", LOST_POINT, format!("{point}, which it follows"), sb.point);
        report.find(name, damage);
    } else if let Some(&first) = operations.first().filter(|first| **first != sb.applied + 1) {
        report.find(name, first_operation(first, sb.applied));
    } else if let Some(record) = find_lost_record(&sides, &lap, sb.applied) {
        report.find(name, lost_record(record));
    } else if last >= NO_RECORD {
        report.find(name, high_record(last));
    }
    let intents = Lap { intents: true, ..lap };
    let of_intents = |half: &HalfCopies| Side::of(half.merged(&intents).into_owned(), half).records(intents.seed());
    let records: Vec<Record> = halves.iter().flat_map(of_intents).collect();
    Ok(stripes_being_written(&records))
}

/// Each copy must have what was durable in all of them. Bytes that were being written at a loss of
/// power may differ. An only copy has nothing to compare with; its records show the damage.
fn check_copies(halves: &[HalfCopies; 2], lap: &Lap, report: &mut CheckReport) {
    for (number, half) in halves.iter().enumerate() {
        if half.copies.len() == 1 {
            half.silent.iter().map(Silent::finding).for_each(|found| report.find(found.place, found.damage));
            continue;
        }
        for (copy, bytes) in half.copies.iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            let damaged = half.find_damaged(bytes, &[*lap]);
            for block in find_blocks(&damaged, half.unit) {
                let place = format!("log copy {copy}, half {number}, block {block}");
                report.find(place, Damage::new("log", "unit", "damaged", "as it was written"));
            }
        }
    }
}

/// A half of the log.
struct Side {
    unit: usize,
    stamps: Stamps,
    bytes: Vec<u8>,
    /// The bytes without the stamps.
    joined: Vec<u8>,
}

impl Side {
    fn of(bytes: Vec<u8>, half: &HalfCopies) -> Self {
        let HalfCopies { unit, stamps, .. } = *half;
        let joined = bytes.chunks_exact(unit).flat_map(|unit| &unit[..unit.len() - STAMP]).copied().collect();
        Self { unit, stamps, bytes, joined }
    }

    /// The readable records of a lap: each one after the previous one, or at the start of the next
    /// unit.
    fn records(&self, seed: u32) -> Vec<Record> {
        let (mut records, mut at, mut chain) = (Vec::new(), 0_usize, seed);
        let mut last = None;
        loop {
            let next = |start: usize| {
                let (record, len, sum) = read_record(self.joined.get(start..)?, chain)?;
                let is_next = last.is_none_or(|last| record.sequence.checked_sub(1) == Some(last));
                is_next.then_some((record, start + len, sum))
            };
            let unit = at.next_multiple_of(self.unit - STAMP);
            let Some((record, end, sum)) = next(at).or_else(|| next(unit)) else { return records };
            (at, chain, last) = (end, sum, Some(record.sequence));
            records.push(record);
        }
    }

    /// The lap that the half was last started with, if it follows a later consistency point than
    /// `point`.
    fn find_later(&self, uuid: [u8; 16], point: u64) -> Option<Lap> {
        let stamp = &self.bytes[self.unit - STAMP..self.unit];
        let (left, first) = (u32_at(stamp, 4), u64_at(stamp, 8));
        let is_ordered = match self.stamps {
            Stamps::Plain => first <= u64_at(stamp, 16),
            Stamps::Summed => true, // it holds a count instead of the last record
        };
        if !is_ordered || left as usize >= self.bytes.len() / self.unit || stamp.iter().all(|&byte| byte == 0) {
            return None;
        }
        let lap = |intents| {
            let of = |number: u32| Lap { uuid, point: number.into(), intents, stamps: self.stamps };
            let sum = |number| crc32c::crc32c_append(of(number).seed(), &stamp[4..]);
            solve(sum, u32_at(stamp, 0)).map(of)
        };
        let laps: Vec<Lap> = [false, true].into_iter().filter_map(lap).collect();
        let nearest = laps.into_iter().min_by_key(|lap| lap.point)?;
        (nearest.point > point && nearest.point - point < FAR).then_some(nearest)
    }

    /// The last operation of the point, if the lap holds only the record of kind 5 and operations
    /// alone made the point.
    fn find_closed(&self, lap: &Lap) -> Option<u64> {
        let stamped = self.bytes.chunks_exact(self.unit).filter(|unit| stamp_of(unit, lap).is_some()).count();
        match &self.records(lap.seed())[..] {
            [only] if only.kind == RecordKind::Durable && stamped == 1 => {
                Durable::decode(&only.body).filter(|durable| durable.is_logged).map(|_| only.sequence)
            }
            _ => None,
        }
    }
}

/// A consistency point without a superblock that a half follows, unless the readable `operations`
/// after the known one recreate it.
fn find_lost_point(halves: &[HalfCopies; 2], sb: &Superblock, operations: &[u64]) -> Option<u64> {
    let later_of = |half: &HalfCopies| {
        let copies = half.each().map(|bytes| Side::of(bytes.to_vec(), half));
        copies.filter_map(|side| side.find_later(sb.uuid, sb.point)).max_by_key(|lap| lap.point)
    };
    let later: Vec<(Side, Lap)> = halves
        .iter()
        .filter_map(|half| {
            let lap = later_of(half)?;
            Some((Side::of(half.merged(&lap).into_owned(), half), lap))
        })
        .collect();
    let lost = later.iter().map(|(_, lap)| lap.point).max()?;
    let closed = match &later[..] {
        [(side, lap)] => side.find_closed(lap),
        _ => None,
    };
    let is_made_up_for = |last: u64| operations.iter().copied().eq((sb.applied..last).map(|before| before + 1));
    if closed.is_some_and(is_made_up_for) { None } else { Some(lost) }
}

/// The first unreadable record, if it was acknowledged.
fn find_lost_record(sides: &[Side; 2], lap: &Lap, applied: u64) -> Option<u64> {
    let halves = sides.each_ref().map(|side| Half::read(&side.bytes, lap, side.unit));
    let last = halves.iter().flat_map(|half| &half.records).map(|record| record.sequence).max();
    let wanted = last.unwrap_or(0).max(applied).checked_add(1)?;
    halves.iter().any(|half| half.was_written(wanted)).then_some(wanted)
}

/// The stripes that the last unfinished consistency point was about to write.
fn stripes_being_written(records: &[Record]) -> Vec<StripeRange> {
    let of_point = |record: &Record| (record.body.len() >= 8).then(|| u64_at(&record.body, 0));
    let last = records.iter().filter_map(of_point).max();
    let intents = records.iter().filter(|record| record.kind == RecordKind::Intent);
    let runs = intents.filter(|record| of_point(record) == last && last.is_some());
    let run = |at: &[u8; RUN]| StripeRange { group: u32_at(at, 0), first: u64_at(at, 4), count: u64_at(at, 12) };
    runs.flat_map(|record| record.body[8..].as_chunks::<RUN>().0.iter().map(run)).collect()
}

/// Solves for the number with a given checksum. Checksums are linear: the sum of an XOR of two
/// numbers is the XOR of their sums and of the sum of 0. So the bits of the number are a system of
/// 32 equations.
fn solve(sum: impl Fn(u32) -> u32, wanted: u32) -> Option<u32> {
    let zero = sum(0);
    let mut rows: Vec<(u32, u32)> = (0..32).map(|bit| (sum(1 << bit) ^ zero, 1 << bit)).collect();
    let (mut rest, mut number) = (wanted ^ zero, 0);
    for bit in (0..32).rev() {
        let has = |sum: u32| sum >> bit & 1 == 1;
        let Some(at) = rows.iter().position(|(sum, _)| has(*sum)) else { continue };
        let (row_sum, row_bits) = rows.swap_remove(at);
        for (sum, bits) in rows.iter_mut().filter(|(sum, _)| has(*sum)) {
            *sum ^= row_sum;
            *bits ^= row_bits;
        }
        if has(rest) {
            rest ^= row_sum;
            number ^= row_bits;
        }
    }
    (rest == 0).then_some(number)
}

#[cfg(test)]
mod tests;
