//! Slots and their copies: damaged, unreadable, stale, or of other file systems.

use std::sync::Arc;

use senesce_block::{FaultDevice, MemoryDevice};
use senesce_core::Bytes;

use super::{
    super::superblock::tests::{example, forged},
    *,
};

fn device_with(generations: &[u64]) -> MemoryDevice {
    let device = MemoryDevice::new("disk", Bytes(64 << 20));
    for &generation in generations {
        write_superblock(&device, &Superblock { generation, ..example() }).unwrap();
    }
    device
}

fn refusal(device: &MemoryDevice) -> String {
    read_newest(device).unwrap_err().to_string()
}

/// Damages the block of a slot and that of its copy.
fn damage(device: &MemoryDevice, slot: usize) {
    for at in [SLOTS_AT[slot], MIRRORS_AT[slot]] {
        device.write_at(at + 40, &[1]).unwrap();
    }
}

#[test]
fn the_newer_valid_slot_counts() {
    assert_eq!(read_newest(&device_with(&[3, 4])).unwrap().generation, 4);
    assert_eq!(read_newest(&device_with(&[4, 5])).unwrap().generation, 5);
    let device = device_with(&[4, 5]);
    damage(&device, 1);
    assert_eq!(read_newest(&device).unwrap().generation, 4, "the newer one is damaged");
}

#[test]
fn damage_of_one_block_leaves_the_other_copy() {
    for at in SLOTS_AT.into_iter().chain(MIRRORS_AT) {
        let device = device_with(&[4, 5]);
        device.write_at(at + 40, &[1]).unwrap();
        let slots = read_slots(&device).unwrap();
        assert!(slots.torn().is_none() && slots.bad_copies.len() == 1, "{at}: {slots:?}");
        assert_eq!(read_newest(&device).unwrap().generation, 5, "{at}");
        device.write_at(at, &[0; BLOCK]).unwrap();
        assert_eq!(read_newest(&device).unwrap().generation, 5, "{at}");
    }
    assert_eq!(read_slots(&device_with(&[4, 5])).unwrap().bad_copies, []);
}

#[test]
fn the_newer_copy_of_a_slot_counts() {
    for stale in [SLOTS_AT[1], MIRRORS_AT[1]] {
        let device = device_with(&[4, 3]);
        let mut before = [0; BLOCK];
        device.read_at(stale, &mut before).unwrap();
        write_superblock(&device, &Superblock { generation: 5, ..example() }).unwrap();
        device.write_at(stale, &before).unwrap();
        assert_eq!(read_newest(&device).unwrap().generation, 5, "{stale}");
        assert_eq!(read_slots(&device).unwrap().bad_copies[0].1.field, "generation", "{stale}");
    }
}

#[test]
fn copies_of_another_file_system_are_ignored() {
    let device = device_with(&[4, 5]);
    write_superblock(&device, &Superblock { generation: 9, uuid: [1; 16], ..example() }).unwrap();
    let stale = device.fork();
    let device = device_with(&[4, 5]);
    let mut copy = [0; BLOCK];
    stale.read_at(MIRRORS_AT[1], &mut copy).unwrap();
    device.write_at(MIRRORS_AT[1], &copy).unwrap();
    assert_eq!(read_newest(&device).unwrap().generation, 5);
    device.write_at(SLOTS_AT[1] + 40, &[1]).unwrap();
    assert_eq!(read_newest(&device).unwrap().generation, 4, "the copy of another file system does not count");
    // Another file system may overwrite both slots.
    let device = device_with(&[4, 5]);
    SLOTS_AT.into_iter().for_each(|at| device.write_at(at, &[7; BLOCK]).unwrap());
    assert!(refusal(&device).contains("no evergreen file system"));
}

#[test]
fn unreadable_slots_leave_the_other_one() {
    for (faults, generation) in [
        (&["fail read at 0+4096", "fail read at 786432+4096"][..], Some(5)),
        (&["fail read at 1048576+4096", "fail read at 262144+4096"], Some(4)),
        (&["fail read at 1048576+4096"], Some(5)),
        (&["fail read 1"], Some(5)),
        (&["fail read 2"], Some(5)),
        (&["fail read 1.."], None),
    ] {
        let device = FaultDevice::new(Arc::new(device_with(&[4, 5])));
        faults.iter().for_each(|fault| device.inject(fault).unwrap());
        match read_newest(&device) {
            Ok(newest) => assert_eq!(Some(newest.generation), generation, "{faults:?}"),
            Err(error) => assert!(generation.is_none() && matches!(error, Error::Device(_)), "{faults:?}: {error}"),
        }
    }
    let device = FaultDevice::new(Arc::new(device_with(&[5])));
    device.inject("fail read at 1048576+4096").unwrap();
    device.inject("fail read at 262144+4096").unwrap();
    assert!(
        matches!(read_newest(&device), Err(Error::Device(_))),
        "zeros in the other slot do not prove an empty device"
    );
}

#[test]
fn either_slot_identifies_an_evergreen() {
    let device = device_with(&[5]);
    assert!(is_evergreen(&device) && !is_evergreen(&device_with(&[])));
    assert!(!is_evergreen(&MemoryDevice::new("disk", Bytes(512))));
    write_superblock(&device, &example()).unwrap();
    device.write_at(0, &[1; 4096]).unwrap();
    assert!(is_evergreen(&device));
}

#[test]
fn refusals_name_their_reason() {
    assert_eq!(
        refusal(&MemoryDevice::new("disk", Bytes(4096))),
        "disk: it has 4096 bytes; an evergreen has more than 1048576"
    );
    assert_eq!(refusal(&device_with(&[])), "disk: no evergreen file system: no superblock at 0, and none at 1 MiB");
    let device = device_with(&[4, 5]);
    device.write_at(SECOND_SLOT_AT, &forged(8, 7)[..]).unwrap();
    assert_eq!(refusal(&device), "disk: an evergreen of format version 7; this program reads versions 1 to 2");
    let device = device_with(&[4, 5]);
    damage(&device, 0);
    damage(&device, 1);
    assert!(refusal(&device).starts_with("disk: neither superblock can be read: at 0, superblock: checksum is"));
    clear_slots(&device).unwrap();
    assert!(refusal(&device).contains("no evergreen file system"));
    let device = device_with(&[4]);
    write_superblock(&device, &Superblock { generation: 5, uuid: [1; 16], ..example() }).unwrap();
    assert!(refusal(&device).ends_with("are of different file systems"));
}

#[test]
fn truncated_devices_are_refused() {
    let device = MemoryDevice::new("disk", Bytes(32 << 20));
    write_superblock(&device, &example()).unwrap();
    assert!(refusal(&device).ends_with("was made for 67108864: a part of it is missing"));
}
