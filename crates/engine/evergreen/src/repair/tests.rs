//! Each structure damaged: what is repaired is clean, holds all that is not told to be lost, and nothing is told that is not.

use std::collections::BTreeSet;

use senesce_block::MemoryDevice;
use senesce_core::{Bytes as Size, Rng, Seed};
use senesce_fsapi::{
    Attributes, Caller, FileKind, FileSystem, Ino, NewNode, SetXattrHow, Timestamp,
    conformance::{Tree, TreeNode, collect_tree, find_difference},
};

use super::*;
use crate::{
    EvergreenFs, FsOptions, KeyValue, MakeOptions,
    disk::{Area, NodeId, NodeMap, Shape, read_newest},
    node::{Body, Header, Node},
};

const TINY: MakeOptions = MakeOptions {
    uuid: *b"mended evergreen",
    shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: crate::disk::KeyOrder::BirthPath },
    unit_bytes: 4096,
    log_bytes: Some(128 << 10),
};
const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };

/// Directories, files, links, attributes on a tree of some levels that was written over and over; `logged` calls are in the log.
fn example(logged: u64) -> Arc<MemoryDevice> {
    example_of(logged).0
}

/// The same, and what was there at each checkpoint and sync, the last one behind all others.
fn example_of(logged: u64) -> (Arc<MemoryDevice>, Vec<Tree>) {
    let device = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
    Evergreen::make(device.clone(), &TINY).unwrap();
    let store = Arc::new(Evergreen::open(device.clone(), Limits::default()).unwrap());
    let fs = EvergreenFs::format(store.clone(), FsOptions::default()).unwrap();
    let file = |directory, name: String, bytes: u64| {
        let made = fs.make_node(&CALLER, directory, name.as_bytes(), &NewNode::file(0o644)).unwrap();
        fs.write(&CALLER, made.ino, 0, &vec![made.ino.0 as u8 | 1; bytes as usize]).unwrap();
        made.ino
    };
    let mut moments = Vec::new();
    for number in 0..6 {
        let name = format!("directory {number}");
        let directory = fs.make_node(&CALLER, Ino::ROOT, name.as_bytes(), &NewNode::directory(0o755)).unwrap().ino;
        for number in 0..8 {
            let ino = file(directory, format!("file {number}"), number * 1300);
            if number == 3 {
                fs.set_xattr(&CALLER, ino, b"user.note", &[7; 300], SetXattrHow::Any).unwrap();
                fs.link(&CALLER, ino, Ino::ROOT, format!("{name} link").as_bytes()).unwrap();
            }
        }
        fs.symlink(&CALLER, directory, b"symlink", b"to somewhere").unwrap();
        store.checkpoint().unwrap();
        moments.push(collect_tree(&fs).unwrap());
    }
    for round in 0..4u64 {
        for number in [round, round + 1] {
            let directory = fs.lookup(Ino::ROOT, format!("directory {number}").as_bytes()).unwrap().ino;
            fs.unlink(&CALLER, directory, format!("file {}", round + 1).as_bytes()).unwrap();
            let other = fs.lookup(directory, b"file 7").unwrap().ino;
            fs.write(&CALLER, other, round * 900, &[9; 700]).unwrap();
        }
        store.checkpoint().unwrap();
        moments.push(collect_tree(&fs).unwrap());
    }
    for number in 0..logged {
        file(Ino::ROOT, format!("late {number}"), 100);
        store.sync().unwrap();
        moments.push(collect_tree(&fs).unwrap());
    }
    (device, moments)
}

fn shared(device: &MemoryDevice) -> Arc<dyn BlockDevice> {
    Arc::new(device.fork())
}

fn tree(device: &Arc<dyn BlockDevice>) -> Tree {
    collect_tree(&EvergreenFs::open_on(device.clone(), Limits::default()).unwrap()).unwrap()
}

/// What lies there, so that it can be damaged.
struct Bench {
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
    map: NodeMap,
}

impl Bench {
    fn new(device: &MemoryDevice) -> Self {
        Self::of(shared(device))
    }

    fn of(device: Arc<dyn BlockDevice>) -> Self {
        let superblock = read_newest(&*device).unwrap();
        let map = NodeMap::load(&Area::new(device.clone(), superblock.geometry), &superblock).unwrap();
        Self { device, superblock, map }
    }

    fn at(&self, id: NodeId) -> (u64, u64) {
        let place = self.map.get(id).unwrap();
        (self.superblock.geometry.unit_at(place.extents[0].first), u64::from(place.bytes))
    }

    fn node(&self, id: NodeId) -> (usize, Node) {
        let mut start = vec![0; 4096];
        self.device.read_at(self.at(id).0, &mut start).unwrap();
        let bytes = Header::bytes(&start).unwrap();
        (bytes, Header::decode(Bytes::from(start).slice(..bytes)).unwrap().node)
    }

    fn generation(&self, id: NodeId) -> u64 {
        let mut start = vec![0; 4096];
        self.device.read_at(self.at(id).0, &mut start).unwrap();
        let bytes = Header::bytes(&start).unwrap();
        Header::decode(Bytes::from(start).slice(..bytes)).unwrap().generation
    }

    /// The nodes of a height, in the order of their keys.
    fn nodes(&self, height: u8) -> Vec<NodeId> {
        let mut nodes: Vec<(Bytes, NodeId)> = self
            .map
            .iter()
            .map(|(id, _)| (self.node(id).1, id))
            .filter(|(node, _)| node.height() == height)
            .map(|(node, id)| (node.lower, id))
            .collect();
        nodes.sort();
        nodes.into_iter().map(|(_, id)| id).collect()
    }

    fn height(&self) -> u8 {
        self.node(self.superblock.root).1.height()
    }

    fn flip(&self, at: u64) {
        let mut byte = [0];
        self.device.read_at(at, &mut byte).unwrap();
        self.device.write_at(at, &[byte[0] ^ 0x10]).unwrap();
    }

    fn overwrite(&self, at: u64, bytes: usize) {
        self.device.write_at(at, &vec![0x5a; bytes]).unwrap();
    }

    fn spoil_map(&self) {
        for extent in &self.superblock.map.extents {
            self.overwrite(self.superblock.geometry.unit_at(extent.first), 4096 * extent.count as usize);
        }
    }

    /// The superblock before the newest leads nowhere: what the last checkpoint only moved would be found by it.
    fn spoil_older(&self) {
        let older = (self.superblock.generation + 1) % 2;
        self.overwrite(crate::disk::SLOTS_AT[older as usize], 4096);
    }

    fn spoil_header(&self, id: NodeId) {
        self.flip(self.at(id).0 + 30);
    }

    fn spoil_last_part(&self, id: NodeId) {
        let (at, bytes) = self.at(id);
        self.flip(at + bytes - 1);
    }
}

/// Repairs; the state is clean, and whatever is not told to be lost is as at the last of these moments; or, if the repair says that it
/// cannot prove that, as at one of them, or not there. Gives the report.
fn mended(device: &Arc<dyn BlockDevice>, moments: &[Tree], told: &str) -> RepairReport {
    let report = repair(device, false).unwrap_or_else(|error| panic!("{told}: {error}"));
    let check = crate::check(device).unwrap_or_else(|error| panic!("{told}: {error}"));
    assert!(report.is_needed && report.is_done && check.is_clean(), "{told}: {:?}", check.findings);
    expect_ways(device, told);
    let got = tree(device);
    // What is lost of the log, or with a map, is told, but not of which files.
    let is_proven = report.told.iter().all(|told| !told.is_loss);
    let last = if is_proven { moments.len() - 1 } else { 0 };
    let allowed = &moments[last..];
    let paths: BTreeSet<&Vec<u8>> = allowed.iter().flat_map(Tree::keys).chain(got.keys()).collect();
    for path in paths {
        let found = got.get(path);
        let is_absent = found.is_none() && (!is_proven || !allowed[0].contains_key(path));
        let is_there = |found| allowed.iter().any(|moment| moment.get(path).is_some_and(|node| is_same(node, found)));
        // Also of a name that came back, which the file has beside this one.
        let is_any_told = || {
            allowed.iter().chain([&got]).any(|tree| {
                let first = tree.get(path).map(|node| &node.first_path);
                tree.iter().any(|(other, same)| Some(&same.first_path) == first && is_told(&report, other))
            })
        };
        let is_found = path.starts_with(b"lost+found") && !moments.iter().any(|moment| moment.contains_key(path));
        assert!(
            is_absent || found.is_some_and(is_there) || is_found || is_any_told(),
            "{told}: {}, proven: {is_proven}; {:#?}; {found:?}",
            path.escape_ascii(),
            report.files.lost
        );
    }
    let again = repair(device, false).unwrap();
    assert!(!again.is_needed, "{told}: {:?}", again.told);
    report
}

/// No node on a device is older than one below it: that is how a repair without a map knows copies of before.
fn expect_ways(device: &Arc<dyn BlockDevice>, told: &str) {
    let bench = Bench::of(device.clone());
    for (id, _) in bench.map.iter() {
        let Body::Inner(inner) = bench.node(id).1.body else { continue };
        let newest = inner.children().iter().map(|child| bench.generation(child.id)).max();
        assert!(newest.is_none_or(|newest| newest <= bench.generation(id)), "{told}: {id} is older than one below it");
    }
}

/// Whether what was found is what was there; in a directory another one may be missing, which is told of that one.
fn is_same(want: &TreeNode, found: &TreeNode) -> bool {
    let links = if want.attributes.kind == FileKind::Directory { found } else { want }.attributes.links;
    TreeNode { attributes: Attributes { links, ..want.attributes }, ..want.clone() } == *found
}

/// Whether something of a path is told to be lost, or names of the directory that it is in.
fn is_told(report: &RepairReport, path: &[u8]) -> bool {
    let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |at| &path[..at]);
    let names = |what: &str| what.contains("names") || what.contains("name:");
    report.files.lost.iter().any(|lost| lost.path == path || (lost.path == parent && names(&lost.what)))
}

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
    assert!(report.told.iter().any(|told| told.what.contains("lost.img")), "{:?}", report.told);
    assert!(report.is_needed && !report.has_lost(), "{report:#?}");
}

#[test]
fn beside_a_superblock_that_cannot_be_read_all_is_repaired() {
    let device = example(0);
    for at in crate::disk::SLOTS_AT {
        let bench = Bench::new(&device);
        bench.spoil_header(bench.nodes(0)[4]);
        let faulty = Arc::new(senesce_block::FaultDevice::new(bench.device.clone()));
        faulty.inject(&format!("fail read at {at}+4096")).unwrap();
        let report = repair(&(faulty as Arc<dyn BlockDevice>), false).unwrap();
        assert!(report.is_done && report.check.is_clean(), "{at}: {report:#?}");
    }
}

#[test]
fn nothing_is_done_to_what_is_whole() {
    let device = example(3);
    let copy = device.fork();
    let shared: Arc<dyn BlockDevice> = device.clone();
    let report = repair(&shared, false).unwrap();
    assert!(!report.is_needed && !report.is_done && report.check.is_clean());
    assert!(device.same_contents(&copy));
}

#[test]
fn what_leads_to_nodes_is_made_anew_and_nothing_is_lost() {
    type Damage = fn(&Bench);
    let cases: &[(&str, Damage)] = &[
        ("a bit of both superblocks", |bench| {
            bench.flip(77);
            bench.flip((1 << 20) + 4090);
        }),
        ("both superblocks where nothing is", |bench| {
            bench.overwrite(200, 20);
            bench.overwrite((1 << 20) + 200, 20);
        }),
        ("the map", Bench::spoil_map),
        ("the map and a bit of both superblocks", |bench| {
            bench.spoil_map();
            bench.flip(3);
            bench.flip((1 << 20) + 130);
        }),
    ];
    let (device, moments) = example_of(3);
    let want = &moments[moments.len() - 1];
    assert_eq!(find_difference(want, &tree(&shared(&device))), None);
    for (name, damage) in cases {
        let bench = Bench::new(&device);
        damage(&bench);
        let report = mended(&bench.device, &moments, name);
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
        bench.overwrite(0, 4096);
        bench.overwrite(1 << 20, 4096);
        if !with_map {
            bench.spoil_map();
        }
        let report = mended(&bench.device, &moments, "both superblocks");
        assert!(report.lost.is_empty() && report.files.lost.is_empty(), "{report:#?}");
        assert!(find_difference(want, &tree(&bench.device)).is_none(), "a map: {with_map}");
    }
}

#[test]
fn a_leaf_that_is_lost_is_all_that_is_lost() {
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
            let report = mended(&bench.device, &moments, &format!("leaf {leaf}, a part: {is_part}"));
            assert_eq!(report.lost.iter().map(|lost| lost.what).collect::<Vec<_>>(), [Lost::Values]);
            let differs = find_difference(want, &tree(&bench.device)).is_some();
            assert!(!differs || !report.files.lost.is_empty(), "leaf {leaf}: {report:#?}");
        }
    }
}

#[test]
fn below_an_inner_node_that_is_lost_all_is_found_again() {
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
                let report = mended(&bench.device, &moments, &format!("{name} of node {node}, height {height}"));
                assert!(report.has_lost());
                unproven += u64::from(report.told.iter().any(|told| told.is_loss));
                if is_mapped {
                    assert_eq!(report.lost.iter().map(|lost| lost.what).collect::<Vec<_>>(), [Lost::Changes]);
                }
            }
        }
    }
    assert!(unproven > 5, "{unproven} repairs could not prove what they made");
}

#[test]
fn behind_a_damaged_batch_the_log_ends() {
    let device = example(5);
    let bench = Bench::new(&device);
    let log = bench.superblock.geometry.log_at + bench.superblock.replay.position % bench.superblock.geometry.log_bytes;
    let want = tree(&shared(&example(2)));
    // Each call is a frame or two: of making, and of writing.
    bench.flip(log + 2 * 4096 + 100);
    let report = repair(&bench.device, false).unwrap();
    assert!(report.has_lost() && report.lost.is_empty(), "{report:#?}");
    assert!(crate::check(&bench.device).unwrap().is_clean());
    let got = tree(&bench.device);
    assert!(find_difference(&want, &got).is_none(), "{:?}", find_difference(&want, &got));
}

#[test]
fn what_was_not_logged_is_not_passed_over_for_a_node() {
    // A file is written over a checkpoint, and what comes behind it is in no log.
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
            let report = mended(&bench.device, &moments, &format!("node {node}, logged: {is_logged}"));
            assert!(report.has_lost(), "{report:#?}");
            let taken = format!("taken was superblock {generation} ");
            assert!(report.told.iter().any(|told| told.what.starts_with(&taken)), "{report:#?}");
        }
        // Without the newest superblock the one before is taken, and what it lacks is told, even if nothing came behind it.
        let bench = Bench::new(&device);
        bench.overwrite(crate::disk::SLOTS_AT[generation as usize % 2], 4096);
        let refused = Evergreen::open(bench.device.clone(), Limits::default()).err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|why| why.contains("it was durable when")), "{refused:?}");
        assert!(mended(&bench.device, &moments, "the newest superblock").has_lost());
    }
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
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
    assert_eq!((dry.told, dry.lost), (done.told, done.lost));
}

#[test]
fn whatever_blocks_are_lost_it_is_clean_then() {
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
        let report = mended(&bench.device, &moments, &format!("round {round}, {blocks:?}"));
        let got = tree(&bench.device);
        let whole =
            want.iter().filter(|(path, node)| got.get(*path).is_some_and(|got| got.content == node.content)).count();
        assert!(whole > 0, "round {round}: {report:#?}");
    }
}

#[test]
fn what_is_no_evergreen_or_another_version_is_refused() {
    let nothing: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
    assert!(repair(&nothing, false).unwrap_err().to_string().contains("no evergreen lies there"));
    let bench = Bench::new(&example(0));
    for at in crate::disk::SLOTS_AT {
        let mut block = [0; 4096];
        bench.device.read_at(at, &mut block).unwrap();
        block[8] = 9;
        let sum = xxhash_rust::xxh3::xxh3_64(&block[..4088]);
        block[4088..].copy_from_slice(&sum.to_le_bytes());
        bench.device.write_at(at, &block).unwrap();
    }
    let refused = repair(&bench.device, false).unwrap_err().to_string();
    assert!(refused.contains("an evergreen of format version 9; this program reads version 1 only"), "{refused}");
}
