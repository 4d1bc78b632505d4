//! Space: removals free exactly the claimed bytes, and a full store allows removals.

use senesce_core::{Bytes, Rng, Seed};
use senesce_evergreen::{KeyValue, ModelStore, disk::KeyOrder};
use senesce_fsapi::{
    Caller, FallocateMode, FileSystem, FsError, Ino, NewNode, SetAttributes, SetXattrMode,
    conformance::{Draw, Player, SequenceOptions, Subject, collect_tree},
};

use super::rig::{Rig, large};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: senesce_fsapi::Timestamp { seconds: 1, nanoseconds: 0 } };

fn live(rig: &Rig<ModelStore>) -> u64 {
    rig.fs().store().live().bytes
}

/// Removes all below a directory.
fn empty(fs: &dyn FileSystem) {
    let tree = collect_tree(fs).unwrap();
    for (path, node) in tree.iter().rev().filter(|(path, _)| !path.is_empty()) {
        let (parent, name) = senesce_fsapi::conformance::parent_and_name(fs, path).unwrap();
        match node.attributes.kind {
            senesce_fsapi::FileKind::Directory => fs.rmdir(&CALLER, parent, name).unwrap(),
            _ => fs.unlink(&CALLER, parent, name).unwrap(),
        }
    }
}

#[test]
fn removal_frees_exactly_the_claimed_bytes() {
    for seed in 0..6 {
        let mut rig = Rig::new(large(), KeyOrder::BirthPath);
        let before = live(&rig);
        let mut player = Player::default();
        let options = SequenceOptions { boundaries: vec![0, 1, 4096, 8192, 200_000], ..SequenceOptions::default() };
        for operation in Draw::new(Seed(seed), &options).take(500) {
            player.play(&mut rig, &operation);
        }
        rig.check().unwrap();
        rig.reopen().unwrap();
        empty(rig.fs());
        for name in rig.fs().list_xattrs(Ino::ROOT).unwrap() {
            rig.fs().remove_xattr(&CALLER, Ino::ROOT, &name).unwrap();
        }
        rig.check().unwrap();
        assert_eq!(live(&rig), before, "seed {seed}");
        assert_eq!(rig.fs().store().entries().len(), 4, "the root, its home, the layout, the next number");
    }
}

#[test]
fn available_space_can_be_reserved() {
    let rig = Rig::new(ModelStore::new(64 << 20, 1 << 20), KeyOrder::BirthPath);
    let fs = rig.fs();
    let mut directory = Ino::ROOT;
    for name in [b"some", b"dirs", b"deep"] {
        directory = fs.make_node(&CALLER, directory, name, &NewNode::directory(0o755)).unwrap().ino;
    }
    let file = fs.make_node(&CALLER, directory, b"f", &NewNode::file(0o644)).unwrap().ino;
    let before = fs.space().unwrap();
    let bytes = before.available * u64::from(before.block_bytes);
    fs.allocate(&CALLER, file, FallocateMode::Reserve { keep_size: false }, 0, bytes).unwrap();
    let left = fs.space().unwrap().available;
    assert!(left < before.available / 50, "{left} of {} are left", before.available);
    fs.write(&CALLER, file, 0, &vec![7; 1 << 20]).unwrap();
    fs.unlink(&CALLER, directory, b"f").unwrap();
    assert!(fs.space().unwrap().available >= before.available);
}

#[test]
fn files_claim_their_contents() {
    let mut rig = Rig::new(large(), KeyOrder::BirthPath);
    let file = rig.fs().make_node(&CALLER, Ino::ROOT, b"f", &NewNode::file(0o644)).unwrap().ino;
    let (empty, mut rng) = (live(&rig), Rng::for_purpose(Seed(2), "space of a file"));
    for _ in 0..400 {
        let (offset, len) = (rng.below(300_000), 1 + rng.below(30_000));
        let truncated = SetAttributes { size: Some(offset), ..SetAttributes::default() };
        match rng.below(6) {
            0 => rig.fs().allocate(&CALLER, file, FallocateMode::Punch, offset, len).unwrap(),
            1 => rig.fs().allocate(&CALLER, file, FallocateMode::Zero { keep_size: true }, offset, len).unwrap(),
            2 => drop(rig.fs().set_attributes(&CALLER, file, &truncated).unwrap()),
            _ => drop(rig.fs().write(&CALLER, file, offset, &vec![3; len as usize]).unwrap()),
        }
        rig.check().unwrap();
        let entries = rig.fs().store().entries();
        let blocks = entries.iter().filter(|(key, _)| key[0] == b'd');
        let (count, there) =
            blocks.fold((0, 0), |(count, bytes), (key, value)| (count + 1, bytes + key.len() + value.len()));
        let claimed = (live(&rig) - empty) as usize;
        // Each block counts up to its end, and its key as for a large number.
        assert!((there..=count * (4096 + 16)).contains(&claimed), "{there} bytes exist, {claimed} are claimed");
    }
}

#[test]
fn writes_use_reserved_space() {
    const BLOCKS: u64 = 64;
    let rig = Rig::new(ModelStore::new(1 << 20, 1 << 16), KeyOrder::BirthPath);
    let make = |name: &[u8]| rig.fs().make_node(&CALLER, Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino;
    let (reserved, other) = (make(b"reserved"), make(b"other"));
    let keep_size = FallocateMode::Reserve { keep_size: true };
    rig.fs().allocate(&CALLER, reserved, keep_size, 0, BLOCKS * 4096).unwrap();
    assert_eq!(rig.fs().attributes(reserved).unwrap().allocated, BLOCKS * 4096);
    let full = rig.fs().write(&CALLER, other, 0, &vec![1; 2 << 20]).unwrap();
    assert!(full < 2 << 20 && full.is_multiple_of(4096));
    assert!(matches!(rig.fs().write(&CALLER, other, full as u64, &[1; 4096]), Err(FsError::NoSpace)));
    assert!(matches!(rig.fs().allocate(&CALLER, other, keep_size, 0, 1 << 40), Err(FsError::NoSpace)));
    let data = vec![2; (BLOCKS * 4096) as usize];
    assert_eq!(rig.fs().write(&CALLER, reserved, 0, &data).unwrap(), data.len());
    let before = live(&rig);
    rig.fs().allocate(&CALLER, reserved, keep_size, 0, BLOCKS * 4096).unwrap();
    assert_eq!(live(&rig), before, "existing blocks need no reservation");
}

#[test]
fn full_store_refuses_cleanly_and_allows_removals() {
    let store = || ModelStore::new(3 << 20, 1 << 20);
    let mut rig = Rig::new(store(), KeyOrder::BirthPath);
    let filler = rig.fs().make_node(&CALLER, Ino::ROOT, b"filler", &NewNode::file(0o644)).unwrap().ino;
    rig.fs().make_node(&CALLER, Ino::ROOT, b"d", &NewNode::directory(0o755)).unwrap();
    let sparse = rig.fs().make_node(&CALLER, Ino::ROOT, b"sparse", &NewNode::file(0o644)).unwrap().ino;
    rig.fs().write(&CALLER, sparse, 100_000, b"end").unwrap();
    let start = live(&rig);
    let mut filled = rig.fs().write(&CALLER, filler, 0, &vec![1; 4 << 20]).unwrap() as u64;
    for len in [4096, 512, 64, 8, 1] {
        while rig.fs().write(&CALLER, filler, filled, &vec![1; len]).is_ok() {
            filled += len as u64;
        }
    }
    assert_eq!(rig.fs().space().unwrap().available, 0);
    let (before, tree) = (rig.fs().store().entries(), collect_tree(rig.fs()).unwrap());
    let fs = rig.fs();
    let refused = [
        fs.make_node(&CALLER, Ino::ROOT, b"new", &NewNode::file(0o644)).map(drop),
        fs.symlink(&CALLER, Ino::ROOT, b"new", b"target").map(drop),
        fs.link(&CALLER, filler, Ino::ROOT, b"new").map(drop),
        fs.write(&CALLER, sparse, 0, &[1; 4096]).map(drop),
        fs.clone_range(&CALLER, (filler, 0), (sparse, 0), 4096).map(drop),
        fs.set_xattr(&CALLER, filler, b"user.a", &[1; 100], SetXattrMode::Any),
        fs.rename(&CALLER, (Ino::ROOT, b"d"), (Ino::ROOT, &[b'n'; 255]), senesce_fsapi::RenameMode::Replace),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(FsError::NoSpace)), "call {number}: {refused:?}");
    }
    assert!(before == fs.store().entries());
    assert!(collect_tree(fs).unwrap() == tree);
    fs.write(&CALLER, filler, 5, b"over existing data").unwrap();
    fs.set_attributes(&CALLER, filler, &SetAttributes { uid: Some(7), ..SetAttributes::default() }).unwrap();
    fs.open(filler).unwrap();
    fs.unlink(&CALLER, Ino::ROOT, b"filler").unwrap();
    assert_eq!(fs.space().unwrap().available, 0, "it is held");
    fs.rmdir(&CALLER, Ino::ROOT, b"d").unwrap();
    fs.release(filler, CALLER.now).unwrap();
    assert!(live(&rig) < start, "{} claimed, {start} before", live(&rig));
    assert!(rig.fs().space().unwrap().available > 500);
    for round in 0..20 {
        let file = rig.fs().make_node(&CALLER, Ino::ROOT, b"again", &NewNode::file(0o644)).unwrap().ino;
        let written = rig.fs().write(&CALLER, file, 0, &vec![round; Bytes::MIB as usize]).unwrap();
        assert_eq!(written, Bytes::MIB as usize, "round {round}: filling and removing loses no space");
        rig.fs().unlink(&CALLER, Ino::ROOT, b"again").unwrap();
    }
    rig.check().unwrap();
}
