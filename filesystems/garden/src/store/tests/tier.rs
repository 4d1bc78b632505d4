//! Objects with wrong contents, and deleted volumes.

use std::sync::Arc;

use senesce_fsapi::{Caller, FileSystem};
use senesce_objects::MemoryObjects;

use super::{NAME, Small, findings, make};
use crate::{
    Accepted, Garden, Limits, ObjectGardening, VolumeOptions,
    aggregate::object_gardening::ObjectPass,
    store::{Filling, Tiering},
};

const ALL: Tiering = Tiering { age: 0, with_cached: true };

#[test]
fn block_twice_in_an_object_is_named_once() {
    let small = Small { groups: vec![3], stripes: 256, aa_stripes: 64, tetris_stripes: 16 };
    let (devices, garden, fs) = small.garden();
    fs.write(&Caller::default(), make(&fs, "file"), 0, &[7; 5 * 4096]).unwrap();
    garden.consistency_point().unwrap();
    let mut filling = Filling::default();
    {
        let mut store = garden.shared().lock();
        for _ in 0..2 {
            let done = store.collect_cold(0, 0, ALL, 1000, &mut filling).unwrap();
            assert_eq!((done.unread, done.next), (0, None));
        }
        assert_eq!(filling.blocks(), 10);
        let number = 0;
        store.reserve_object_numbers();
        assert_eq!(store.name_object(number, &filling).unwrap(), 5);
        assert_eq!(store.name_object(number + 1, &filling).unwrap(), 0);
    }
    garden.consistency_point().unwrap();
    assert_eq!(garden.cold().live, 5);
    assert_eq!(findings(&devices), [""; 0]);
}

#[test]
fn renamed_successor_of_a_volume_is_tiered() {
    let small = Small { groups: vec![3], stripes: 1024, aa_stripes: 64, tetris_stripes: 16 };
    let (devices, garden, fs) = small.garden();
    drop((garden, fs));
    let (log, drives) = devices.split_last().unwrap();
    let door = Arc::new(MemoryObjects::default());
    let garden = Garden::open_with(drives, log.clone(), Limits::default(), Some(door), Accepted::NOTHING).unwrap();
    let fill = |blocks: usize| {
        let fs = garden.volume(NAME).unwrap();
        let ino = make(&fs, "file");
        for block in 0..blocks {
            fs.write(&Caller::default(), ino, (block << 12) as u64, &[7; 4096]).unwrap();
        }
        garden.consistency_point().unwrap();
    };
    fill(1500);
    let (mut pass, wished) = (ObjectPass::default(), ObjectGardening { tiering: ALL, prices: None });
    assert!(!pass.step(&garden, &wished).unwrap().ended);
    let before = garden.cold().live;
    assert!((100..1500).contains(&before), "{before} blocks: the pass is within the volume");

    garden.delete_volume(NAME).unwrap();
    garden.create_volume(NAME, &VolumeOptions { blocks: 500, inodes: 64, seed: 2 }).unwrap();
    fill(20);
    let mut tiered = 0;
    for step in 0.. {
        let done = pass.step(&garden, &wished).unwrap();
        tiered += done.tiered;
        if done.ended {
            break;
        }
        assert!(step < 20, "the pass does not end");
    }
    assert_eq!(tiered, 20);
}
