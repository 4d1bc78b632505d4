//! Files so long that no operation reads all their pointers.

use std::sync::Arc;

use senesce_block::{CrashPlan, MemoryDevice, Recording};
use senesce_core::Seed;
use senesce_fsapi::{FileSystem, Ino, NewNode, RenameMode, SeekTo};
use senesce_garden::{VolumeFs, check};

use crate::{
    crash::{LIMITS, TINY},
    rig::{Devices, Rig, VOLUME, caller, findings, open, shared},
};

const BLOCK: u64 = 4096;
/// Blocks of the file, far apart.
const PLACES: [u64; 5] = [0, 1, 70_000, 200_000, 200_002];

fn make_long(fs: &VolumeFs) -> Ino {
    let ino = fs.make_node(&caller(1), Ino::ROOT, b"long", &NewNode::file(0o644)).unwrap().ino;
    for place in PLACES {
        fs.write(&caller(1), ino, place * BLOCK, &[7; BLOCK as usize]).unwrap();
    }
    ino
}

fn operations_in_log(devices: &Devices) -> u64 {
    let (log, drives) = devices.split_last().unwrap();
    check(drives, log).unwrap().log_operations
}

#[test]
fn long_file_is_removed_by_several_operations() {
    let rig = Rig::new(&TINY, LIMITS);
    rig.garden().consistency_point().unwrap();
    let empty = rig.fs().space().unwrap().free;
    for how in ["unlink", "rename", "release"] {
        let ino = make_long(rig.fs());
        rig.fs().make_node(&caller(1), Ino::ROOT, b"other", &NewNode::file(0o644)).unwrap();
        rig.garden().consistency_point().unwrap();
        match how {
            "unlink" => rig.fs().unlink(&caller(2), Ino::ROOT, b"long").unwrap(),
            "rename" => {
                let (from, to) = ((Ino::ROOT, &b"other"[..]), (Ino::ROOT, &b"long"[..]));
                rig.fs().rename(&caller(2), from, to, RenameMode::Replace).unwrap();
            }
            _ => {
                rig.fs().open(ino).unwrap();
                rig.fs().unlink(&caller(2), Ino::ROOT, b"long").unwrap();
                assert_eq!(operations_in_log(&rig.devices), 1);
                rig.fs().release(ino, caller(3).now).unwrap();
            }
        }
        // One operation for the name, one for the blocks after 134,467, one for those after 4,465,
        // one for the rest.
        assert_eq!(operations_in_log(&rig.devices), 4, "{how}");
        rig.fs().attributes(ino).unwrap_err();
        let left = if how == "rename" { &b"long"[..] } else { b"other" };
        rig.fs().unlink(&caller(4), Ino::ROOT, left).unwrap();
        assert_eq!(rig.findings(), [""; 0], "{how}");
        assert_eq!(rig.fs().space().unwrap().free, empty, "{how}");
    }
}

#[test]
fn power_may_be_lost_while_removing_long_files() {
    let devices: Vec<Arc<MemoryDevice>> = TINY.devices().into_iter().map(Arc::new).collect();
    let rig = Rig::on(&TINY, devices.iter().map(|device| device.clone() as _).collect(), LIMITS);
    rig.garden().consistency_point().unwrap();
    let empty = rig.fs().space().unwrap().free;
    make_long(rig.fs());
    rig.garden().consistency_point().unwrap();
    drop(rig);
    let (recording, devices) = Recording::new(devices.iter().map(|device| device.fork()).collect());
    let mut rig = Rig::closed(shared(devices), LIMITS);
    rig.open().unwrap();
    rig.fs().unlink(&caller(2), Ino::ROOT, b"long").unwrap();
    recording.mark(1);
    let plan = CrashPlan { exhaustive_up_to: 4, samples: 8, tears: 2, seed: Seed(1) };
    let mut gone = 0;
    recording.for_each_crash(&plan, |crash| {
        let (told, is_done) = (crash.to_string(), crash.mark.is_some());
        let devices = shared(crash.devices);
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        let fs = garden.volume(VOLUME).unwrap();
        if fs.lookup(Ino::ROOT, b"long").is_err() {
            gone += 1;
            garden.consistency_point().unwrap();
            assert_eq!(fs.space().unwrap().free, empty, "{told}");
        } else {
            assert!(!is_done, "{told}");
        }
        assert_eq!(findings(&devices), [""; 0], "{told}");
    });
    assert!(gone > 5, "{gone}");
}

#[test]
fn data_and_holes_of_long_files_are_found() {
    let rig = Rig::new(&TINY, LIMITS);
    let ino = make_long(rig.fs());
    for round in 0..2 {
        let seek = |block: u64, what| rig.fs().seek(ino, block * BLOCK, what).unwrap() / BLOCK;
        for (from, data, hole) in [
            (0, 0, 2),
            (1, 1, 2),
            (2, 70_000, 2),
            (70_000, 70_000, 70_001),
            (70_001, 200_000, 70_001),
            (200_000, 200_000, 200_001),
        ] {
            assert_eq!(
                (seek(from, SeekTo::Data), seek(from, SeekTo::Hole)),
                (data, hole),
                "from {from}, round {round}"
            );
        }
        assert_eq!(seek(200_002, SeekTo::Hole), 200_003);
        rig.fs().seek(ino, 200_003 * BLOCK, SeekTo::Data).unwrap_err();
        rig.garden().consistency_point().unwrap();
    }
}
