//! Loss of power while an opening repairs the log, and failures of the first intent record of a
//! consistency point on a copy.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockOperation, CrashPlan, FaultDevice, MemoryDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileSystem, Ino, NewNode,
    conformance::{collect_tree, find_difference},
};
use senesce_garden::{Garden, LogDevices};

use crate::{
    mirror::{BLOCK, End, LIMITS, SHAPE, leave, make, tree},
    mirror_faults::fallible,
    rig::{Rig, VOLUME, caller, findings, open, shared},
};

const UNIT: usize = 512;

/// Damages the stamps of all used units of a log. Their records stay intact.
fn spoil_stamps(log: &MemoryDevice) {
    let bytes = log.contents();
    let units = bytes.chunks(UNIT).enumerate().skip(BLOCK as usize / UNIT);
    let of_halves = units.take((SHAPE.log_bytes - 2 * BLOCK) as usize / UNIT);
    for (number, unit) in of_halves.filter(|(_, unit)| unit.iter().any(|&byte| byte != 0)) {
        log.write_at(((number + 1) * UNIT - 1) as u64, &[unit[UNIT - 1] ^ 1]).unwrap();
    }
}

/// The state of the log when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The other copy is lost, and this one has damaged stamps.
    OnlyStamps,
    /// Both copies have the same damaged stamps.
    BothStamps,
    /// One block is damaged in each copy, at different places.
    Blocks,
    /// A copy is lost and a new device replaces it.
    Replaced,
}

/// Opens, repairs and closes an aggregate, loses power after each write of that, and opens the
/// result: no acknowledged operation is lost.
fn power_is_lost_while_it_is_repaired(state: State) {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let mut devices: Vec<MemoryDevice> = left.devices.iter().map(MemoryDevice::fork).collect();
    match state {
        State::OnlyStamps => {
            spoil_stamps(&devices[5]);
            devices.remove(6);
        }
        State::BothStamps => devices[5..].iter().for_each(spoil_stamps),
        State::Blocks => {
            devices[5].write_at(3 * BLOCK, &[0x5a; BLOCK as usize]).unwrap();
            devices[6].write_at(5 * BLOCK, &[0x5a; BLOCK as usize]).unwrap();
        }
        State::Replaced => devices[6] = MemoryDevice::new("log 2", Bytes(SHAPE.log_bytes)),
    }
    let opened = |devices: &[Arc<dyn BlockDevice>]| {
        let (drives, logs) = devices.split_at(5);
        let log = match state {
            State::Replaced => LogDevices::from(&logs[0]).with_spare(logs[1].clone()),
            _ => logs.to_vec().into(),
        };
        Garden::open(drives, log, LIMITS)
    };
    let (recording, recorded) = Recording::new(devices);
    let garden = opened(&shared(recorded)).unwrap();
    assert!(!garden.report().opening.repaired.is_empty() || state == State::OnlyStamps, "{state:?}");
    while garden.scrub_step(1000).map(|step| step.done < step.of).unwrap() {}
    garden.close().unwrap();
    drop(garden);
    let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 1, seed: Seed(3) };
    let mut states = 0;
    recording.for_each_crash(&plan, |crash| {
        states += 1;
        let told = format!("{state:?}: {crash}");
        if state == State::Replaced {
            // The new device alone has everything, or is refused.
            let alone = shared(crash.devices.iter().map(MemoryDevice::fork).collect());
            if let Ok(garden) = Garden::open(&alone[..5], &alone[6], LIMITS) {
                assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}: the new copy alone");
            }
        }
        let devices = shared(crash.devices);
        let garden = opened(&devices).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
        // An interrupted superblock is written again.
        let fs = garden.volume(VOLUME).unwrap();
        fs.make_node(&caller(5), Ino::ROOT, b"behind", &NewNode::file(0o600)).unwrap();
        garden.consistency_point().unwrap();
        drop((fs, garden));
        let after = findings(&devices);
        assert!(
            after.iter().all(|finding| state == State::OnlyStamps && finding.contains("log copy 1")),
            "{told}: {after:?}"
        );
    });
    assert!(states > 40, "{states} states");
}

#[test]
fn power_lost_while_repairing_the_only_copy() {
    power_is_lost_while_it_is_repaired(State::OnlyStamps);
}

#[test]
fn power_lost_while_repairing_both_copies() {
    power_is_lost_while_it_is_repaired(State::BothStamps);
    power_is_lost_while_it_is_repaired(State::Blocks);
}

#[test]
fn power_lost_while_filling_a_copy() {
    power_is_lost_while_it_is_repaired(State::Replaced);
}

/// The superblock that names the lost copy is written during the point. Neither of the two is
/// mistaken for the other.
#[test]
fn failed_first_intent_of_a_copy_is_harmless() {
    for fails in ["write", "flush"] {
        for failing in [&[5][..], &[6], &[5, 6]] {
            let told = format!("{fails} of {failing:?}");
            let (faulty, devices) = fallible(SHAPE.mirrored());
            let mut rig = Rig::on(&SHAPE, devices.clone(), LIMITS);
            (0..30).for_each(|number| make(&rig, &format!("file {number}"), 900 * number));
            let want = collect_tree(rig.fs()).unwrap();
            let requests = |device: &FaultDevice<MemoryDevice>| match fails {
                "write" => device.requests(BlockOperation::Write),
                _ => device.requests(BlockOperation::Flush),
            };
            for &number in failing {
                faulty[number].inject(&format!("fail {fails} {}", requests(&faulty[number]) + 1)).unwrap();
            }
            let done = rig.garden().consistency_point();
            assert_eq!(done.is_err(), failing.len() == 2, "{told}: {done:?}");
            if failing.len() < 2 {
                make(&rig, "later", 1000);
                assert_eq!(rig.garden().report().log.whole, 1, "{told}");
            }
            let want = if failing.len() < 2 { collect_tree(rig.fs()).unwrap() } else { want };
            (rig.fs, rig.garden) = (None, None);
            assert!(faulty.iter().map(|device| device.struck()).sum::<u64>() > 0, "{told}: nothing failed");
            // The superblocks of both places have different numbers, and the failed log is refused
            // alone.
            let numbers = superblock_numbers(&*devices[0]);
            assert_ne!(numbers[0], numbers[1], "{told}");
            if let [failed] = failing {
                let alone = Garden::open(&devices[..5], &devices[*failed], LIMITS).err();
                assert!(alone.is_some(), "{told}: the failed copy is accepted");
                let other = 11 - failed;
                let garden = Garden::open(&devices[..5], &devices[other], LIMITS)
                    .unwrap_or_else(|error| panic!("{told}: {error}"));
                assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
            }
            let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"));
            assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
            drop(garden);
            assert_eq!(findings(&devices), [""; 0], "{told}");
        }
    }
}

/// The numbers of the superblocks in both places of a drive.
fn superblock_numbers(drive: &dyn BlockDevice) -> [u64; 2] {
    [1, 3].map(|slot| {
        let mut bytes = [0; 8];
        drive.read_at(slot * 4160 + 32, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    })
}
