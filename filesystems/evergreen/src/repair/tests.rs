//! Damage of each structure: a repaired state is clean, and the report names exactly what is lost.

use senesce_block::MemoryDevice;
use senesce_core::{Bytes as Size, Rng, Seed};
use senesce_fsapi::{
    FileSystem, Ino, NewNode,
    conformance::{collect_tree, find_difference},
};

use super::{test_support::*, *};
use crate::{
    EvergreenFs, FsOptions, KeyValue,
    disk::{NodeId, SLOTS_AT},
};

#[test]
fn a_devices_name_reports_no_loss() {
    let device = Arc::new(MemoryDevice::new("lost.img", Size(8 << 20)));
    Evergreen::make(device.clone(), &TINY).unwrap();
    let store = Arc::new(Evergreen::open(device.clone(), Limits::default()).unwrap());
    EvergreenFs::format(store.clone(), FsOptions::default()).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let bench = Bench::new(&device);
    bench.spoil_map();
    let report = repair(&bench.device, true).unwrap();
    assert!(report.notes.iter().any(|note| note.what.contains("lost.img")), "{:?}", report.notes);
    assert!(report.is_needed && !report.has_lost(), "{report:#?}");
}

#[test]
fn unreadable_superblock_does_not_prevent_a_repair() {
    let device = example(0);
    for at in SLOTS_AT {
        let bench = Bench::new(&device);
        bench.spoil_header(bench.nodes(0)[4]);
        let faulty = Arc::new(senesce_block::FaultDevice::new(bench.device.clone()));
        faulty.inject(&format!("fail read at {at}+4096")).unwrap();
        let report = repair(&(faulty as Arc<dyn BlockDevice>), false).unwrap();
        assert!(report.is_done && report.check.is_clean(), "{at}: {report:#?}");
    }
}

#[test]
fn whole_evergreens_are_not_changed() {
    let device = example(3);
    let copy = device.fork();
    let shared: Arc<dyn BlockDevice> = device.clone();
    let report = repair(&shared, false).unwrap();
    assert!(!report.is_needed && !report.is_done && report.check.is_clean());
    assert!(device.same_contents(&copy));
}

#[test]
fn superblocks_and_maps_are_rebuilt_without_loss() {
    type Damage = fn(&Bench);
    let cases: &[(&str, Damage)] = &[
        ("a bit of both superblocks", |bench| {
            bench.flip_slot(0, 77);
            bench.flip_slot(1, 4090);
        }),
        ("both superblocks in unused bytes", |bench| {
            bench.overwrite_slot(0, 200, 20);
            bench.overwrite_slot(1, 200, 20);
        }),
        ("the map", Bench::spoil_map),
        ("the map and a bit of both superblocks", |bench| {
            bench.spoil_map();
            bench.flip_slot(0, 3);
            bench.flip_slot(1, 130);
        }),
    ];
    let (device, moments) = example_of(3);
    let want = &moments[moments.len() - 1];
    assert_eq!(find_difference(want, &tree(&shared(&device))), None);
    for (name, damage) in cases {
        let bench = Bench::new(&device);
        damage(&bench);
        let report = expect_repaired(&bench.device, &moments, name);
        assert!(!report.has_lost(), "{name}: {report:#?}");
        assert!(find_difference(want, &tree(&bench.device)).is_none(), "{name}");
    }
}

#[test]
fn without_superblocks_the_last_checkpoint_is_found() {
    let (device, moments) = example_of(0);
    let want = &moments[moments.len() - 1];
    for with_map in [true, false] {
        let bench = Bench::new(&device);
        bench.overwrite_slot(0, 0, 4096);
        bench.overwrite_slot(1, 0, 4096);
        if !with_map {
            bench.spoil_map();
        }
        let report = expect_repaired(&bench.device, &moments, "both superblocks");
        assert!(report.lost.is_empty() && report.files.lost.is_empty(), "{report:#?}");
        assert!(find_difference(want, &tree(&bench.device)).is_none(), "a map: {with_map}");
    }
}

#[test]
fn a_damaged_leaf_loses_only_itself() {
    let (device, moments) = example_of(0);
    let want = &moments[moments.len() - 1];
    let leaves = Bench::new(&device).nodes(0);
    assert!(leaves.len() > 20);
    for leaf in leaves {
        for is_part in [false, true] {
            let bench = Bench::new(&device);
            if is_part && bench.node(leaf).1.parts() == 0 {
                continue;
            }
            bench.spoil_older();
            if is_part {
                bench.spoil_last_part(leaf)
            } else {
                bench.spoil_header(leaf)
            }
            let report = expect_repaired(&bench.device, &moments, &format!("leaf {leaf}, a part: {is_part}"));
            assert_eq!(report.lost.iter().map(|lost| lost.what).collect::<Vec<_>>(), [Lost::Values]);
            let differs = find_difference(want, &tree(&bench.device)).is_some();
            assert!(!differs || !report.files.lost.is_empty(), "leaf {leaf}: {report:#?}");
        }
    }
}

#[test]
fn children_of_a_damaged_inner_node_are_found() {
    let (device, moments) = example_of(0);
    let mut unproven = 0;
    for height in 1..=Bench::new(&device).height() {
        for node in Bench::new(&device).nodes(height) {
            for (name, is_part, is_mapped) in
                [("header", false, true), ("part", true, true), ("header, map", false, false)]
            {
                let bench = Bench::new(&device);
                bench.spoil_older();
                if is_part {
                    bench.spoil_last_part(node)
                } else {
                    bench.spoil_header(node)
                }
                if !is_mapped {
                    bench.spoil_map();
                }
                let report =
                    expect_repaired(&bench.device, &moments, &format!("{name} of node {node}, height {height}"));
                assert!(report.has_lost());
                unproven += u64::from(report.notes.iter().any(|note| note.is_loss));
                if is_mapped {
                    assert_eq!(report.lost.iter().map(|lost| lost.what).collect::<Vec<_>>(), [Lost::Changes]);
                }
            }
        }
    }
    assert!(unproven > 5, "{unproven} repairs could not prove their result");
}

#[test]
fn the_log_ends_at_a_damaged_batch() {
    let device = example(5);
    let bench = Bench::new(&device);
    let log = bench.superblock.geometry.log_at + bench.superblock.replay.position % bench.superblock.geometry.log_bytes;
    let want = tree(&shared(&example(2)));
    // Each call is one or two frames (creation and write); a frame is a block and its parity.
    bench.flip(log + 4 * 4096 + 100);
    bench.flip(log + 5 * 4096 + 100);
    let report = repair(&bench.device, false).unwrap();
    assert!(report.has_lost() && report.lost.is_empty(), "{report:#?}");
    assert!(crate::check(&bench.device).unwrap().is_clean());
    let got = tree(&bench.device);
    assert!(find_difference(&want, &got).is_none(), "{:?}", find_difference(&want, &got));
}

#[test]
fn unlogged_batches_are_not_dropped_for_a_node() {
    // A checkpoint during the write of a file; the batches after it are not logged.
    let (device, mut moments) = example_of(0);
    let store = Arc::new(Evergreen::open(device.clone(), Limits::default()).unwrap());
    let fs = EvergreenFs::open(store.clone()).unwrap();
    let made = fs.make_node(&CALLER, Ino::ROOT, b"large", &NewNode::file(0o644)).unwrap();
    let write = |blocks: std::ops::Range<u64>| {
        for block in blocks {
            fs.write(&CALLER, made.ino, block * 4096, &[7; 4096]).unwrap();
        }
    };
    write(0..12);
    store.checkpoint().unwrap();
    moments.push(collect_tree(&fs).unwrap());
    let before = store.figures().unlogged_bytes;
    write(12..24);
    assert!(store.figures().unlogged_bytes - before > 40_000);
    store.sync().unwrap();
    for is_logged in [false, true] {
        if is_logged {
            fs.make_node(&CALLER, Ino::ROOT, b"late", &NewNode::file(0o644)).unwrap();
            store.sync().unwrap();
        }
        moments.push(tree(&shared(&device)));
        let generation = read_newest(&*device).unwrap().generation;
        let bench = Bench::new(&device);
        let written = (0..=bench.height()).flat_map(|height| bench.nodes(height));
        let written: Vec<NodeId> = written.filter(|id| bench.generation(*id) == generation).collect();
        assert!(written.len() > 8, "{written:?}");
        for node in written {
            let bench = Bench::new(&device);
            bench.spoil_header(node);
            let report = expect_repaired(&bench.device, &moments, &format!("node {node}, logged: {is_logged}"));
            assert!(report.has_lost(), "{report:#?}");
            let taken = format!("used superblock {generation} ");
            assert!(report.notes.iter().any(|note| note.what.starts_with(&taken)), "{report:#?}");
        }
        // Without the newest superblock the previous one is used. The repair reports what it lacks,
        // even if no batch followed.
        let bench = Bench::new(&device);
        bench.overwrite_slot(generation as usize % 2, 0, 4096);
        let refused = Evergreen::open(bench.device.clone(), Limits::default()).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|why| why.contains("it was durable when")), "{refused:?}");
        assert!(expect_repaired(&bench.device, &moments, "the newest superblock").has_lost());
    }
}

#[test]
fn a_dry_run_reports_and_writes_nothing() {
    let device = example(2);
    let bench = Bench::new(&device);
    bench.spoil_map();
    bench.spoil_header(bench.nodes(0)[4]);
    let before = MemoryDevice::new("disk", Size(8 << 20));
    let copy = |to: &dyn BlockDevice| {
        let mut bytes = vec![0; 8 << 20];
        bench.device.read_at(0, &mut bytes).unwrap();
        to.write_at(0, &bytes).unwrap();
        bytes
    };
    let bytes = copy(&before);
    let dry = repair(&bench.device, true).unwrap();
    assert!(dry.is_needed && !dry.is_done && dry.has_lost());
    assert!(copy(&before) == bytes, "nothing was written");
    let done = repair(&bench.device, false).unwrap();
    assert_eq!((dry.notes, dry.lost), (done.notes, done.lost));
}

#[test]
fn repair_of_random_block_losses_is_clean() {
    let (device, moments) = example_of(2);
    let want = &moments[moments.len() - 1];
    let bench = Bench::new(&device);
    let used: Vec<u64> = bench.map.iter().map(|(id, _)| bench.at(id).0).chain([0, 1 << 20]).collect();
    let mut rng = Rng::for_purpose(Seed(1), "blocks");
    for round in 0..25 {
        let bench = Bench::new(&device);
        let blocks: Vec<u64> = (0..rng.between(1, 12)).map(|_| used[rng.below(used.len() as u64) as usize]).collect();
        blocks.iter().for_each(|at| bench.overwrite(*at, 4096));
        if rng.below(3) == 0 {
            bench.spoil_map();
        }
        if crate::check(&bench.device).is_ok_and(|report| report.is_clean()) {
            continue; // the older superblock alone
        }
        let report = expect_repaired(&bench.device, &moments, &format!("round {round}, {blocks:?}"));
        let got = tree(&bench.device);
        let whole =
            want.iter().filter(|(path, node)| got.get(*path).is_some_and(|got| got.content == node.content)).count();
        assert!(whole > 0, "round {round}: {report:#?}");
    }
}

#[test]
fn other_devices_and_versions_are_refused() {
    let nothing: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
    assert!(repair(&nothing, false).unwrap_err().to_string().contains("no evergreen file system"));
    let bench = Bench::new(&example(0));
    for at in SLOTS_AT {
        let mut block = [0; 4096];
        bench.device.read_at(at, &mut block).unwrap();
        block[8] = 9;
        let sum = xxhash_rust::xxh3::xxh3_64(&block[..4088]);
        block[4088..].copy_from_slice(&sum.to_le_bytes());
        bench.device.write_at(at, &block).unwrap();
    }
    let refused = repair(&bench.device, false).unwrap_err().to_string();
    assert!(refused.contains("an evergreen of format version 9; this program reads versions 1 to 2"), "{refused}");
}
