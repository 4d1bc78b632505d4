//! The log as the check reads it: what an opening will do again, what was being written, and whether a consistency point is lost.
//!
//! It goes from record to record by itself, and finds out in its own way which consistency point a half follows. Only whether a record
//! that cannot be read was acknowledged is judged as an opening judges it.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::CheckReport;
use crate::{
    Damage,
    error::{Error, Result},
    format::{
        BLOCK,
        bytes::{u32_at, u64_at},
        half::Half,
        label::LogLabel,
        lap::{Durable, FAR, Lap},
        record::{NO_RECORD, Record, RecordKind, STAMP, is_stamped, read_record},
        superblock::Superblock,
    },
    log::{first_operation, high_record, lost_record, read_label, two_halves},
    raid::StripeRange,
    store::LOST_POINT,
};

/// Bytes of a unit, if the device does not want larger ones.
const UNIT: usize = 512;
/// Bytes that name a run of stripes.
const RUN: usize = 20;

/// Notes what is wrong with the log, and gives the stripes that a consistency point which did not end was writing.
pub(super) fn check(log: &Arc<dyn BlockDevice>, sb: &Superblock, report: &mut CheckReport) -> Result<Vec<StripeRange>> {
    let label = match read_label(log) {
        Ok(label) => label,
        Err(Error::Damaged { place, damage }) => {
            report.find(place, damage);
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    if label.uuid != sb.uuid {
        report
            .find(log.name(), Damage::new("log label", "uuid", format!("{:?}", label.uuid), format!("{:?}", sb.uuid)));
        return Ok(Vec::new());
    }
    let sides = [Side::read(log, &label, 0)?, Side::read(log, &label, 1)?];
    let lap = Lap { uuid: sb.uuid, point: sb.point, intents: false };
    let is_wanted = |record: &Record| record.kind == RecordKind::Operation && record.sequence > sb.applied;
    let wanted_of = |side: &Side| side.records(lap.seed()).into_iter().filter(is_wanted).map(|record| record.sequence);
    let of_sides = sides.each_ref().map(|side| wanted_of(side).collect::<Vec<u64>>());
    let operations = of_sides.concat();
    report.log_operations += operations.len() as u64;
    let last = operations.last().copied().unwrap_or(sb.applied);
    if of_sides.iter().all(|operations| !operations.is_empty()) {
        report.find(log.name(), two_halves());
    } else if let Some(point) = find_lost_point(&sides, sb, &operations) {
        let damage = Damage::new("log", LOST_POINT, format!("{point}, which it follows"), sb.point);
        report.find(log.name(), damage);
    } else if let Some(&first) = operations.first().filter(|first| **first != sb.applied + 1) {
        report.find(log.name(), first_operation(first, sb.applied));
    } else if let Some(record) = find_lost_record(&sides, &lap, sb.applied) {
        report.find(log.name(), lost_record(record));
    } else if last >= NO_RECORD {
        report.find(log.name(), high_record(last));
    }
    let intents = Lap { intents: true, ..lap };
    let records: Vec<Record> = sides.iter().flat_map(|side| side.records(intents.seed())).collect();
    Ok(stripes_being_written(&records))
}

/// A half of the log.
struct Side {
    unit: usize,
    bytes: Vec<u8>,
    /// The same without the stamps.
    joined: Vec<u8>,
}

impl Side {
    fn read(log: &Arc<dyn BlockDevice>, label: &LogLabel, number: u64) -> Result<Self> {
        let mut bytes = vec![0; label.half_bytes as usize];
        log.read_at(BLOCK as u64 + number * label.half_bytes, &mut bytes)?;
        Ok(Self::of(bytes, UNIT.max(log.alignment() as usize)))
    }

    fn of(bytes: Vec<u8>, unit: usize) -> Self {
        let joined = bytes.chunks_exact(unit).flat_map(|unit| &unit[..unit.len() - STAMP]).copied().collect();
        Self { unit, bytes, joined }
    }

    /// The records of a lap, as far as they can be read: each behind the one before, or at the beginning of the next unit.
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

    /// The lap that it was begun with last, if that follows a later consistency point than `point`.
    fn find_later(&self, uuid: [u8; 16], point: u64) -> Option<Lap> {
        let stamp = &self.bytes[self.unit - STAMP..self.unit];
        let (left, first, last) = (u32_at(stamp, 4), u64_at(stamp, 8), u64_at(stamp, 16));
        if first > last || left as usize >= self.bytes.len() / self.unit || stamp.iter().all(|&byte| byte == 0) {
            return None;
        }
        let lap = |intents| {
            let of = |number: u32| Lap { uuid, point: number.into(), intents };
            let sum = |number| crc32c::crc32c_append(of(number).seed(), &stamp[4..]);
            solve(sum, u32_at(stamp, 0)).map(of)
        };
        let laps: Vec<Lap> = [false, true].into_iter().filter_map(lap).collect();
        let nearest = laps.into_iter().min_by_key(|lap| lap.point)?;
        (nearest.point > point && nearest.point - point < FAR).then_some(nearest)
    }

    /// If nothing was written in a lap but that its point is durable, and operations alone made that: the last of them.
    fn find_closed(&self, lap: &Lap) -> Option<u64> {
        let stamped = self.bytes.chunks_exact(self.unit).filter(|unit| is_stamped(unit, lap.seed())).count();
        match &self.records(lap.seed())[..] {
            [only] if only.kind == RecordKind::Durable && stamped == 1 => {
                Durable::decode(&only.body).filter(|durable| durable.is_logged).map(|_| only.sequence)
            }
            _ => None,
        }
    }
}

/// A consistency point that a half follows and of which there is no superblock, unless the operations behind the one that there
/// is make up for it. `operations`: those that can be read.
fn find_lost_point(sides: &[Side; 2], sb: &Superblock, operations: &[u64]) -> Option<u64> {
    let later: Vec<(&Side, Lap)> =
        sides.iter().filter_map(|side| Some((side, side.find_later(sb.uuid, sb.point)?))).collect();
    let lost = later.iter().map(|(_, lap)| lap.point).max()?;
    let closed = match &later[..] {
        [(side, lap)] => side.find_closed(lap),
        _ => None,
    };
    let is_made_up_for = |last: u64| operations.iter().copied().eq((sb.applied..last).map(|before| before + 1));
    if closed.is_some_and(is_made_up_for) { None } else { Some(lost) }
}

/// The first record behind those that can be read, if it was acknowledged.
fn find_lost_record(sides: &[Side; 2], lap: &Lap, applied: u64) -> Option<u64> {
    let halves = sides.each_ref().map(|side| Half::read(&side.bytes, lap, side.unit));
    let last = halves.iter().flat_map(|half| &half.records).map(|record| record.sequence).max();
    let wanted = last.unwrap_or(0).max(applied).checked_add(1)?;
    halves.iter().any(|half| half.was_written(wanted)).then_some(wanted)
}

/// The stripes that the last consistency point of those that did not end says it was about to write.
fn stripes_being_written(records: &[Record]) -> Vec<StripeRange> {
    let of_point = |record: &Record| (record.body.len() >= 8).then(|| u64_at(&record.body, 0));
    let last = records.iter().filter_map(of_point).max();
    let intents = records.iter().filter(|record| record.kind == RecordKind::Intent);
    let runs = intents.filter(|record| of_point(record) == last && last.is_some());
    let run = |at: &[u8; RUN]| StripeRange { group: u32_at(at, 0), first: u64_at(at, 4), count: u64_at(at, 12) };
    runs.flat_map(|record| record.body[8..].as_chunks::<RUN>().0.iter().map(run)).collect()
}

/// The number for which a checksum is as wanted. Such sums add up bit by bit: that of two numbers' difference is the difference
/// of their sums, but for the sum of 0. So which bits the number has is a system of 32 equations.
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
mod tests {
    use senesce_block::MemoryDevice;
    use senesce_core::{Bytes, Rng, Seed};
    use senesce_fsapi::FileKind;

    use super::*;
    use crate::{
        format::{inode::Inode, lap, record::Commit},
        log::{Log, MIN_HALF_BYTES},
    };

    #[test]
    fn a_number_is_found_by_its_checksum() {
        let sum = |number: u32| crc32c::crc32c_append(7, &[&number.to_le_bytes()[..], b"behind"].concat());
        for number in [0, 1, 700, 0x8000_0000, u32::MAX] {
            assert_eq!(solve(sum, sum(number)), Some(number));
        }
        assert_eq!(solve(|number| number & 0xff, 0x100), None);
    }

    /// By another way than the engine's, and the same.
    #[test]
    fn the_point_that_a_half_follows_is_the_one_that_the_engine_finds() {
        let mut rng = Rng::for_purpose(Seed(1), "stamps");
        let (mut later, mut none) = (0, 0);
        for _ in 0..2000 {
            let point = rng.below(1 << 21);
            let lap = Lap { uuid: [rng.below(256) as u8; 16], point, intents: rng.below(2) == 0 };
            let mut commit = Commit::new(UNIT, Vec::new());
            commit.push(RecordKind::Operation, 5, lap.seed(), &[[7; 1300][..].into()]);
            let mut bytes = commit.seal(&lap, 5, 5);
            if rng.below(4) == 0 {
                bytes[UNIT - STAMP + rng.below(STAMP as u64) as usize] ^= 1 << rng.below(8);
            }
            let than = rng.below(1 << 21);
            let found = Side::of(bytes.clone(), UNIT).find_later(lap.uuid, than);
            assert_eq!(found, lap::find_later(&bytes, UNIT, lap.uuid, than), "{lap:?}, later than {than}");
            *if found.is_some() { &mut later } else { &mut none } += 1;
        }
        assert!(later > 200 && none > 200, "{later} later ones, {none} none");
    }

    fn superblock(point: u64, applied: u64) -> Superblock {
        Superblock {
            uuid: [3; 16],
            cp: point,
            point,
            previous: 0,
            applied,
            free: 0,
            next_object: 0,
            cold: 0,
            volumes: 0,
            root: Inode::new(FileKind::File),
            missing: vec![],
            filling: vec![],
        }
    }

    /// A log with these records of operations in its halves, of the lap behind point 9.
    fn log(half_bytes: u64, halves: [&[u64]; 2]) -> Arc<dyn BlockDevice> {
        let device = MemoryDevice::new("log", Bytes(BLOCK as u64 + 2 * MIN_HALF_BYTES));
        device.write_at(0, &LogLabel { uuid: [3; 16], half_bytes }.encode()[..]).unwrap();
        let lap = Lap { uuid: [3; 16], point: 9, intents: false };
        for (half, records) in (0..).zip(halves).filter(|(_, records)| !records.is_empty()) {
            let (mut commit, mut chain) = (Commit::new(UNIT, Vec::new()), lap.seed());
            for &record in records {
                chain = commit.push(RecordKind::Operation, record, chain, &[[7; 100][..].into()]);
            }
            let bytes = commit.seal(&lap, records[0], *records.last().unwrap());
            device.write_at(BLOCK as u64 + half * MIN_HALF_BYTES, &bytes).unwrap();
        }
        Arc::new(device)
    }

    /// What the check finds, and whether an opening refuses it.
    fn judge(log: &Arc<dyn BlockDevice>, sb: &Superblock) -> (Vec<String>, bool) {
        let mut report = CheckReport::default();
        let refused = check(log, sb, &mut report).is_err();
        let mut found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        if refused {
            found.push("refused".to_owned());
        }
        let opened = Log::open(log.clone(), sb.uuid, sb.point, sb.applied);
        (found, opened.map_or(true, |(_, found)| found.lost_point.is_some()))
    }

    #[test]
    fn what_an_opening_refuses_of_a_log_is_found_and_nothing_else() {
        let whole = MIN_HALF_BYTES;
        for (half_bytes, halves, applied, refused) in [
            (whole, [&[5, 6][..], &[]], 4, false),
            (whole, [&[], &[5, 6]], 4, false),
            (whole, [&[5, 6], &[]], 6, false),
            // A half begins behind a record that is nowhere; both halves are in use.
            (whole, [&[5, 6], &[]], 3, true),
            (whole, [&[5, 6], &[7]], 4, true),
            // Numbers behind which there is none.
            (whole, [&[u64::MAX - 1, u64::MAX], &[]], u64::MAX - 2, true),
            (whole, [&[u64::MAX, 5], &[]], 4, true),
            (whole, [&[], &[]], u64::MAX, true),
            // Halves of a size that no log has.
            (0, [&[], &[]], 4, true),
            (8, [&[], &[]], 4, true),
            (whole - 1, [&[], &[]], 4, true),
            (2 * whole, [&[], &[]], 4, true),
            (1 << 63, [&[], &[]], 4, true),
            (u64::MAX, [&[], &[]], 4, true),
        ] {
            let told = format!("halves of {half_bytes} bytes, {halves:?} behind {applied}");
            let (found, is_refused) = judge(&log(half_bytes, halves), &superblock(9, applied));
            assert_eq!((is_refused, found.is_empty()), (refused, !refused), "{told}: {found:?}");
        }
    }
}
