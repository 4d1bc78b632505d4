//! Copies of the log without readable labels: their contents count, and the engine accepts no other
//! device as a copy.

use std::sync::Arc;

use senesce_block::{BlockDevice, CrashPlan, MemoryDevice, Recording};
use senesce_core::{Bytes, Seed};
use senesce_fsapi::{
    FileSystem, Ino, NewNode,
    conformance::{Tree, collect_tree, find_difference},
};
use senesce_garden::{Accepted, Garden, LogDevices};

use crate::{
    mirror::{End, LIMITS, SHAPE, fork, leave, tree},
    mirror_faults::spoil_labels,
    rig::{Devices, VOLUME, caller, findings, shared},
};

/// Makes a file and returns the tree. The garden is dropped, not closed.
fn add(garden: Garden, name: &str) -> Tree {
    let fs = garden.volume(VOLUME).unwrap();
    fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap();
    collect_tree(&fs).unwrap()
}

fn open(drives: &[Arc<dyn BlockDevice>], logs: impl Into<LogDevices>, told: &str) -> Garden {
    Garden::open(drives, logs, LIMITS).unwrap_or_else(|error| panic!("{told}: {error}"))
}

fn refuse(drives: &[Arc<dyn BlockDevice>], log: &Arc<dyn BlockDevice>, told: &str) {
    let error = Garden::open(drives, log, LIMITS).err().unwrap_or_else(|| panic!("{told}: opened")).to_string();
    assert!(error.contains("replaced by") || error.contains("older than") || error.contains("perhaps"), "{error}");
}

#[test]
fn only_copy_without_labels_is_read() {
    for (end, old, new) in [(End::Killed, 5, 6), (End::Killed, 6, 5), (End::Closed, 5, 6)] {
        let told = format!("{end:?}: device {new} without labels");
        let left = leave(SHAPE.mirrored(), end);
        let all = fork(&left.devices);
        let drives = &all[..5];
        spoil_labels(&*all[new]);
        let garden = open(drives, &all[new], &told);
        assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
        let want = add(garden, "acknowledged");
        refuse(drives, &all[old], &told);
        // It serves alone again, and the old copy is filled, in either order of the devices.
        assert_eq!(find_difference(&want, &tree(&open(drives, &all[new], &told))), None, "{told}");
        let copies = match end {
            End::Killed => vec![all[old].clone(), all[new].clone()],
            End::Closed => vec![all[new].clone(), all[old].clone()],
        };
        let garden = open(drives, copies, &told);
        assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
        assert_eq!(garden.report().log.whole, 2, "{told}");
        drop(garden);
        assert_eq!(findings(&all), [""; 0], "{told}");
        assert_eq!(find_difference(&want, &tree(&open(drives, &all[old], &told))), None, "{told}");
    }
}

/// Leaves a log whose second copy was replaced by another device. Returns all devices, the new one,
/// and the tree.
fn leave_replaced() -> (Devices, Arc<dyn BlockDevice>, Tree) {
    let all = fork(&leave(SHAPE.mirrored(), End::Killed).devices);
    let new = shared(vec![MemoryDevice::new("log new", Bytes(SHAPE.log_bytes))]).remove(0);
    let garden = open(&all[..5], LogDevices::from(&all[5]).with_spare(new.clone()), "a spare");
    let want = add(garden, "later");
    (all, new, want)
}

#[test]
fn replaced_copy_without_labels_is_not_preferred() {
    let (all, new, want) = leave_replaced();
    let drives = &all[..5];
    spoil_labels(&*all[6]);
    let garden = open(drives, vec![all[5].clone(), all[6].clone()], "beside the other");
    assert_eq!(find_difference(&want, &tree(&garden)), None);
    assert_eq!(garden.report().log.whole, 2);
    let want = add(garden, "acknowledged");
    refuse(drives, &new, "the successor");
    assert_eq!(find_difference(&want, &tree(&open(drives, &all[6], "alone"))), None);
}

#[test]
fn copy_accepted_without_labels_refuses_its_predecessor() {
    let (all, new, want) = leave_replaced();
    let drives = &all[..5];
    spoil_labels(&*new);
    refuse(drives, &new, "without labels");
    let garden = Garden::open_with(drives, &new, LIMITS, None, Accepted::OPERATIONS).unwrap();
    assert_eq!(find_difference(&want, &tree(&garden)), None);
    let want = add(garden, "acknowledged");
    refuse(drives, &all[5], "the copy that was not given");
    refuse(drives, &all[6], "the copy that was replaced");
    assert_eq!(find_difference(&want, &tree(&open(drives, &new, "alone"))), None);
}

/// Opens the only copy without labels, loses power after each write of that, and then opens either
/// device.
#[test]
fn power_lost_while_writing_missing_labels() {
    for (is_beside, old) in [(false, 5), (false, 6), (true, 5)] {
        let left = leave(SHAPE.mirrored(), End::Killed);
        let mut devices: Vec<MemoryDevice> = left.devices.iter().map(MemoryDevice::fork).collect();
        spoil_labels(&devices[11 - old]);
        devices.swap(5, old);
        let away = devices[5].fork();
        let new = devices.remove(6);
        devices.push(new);
        if !is_beside {
            devices.remove(5);
        }
        let last = devices.len() - 1;
        let (recording, recorded) = Recording::new(devices);
        let recorded = shared(recorded);
        drop(open(&recorded[..5], recorded[5..].to_vec(), "at first"));
        let plan = CrashPlan { exhaustive_up_to: 1, samples: 1, tears: 1, seed: Seed(5) };
        let (mut states, mut believed) = (0, 0);
        recording.for_each_crash(&plan, |crash| {
            states += 1;
            let told = format!("beside: {is_beside}, old {old}: {crash}");
            let ends = || {
                let devices = fork(&crash.devices);
                let away = if is_beside { devices[5].clone() } else { shared(vec![away.fork()]).remove(0) };
                (devices[..5].to_vec(), away, devices[last].clone())
            };
            // The device without labels, alone.
            let (drives, away, new) = ends();
            let garden = open(&drives, &new, &told);
            assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}");
            let want = add(garden, "acknowledged");
            refuse(&drives, &away, &told);
            let garden = open(&drives, vec![away, new], &told);
            assert_eq!(find_difference(&want, &tree(&garden)), None, "{told}");
            assert_eq!(garden.report().log.whole, 2, "{told}");
            // The other device alone, as long as it has everything.
            let (drives, away, new) = ends();
            match Garden::open(&drives, &away, LIMITS) {
                Ok(garden) => {
                    believed += 1;
                    assert_eq!(find_difference(&left.all, &tree(&garden)), None, "{told}: the old copy");
                    let want = add(garden, "acknowledged");
                    refuse(&drives, &new, &told);
                    let both = open(&drives, vec![new, away], &told);
                    assert_eq!(find_difference(&want, &tree(&both)), None, "{told}: both");
                }
                Err(_) => assert!(!is_beside, "{told}: the known copy is refused"),
            }
        });
        assert!(states > 20 && believed > 4, "{states} states, the old copy is accepted in {believed}");
        assert_eq!(believed == states, is_beside, "{believed} of {states} states");
    }
}
