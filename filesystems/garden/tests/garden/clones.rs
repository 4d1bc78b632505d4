//! Blocks that several files share: changes of one file do not affect the others, and space is
//! counted once.

use senesce_block::CrashPlan;
use senesce_core::Seed;
use senesce_fsapi::{
    FallocateMode, FileKind, FileSystem, FsError, Ino, NewNode, SetAttributes,
    conformance::{Operation, Place, SequenceOptions, Subject, run_sequence},
};
use senesce_garden::{Limits, Sharing, VolumeOptions};

use crate::{
    crash::{check_crashes, make as make_at, path, record, write},
    guard::guard,
    rig::{LARGE, Rig, SMALL, TIGHT, VOLUME, caller, findings, open, shared},
};

const BLOCK: u64 = 4096;

fn make(fs: &dyn FileSystem, name: &str) -> Ino {
    fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino
}

fn read(fs: &dyn FileSystem, ino: Ino) -> Vec<u8> {
    let mut out = vec![0xee; fs.attributes(ino).unwrap().size as usize];
    assert_eq!(fs.read(ino, 0, &mut out).unwrap(), out.len());
    out
}

fn clone(fs: &dyn FileSystem, from: Ino, to: Ino) -> u64 {
    fs.clone_range(&caller(3), (from, 0), (to, 0), u64::MAX >> 1).unwrap()
}

/// Bytes that differ in each block.
fn pattern(blocks: u64, seed: u8) -> Vec<u8> {
    (0..blocks * BLOCK).map(|at| (at / BLOCK * 7 + at % 251) as u8 ^ seed).collect()
}

fn sharing(rig: &Rig) -> Sharing {
    rig.garden().sharing(VOLUME).unwrap()
}

#[test]
fn clone_needs_pointers_and_no_blocks() {
    let mut rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
    rig.garden().consistency_point().unwrap();
    let empty = rig.garden().report().free;
    let (a, b, c) = (make(rig.fs(), "a"), make(rig.fs(), "b"), make(rig.fs(), "c"));
    let data = pattern(600, 0);
    assert_eq!(rig.fs().write(&caller(2), a, 0, &data).unwrap(), data.len());
    rig.garden().consistency_point().unwrap();
    let before = rig.garden().report().free;
    assert_eq!((clone(rig.fs(), a, b), clone(rig.fs(), a, c)), (600 * BLOCK, 600 * BLOCK));
    rig.garden().consistency_point().unwrap();
    let taken = before - rig.garden().report().free;
    assert!(taken <= 2 * 4 + 4, "{taken} blocks for two clones of 600");
    assert_eq!(sharing(&rig), Sharing { shared: 600, saved: 1200 });
    assert_eq!(rig.findings(), Vec::<String>::new());

    // Each file changes in its own way: written, truncated, punched, removed.
    rig.fs().write(&caller(4), a, 5 * BLOCK + 100, &[1; 5000]).unwrap();
    let cut = SetAttributes { size: Some(300 * BLOCK + 7), ..SetAttributes::default() };
    rig.fs().set_attributes(&caller(5), b, &cut).unwrap();
    rig.fs().allocate(&caller(6), c, FallocateMode::Punch, 10 * BLOCK, 100 * BLOCK).unwrap();
    for reopened in [false, true] {
        if reopened {
            rig.open().unwrap();
        }
        let mut want = data.clone();
        want[5 * 4096 + 100..][..5000].fill(1);
        assert!(read(rig.fs(), a) == want);
        assert!(read(rig.fs(), b) == data[..300 * 4096 + 7]);
        let mut want = data.clone();
        want[10 * 4096..110 * 4096].fill(0);
        assert!(read(rig.fs(), c) == want);
        assert_eq!(rig.findings(), Vec::<String>::new());
    }
    // All had 3 pointers. The first lost 2 blocks, the second 299 and the one with its last bytes,
    // the third 100.
    assert_eq!(sharing(&rig), Sharing { shared: 600, saved: 1200 - 2 - 300 - 100 });
    rig.fs().unlink(&caller(7), Ino::ROOT, b"a").unwrap();
    rig.garden().consistency_point().unwrap();
    assert!(read(rig.fs(), b) == data[..300 * 4096 + 7]);
    assert_eq!(rig.findings(), Vec::<String>::new());
    rig.fs().unlink(&caller(7), Ino::ROOT, b"c").unwrap();
    rig.fs().unlink(&caller(7), Ino::ROOT, b"b").unwrap();
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert_eq!(sharing(&rig), Sharing::default());
    // The pointers to the volume's own blocks may now cross the boundary of a block of the
    // container map.
    assert!(empty - rig.garden().report().free <= 1, "{} blocks are lost", empty - rig.garden().report().free);
}

#[test]
fn blocks_not_on_drives_are_copied() {
    let rig = Rig::new(&LARGE, Limits::default());
    let (a, b) = (make(rig.fs(), "a"), make(rig.fs(), "b"));
    let old = pattern(20, 0);
    rig.fs().write(&caller(2), a, 0, &old).unwrap();
    rig.garden().consistency_point().unwrap();
    rig.fs().write(&caller(2), a, 3 * BLOCK, &[9; 4096]).unwrap();
    rig.fs().write(&caller(2), b, 7 * BLOCK, &[8; 100]).unwrap();
    clone(rig.fs(), a, b);
    assert_eq!(sharing(&rig), Sharing { shared: 19, saved: 19 });
    let want = read(rig.fs(), a);
    assert!(read(rig.fs(), b) == want && want[3 * 4096] == 9);
    assert_eq!(rig.findings(), Vec::<String>::new());
    // With many blocks to copy, a consistency point comes first.
    let (c, d) = (make(rig.fs(), "c"), make(rig.fs(), "d"));
    rig.fs().write(&caller(2), c, 0, &pattern(100, 1)).unwrap();
    clone(rig.fs(), c, d);
    assert_eq!(sharing(&rig), Sharing { shared: 119, saved: 119 });
    rig.fs().unlink(&caller(2), Ino::ROOT, b"c").unwrap();
    rig.fs().unlink(&caller(2), Ino::ROOT, b"d").unwrap();
    // Cloning again: the copied blocks are freed.
    clone(rig.fs(), a, b);
    clone(rig.fs(), a, b);
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert_eq!(sharing(&rig), Sharing { shared: 20, saved: 20 });
}

/// With more pointers than 16 bits can count, the others are copies.
#[test]
fn pointer_counts_are_limited_to_16_bits() {
    let mut rig = Rig::new(&LARGE, Limits::default());
    let ino = make(rig.fs(), "a");
    rig.fs().write(&caller(1), ino, 0, &pattern(1, 5)).unwrap();
    rig.garden().consistency_point().unwrap();
    let mut blocks = 1;
    while blocks < 65_536 {
        let cloned = rig.fs().clone_range(&caller(2), (ino, 0), (ino, blocks * BLOCK), blocks * BLOCK).unwrap();
        assert_eq!(cloned, blocks * BLOCK);
        blocks *= 2;
        rig.garden().consistency_point().unwrap();
    }
    // The last of these was a copy, and may be shared itself.
    assert_eq!(sharing(&rig), Sharing { shared: 1, saved: 65_534 });
    let end = blocks * BLOCK;
    assert_eq!(rig.fs().clone_range(&caller(2), (ino, 0), (ino, end), 50 * BLOCK).unwrap(), 50 * BLOCK);
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert_eq!(sharing(&rig), Sharing { shared: 1, saved: 65_534 });
    rig.open().unwrap();
    let (want, mut got) = (pattern(1, 5), vec![0; 4096]);
    for block in [0, 1, 4095, 65_535, 65_536, 65_585] {
        rig.fs().read(ino, block * BLOCK, &mut got).unwrap();
        assert!(got == want, "block {block}");
    }
    rig.fs().unlink(&caller(3), Ino::ROOT, b"a").unwrap();
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert_eq!(sharing(&rig), Sharing::default());
}

/// A clone of many blocks takes several operations. A clone of a file after its own end stops at
/// the original end.
#[test]
fn file_is_cloned_after_its_own_end() {
    let rig = Rig::new(&LARGE, TIGHT);
    let ino = make(rig.fs(), "a");
    let mut data = pattern(4100, 3);
    data.truncate(data.len() - 1000);
    for (at, piece) in (0..).step_by(1 << 20).zip(data.chunks(1 << 20)) {
        assert_eq!(rig.fs().write(&caller(1), ino, at, piece).unwrap(), piece.len());
    }
    rig.garden().consistency_point().unwrap();
    let cloned = rig.fs().clone_range(&caller(2), (ino, 0), (ino, 5000 * BLOCK), u64::MAX >> 1).unwrap();
    assert_eq!(cloned, data.len() as u64);
    let got = read(rig.fs(), ino);
    assert!(got[..data.len()] == data && got[5000 * 4096..] == data);
    assert_eq!(rig.findings(), Vec::<String>::new());
    assert!(sharing(&rig).saved >= 4099, "{:?}", sharing(&rig));
}

/// Cloning sparse files takes operations in proportion to their blocks, not their holes.
#[test]
fn holes_are_cloned_as_holes() {
    let mut rig = Rig::on(&LARGE, guard(&shared(LARGE.devices())), TIGHT);
    let (a, b) = (make(rig.fs(), "a"), make(rig.fs(), "b"));
    let places = [0, 9, 300, 70_000, 17_000_000, 1_000_000_000];
    for (number, place) in places.iter().enumerate() {
        rig.fs().write(&caller(1), a, place * BLOCK, &[number as u8 + 1; 4096]).unwrap();
        rig.fs().write(&caller(1), b, (place + 1) * BLOCK, &[99; 4096]).unwrap();
    }
    rig.garden().consistency_point().unwrap();
    let size = rig.fs().attributes(a).unwrap().size;
    assert_eq!(clone(rig.fs(), a, b), size);
    for reopened in [false, true] {
        if reopened {
            rig.open().unwrap();
        }
        assert_eq!(rig.fs().attributes(b).unwrap().allocated, 7 * BLOCK, "the last old block is after it");
        for (number, place) in places.iter().enumerate() {
            let mut got = vec![0xee; 8192];
            let len = rig.fs().read(b, place * BLOCK, &mut got).unwrap();
            let behind = if number + 1 == places.len() { 99 } else { 0 };
            assert!(got[..4096] == [number as u8 + 1; 4096] && got[4096..len] == vec![behind; len - 4096]);
        }
        assert_eq!(rig.findings(), Vec::<String>::new());
    }
}

/// A sequence that shares blocks and changes them in every file, with consistency points in
/// between.
fn story() -> Vec<Operation> {
    let clone = |from: &str, from_offset, to: &str, to_offset, len| Operation::CloneRange {
        from: Place::Path(path(from)),
        from_offset,
        to: Place::Path(path(to)),
        to_offset,
        len,
    };
    let cut = |at: &str, size| Operation::Truncate { at: Place::Path(path(at)), size };
    let punch = |at: &str, offset, len| Operation::Allocate {
        at: Place::Path(path(at)),
        how: FallocateMode::Punch,
        offset,
        len,
    };
    vec![
        make_at("a", FileKind::File),
        write("a", 0, 60_000),
        make_at("b", FileKind::File),
        clone("a", 0, "b", 0, 1 << 40), // some blocks are copied
        make_at("other", FileKind::File),
        write("other", 0, 60_000),
        make_at("c", FileKind::File),
        clone("a", 0, "c", 0, 1 << 40),
        write("a", 4096, 5000),
        clone("c", 0, "a", 16_384, 20_480),
        write("c", 10_000, 100),
        clone("a", 0, "other", 8192, 1 << 40),
        punch("a", 0, 20_000),
        cut("b", 30_000),
        Operation::Hold { slot: 0, path: path("c") },
        Operation::Unlink { path: path("c") },
        write("b", 0, 40_000),
        clone("other", 0, "b", 40_960, 1 << 40),
        Operation::CloneRange {
            from: Place::Slot(0),
            from_offset: 4096,
            to: Place::Path(path("a")),
            to_offset: 0,
            len: 8192,
        },
        Operation::Release { slot: 0 },
        cut("a", 5000),
        clone("a", 0, "a", 8192, 5000),
        Operation::Unlink { path: path("other") },
        write("b", 45_000, 30_000),
        Operation::Unlink { path: path("b") },
        cut("a", 0),
    ]
}

#[test]
fn shared_blocks_survive_power_losses() {
    let run = record(&story());
    assert!(run.consistency_points > 3, "{} consistency points", run.consistency_points);
    let plan = CrashPlan { exhaustive_up_to: 3, samples: 6, tears: 3, seed: Seed(11) };
    let states = check_crashes(&run.recording, &run.trees, &plan);
    assert!(states > 150, "{states} states");
}

#[test]
fn sequences_run_with_minimal_memory() {
    let limits = Limits { cache_bytes: 0, dirty_bytes: 8 << 12 };
    let make = || -> Box<dyn Subject> { Box::new(Rig::on(&LARGE, guard(&shared(LARGE.devices())), limits)) };
    for seed in 300..304 {
        let options = SequenceOptions {
            boundaries: vec![0, 160, 4096, 8192, 10 * 4096, 256 * 4096],
            operations: 250,
            compare_every: 50,
            ..SequenceOptions::default()
        };
        run_sequence(&make, Seed(seed), &options).unwrap();
    }
}

/// Sharing costs only maps until shared blocks are written. Then space may run out in the middle.
#[test]
fn volume_full_of_clones_can_be_emptied() {
    let devices = shared(SMALL.devices());
    crate::rig::format(&SMALL, &devices);
    let garden = open(&devices, TIGHT).unwrap();
    garden.create_volume(b"small", &VolumeOptions { blocks: 400, inodes: 400, seed: 1 }).unwrap();
    let fs = garden.volume(b"small").unwrap();
    let empty = fs.space().unwrap();
    for round in 0..3 {
        let source = make(&fs, "source");
        let data = pattern(60, round);
        assert_eq!(fs.write(&caller(1), source, 0, &data).unwrap(), data.len());
        garden.consistency_point().unwrap();
        let mut names = vec!["source".to_owned()];
        loop {
            let name = format!("clone {}", names.len());
            let node = NewNode::file(0o644);
            let Ok(made) = fs.make_node(&caller(1), Ino::ROOT, name.as_bytes(), &node) else { break };
            names.push(name);
            match fs.clone_range(&caller(2), (source, 0), (made.ino, 0), u64::MAX >> 1) {
                Ok(cloned) if cloned == 60 * BLOCK => {}
                Ok(cloned) => assert!(cloned > 0 && cloned.is_multiple_of(BLOCK)),
                Err(FsError::NoSpace) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(names.len() > 100, "{} clones of 60 blocks each in 400", names.len());
        garden.consistency_point().unwrap();
        assert_eq!(findings(&devices), Vec::<String>::new());
        // Every other clone is written; most writes do not fit.
        let mut refused = 0;
        for (number, name) in names.iter().enumerate().step_by(2) {
            let ino = fs.lookup(Ino::ROOT, name.as_bytes()).unwrap().ino;
            match fs.write(&caller(3), ino, 0, &[7; 20_000]) {
                Ok(written) => assert!(written > 0, "{number}"),
                Err(FsError::NoSpace) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused > 10, "{refused} writes were refused");
        garden.consistency_point().unwrap();
        assert_eq!(findings(&devices), Vec::<String>::new());
        for name in &names {
            fs.unlink(&caller(4), Ino::ROOT, name.as_bytes()).unwrap();
        }
        garden.consistency_point().unwrap();
        assert_eq!(findings(&devices), Vec::<String>::new());
        assert_eq!((fs.space().unwrap(), garden.sharing(b"small").unwrap()), (empty, Sharing::default()));
    }
}
