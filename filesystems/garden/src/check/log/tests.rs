//! The check of a log against forged and random halves.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::FileKind;

use super::*;
use crate::{
    Group, Medium,
    format::{
        BLOCK, VERSION,
        inode::Inode,
        label::{LogLabel, LogShape, MIN_HALF_BYTES},
        log_lap,
        log_record::Commit,
    },
    log::{Accepted, Log},
};

const UNIT: usize = 512;

#[test]
fn number_is_found_by_its_checksum() {
    let sum = |number: u32| crc32c::crc32c_append(7, &[&number.to_le_bytes()[..], b"behind"].concat());
    for number in [0, 1, 700, 0x8000_0000, u32::MAX] {
        assert_eq!(solve(sum, sum(number)), Some(number));
    }
    assert_eq!(solve(|number| number & 0xff, 0x100), None);
}

/// The check uses another algorithm than the engine.
#[test]
fn check_finds_the_same_point_as_the_engine() {
    let mut rng = Rng::for_purpose(Seed(1), "stamps");
    let (mut later, mut none) = (0, 0);
    for _ in 0..2000 {
        let point = rng.below(1 << 21);
        let uuid = [rng.below(256) as u8; 16];
        let lap = Lap { uuid, point, intents: rng.below(2) == 0, stamps: Stamps::Summed };
        let mut commit = Commit::new(UNIT, Vec::new());
        commit.push(RecordKind::Operation, 5, lap.seed(), &[[7; 1300][..].into()]);
        let mut bytes = commit.seal(&lap, 5, 5);
        if rng.below(4) == 0 {
            bytes[UNIT - STAMP + rng.below(STAMP as u64) as usize] ^= 1 << rng.below(8);
        }
        let than = rng.below(1 << 21);
        let half = HalfCopies { unit: UNIT, stamps: lap.stamps, copies: Vec::new(), silent: Vec::new() };
        let found = Side::of(bytes.clone(), &half).find_later(lap.uuid, than);
        let wanted = log_lap::find_later(&bytes, UNIT, lap.uuid, lap.stamps, than);
        assert_eq!(found, wanted, "{lap:?}, later than {than}");
        *if found.is_some() { &mut later } else { &mut none } += 1;
    }
    assert!(later > 200 && none > 200, "{later} later ones, {none} none");
}

fn superblock(point: u64, applied: u64) -> Superblock {
    Superblock {
        version: VERSION,
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
        logs: crate::format::superblock::LogState::default(),
        closed: false,
    }
}

fn aggregate(half_bytes: u64) -> Aggregate {
    let group = Group { data_drives: 1, parity: false, medium: Medium::Hdd, area_stripes: 1, stripes: 1 };
    let log = LogShape { half_bytes, copies: 1, is_shared: false };
    Aggregate { version: VERSION, uuid: [3; 16], tetris_stripes: 1, groups: vec![group], log }
}

/// A log with these records of operations in its halves, of the lap after point 9.
fn log(halves: [&[u64]; 2]) -> LogDevices {
    let aggregate = aggregate(MIN_HALF_BYTES);
    let device = MemoryDevice::new("log", Bytes(aggregate.log.copy_bytes()));
    let label = LogLabel { aggregate, copy: 0, generation: 0 }.encode();
    device.write_at(0, &label[..]).unwrap();
    device.write_at(device.size().0 - BLOCK as u64, &label[..]).unwrap();
    let lap = Lap { uuid: [3; 16], point: 9, intents: false, stamps: Stamps::Summed };
    for (half, records) in (0..).zip(halves).filter(|(_, records)| !records.is_empty()) {
        let (mut commit, mut chain) = (Commit::new(UNIT, Vec::new()), lap.seed());
        for &record in records {
            chain = commit.push(RecordKind::Operation, record, chain, &[[7; 100][..].into()]);
        }
        let bytes = commit.seal(&lap, records[0], *records.last().unwrap());
        device.write_at(BLOCK as u64 + half * MIN_HALF_BYTES, &bytes).unwrap();
    }
    LogDevices::from(Arc::new(device) as Arc<dyn BlockDevice>)
}

/// The findings of the check, and whether an opening refuses the log.
fn judge(log: &LogDevices, half_bytes: u64, sb: &Superblock) -> (Vec<String>, bool) {
    let mut report = CheckReport::default();
    let aggregate = aggregate(half_bytes);
    let refused = check(log, &aggregate, sb, &mut report).is_err();
    let mut found: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    if refused {
        found.push("refused".to_owned());
    }
    let opened = Copies::find(log, &aggregate, Some(sb))
        .and_then(|copies| Log::open(&copies, sb, Accepted::default()).map(|(_, found, _)| found));
    (found, opened.map_or(true, |found| found.lost_point.is_some()))
}

#[test]
fn check_finds_what_opening_refuses() {
    let whole = MIN_HALF_BYTES;
    for (half_bytes, halves, applied, refused) in [
        (whole, [&[5, 6][..], &[]], 4, false),
        (whole, [&[], &[5, 6]], 4, false),
        (whole, [&[5, 6], &[]], 6, false),
        // A half starts after a record that does not exist; both halves are in use.
        (whole, [&[5, 6], &[]], 3, true),
        (whole, [&[5, 6], &[7]], 4, true),
        // Numbers without a successor.
        (whole, [&[u64::MAX - 1, u64::MAX], &[]], u64::MAX - 2, true),
        (whole, [&[u64::MAX, 5], &[]], 4, true),
        (whole, [&[], &[]], u64::MAX, true),
        // Halves that are longer than the device.
        (2 * whole, [&[], &[]], 4, true),
    ] {
        let context = format!("halves of {half_bytes} bytes, {halves:?} after {applied}");
        let (found, is_refused) = judge(&log(halves), half_bytes, &superblock(9, applied));
        assert_eq!((is_refused, found.is_empty()), (refused, !refused), "{context}: {found:?}");
    }
}
