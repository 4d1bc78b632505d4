//! Shared parts of the tests of the repair: an example, ways to damage it, and the checks of a
//! repair.

use std::collections::BTreeSet;

use senesce_block::MemoryDevice;
use senesce_core::Bytes as Size;
use senesce_fsapi::{
    Attributes, Caller, FileKind, FileSystem, Ino, NewNode, SetXattrMode, Timestamp,
    conformance::{Tree, TreeNode, collect_tree},
};

use super::*;
use crate::{
    EvergreenFs, FsOptions, KeyValue, MakeOptions,
    disk::{Area, Copies, MIRRORS_AT, NodeId, NodeMap, SLOTS_AT, Shape, read_newest},
    node::{Body, Header, Node},
};

pub(super) const TINY: MakeOptions = MakeOptions {
    uuid: *b"repair evergreen",
    shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: crate::disk::KeyOrder::BirthPath },
    unit_bytes: 4096,
    log_bytes: Some(128 << 10),
    copies: Copies::One,
};
pub(super) const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };

/// Directories, files, links and attributes on a tree of several levels that was overwritten often.
/// `logged` calls are in the log.
pub(super) fn example(logged: u64) -> Arc<MemoryDevice> {
    example_of(logged).0
}

/// Like [`example`]; also returns the tree at each checkpoint and sync, the last one at the end.
pub(super) fn example_of(logged: u64) -> (Arc<MemoryDevice>, Vec<Tree>) {
    let (device, moments, _) = example_with(&TINY, logged);
    (device, moments)
}

/// Like [`example_of`] with other options; also returns the device after half of the calls.
pub(super) fn example_with(options: &MakeOptions, logged: u64) -> (Arc<MemoryDevice>, Vec<Tree>, MemoryDevice) {
    let device = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
    Evergreen::make(device.clone(), options).unwrap();
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
                fs.set_xattr(&CALLER, ino, b"user.note", &[7; 300], SetXattrMode::Any).unwrap();
                fs.link(&CALLER, ino, Ino::ROOT, format!("{name} link").as_bytes()).unwrap();
            }
        }
        fs.symlink(&CALLER, directory, b"symlink", b"to somewhere").unwrap();
        store.checkpoint().unwrap();
        moments.push(collect_tree(&fs).unwrap());
    }
    let before = device.fork();
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
    drop(fs);
    (device, moments, before)
}

/// An evergreen of format version 1 with three calls in its log, as a program of that time wrote
/// it.
pub(super) fn version_1() -> Arc<MemoryDevice> {
    // The blocks that are not zero: each has its number (u32), the count of its bytes (u16), and
    // the bytes.
    let mut rest: &[u8] = include_bytes!("../../tests/evergreen/device/version-1.blocks");
    let device = MemoryDevice::new("disk", Size(4 << 20));
    while let Some((head, tail)) = rest.split_at_checked(6) {
        let number = u32::from_le_bytes(head[..4].try_into().unwrap());
        let (bytes, next) = tail.split_at(u16::from_le_bytes(head[4..].try_into().unwrap()).into());
        let mut block = [0; 4096];
        block[..bytes.len()].copy_from_slice(bytes);
        device.write_at(u64::from(number) * 4096, &block).unwrap();
        rest = next;
    }
    Arc::new(device)
}

pub(super) fn shared(device: &MemoryDevice) -> Arc<dyn BlockDevice> {
    Arc::new(device.fork())
}

pub(super) fn tree(device: &Arc<dyn BlockDevice>) -> Tree {
    collect_tree(&EvergreenFs::open_on(device.clone(), Limits::default()).unwrap()).unwrap()
}

/// The structures of a device, for damage.
pub(super) struct Bench {
    pub(super) device: Arc<dyn BlockDevice>,
    pub(super) superblock: Superblock,
    pub(super) map: NodeMap,
}

impl Bench {
    pub(super) fn new(device: &MemoryDevice) -> Self {
        Self::of(shared(device))
    }

    pub(super) fn of(device: Arc<dyn BlockDevice>) -> Self {
        let superblock = read_newest(&*device).unwrap();
        let map = NodeMap::load(&Area::new(device.clone(), superblock.geometry), &superblock).unwrap();
        Self { device, superblock, map }
    }

    pub(super) fn at(&self, id: NodeId) -> (u64, u64) {
        let place = self.map.get(id).unwrap();
        (self.superblock.geometry.unit_at(place.extents[0].first), u64::from(place.bytes))
    }

    pub(super) fn node(&self, id: NodeId) -> (usize, Node) {
        let mut start = vec![0; 4096];
        self.device.read_at(self.at(id).0, &mut start).unwrap();
        let bytes = Header::bytes(&start).unwrap();
        (bytes, Header::decode(Bytes::from(start).slice(..bytes)).unwrap().node)
    }

    pub(super) fn generation(&self, id: NodeId) -> u64 {
        let mut start = vec![0; 4096];
        self.device.read_at(self.at(id).0, &mut start).unwrap();
        let bytes = Header::bytes(&start).unwrap();
        Header::decode(Bytes::from(start).slice(..bytes)).unwrap().generation
    }

    /// The nodes of a height, in the order of their keys.
    pub(super) fn nodes(&self, height: u8) -> Vec<NodeId> {
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

    pub(super) fn height(&self) -> u8 {
        self.node(self.superblock.root).1.height()
    }

    pub(super) fn flip(&self, at: u64) {
        let mut byte = [0];
        self.device.read_at(at, &mut byte).unwrap();
        self.device.write_at(at, &[byte[0] ^ 0x10]).unwrap();
    }

    pub(super) fn overwrite(&self, at: u64, bytes: usize) {
        self.device.write_at(at, &vec![0x5a; bytes]).unwrap();
    }

    /// Flips a bit in both copies of a slot.
    pub(super) fn flip_slot(&self, slot: usize, at: u64) {
        self.flip(SLOTS_AT[slot] + at);
        self.flip(MIRRORS_AT[slot] + at);
    }

    pub(super) fn overwrite_slot(&self, slot: usize, at: u64, bytes: usize) {
        self.overwrite(SLOTS_AT[slot] + at, bytes);
        self.overwrite(MIRRORS_AT[slot] + at, bytes);
    }

    pub(super) fn spoil_map(&self) {
        for extent in &self.superblock.map.extents {
            self.overwrite(self.superblock.geometry.unit_at(extent.first), 4096 * extent.count as usize);
        }
    }

    /// Overwrites the superblock before the newest one, so that the repair cannot use it.
    pub(super) fn spoil_older(&self) {
        let older = (self.superblock.generation + 1) % 2;
        self.overwrite_slot(older as usize, 0, 4096);
    }

    pub(super) fn spoil_header(&self, id: NodeId) {
        self.flip(self.at(id).0 + 30);
    }

    pub(super) fn spoil_last_part(&self, id: NodeId) {
        let (at, bytes) = self.at(id);
        self.flip(at + bytes - 1);
    }
}

/// Repairs, and checks that the state is clean. Each path that is not reported as lost must be as
/// at the last moment. If the repair cannot prove that, the path may be as at any moment, or
/// missing. Returns the report.
pub(super) fn expect_repaired(device: &Arc<dyn BlockDevice>, moments: &[Tree], case: &str) -> RepairReport {
    let report = repair(device, false).unwrap_or_else(|error| panic!("{case}: {error}"));
    let check = crate::check(device).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(report.is_needed && report.is_done && check.is_clean(), "{case}: {:?}", check.findings);
    expect_ways(device, case);
    let got = tree(device);
    // Losses of the log, or with a map, are reported without file names.
    let is_proven = report.notes.iter().all(|note| !note.is_loss);
    let last = if is_proven { moments.len() - 1 } else { 0 };
    let allowed = &moments[last..];
    let paths: BTreeSet<&Vec<u8>> = allowed.iter().flat_map(Tree::keys).chain(got.keys()).collect();
    for path in paths {
        let found = got.get(path);
        let is_absent = found.is_none() && (!is_proven || !allowed[0].contains_key(path));
        let is_there = |found| allowed.iter().any(|moment| moment.get(path).is_some_and(|node| is_same(node, found)));
        // The path may be another name of a file that the report names.
        let is_any_told = || {
            allowed.iter().chain([&got]).any(|tree| {
                let first = tree.get(path).map(|node| &node.first_path);
                tree.iter().any(|(other, same)| Some(&same.first_path) == first && is_told(&report, other))
            })
        };
        let is_found = path.starts_with(b"lost+found") && !moments.iter().any(|moment| moment.contains_key(path));
        assert!(
            is_absent || found.is_some_and(is_there) || is_found || is_any_told(),
            "{case}: {}, proven: {is_proven}; {:#?}; {found:?}",
            path.escape_ascii(),
            report.files.lost
        );
    }
    let again = repair(device, false).unwrap();
    assert!(!again.is_needed, "{case}: {:?}", again.notes);
    report
}

/// Checks that no node is older than a node below it; a repair without a map depends on it.
pub(super) fn expect_ways(device: &Arc<dyn BlockDevice>, case: &str) {
    let bench = Bench::of(device.clone());
    for (id, _) in bench.map.iter() {
        let Body::Inner(inner) = bench.node(id).1.body else { continue };
        let newest = inner.children().iter().map(|child| bench.generation(child.id)).max();
        assert!(newest.is_none_or(|newest| newest <= bench.generation(id)), "{case}: {id} is older than one below it");
    }
}

/// Whether the found node is the wanted one. The link count of a directory may differ: the missing
/// subdirectory is reported itself.
pub(super) fn is_same(want: &TreeNode, found: &TreeNode) -> bool {
    let links = if want.attributes.kind == FileKind::Directory { found } else { want }.attributes.links;
    TreeNode { attributes: Attributes { links, ..want.attributes }, ..want.clone() } == *found
}

/// Whether the report has a loss at the path, or a loss of names in its directory.
pub(super) fn is_told(report: &RepairReport, path: &[u8]) -> bool {
    let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |at| &path[..at]);
    let names = |what: &str| what.contains("names") || what.contains("name:");
    report.files.lost.iter().any(|lost| lost.path == path || (lost.path == parent && names(&lost.what)))
}
