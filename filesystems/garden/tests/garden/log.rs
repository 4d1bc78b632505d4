//! The log: damaged records are reported, interrupted ones are not, and the number of writes is as
//! expected.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockOperation, FaultDevice, MemoryDevice};
use senesce_fsapi::{
    FileSystem, Ino, NewNode,
    conformance::{Tree, collect_tree, find_difference},
};

use senesce_garden::Limits;

use crate::{
    crash::{LIMITS, TINY},
    rig::{Devices, Rig, SMALL, TIGHT, VOLUME, caller, findings, open, shared},
};

fn make(rig: &Rig, name: &str, bytes: usize) {
    let ino = rig.fs().make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
    rig.fs().write(&caller(1), ino, 0, &vec![bytes as u8; bytes]).unwrap();
}

/// An aggregate with acknowledged operations that no consistency point includes, their tree, and
/// the positions of their records. If `is_closed`, a record that ends the consistency point
/// precedes them.
fn with_operations(is_closed: bool, operations: impl Fn(&Rig)) -> (Vec<MemoryDevice>, Tree, Vec<u64>) {
    let devices: Vec<Arc<MemoryDevice>> = TINY.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&TINY, devices.iter().map(|device| device.clone() as _).collect(), Limits::default());
    make(&rig, "before", 10);
    rig.garden().consistency_point().unwrap();
    let log = devices.last().unwrap().contents();
    if is_closed {
        rig.garden().commit_checkpoint().unwrap();
    }
    operations(&rig);
    let tree = collect_tree(rig.fs()).unwrap();
    let now = devices.last().unwrap().contents();
    let changed = (0..).step_by(512).zip(log.chunks(512).zip(now.chunks(512)));
    let units = changed.filter(|(_, (old, new))| old != new).map(|(at, _)| at).collect();
    (devices.iter().map(|device| device.fork()).collect(), tree, units)
}

fn fork(devices: &[MemoryDevice]) -> Devices {
    shared(devices.iter().map(MemoryDevice::fork).collect())
}

#[test]
fn damaged_records_are_reported_or_harmless() {
    for (is_closed, files, units, least) in [(false, 4, 11, 200), (true, 4, 12, 200), (true, 0, 2, 8)] {
        a_damaged_record_is_told(is_closed, files, units, least);
    }
}

/// With `files` 0 there is one operation only.
fn a_damaged_record_is_told(is_closed: bool, files: usize, count: usize, least: usize) {
    let (at_rest, want, units) = with_operations(is_closed, |rig| match files {
        0 => rig.fs().unlink(&caller(2), Ino::ROOT, b"before").unwrap(),
        files => (0..files).for_each(|number| make(rig, &format!("file {number}"), 1 + 400 * number)),
    });
    assert_eq!(units.len(), count, "{units:?}");
    let (mut told, mut whole) = (0, 0);
    for at in units.iter().flat_map(|unit| (*unit..unit + 512).step_by(11)) {
        let devices = fork(&at_rest);
        let mut byte = [0];
        devices[3].read_at(at, &mut byte).unwrap();
        devices[3].write_at(at, &[byte[0] ^ 1 << (at % 8)]).unwrap();
        let found = findings(&devices);
        match open(&devices, LIMITS) {
            Err(error) => {
                assert!(error.to_string().starts_with("log: log: record is damaged ("), "byte {at}: {error}");
                assert_eq!(found, [error.to_string()], "byte {at}");
                told += 1;
            }
            Ok(garden) => {
                let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap();
                assert_eq!(find_difference(&want, &tree), None, "byte {at}");
                assert_eq!(found, [""; 0], "byte {at}");
                whole += 1;
            }
        }
    }
    assert!(told > least && whole > 10, "{told} were reported, {whole} did no harm");
}

/// The first commit after a consistency point is interrupted: some of its units are written, in any
/// order. Later commits overwrite it.
#[test]
fn interrupted_commit_is_silent_and_leaves_no_traces() {
    let (at_rest, _, units) = with_operations(false, |rig| {
        let ino = rig.fs().lookup(Ino::ROOT, b"before").unwrap().ino;
        rig.fs().write(&caller(1), ino, 0, &[1; 1800]).unwrap();
    });
    assert_eq!(units.len(), 4, "{units:?}");
    for lost in 1..16_u32 {
        let devices = fork(&at_rest);
        for (_, unit) in units.iter().enumerate().filter(|(at, _)| lost >> at & 1 == 1) {
            devices[3].write_at(*unit, &[0; 512]).unwrap();
        }
        assert_eq!(findings(&devices), [""; 0], "units {lost:b} are lost");
        let mut rig = Rig::closed(devices, Limits::default());
        rig.open().unwrap_or_else(|error| panic!("units {lost:b} are lost: {error}"));
        assert_eq!(rig.fs().lookup(Ino::ROOT, b"before").unwrap().size, 10);
        for number in 0..5 {
            rig.fs().make_node(&caller(1), Ino::ROOT, format!("later {number}").as_bytes(), &NewNode::file(0)).unwrap();
            let now = collect_tree(rig.fs()).unwrap();
            if number % 2 == 1 {
                rig.open().unwrap_or_else(|error| panic!("units {lost:b} are lost: {error}"));
                assert_eq!(find_difference(&now, &collect_tree(rig.fs()).unwrap()), None);
            }
        }
        assert_eq!(rig.findings(), [""; 0]);
    }
}

#[test]
fn one_record_names_many_runs_of_stripes() {
    let devices: Vec<Arc<FaultDevice<MemoryDevice>>> =
        SMALL.devices().into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
    let rig = Rig::on(&SMALL, devices.iter().map(|device| device.clone() as _).collect(), TIGHT);
    (0..60).for_each(|number| make(&rig, &format!("file {number}"), 4096 * (1 + number % 3)));
    rig.garden().consistency_point().unwrap();
    for number in (0..60).step_by(2) {
        rig.fs().unlink(&caller(2), Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
    }
    rig.garden().consistency_point().unwrap();
    // As many files of one block as there were holes. They fill the holes when the emptier areas
    // are full.
    let (log, parity) = (&devices[4], &devices[3]);
    let mut most = 0;
    for number in 0..200 {
        let name = format!("new {number}");
        if rig.fs().make_node(&caller(3), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).is_err() {
            break;
        }
        let ino = rig.fs().lookup(Ino::ROOT, name.as_bytes()).unwrap().ino;
        if rig.fs().write(&caller(3), ino, 0, &[1; 12_000]).is_err() {
            break;
        }
        let before = (log.requests(BlockOperation::Flush), parity.requests(BlockOperation::Write));
        rig.garden().consistency_point().unwrap();
        assert_eq!(log.requests(BlockOperation::Flush) - before.0, 1, "{name}");
        // One of the writes is the superblock.
        most = most.max(parity.requests(BlockOperation::Write) - before.1 - 1);
    }
    assert!(most > 2, "{most} runs of stripes at most");
}
