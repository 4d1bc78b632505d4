//! The scrub finds and repairs all damage of one drive of a stripe.

use std::sync::Arc;

use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{
    FileSystem, Ino, ModelFs, NewNode,
    conformance::{collect_tree, find_difference},
};
use senesce_garden::{Garden, ScrubStep};

use crate::{
    damage::{filled, flip, forks, play, used},
    rig::{Devices, FIXED_SLOTS, Rig, SLOT, SMALL, TIGHT, VOLUME, caller, findings, open},
};

/// A whole pass, in steps.
fn scrub(garden: &Garden, stripes: u64) -> ScrubStep {
    let mut all = ScrubStep::default();
    loop {
        let step = garden.scrub_step(stripes).unwrap();
        all.repaired.extend(step.repaired);
        all.parity_repaired.extend(step.parity_repaired);
        all.lost.extend(step.lost);
        (all.done, all.of) = (step.done, step.of);
        if step.done == step.of {
            return all;
        }
    }
}

fn scrub_of(devices: &Devices) -> ScrubStep {
    scrub(&open(devices, TIGHT).unwrap(), 100)
}

fn check_data(devices: &Devices, told: &str) {
    let model = ModelFs::new(Bytes(Bytes::GIB));
    play(&model);
    let got = collect_tree(&open(devices, TIGHT).unwrap().volume(VOLUME).unwrap()).unwrap();
    assert_eq!(find_difference(&collect_tree(&model).unwrap(), &got), None, "{told}");
}

fn slot(device: &Arc<dyn BlockDevice>, offset: u64) -> Vec<u8> {
    let mut bytes = vec![0; SLOT as usize];
    device.read_at(offset, &mut bytes).unwrap();
    bytes
}

#[test]
fn scrub_passes_a_clean_aggregate_in_steps() {
    let devices = forks(&filled(&SMALL));
    let garden = open(&devices, TIGHT).unwrap();
    let done: Vec<u64> = (0..6).map(|_| garden.scrub_step(100).unwrap().done).collect();
    assert_eq!(done, [100, 200, 256, 100, 200, 256]);
    let report = garden.report().scrub;
    assert_eq!((report.passes, report.repaired, report.parity_repaired, report.lost), (2, 0, 0, 0));
    assert_eq!(findings(&devices), [""; 0]);
}

#[test]
fn lost_torn_or_misdirected_block_is_repaired() {
    let at_rest = filled(&SMALL);
    let places = used(&forks(&at_rest));
    for (number, &(drive, offset)) in places.iter().enumerate().step_by(3) {
        let devices = forks(&at_rest);
        let other = places[(number + 17) % places.len()];
        let (good, elsewhere) = (slot(&devices[drive], offset), slot(&devices[other.0], other.1));
        let bad = match number / 3 % 4 {
            0 => vec![0; SLOT as usize],
            1 => elsewhere,
            2 => [&elsewhere[..2048], &good[2048..]].concat(),
            _ => good.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == number % 4160)).collect(),
        };
        devices[drive].write_at(offset, &bad).unwrap();
        let told = format!("block at {offset} of drive {drive}, damage {}", number / 3 % 4);
        let found = scrub_of(&devices);
        let place = format!("drive {drive}, stripe {} of RAID group 0", offset / SLOT - FIXED_SLOTS);
        let places: Vec<&str> = found.repaired.iter().map(|finding| &finding.place[..]).collect();
        // Opening repairs the blocks that it reads.
        assert!(places == [&place[..]] || places.is_empty(), "{told}: {found:?}");
        assert_eq!((found.lost.len(), found.parity_repaired.len()), (0, 0), "{told}: {found:?}");
        assert_eq!(slot(&devices[drive], offset), good, "{told}");
        assert_eq!(findings(&devices), [""; 0], "{told}");
    }
}

#[test]
fn drive_of_zeros_is_repaired_block_by_block() {
    let at_rest = filled(&SMALL);
    for drive in 0..4 {
        let devices = forks(&at_rest);
        let stripes = vec![0; 256 * SLOT as usize];
        devices[drive].write_at(FIXED_SLOTS * SLOT, &stripes).unwrap();
        let found = scrub_of(&devices);
        assert_eq!(found.lost, [], "drive {drive}");
        assert!(found.repaired.len() + found.parity_repaired.len() > 20, "drive {drive}");
        assert_eq!(findings(&devices), [""; 0], "drive {drive}");
        check_data(&devices, &format!("drive {drive}"));
    }
}

#[test]
fn wrong_parity_is_written_again() {
    let at_rest = filled(&SMALL);
    let places = used(&forks(&at_rest));
    for (_, offset) in places.into_iter().step_by(7) {
        let devices = forks(&at_rest);
        flip(&devices[3], offset + 1234);
        let found = scrub_of(&devices);
        let stripe = offset / SLOT - FIXED_SLOTS;
        let told: Vec<String> = found.parity_repaired.iter().map(ToString::to_string).collect();
        let want = format!(
            "drive 3, stripe {stripe} of RAID group 0: stripe: parity is a difference at byte 1234, expected none"
        );
        assert_eq!(told, [want]);
        assert_eq!((found.repaired, found.lost), (vec![], vec![]));
        assert_eq!(findings(&devices), [""; 0]);
    }
}

#[test]
fn two_damages_in_a_stripe_are_reported() {
    let at_rest = filled(&SMALL);
    let places = used(&forks(&at_rest));
    let mut tried = 0;
    for &(drive, offset) in places.iter().step_by(5) {
        let devices = forks(&at_rest);
        // A used data block, and another one or the parity of the same stripe. Cases in which
        // opening fails are skipped.
        let other = places.iter().find(|(at, there)| *at > drive && *there == offset).map_or(3, |(at, _)| *at);
        flip(&devices[drive], offset + 9);
        flip(&devices[other], offset + 8);
        let Ok(garden) = open(&devices, TIGHT) else { continue };
        let before: Vec<Vec<u8>> = devices[..4].iter().map(|device| slot(device, offset)).collect();
        let step = garden.scrub_step(1000);
        let Ok(found) = step else { continue };
        tried += 1;
        let stripe = offset / SLOT - FIXED_SLOTS;
        let place = format!("drive {drive}, stripe {stripe} of RAID group 0");
        assert!(found.lost.iter().any(|finding| finding.place == place), "{place}: {found:?}");
        assert_eq!((found.repaired, found.parity_repaired), (vec![], vec![]), "{place}");
        let after: Vec<Vec<u8>> = devices[..4].iter().map(|device| slot(device, offset)).collect();
        assert!(before == after, "{place}");
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn faulty_writes_are_repaired() {
    let run = |faults: &dyn Fn(u64) -> String, drive: usize| {
        let devices: Vec<Arc<FaultDevice<MemoryDevice>>> =
            filled(&SMALL).into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
        let all: Devices = devices.iter().map(|device| device.clone() as _).collect();
        let mut rig = Rig::closed(all.clone(), TIGHT);
        rig.open().unwrap();
        let ino = rig.fs().make_node(&caller(3), Ino::ROOT, b"new", &NewNode::file(0o600)).unwrap().ino;
        rig.fs().write(&caller(3), ino, 0, &[3; 90_000]).unwrap();
        let written = devices[drive].requests(senesce_block::BlockOperation::Write);
        devices[drive].inject(&faults(written + 1)).unwrap();
        rig.garden().consistency_point().unwrap();
        devices[drive].heal();
        let told = format!("drive {drive}: {}", faults(written + 1));
        assert!(devices[drive].struck() > 0, "{told}");
        let want = collect_tree(rig.fs()).unwrap();
        let found = scrub(rig.garden(), 50);
        assert_eq!(found.lost, [], "{told}");
        // Reads before the scrub repaired the blocks that they read.
        let repaired = found.repaired.len() as u64 + rig.garden().report().raid.repairs;
        assert!(repaired + found.parity_repaired.len() as u64 > 0, "{told}");
        assert_eq!(findings(&all), [""; 0], "{told}");
        rig.open().unwrap();
        assert_eq!(find_difference(&want, &collect_tree(rig.fs()).unwrap()), None, "{told}");
    };
    for drive in 0..4 {
        run(&|next| format!("lose write {next}"), drive);
        run(&|next| format!("tear write {next} keep 1024"), drive);
        run(&|next| format!("misdirect write {next} to {}", (FIXED_SLOTS + 130) * SLOT), drive);
        run(&|next| format!("flip write {next} bit 40000"), drive);
    }
}

#[test]
fn labels_and_superblocks_are_repaired() {
    let at_rest = filled(&SMALL);
    for (drive, place) in (0..4).flat_map(|drive| (0..4).map(move |place| (drive, place))) {
        let devices = forks(&at_rest);
        let garden = open(&devices, TIGHT).unwrap();
        flip(&devices[drive], place * SLOT + 50);
        let found = scrub(&garden, 1000);
        assert_eq!(found.repaired.len(), 1, "{found:?}");
        assert!(found.repaired[0].place.ends_with(&format!("of drive {drive}")), "{found:?}");
        drop(garden);
        assert_eq!(findings(&devices), [""; 0], "drive {drive}, slot {place}");
    }
}

#[test]
fn drive_with_a_read_error_is_taken_out() {
    let devices: Vec<Arc<FaultDevice<MemoryDevice>>> =
        filled(&SMALL).into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
    let all: Devices = devices.iter().map(|device| device.clone() as _).collect();
    let (drive, offset) = used(&all)[30];
    let garden = open(&all, TIGHT).unwrap();
    devices[drive].inject(&format!("fail read at {offset}+1")).unwrap();
    let found = scrub(&garden, 1000);
    assert_eq!(found.lost, []);
    assert_eq!(garden.report().missing_drives, [drive as u32]);
    drop(garden);
    check_data(&[&all[..drive], &all[drive + 1..]].concat(), "without it");
}

#[test]
fn damage_without_a_drive_is_reported() {
    let all = forks(&filled(&SMALL));
    let (_, offset) = used(&all).into_iter().rfind(|(drive, _)| *drive == 1).unwrap();
    let left: Devices = [&all[..2], &all[3..]].concat();
    let garden = open(&left, TIGHT).unwrap();
    flip(&all[1], offset + 60);
    let found = scrub(&garden, 1000);
    assert_eq!((found.repaired.len(), found.parity_repaired.len()), (0, 0));
    let place = format!("drive 1, stripe {} of RAID group 0", offset / SLOT - FIXED_SLOTS);
    assert!(found.lost.iter().any(|finding| finding.place == place), "{found:?}");
    assert_eq!(garden.report().scrub.lost, found.lost.len() as u64);
}
