//! Failing or outdated copies of the log, and forged labels.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockOperation, FaultDevice, MemoryDevice};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{
    FileSystem, Ino, NewNode,
    conformance::{collect_tree, find_difference},
};
use senesce_garden::{Accepted, FormatOptions, Garden, LogDevices};

use crate::{
    mirror::{BLOCK, End, LIMITS, SHAPE, fork, leave, make, tree},
    rig::{Devices, Rig, SLOT, VOLUME, caller, findings, open, shared, split},
};

/// Devices that can fail.
pub fn fallible(devices: Vec<MemoryDevice>) -> (Vec<Arc<FaultDevice<MemoryDevice>>>, Devices) {
    let faulty: Vec<_> = devices.into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
    let devices = faulty.iter().map(|device| device.clone() as _).collect();
    (faulty, devices)
}

/// A failed flush of a device loses the new records of both copies on it, and the next flush may
/// succeed.
#[test]
fn failed_flush_of_both_copies_acknowledges_nothing() {
    let mut devices = SHAPE.devices();
    devices[5] = MemoryDevice::new("log", Bytes(2 * SHAPE.log_bytes));
    let (faulty, all) = fallible(devices);
    Garden::format(&SHAPE.options(), all[..5].to_vec(), LogDevices::twice(all[5].clone())).unwrap();
    let garden = open(&all, LIMITS).unwrap();
    garden.create_volume(VOLUME, &SHAPE.volume()).unwrap();
    let fs = garden.volume(VOLUME).unwrap();
    fs.make_node(&caller(1), Ino::ROOT, b"before", &NewNode::file(0o644)).unwrap();
    let next = faulty[5].requests(BlockOperation::Flush) + 1;
    faulty[5].inject(&format!("fail flush {next}")).unwrap();
    assert!(fs.make_node(&caller(1), Ino::ROOT, b"lost", &NewNode::file(0o644)).is_err());
    assert!(fs.make_node(&caller(1), Ino::ROOT, b"later", &NewNode::file(0o644)).is_err(), "the engine has stopped");
}

#[test]
fn copy_that_cannot_be_repaired_is_left_out() {
    for failing in [5, 6] {
        let left = leave(SHAPE.mirrored(), End::Killed);
        let (faulty, devices) = fallible(left.devices);
        devices[failing].write_at(4096, &[0x5a; 4096]).unwrap();
        faulty[failing].inject("fail write 2..").unwrap();
        let garden = open(&devices, LIMITS).unwrap();
        assert_eq!(find_difference(&left.all, &tree(&garden)), None);
        let log = garden.report().log;
        assert_eq!((log.whole, log.copies, log.lost.len()), (1, 2, 1), "{:?}", log.lost);
        drop(garden);
        let (drives, _) = split(&devices);
        let alone = Garden::open(drives, &devices[failing], LIMITS).err().unwrap().to_string();
        assert!(alone.contains("older than the last superblock"), "{alone}");
    }
}

/// A copy returns with older contents, and no superblock knows that. All records of the other copy
/// count.
#[test]
fn outdated_copy_is_never_preferred() {
    for (turns, stale) in [(1, 5), (1, 6), (2, 5), (2, 6), (3, 5), (3, 6)] {
        let told = format!("{turns} consistency points, device {stale}");
        let kept: Vec<Arc<MemoryDevice>> = SHAPE.mirrored().into_iter().map(Arc::new).collect();
        let rig = Rig::on(&SHAPE, kept.iter().map(|device| device.clone() as _).collect(), LIMITS);
        (0..10).for_each(|number| make(&rig, &format!("first {number}"), 700));
        let old = kept[stale].fork();
        // In the same lap, and in later ones.
        for turn in 1..=turns {
            (0..10).for_each(|number| make(&rig, &format!("{turn}, {number}"), 900 * turn));
            if turn < turns {
                rig.garden().consistency_point().unwrap();
            }
        }
        let want = collect_tree(rig.fs()).unwrap();
        let mut now: Vec<MemoryDevice> = kept.iter().map(|device| device.fork()).collect();
        now[stale] = old;
        let devices = shared(now);
        assert!(!findings(&devices).is_empty() || turns > 1, "{told} are not found");
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
        drop(garden);
        assert_eq!(findings(&devices), [""; 0], "{told}: after the repair");
        let (drives, _) = split(&devices);
        let garden = Garden::open(drives, &devices[stale], LIMITS).unwrap();
        assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}, with the repaired copy alone");
    }
}

/// A device whose copy was replaced holds an older log, and no superblock calls the copy lost any
/// more.
#[test]
fn replaced_copy_is_refused_alone() {
    for (end, old) in [(End::Killed, 5), (End::Killed, 6), (End::Closed, 5), (End::Closed, 6)] {
        let told = format!("{end:?}, device {old}");
        let left = leave(SHAPE.mirrored(), end);
        let all = fork(&left.devices);
        let drives = all[..5].to_vec();
        let new = shared(vec![MemoryDevice::new("log new", Bytes(SHAPE.log_bytes))]).remove(0);
        let logs = LogDevices::from(&all[if old == 5 { 6 } else { 5 }]).with_spare(new.clone());
        let garden = Garden::open(&drives, &logs, LIMITS).unwrap();
        assert_eq!(garden.report().log.whole, 2, "{told}");
        let fs = garden.volume(VOLUME).unwrap();
        fs.make_node(&caller(1), Ino::ROOT, b"later", &NewNode::file(0o644)).unwrap();
        let want = collect_tree(&fs).unwrap();
        drop((fs, garden));
        let alone = Garden::open(&drives, &all[old], LIMITS).err().unwrap_or_else(|| panic!("{told}: opened"));
        assert!(alone.to_string().contains("replaced by another device"), "{told}: {alone}");
        let found = senesce_garden::check(&drives, &all[old]).unwrap().findings;
        assert!(found.iter().any(|found| found.to_string().contains("replaced by another device")), "{found:?}");
        // Together with another copy it is filled again, and then has everything.
        let open_again = |logs: LogDevices, told: &str| {
            let garden = Garden::open(&drives, &logs, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
        };
        open_again(vec![all[old].clone(), logs.devices()[0].clone()].into(), &told);
        open_again((&all[old]).into(), &told);
        let alone = Garden::open(&drives, &new, LIMITS).err().unwrap_or_else(|| panic!("{told}: opened")).to_string();
        assert!(alone.contains("replaced by another device"), "{told}: {alone}");
        let garden = Garden::open_with(&drives, &new, LIMITS, None, Accepted::OPERATIONS).unwrap();
        assert!(garden.log_loss().is_some(), "{told}");
    }
}

/// Only its label distinguishes a replaced copy from its successor.
#[test]
fn copy_without_labels_needs_another_copy() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let kept: Vec<Arc<MemoryDevice>> = left.devices.iter().map(|device| Arc::new(device.fork())).collect();
    let all: Devices = kept.iter().map(|device| device.clone() as _).collect();
    let drives = all[..5].to_vec();
    let new = shared(vec![MemoryDevice::new("log new", Bytes(SHAPE.log_bytes))]).remove(0);
    let garden = Garden::open(&drives, LogDevices::from(&all[5]).with_spare(new.clone()), LIMITS).unwrap();
    let fs = garden.volume(VOLUME).unwrap();
    fs.make_node(&caller(1), Ino::ROOT, b"later", &NewNode::file(0o644)).unwrap();
    let want = collect_tree(&fs).unwrap();
    drop((fs, garden));
    for (log, want) in [(&all[6], &left.all), (&new, &want)] {
        spoil_labels(&**log);
        let alone = Garden::open(&drives, log, LIMITS).err().unwrap().to_string();
        assert!(alone.contains("perhaps replaced"), "{alone}");
        // The old copy lacks the later operations, and nothing on it says so. Each is opened on
        // unchanged drives.
        let drives = fork(&[0, 1, 2, 3, 4].map(|drive: usize| kept[drive].fork()));
        let garden = Garden::open_with(&drives, log, LIMITS, None, Accepted::OPERATIONS).unwrap();
        assert_eq!(find_difference(want, &tree(&garden)), None);
        let loss = garden.log_loss().unwrap_or_else(|| panic!("{}: no loss is reported", log.name()));
        assert!(!loss.was_closed && loss.lost.is_none(), "{loss}");
        assert!(loss.to_string().contains("perhaps replaced"), "{loss}");
    }
}

pub fn spoil_labels(log: &dyn BlockDevice) {
    for at in [0, SHAPE.log_bytes - BLOCK] {
        log.write_at(at, &[0x5a; BLOCK as usize]).unwrap();
    }
}

/// The caller names the device that may become the log, perhaps a wrong one.
#[test]
fn log_of_another_garden_is_never_overwritten() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let devices = fork(&left.devices);
    let foreign = shared(SHAPE.devices());
    let options = FormatOptions { uuid: *b"senesce garden 2", ..SHAPE.options() };
    Garden::format(&options, foreign[..5].to_vec(), &foreign[5]).unwrap();
    open(&foreign, LIMITS).unwrap().create_volume(VOLUME, &SHAPE.volume()).unwrap();
    let copy = |name: &str, more: u64| {
        let device = MemoryDevice::new(name, Bytes(SHAPE.log_bytes + more));
        let mut bytes = vec![0; SHAPE.log_bytes as usize];
        foreign[5].read_at(0, &mut bytes).unwrap();
        device.write_at(0, &bytes).unwrap();
        device
    };
    // The first label is damaged and the device is larger than the copy. Of the third device, only
    // the records can be read.
    let damaged = vec![copy("log larger", BLOCK), copy("log much larger", 1 << 20), copy("log without labels", 0)];
    damaged.iter().for_each(|device| device.write_at(100, &[0x5a; 8]).unwrap());
    damaged[..2]
        .iter()
        .for_each(|device| device.write_at(BLOCK, &vec![0; (SHAPE.log_bytes - 2 * BLOCK) as usize]).unwrap());
    spoil_labels(&damaged[2]);
    let damaged = shared(damaged);
    // The first label is damaged, or it is of version 7.
    let cut = shared(vec![MemoryDevice::new("log cut", Bytes(SHAPE.log_bytes))]).remove(0);
    let mut label = [0; BLOCK as usize];
    foreign[5].read_at(SHAPE.log_bytes - BLOCK, &mut label).unwrap();
    cut.write_at(SHAPE.log_bytes - BLOCK, &label).unwrap();
    let old = shared(vec![MemoryDevice::new("log old", Bytes(SHAPE.log_bytes))]).remove(0);
    let mut label = [0; BLOCK as usize];
    label[..9].copy_from_slice(b"SNSClog\0\x07");
    label[16..32].copy_from_slice(&options.uuid);
    label[32..40].copy_from_slice(&(192_u64 << 10).to_le_bytes());
    let sum = crc32c::crc32c(&label[..BLOCK as usize - 4]).to_le_bytes();
    label[BLOCK as usize - 4..].copy_from_slice(&sum);
    old.write_at(0, &label).unwrap();
    for device in [&foreign[5], &cut, &old, &foreign[0], &devices[0]].into_iter().chain(&damaged) {
        let read = || {
            let mut bytes = vec![0; SHAPE.log_bytes as usize];
            device.read_at(0, &mut bytes).unwrap();
            bytes
        };
        let before = read();
        for log in [LogDevices::from(device).spare(), LogDevices::from(&devices[5]).with_spare(device.clone())] {
            let error = Garden::open_with(&devices[..5], log, LIMITS, None, Accepted::OPERATIONS).err();
            let error = error.unwrap_or_else(|| panic!("{} is overwritten", device.name())).to_string();
            assert!(error.contains("of another aggregate") || error.contains("a drive of an aggregate"), "{error}");
            assert!(read() == before, "{}", device.name());
        }
    }
}

#[test]
fn failing_log_copy_stops_nothing() {
    for failing in [5, 6] {
        let (faulty, devices) = fallible(SHAPE.mirrored());
        let mut rig = Rig::on(&SHAPE, devices.clone(), LIMITS);
        make(&rig, "before", 5000);
        let next = faulty[failing].requests(BlockOperation::Write) + 1;
        faulty[failing].inject(&format!("fail write {next}..")).unwrap();
        let failures = rig.garden().watch_logs();
        (0..30).for_each(|number| make(&rig, &format!("file {number}"), 90 * number));
        let log = rig.garden().report().log;
        assert_eq!((log.whole, log.copies, log.lost.len()), (1, 2, 1), "{:?}", log.lost);
        assert!(!log.states[failing - 5].is_whole && log.states[6 - failing].is_whole, "{:?}", log.states);
        let reported: Vec<_> = failures.try_iter().map(|failure| (failure.copy, failure.is_left_out)).collect();
        assert_eq!(reported, [(failing as u32 - 5, true)]);
        let want = collect_tree(rig.fs()).unwrap();
        // Without the other copy, its contents do not count as all acknowledged operations.
        let (drives, _) = split(&devices);
        (rig.fs, rig.garden) = (None, None);
        let alone = Garden::open(drives, &devices[failing], LIMITS).err().unwrap().to_string();
        assert!(alone.contains("older than the last superblock"), "{alone}");
        let other = if failing == 5 { 6 } else { 5 };
        let garden = Garden::open(drives, &devices[other], LIMITS).unwrap();
        assert_eq!(find_difference(&want, &tree(&garden)), None);
    }
}

/// The engine checks every field of a label against the devices.
#[test]
fn forged_labels_never_panic() {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let mut rng = Rng::for_purpose(Seed(4), "forged labels");
    for round in 0..400 {
        let devices = fork(&left.devices);
        for _ in 0..=rng.below(3) {
            let device = rng.below(7) as usize;
            let (is_log, copy) = (device >= 5, rng.below(2));
            let len = if is_log { BLOCK } else { SLOT };
            let last = SHAPE.log_bytes / BLOCK * BLOCK - BLOCK;
            let at = if is_log { copy * last } else { 2 * copy * SLOT };
            let mut bytes = vec![0; len as usize];
            devices[device].read_at(at, &mut bytes).unwrap();
            let field = [8, 12, 16, 36, 40, 48, 52, 55, 56, 57, 64, 66, 68, 72, 79][rng.below(15) as usize];
            bytes[field] = rng.below(256) as u8;
            if is_log {
                let sum = crc32c::crc32c(&bytes[..4092]).to_le_bytes();
                bytes[4092..].copy_from_slice(&sum);
            } else {
                let sum = crc32c::crc32c(&bytes[..4096]).to_le_bytes();
                bytes[4096..4100].copy_from_slice(&sum);
                let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[4096..4100]), &bytes[4104..]).to_le_bytes();
                bytes[4100..4104].copy_from_slice(&sum);
            }
            devices[device].write_at(at, &bytes).unwrap();
        }
        let (drives, log) = split(&devices);
        // Both may refuse. Neither panics or returns another tree.
        if senesce_garden::check(drives, &log).is_err() {
            continue;
        }
        if let Ok(garden) = open(&devices, LIMITS) {
            assert_eq!(find_difference(&left.all, &tree(&garden)), None, "round {round}");
        }
    }
}

/// The second copy costs its bytes and flushes, and nothing on the drives.
#[test]
fn second_copy_is_counted_apart_from_drives() {
    let play = |devices: Vec<MemoryDevice>| {
        let rig = Rig::on(&SHAPE, shared(devices), LIMITS);
        (0..30).for_each(|number| make(&rig, &format!("file {number}"), 500 * number));
        rig.garden().consistency_point().unwrap();
        let report = rig.garden().report();
        (report.raid, report.log.bytes_written, report.log.flushes)
    };
    let (one, two) = (play(SHAPE.devices()), play(SHAPE.mirrored()));
    assert_eq!(one.0, two.0);
    assert_eq!((2 * one.1, 2 * one.2), (two.1, two.2));
}
