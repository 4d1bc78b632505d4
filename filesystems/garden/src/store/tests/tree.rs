//! The cache when devices fail.

use std::sync::Arc;

use senesce_block::{BlockDevice, FaultDevice, MemoryDevice};
use senesce_fsapi::{Caller, FileSystem};

use super::{Devices, Small, make, open};
use crate::{
    format::BLOCK,
    store::{Key, volume},
};

/// A copy of a device that can be made to fail.
fn make_faulty(device: &dyn BlockDevice) -> Arc<FaultDevice<MemoryDevice>> {
    let mut bytes = vec![0; device.size().0 as usize];
    device.read_at(0, &mut bytes).unwrap();
    let copy = MemoryDevice::new(device.name(), device.size());
    copy.write_at(0, &bytes).unwrap();
    Arc::new(FaultDevice::new(copy))
}

#[test]
fn failed_replacement_leaves_the_block_unchanged() {
    let small = Small { groups: vec![3], stripes: 512, aa_stripes: 64, tetris_stripes: 16 };
    let (devices, garden, fs) = small.garden();
    let ino = make(&fs, "file");
    fs.write(&Caller::default(), ino, 0, &[7; 2 * BLOCK]).unwrap();
    garden.consistency_point().unwrap();
    drop(garden);

    let faulty: Vec<_> = devices.iter().map(|device| make_faulty(device)).collect();
    let devices: Devices = faulty.iter().map(|device| device.clone() as _).collect();
    let garden = open(&devices);
    let store = &mut *garden.shared().lock();
    // The inode is in memory. The pointers above it are not, and must become dirty before the
    // block.
    store.inode(0, ino.0).unwrap();
    let above = Key::new(0, volume::INODES, 1, 0);
    assert!(store.cache.contains(above) && !store.is_dirty(above));
    store.cache.remove(above);
    faulty.iter().for_each(|device| device.inject("fail read 1..").unwrap());
    store.touched = false;
    store.write_file(0, ino.0, 0, &[9; BLOCK][..]).unwrap_err();
    assert!(!store.touched);
    faulty.iter().for_each(|device| device.heal());
    let mut got = [0; BLOCK];
    store.read_file(0, ino.0, 0, &mut got).unwrap();
    assert_eq!(got, [7; BLOCK]);
}
