//! Writes that a drive acknowledged and lost, in stripes that are written again before anything
//! reads the lost blocks.

use std::collections::HashMap;

use senesce_block::MemoryDevice;
use senesce_core::Bytes;
use senesce_fsapi::{
    FileSystem, Ino, ModelFs, NewNode,
    conformance::{Tree, collect_tree, find_difference, set_root},
};

use crate::{
    damage::{forks, used},
    rig::{Devices, Rig, SLOT, Shape, TIGHT, VOLUME, caller, findings, open, shared},
};

/// So small that freed blocks are soon reused.
const NARROW: Shape = Shape { groups: &[(4, true)], media: &[], stripes: 130, log_bytes: 400 << 10 };

fn file(fs: &dyn FileSystem, name: &str, blocks: usize, byte: u8) {
    let ino = match fs.lookup(Ino::ROOT, name.as_bytes()) {
        Ok(found) => found.ino,
        Err(_) => fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino,
    };
    fs.write(&caller(1), ino, 0, &vec![byte; blocks * 4096]).unwrap();
}

/// Makes files and removes every second one, so that the stripes have holes.
fn begin(fs: &dyn FileSystem) {
    set_root(fs).unwrap();
    (0..40).for_each(|number| file(fs, &format!("file {number}"), 1 + number % 5, number as u8 + 1));
    for number in (0..40).step_by(2) {
        fs.unlink(&caller(2), Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
    }
}

/// Fills some holes in each consistency point. A file is overwritten, so that blocks of the last
/// point become free.
fn go_on(fs: &dyn FileSystem, mut consistency_point: impl FnMut()) {
    for number in 0..12 {
        file(fs, &format!("new {number}"), 1 + number % 4, 100 + number as u8);
        file(fs, "file 3", 4, 200 + number as u8);
        consistency_point();
    }
}

fn slot(devices: &Devices, (drive, offset): (usize, u64)) -> Vec<u8> {
    let mut bytes = vec![0; SLOT as usize];
    devices[drive].read_at(offset, &mut bytes).unwrap();
    bytes
}

fn copies(devices: &Devices) -> Vec<MemoryDevice> {
    let copy = |device: &std::sync::Arc<dyn senesce_block::BlockDevice>| {
        let mut bytes = vec![0; device.size().0 as usize];
        device.read_at(0, &mut bytes).unwrap();
        let copy = MemoryDevice::new(device.name(), device.size());
        senesce_block::BlockDevice::write_at(&copy, 0, &bytes).unwrap();
        copy
    };
    devices.iter().map(copy).collect()
}

fn tree_after() -> Tree {
    let model = ModelFs::new(Bytes(Bytes::GIB));
    begin(&model);
    go_on(&model, || {});
    collect_tree(&model).unwrap()
}

/// Slots by drive and offset.
type Older = HashMap<(usize, u64), Vec<u8>>;

/// An aggregate at rest, and the earlier contents of its slots: an intact outdated block, or zeros.
fn aged() -> (Vec<MemoryDevice>, Older) {
    let rig = Rig::on(&NARROW, shared(NARROW.devices()), TIGHT);
    let mut older = Older::new();
    for round in 0..6 {
        (0..40).for_each(|number| file(rig.fs(), &format!("file {number}"), 1 + number % 5, round));
        rig.garden().consistency_point().unwrap();
        for place in used(&rig.devices) {
            older.insert(place, slot(&rig.devices, place));
        }
    }
    (0..40).for_each(|number| {
        rig.fs().unlink(&caller(2), Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
    });
    begin(rig.fs());
    rig.garden().consistency_point().unwrap();
    (copies(&rig.devices), older)
}

#[test]
fn lost_write_is_repaired_after_rewriting_its_stripe() {
    let (at_rest, older) = aged();
    let want = tree_after();
    let (mut tried, mut put_right) = (0, 0);
    for (number, place) in used(&forks(&at_rest)).into_iter().enumerate() {
        let devices = forks(&at_rest);
        let good = slot(&devices, place);
        let nothing = vec![0; SLOT as usize];
        let stale = older.get(&place).filter(|old| number % 2 == 0 && **old != good).unwrap_or(&nothing);
        devices[place.0].write_at(place.1, stale).unwrap();
        let told = format!("block at {} of drive {}", place.1, place.0);
        let garden = open(&devices, TIGHT).unwrap_or_else(|error| panic!("{told}: {error}"));
        let fs = garden.volume(VOLUME).unwrap();
        go_on(&fs, || garden.consistency_point().unwrap_or_else(|error| panic!("{told}: {error}")));
        tried += 1;
        put_right += garden.report().raid.repairs;
        drop((garden, fs));
        let garden = open(&devices, TIGHT).unwrap_or_else(|error| panic!("{told}: {error}"));
        let tree = collect_tree(&garden.volume(VOLUME).unwrap()).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(find_difference(&want, &tree), None, "{told}");
        // A scrub finds and repairs the blocks that nothing read.
        assert_eq!(garden.scrub_step(1000).unwrap().lost, [], "{told}");
        assert_eq!(findings(&devices), [""; 0], "{told}");
    }
    assert!(tried > 70 && put_right > 10, "{put_right} of {tried} blocks were repaired by reads");
}
