//! Reclaiming in volumes with many blocks of maps: order, partial steps, losses of power,
//! unreadable maps.

use std::sync::Arc;

use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, Timestamp};

use super::{Devices, NAME, findings, make, open};
use crate::{
    FormatOptions, Garden, VolumeFs, VolumeOptions,
    raid::slot_offset,
    store::{
        Key, Store,
        space::{BITS, bitmap_key},
        tree::container_key,
        volume,
    },
};

/// Blocks of the summary map.
const REGIONS: u64 = 14;
const LEN: usize = 5 * 4096;
const LAST: u8 = 2;

fn name(region: u64) -> String {
    format!("file {region}")
}

fn contents(region: u64, round: u8) -> Vec<u8> {
    vec![region as u8 * 8 + round + 1; LEN]
}

/// A volume with blocks in each region in three versions: of snapshot `a`, of snapshot `b`, and its
/// own.
fn sparse(parity: bool) -> Vec<MemoryDevice> {
    let size = |drive: u16| if drive < 4 { slot_offset(700) } else { 2 << 20 };
    let drives = (0..5).filter(|&drive| parity || drive != 3);
    let devices: Vec<_> =
        drives.map(|drive| Arc::new(MemoryDevice::new(format!("{drive}"), Bytes(size(drive))))).collect();
    let all: Devices = devices.iter().map(|device| device.clone() as _).collect();
    let (log, drives) = all.split_last().unwrap();
    let groups = vec![(3, parity)];
    let options =
        FormatOptions { uuid: [3; 16], groups, media: vec![], aa_stripes: vec![64], tetris_stripes: 16, zeroed: true };
    Garden::format(&options, drives.to_vec(), log.clone()).unwrap();
    let garden = open(&all);
    garden.create_volume(NAME, &VolumeOptions { blocks: REGIONS * BITS, inodes: 512, seed: 1 }).unwrap();
    garden.create_volume(b"other", &VolumeOptions { blocks: 1000, inodes: 512, seed: 1 }).unwrap();
    let fs = garden.volume(NAME).unwrap();
    let files: Vec<Ino> = (0..REGIONS).map(|region| make(&fs, &name(region))).collect();
    for round in 0..=LAST {
        for (region, &file) in (0..).zip(&files) {
            let cursor = region * BITS + 1000 + 9000 * u64::from(round) + 7 * region;
            garden.shared().lock().volume_mut(0).unwrap().cursor = cursor;
            fs.write(&Caller::default(), file, 0, &contents(region, round)).unwrap();
            garden.consistency_point().unwrap();
        }
        if round < LAST {
            garden.create_snapshot(NAME, &[b'a' + round], Timestamp::default()).unwrap();
        }
    }
    devices.iter().map(|device| device.fork()).collect()
}

fn check_contents(fs: &VolumeFs, round: u8) {
    for region in 0..REGIONS {
        let (ino, mut got) = (fs.lookup(Ino::ROOT, name(region).as_bytes()).unwrap().ino, vec![0; LEN]);
        assert_eq!(fs.read(ino, 0, &mut got).unwrap(), LEN);
        assert!(got == contents(region, round), "{} in round {round}", name(region));
    }
}

/// VVBNs that this snapshot uses, but neither the volume nor the other snapshot.
fn alone(store: &mut Store, snapshot: &[u8], other: &[u8]) -> Vec<u64> {
    let [view, other] = [snapshot, other].map(|name| store.find_snapshot(0, name).unwrap());
    let mut found = Vec::new();
    for block in 0..REGIONS {
        let [own, other, live] = [view, other, 0].map(|space| {
            let map = store.get(Key::new(space, volume::ACTIVE_MAP, 0, block)).unwrap();
            map.to_vec()
        });
        let is_set = |map: &[u8], bit: u64| map[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
        let bits = (0..BITS).filter(|&bit| is_set(&own, bit) && !is_set(&other, bit) && !is_set(&live, bit));
        let before = found.len();
        found.extend(bits.map(|bit| block * BITS + bit));
        assert!(found.len() >= before + 5, "block {block} has something to reclaim");
    }
    found
}

/// Checks that VVBNs of regions from `from` on are freed, and all others are not.
fn check_gone(store: &mut Store, vvbns: &[u64], from: u64) {
    for &vvbn in vvbns {
        let is_gone = store.container(0, vvbn).unwrap().is_none();
        assert_eq!(is_gone, vvbn / BITS >= from, "VVBN {vvbn}, regions from {from} on are reclaimed");
    }
}

fn forks(devices: &[MemoryDevice]) -> Devices {
    devices.iter().map(|device| Arc::new(device.fork()) as Arc<dyn BlockDevice>).collect()
}

/// Makes a small change and a consistency point.
fn go_on(garden: &Garden, fs: &VolumeFs, number: u8) -> u64 {
    let ino = fs.lookup(Ino::ROOT, b"small").map_or_else(|_| make(fs, "small"), |found| found.ino);
    fs.write(&Caller::default(), ino, 0, &[number; 10]).unwrap();
    garden.consistency_point().unwrap();
    garden.shared().lock().reclaim_left()
}

#[test]
fn reclaiming_runs_backwards_and_survives_crashes() {
    let (recording, devices) = Recording::new(sparse(true));
    let devices: Devices = devices.into_iter().map(|device| Arc::new(device) as Arc<dyn BlockDevice>).collect();
    let garden = open(&devices);
    let fs = garden.volume(NAME).unwrap();
    let (a, b) = {
        let mut store = garden.shared().lock();
        (alone(&mut store, b"a", b"b"), alone(&mut store, b"b", b"a"))
    };
    let check = |left: u64, gone: (u64, u64)| {
        let mut store = garden.shared().lock();
        assert_eq!(store.reclaim_left(), left);
        check_gone(&mut store, &a, gone.0);
        check_gone(&mut store, &b, gone.1);
        drop(store);
        assert_eq!(findings(&devices), Vec::<String>::new(), "{left} blocks left");
        check_contents(&fs, LAST);
    };
    check(0, (REGIONS, REGIONS));
    garden.delete_snapshot(NAME, b"a").unwrap();
    check(10, (10, REGIONS));
    assert_eq!(go_on(&garden, &fs, 1), 6);
    check(6, (6, REGIONS));
    check_contents(&garden.snapshot(NAME, b"b").unwrap(), 1);
    // Another snapshot is deleted in the middle.
    recording.mark(1);
    garden.delete_snapshot(NAME, b"b").unwrap();
    check(10, (6, 10));
    for left in [6, 2, 0] {
        assert_eq!(go_on(&garden, &fs, 2), left);
        check(left, (left, left));
    }
    assert_eq!(garden.shared().lock().volume(0).unwrap().record.held, 0);

    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 0, seed: Seed(5) };
    let (mut count, mut partly) = (0, 0);
    recording.for_each_crash(&plan, |crash| {
        let state = crash.to_string();
        let devices: Devices =
            crash.devices.into_iter().map(|device| Arc::new(device) as Arc<dyn BlockDevice>).collect();
        let garden = open(&devices);
        assert_eq!(findings(&devices), Vec::<String>::new(), "{state}");
        check_contents(&garden.volume(NAME).unwrap(), LAST);
        count += 1;
        partly += u32::from((1..REGIONS).contains(&garden.shared().lock().reclaim_left()));
        assert_eq!(garden.reclaim_step(u64::MAX).unwrap(), 0, "{state}");
        if let Ok(b) = garden.snapshot(NAME, b"b") {
            check_contents(&b, 1);
        } else {
            assert_eq!(garden.shared().lock().volume(0).unwrap().record.held, 0, "{state}");
        }
        assert_eq!(findings(&devices), Vec::<String>::new(), "{state}, reclaimed");
    });
    assert!(count > 30 && partly > 15, "{count} states, {partly} in the middle");
}

/// An unreadable map costs only the space of its volume, whichever block it is. Other volumes are
/// reclaimed, all volumes can be used, and the aggregate can be opened.
#[test]
fn unreadable_map_delays_only_its_volume() {
    let at_rest = sparse(false);
    let damaged = REGIONS - 2;
    for of_container in [false, true] {
        let devices = forks(&at_rest);
        let garden = open(&devices);
        let (place, free) = {
            let mut store = garden.shared().lock();
            let vvbns = alone(&mut store, b"a", b"b");
            let vvbn = vvbns.into_iter().find(|vvbn| vvbn / BITS == damaged).unwrap();
            let b = store.find_snapshot(0, b"b").unwrap();
            let key = match of_container {
                true => container_key(0, vvbn).parent().0,
                false => bitmap_key(b, volume::ACTIVE_MAP, vvbn),
            };
            let at = store.pointer(key).unwrap().unwrap().at;
            (store.raid.geometry.locate(at.pvbn).unwrap(), store.sb.free)
        };
        drop(garden);
        let flip = || {
            let (at, mut byte) = (slot_offset(place.stripe) + 99, [0]);
            devices[place.drive].read_at(at, &mut byte).unwrap();
            devices[place.drive].write_at(at, &[!byte[0]]).unwrap();
        };
        flip();
        let mut garden = open(&devices);
        garden.delete_snapshot(NAME, b"a").unwrap();
        let left = |garden: &Garden| garden.shared().lock().reclaim_left();
        assert_eq!(left(&garden), damaged + 1, "the last block is done");
        for number in 0..3 {
            let fs = garden.volume(NAME).unwrap();
            assert_eq!(go_on(&garden, &fs, number), damaged + 1);
            let other = garden.volume(b"other").unwrap();
            go_on(&garden, &other, number);
            garden.create_snapshot(b"other", b"x", Timestamp::default()).unwrap();
            go_on(&garden, &other, number + 10);
            garden.delete_snapshot(b"other", b"x").unwrap();
            assert_eq!(left(&garden), damaged + 1, "the blocks of the other volume are done");
            let error = garden.reclaim_step(u64::MAX).unwrap_err().to_string();
            assert!(error.contains("checksum"), "{error}");
            // An operation in the log, so that opening makes a consistency point.
            make(&other, &format!("logged {number}"));
            drop((fs, other, garden));
            garden = open(&devices);
        }
        drop(garden);
        flip();
        let garden = open(&devices);
        assert_eq!(garden.reclaim_step(u64::MAX).unwrap(), 0);
        assert_eq!(findings(&devices), Vec::<String>::new());
        check_contents(&garden.snapshot(NAME, b"b").unwrap(), 1);
        check_contents(&garden.volume(NAME).unwrap(), LAST);
        let now = garden.shared().lock().sb.free;
        assert!(now + 20 > free + 5 * REGIONS, "{now} free, {free} before");
    }
}
