//! The requests to the store: writes need no reads, and operations on large objects are cheap.

use std::ops::ControlFlow;

use senesce_core::{Rng, Seed};
use senesce_evergreen::disk::KeyOrder;
use senesce_fsapi::{
    Caller, FallocateMode, FileSystem, Ino, NewNode, RenameMode, SetAttributes,
    conformance::{Subject, resolve},
};

use super::{
    rig::Rig,
    watched::{Asked, Keeps, Watched},
};

fn rig(keeps: Keeps) -> Rig<Watched> {
    Rig::new(Watched::new(keeps), KeyOrder::BirthPath)
}

const CALLER: Caller = Caller { uid: 0, gid: 0, now: senesce_fsapi::Timestamp { seconds: 9, nanoseconds: 9 } };

#[test]
fn writes_to_a_file_without_holes_read_nothing() {
    let mut rig = rig(Keeps::Entries);
    let file = rig.fs().make_node(&CALLER, Ino::ROOT, b"f", &NewNode::file(0o644)).unwrap().ino;
    rig.fs().store().take();
    let mut want = vec![7; 1_000_003];
    rig.fs().write(&CALLER, file, 0, &want).unwrap();
    assert_eq!(rig.fs().store().take(), Asked { batches: 1, changes: 246, ..Asked::default() });
    rig.reopen().unwrap();
    assert_eq!(rig.fs().lookup(Ino::ROOT, b"f").unwrap().ino, file);
    rig.fs().store().take();
    let mut rng = Rng::for_purpose(Seed(1), "blind writes");
    for _ in 0..2000 {
        let len = 1 + rng.below(8).pow(4) as usize;
        let offset = rng.below(want.len() as u64 + 1) as usize;
        let data: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        rig.fs().write(&CALLER, file, offset as u64, &data).unwrap();
        want.resize(want.len().max(offset + len), 0);
        want[offset..offset + len].copy_from_slice(&data);
        if rng.chance(1, 50) {
            let size = want.len() - rng.below(5000) as usize;
            let change = SetAttributes { size: Some(size as u64), ..SetAttributes::default() };
            rig.fs().set_attributes(&CALLER, file, &change).unwrap();
            want.truncate(size);
        }
    }
    let asked = rig.fs().store().take();
    assert_eq!((asked.gets, asked.scans), (0, 0));
    let mut got = vec![0; want.len() + 1];
    assert_eq!(rig.fs().read(file, 0, &mut got).unwrap(), want.len());
    assert!(got[..want.len()] == want);
    rig.check().unwrap();
}

#[test]
fn large_files_are_removed_by_few_changes() {
    const MIB: usize = 1 << 20;
    let rig = rig(Keeps::NoBlocks);
    let file = rig.fs().make_node(&CALLER, Ino::ROOT, b"f", &NewNode::file(0o644)).unwrap().ino;
    let before = rig.fs().space().unwrap();
    let data = vec![1; 4 * MIB];
    for piece in 0..1024 {
        assert_eq!(rig.fs().write(&CALLER, file, (piece * data.len()) as u64, &data).unwrap(), data.len());
    }
    // Free blocks are counted with longer keys than those of this file.
    assert!(before.free - rig.fs().space().unwrap().free >= 1_020_000);
    rig.fs().store().take();
    let change = SetAttributes { size: Some(2 << 30 | 1), ..SetAttributes::default() };
    rig.fs().set_attributes(&CALLER, file, &change).unwrap();
    rig.fs().allocate(&CALLER, file, FallocateMode::Punch, 100, 1 << 30).unwrap();
    assert_eq!(rig.fs().store().take(), Asked { batches: 2, changes: 7, ..Asked::default() });
    rig.fs().unlink(&CALLER, Ino::ROOT, b"f").unwrap();
    let asked = rig.fs().store().take();
    assert!(asked.batches == 1 && asked.changes <= 5 && asked.gets + asked.scanned <= 2, "{asked:?}");
    assert_eq!(rig.fs().store().entries().len(), 4, "the root, its home, the layout, the next number");
    let after = rig.fs().space().unwrap();
    assert!(after.free >= before.free, "{} blocks were free, and {} are", before.free, after.free);
}

#[test]
fn renaming_a_directory_ignores_its_contents() {
    let mut asked = Vec::new();
    for files in [1, 1000] {
        let mut rig = rig(Keeps::Entries);
        let fs = rig.fs();
        let [from, to] = [b"from", b"to\0\0"].map(|name| {
            let name = name.split(|&byte| byte == 0).next().unwrap();
            fs.make_node(&CALLER, Ino::ROOT, name, &NewNode::directory(0o755)).unwrap().ino
        });
        let moved = fs.make_node(&CALLER, from, b"moved", &NewNode::directory(0o755)).unwrap().ino;
        for file in 0..files {
            let name = format!("file {file}");
            let file = fs.make_node(&CALLER, moved, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
            fs.write(&CALLER, file, 0, b"content").unwrap();
        }
        fs.store().take();
        fs.rename(&CALLER, (from, b"moved"), (to, b"there"), RenameMode::Replace).unwrap();
        asked.push(fs.store().take());
        rig.check().unwrap();
        rig.reopen().unwrap();
        assert!(resolve(rig.fs(), b"to/there/file 0").is_ok());
    }
    assert_eq!(asked[0], asked[1]);
    assert!(asked[0].batches == 1 && asked[0].changes <= 5, "{asked:?}");
}

#[test]
fn inodes_in_use_are_not_read_again() {
    let rig = rig(Keeps::Entries);
    let fs = rig.fs();
    let directory = fs.make_node(&CALLER, Ino::ROOT, b"d", &NewNode::directory(0o755)).unwrap().ino;
    let file = fs.make_node(&CALLER, directory, b"f", &NewNode::file(0o644)).unwrap().ino;
    fs.store().take();
    for ino in [Ino::ROOT, directory, file] {
        fs.attributes(ino).unwrap();
        fs.set_attributes(&CALLER, ino, &SetAttributes { uid: Some(5), ..SetAttributes::default() }).unwrap();
        fs.open(ino).unwrap();
        fs.release(ino, CALLER.now).unwrap();
        assert!(fs.list_xattrs(ino).unwrap().is_empty());
    }
    fs.lookup(directory, b"..").unwrap();
    let asked = fs.store().take();
    assert_eq!((asked.gets, asked.scans), (0, 0), "{asked:?}");
    fs.lookup(directory, b"f").unwrap();
    let asked = fs.store().take();
    assert_eq!((asked.gets, asked.scans), (1, 0), "{asked:?}: the name alone");
    fs.sync(file).unwrap();
    fs.sync_all().unwrap();
    assert_eq!(fs.store().take(), Asked { syncs: 2, ..Asked::default() });
}

#[test]
fn listed_inodes_are_loaded_by_one_read() {
    let mut rig = rig(Keeps::Entries);
    for number in 0..100 {
        rig.fs().make_node(&CALLER, Ino::ROOT, &[b'a' + number], &NewNode::file(0o644)).unwrap();
    }
    rig.fs()
        .rename(&CALLER, (Ino::ROOT, b"c"), (Ino::ROOT, b"a name that it was not born with"), RenameMode::Replace)
        .unwrap();
    rig.reopen().unwrap();
    let (fs, mut listed) = (rig.fs(), Vec::new());
    fs.read_dir(Ino::ROOT, 0, &mut |entry| {
        listed.push(entry.ino);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(listed.len(), 100);
    fs.store().take();
    for ino in listed {
        fs.open(ino).unwrap();
        fs.attributes(ino).unwrap();
        fs.release(ino, CALLER.now).unwrap();
    }
    assert_eq!(fs.store().take(), Asked { gets: 100, ..Asked::default() });
}

#[test]
fn moved_small_file_is_read_by_its_keys() {
    let rig = rig(Keeps::Entries);
    let fs = rig.fs();
    let directory = fs.make_node(&CALLER, Ino::ROOT, b"d", &NewNode::directory(0o755)).unwrap().ino;
    let file = fs.make_node(&CALLER, directory, b"new", &NewNode::file(0o644)).unwrap().ino;
    fs.write(&CALLER, file, 0, &[5; 9000]).unwrap();
    fs.store().take();
    fs.rename(&CALLER, (directory, b"new"), (directory, b"file"), RenameMode::Replace).unwrap();
    let asked = fs.store().take();
    assert_eq!((asked.gets, asked.scans, asked.scanned), (3, 2, 2), "three blocks; each name and its successor");
    let target = fs.symlink(&CALLER, directory, b"link", &[b't'; 4095]).unwrap().ino;
    fs.rename(&CALLER, (directory, b"link"), (Ino::ROOT, b"there"), RenameMode::Replace).unwrap();
    assert_eq!(fs.read_link(target).unwrap(), [b't'; 4095]);
}

/// The paths whose files have blocks, in the order of the keys of the blocks.
fn order_of_blocks(fs: &senesce_evergreen::EvergreenFs<Watched>) -> Vec<u8> {
    let entries = fs.store().entries();
    entries.iter().filter(|(key, _)| key[0] == b'd').map(|(_, value)| value[0]).collect()
}

#[test]
fn renamed_small_files_are_moved() {
    for (layout, want) in [(KeyOrder::BirthPath, b"cbaLd"), (KeyOrder::InodeNumber, b"abcdL")] {
        let mut rig = Rig::new(Watched::new(Keeps::Entries), layout);
        let fs = rig.fs();
        let directory = fs.make_node(&CALLER, Ino::ROOT, b"directory", &NewNode::directory(0o755)).unwrap().ino;
        for name in [b"a", b"b", b"c", b"d", b"L"] {
            let file = fs.make_node(&CALLER, Ino::ROOT, &[b"tmp ", &name[..]].concat(), &NewNode::file(0o644)).unwrap();
            fs.write(&CALLER, file.ino, 0, name).unwrap();
        }
        fs.link(&CALLER, fs.lookup(Ino::ROOT, b"tmp d").unwrap().ino, Ino::ROOT, b"second name").unwrap();
        let large = fs.lookup(Ino::ROOT, b"tmp L").unwrap().ino;
        fs.set_attributes(&CALLER, large, &SetAttributes { size: Some(200_000), ..SetAttributes::default() }).unwrap();
        let names = [("tmp a", "3"), ("tmp b", "2"), ("tmp c", "1"), ("tmp d", "0"), ("tmp L", "9")];
        for (from, to) in names {
            let (from, to) = ((Ino::ROOT, from.as_bytes()), (directory, to.as_bytes()));
            fs.rename(&CALLER, from, to, RenameMode::NoReplace).unwrap();
        }
        rig.check().unwrap();
        let got = order_of_blocks(rig.fs());
        assert_eq!(got.escape_ascii().to_string(), want.escape_ascii().to_string(), "{layout:?}");
        rig.reopen().unwrap();
        let mut byte = [0];
        for (from, to) in names {
            let path = format!("directory/{to}");
            rig.fs().read(resolve(rig.fs(), path.as_bytes()).unwrap(), 0, &mut byte).unwrap();
            assert_eq!(byte[0], from.as_bytes()[4]);
        }
    }
}
