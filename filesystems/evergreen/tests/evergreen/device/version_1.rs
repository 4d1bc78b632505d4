//! An evergreen of format version 1, as a program of that time wrote it. It must stay readable.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_evergreen::{EvergreenFs, FsOptions, ModelStore, check, disk::read_newest, repair};
use senesce_fsapi::{
    Caller, FileSystem, Ino, NewNode, SetXattrMode, Timestamp,
    conformance::{Tree, collect_tree, find_difference},
};

use super::rig::LITTLE;

const BLOCK: usize = 4096;
const DEVICE_BYTES: u64 = 4 << 20;

/// The blocks that are not zero: each has its number (u32), the count of its bytes up to the last
/// nonzero one (u16), and the bytes.
const IMAGE: &[u8] = include_bytes!("version-1.blocks");

/// The contents of the image: directories, files, links and attributes on a tree of three levels.
/// The last three calls are in the log.
fn fill(fs: &dyn FileSystem, checkpoint: &dyn Fn(), sync: &dyn Fn()) {
    let caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };
    for number in 0..4u64 {
        let name = format!("directory {number}");
        let directory = fs.make_node(&caller, Ino::ROOT, name.as_bytes(), &NewNode::directory(0o755)).unwrap().ino;
        for number in 0..8u64 {
            let made =
                fs.make_node(&caller, directory, format!("file {number}").as_bytes(), &NewNode::file(0o644)).unwrap();
            fs.write(&caller, made.ino, 0, &vec![made.ino.0 as u8 | 1; (number * 700) as usize]).unwrap();
            if number == 3 {
                fs.set_xattr(&caller, made.ino, b"user.note", &[7; 300], SetXattrMode::Any).unwrap();
                fs.link(&caller, made.ino, Ino::ROOT, format!("{name} link").as_bytes()).unwrap();
            }
        }
        fs.symlink(&caller, directory, b"symlink", b"to somewhere").unwrap();
        checkpoint();
    }
    for number in 0..3 {
        fs.make_node(&caller, Ino::ROOT, format!("late {number}").as_bytes(), &NewNode::file(0o600)).unwrap();
        sync();
    }
}

fn image() -> MemoryDevice {
    let device = MemoryDevice::new("disk", Bytes(DEVICE_BYTES));
    let mut rest = IMAGE;
    while let Some((head, tail)) = rest.split_at_checked(6) {
        let number = u32::from_le_bytes(head[..4].try_into().unwrap());
        let (bytes, next) = tail.split_at(u16::from_le_bytes(head[4..].try_into().unwrap()).into());
        let mut block = [0; BLOCK];
        block[..bytes.len()].copy_from_slice(bytes);
        device.write_at(u64::from(number) * BLOCK as u64, &block).unwrap();
        rest = next;
    }
    device
}

fn wanted() -> Tree {
    let fs = EvergreenFs::format(ModelStore::new(u64::MAX, 0), FsOptions::default()).unwrap();
    fill(&fs, &|| {}, &|| {});
    collect_tree(&fs).unwrap()
}

#[test]
fn version_1_is_read_and_written() {
    let device: Arc<dyn BlockDevice> = Arc::new(image());
    let report = check(&device).unwrap();
    assert!(report.is_clean() && report.log_batches > 0 && report.levels > 2, "{report:?}");
    assert!(report.copies.single == 0 && report.copies.torn.is_empty(), "{report:?}");
    let tree =
        |device: &Arc<dyn BlockDevice>| collect_tree(&EvergreenFs::open_on(device.clone(), LITTLE).unwrap()).unwrap();
    assert_eq!(find_difference(&wanted(), &tree(&device)), None);
    let fs = EvergreenFs::open_on(device.clone(), LITTLE).unwrap();
    let caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };
    for number in 0..40 {
        fs.make_node(&caller, Ino::ROOT, format!("later {number}").as_bytes(), &NewNode::file(0o600)).unwrap();
        if number == 30 {
            fs.store().checkpoint().unwrap();
        }
    }
    fs.sync_all().unwrap();
    let want = collect_tree(&fs).unwrap();
    drop(fs);
    let written = check(&device).unwrap();
    assert!(written.is_clean() && written.log_batches > 0, "{written:?}");
    let superblock = read_newest(&*device).unwrap();
    assert_eq!((superblock.version, superblock.map.second.len()), (1, 0));
    let mut copy = [0; BLOCK];
    for at in [256 << 10, 768 << 10] {
        device.read_at(at, &mut copy).unwrap();
        assert_eq!(copy, [0; BLOCK], "a superblock has no copy");
    }
    assert_eq!(find_difference(&want, &tree(&device)), None);
}

#[test]
fn version_1_is_repaired() {
    let device: Arc<dyn BlockDevice> = Arc::new(image());
    let superblock = read_newest(&*device).unwrap();
    let map_at = superblock.geometry.unit_at(superblock.map.extents[0].first);
    device.write_at(map_at, &[0x5a; BLOCK]).unwrap();
    assert!(EvergreenFs::open_on(device.clone(), LITTLE).is_err());
    let report = repair(&device, false).unwrap();
    assert!(report.is_done && !report.has_lost(), "{report:#?}");
    let fs = EvergreenFs::open_on(device.clone(), LITTLE).unwrap();
    assert_eq!(find_difference(&wanted(), &collect_tree(&fs).unwrap()), None);
}
