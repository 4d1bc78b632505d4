//! An aggregate of version 7, made by that version: opened, changed and checked with one label per
//! drive and one copy of the log.

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{FileSystem, Ino, NewNode, conformance::collect_tree};
use senesce_garden::{Accepted, Garden, Limits, LogDevices, check};

use crate::{
    mirror_faults::fallible,
    rig::{Devices, VOLUME, caller, findings, open, shared},
};

const GOLDEN: &[u8] = include_bytes!("../../../../golden/garden-v7.img.zst");
/// Of version 7; see docs/reference/garden-format.md.
const SLOT: u64 = 4160;
const FIXED_SLOTS: u64 = 3;
const DRIVE_BYTES: u64 = (FIXED_SLOTS + 256) * SLOT;
const LOG_BYTES: u64 = 400 << 10;

/// Three drives and their log, which holds operations.
fn golden() -> Vec<MemoryDevice> {
    let all = zstd::bulk::decompress(GOLDEN, (3 * DRIVE_BYTES + LOG_BYTES) as usize).unwrap();
    let mut rest = &all[..];
    let mut take = |name: &str, bytes: u64| {
        let (own, others) = rest.split_at(bytes as usize);
        rest = others;
        let device = MemoryDevice::new(name, Bytes(bytes));
        device.write_at(0, own).unwrap();
        device
    };
    let mut devices: Vec<MemoryDevice> = (0..3).map(|drive| take(&format!("drive {drive}"), DRIVE_BYTES)).collect();
    devices.push(take("log", LOG_BYTES));
    devices
}

fn versions(devices: &Devices) -> Vec<u8> {
    let mut found = Vec::new();
    for device in &devices[..3] {
        for slot in 0..FIXED_SLOTS {
            let mut version = [0];
            device.read_at(slot * SLOT + 8, &mut version).unwrap();
            found.push(version[0]);
        }
    }
    found
}

#[test]
fn version_7_is_opened_changed_and_kept() {
    let devices = shared(golden());
    assert_eq!(findings(&devices), [""; 0]);
    let waiting = check(&devices[..3], &devices[3]).unwrap().log_operations;
    assert!(waiting > 0, "nothing is in the log");
    let garden = open(&devices, Limits::default()).unwrap();
    let fs = garden.volume(VOLUME).unwrap();
    let before = collect_tree(&fs).unwrap();
    assert_eq!(before.len(), 6, "{before:?}");
    let ino = fs.make_node(&caller(1), Ino::ROOT, b"new in 7", &NewNode::file(0o600)).unwrap().ino;
    fs.write(&caller(1), ino, 0, &[7; 100_000]).unwrap();
    let want = collect_tree(&fs).unwrap();
    drop((fs, garden));
    // From the log, and from the next consistency point.
    let garden = open(&devices, Limits::default()).unwrap();
    assert_eq!(collect_tree(&garden.volume(VOLUME).unwrap()).unwrap(), want);
    garden.close().unwrap();
    while garden.scrub_step(1000).map(|step| step.done < step.of).unwrap() {}
    drop(garden);
    assert_eq!(findings(&devices), [""; 0]);
    assert_eq!(versions(&devices), [7; 9]);
    let garden = open(&devices, Limits::default()).unwrap();
    assert_eq!(collect_tree(&garden.volume(VOLUME).unwrap()).unwrap(), want);
}

#[test]
fn version_7_drive_and_log_are_replaced() {
    let mut devices = golden();
    let want = {
        let garden = open(&shared(devices.iter().map(MemoryDevice::fork).collect()), Limits::default()).unwrap();
        collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()
    };
    devices[1] = MemoryDevice::new("drive 1", Bytes(DRIVE_BYTES));
    let all = shared(devices);
    let left: Devices = vec![all[0].clone(), all[2].clone(), all[3].clone()];
    let garden = open(&left, Limits::default()).unwrap();
    garden.replace_drive(1, all[1].clone()).unwrap();
    while garden.rebuild_step(64).unwrap().is_some() {}
    drop(garden);
    assert_eq!(findings(&all), [""; 0]);
    assert_eq!(versions(&all), [7; 9]);
    let garden = open(&all, Limits::default()).unwrap();
    assert_eq!(collect_tree(&garden.volume(VOLUME).unwrap()).unwrap(), want);
    drop(garden);
    all[3].write_at(0, &[0x5a; 4096]).unwrap();
    let refused = open(&all, Limits::default()).err().unwrap().to_string();
    assert!(refused.contains("copies is copy 0 of the log is lost"), "{refused}");
    let log = LogDevices::from(&all[3]).spare();
    let garden = Garden::open_with(&all[..3], &log, Limits::default(), None, Accepted::OPERATIONS).unwrap();
    assert!(!garden.log_loss().unwrap().was_closed);
    drop(garden);
    assert_eq!(findings(&all), [""; 0]);
    assert_eq!(versions(&all), [7; 9]);
    let garden = open(&all, Limits::default()).unwrap();
    assert_eq!(collect_tree(&garden.volume(VOLUME).unwrap()).unwrap(), want);
}

#[test]
fn unreadable_block_of_the_only_log_is_refused() {
    const BLOCK: u64 = 4096;
    let want = {
        let garden = open(&shared(golden()), Limits::default()).unwrap();
        collect_tree(&garden.volume(VOLUME).unwrap()).unwrap()
    };
    let faults = (1..LOG_BYTES / BLOCK).map(|block| format!("fail read at {}+{BLOCK}", block * BLOCK));
    let all = format!("fail read at {BLOCK}+{}", LOG_BYTES - BLOCK);
    let mut refused = 0;
    for fault in faults.chain([all]) {
        let (faulty, devices) = fallible(golden());
        faulty[3].inject(&fault).unwrap();
        match open(&devices, Limits::default()) {
            Ok(garden) => assert_eq!(collect_tree(&garden.volume(VOLUME).unwrap()).unwrap(), want, "{fault}"),
            Err(error) => {
                assert!(error.to_string().contains("answer is "), "{fault}: {error}");
                refused += 1;
            }
        }
        faulty[3].heal();
        let garden = open(&devices, Limits::default()).unwrap();
        assert_eq!(collect_tree(&garden.volume(VOLUME).unwrap()).unwrap(), want, "{fault}: afterwards");
    }
    assert!(refused > 1, "{refused} openings were refused");
}
