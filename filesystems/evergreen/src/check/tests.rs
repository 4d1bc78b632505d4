//! The check with damage of every field: the report must name the structure and the field.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::{Bytes as Size, Rng, Seed};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode, Timestamp};

use super::*;
use crate::{
    Batch, Evergreen, EvergreenFs, FsOptions, KeyValue, Limits, MakeOptions, Message,
    disk::{Copies, Extent, Extents, KeyOrder, NodeId, Place, Shape, write_superblock},
    node::{Body, Header, Node},
};

const TINY: MakeOptions = MakeOptions {
    uuid: *b"checked evergree",
    shape: Shape { node_bytes: 4096, basement_bytes: 1024, fanout: 4, key_order: KeyOrder::BirthPath },
    unit_bytes: 4096,
    log_bytes: Some(128 << 10),
    copies: Copies::One,
};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };

/// A file system with some files on a tree of three levels, with waiting messages, and with batches
/// in the log.
fn example() -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
    Evergreen::make(device.clone(), &TINY).unwrap();
    let store = Arc::new(Evergreen::open(device.clone(), Limits::default()).unwrap());
    let fs = EvergreenFs::format(store.clone(), FsOptions { keys: KeyOrder::BirthPath }).unwrap();
    for number in 0..60u64 {
        let name = format!("file {number}");
        let file = fs.make_node(&CALLER, Ino::ROOT, name.as_bytes(), &NewNode::file(0o644)).unwrap();
        fs.write(&CALLER, file.ino, 0, &vec![number as u8; (number * 97) as usize]).unwrap();
    }
    store.checkpoint().unwrap();
    for number in 0..4u64 {
        let file = fs.lookup(Ino::ROOT, format!("file {number}").as_bytes()).unwrap();
        fs.write(&CALLER, file.ino, 7, b"written after the checkpoint").unwrap();
        store.sync().unwrap();
    }
    device
}

fn shared(device: &MemoryDevice) -> Arc<dyn BlockDevice> {
    Arc::new(device.fork())
}

/// The findings of a check, as one text.
fn told(device: &Arc<dyn BlockDevice>) -> String {
    match check(device) {
        Ok(report) => {
            let torn = report.torn_superblock.iter().chain(&report.copies.torn);
            let torn = torn.map(|finding| format!("torn {finding}"));
            torn.chain(report.findings.iter().map(Finding::to_string)).collect::<Vec<_>>().join("\n")
        }
        Err(error) => error.to_string(),
    }
}

/// The superblock, map and nodes of a device. A test changes them and writes them back with correct
/// checksums.
struct Forge {
    device: Arc<dyn BlockDevice>,
    area: Area,
    superblock: Superblock,
    map: NodeMap,
}

impl Forge {
    fn new(device: &MemoryDevice) -> Self {
        let device = shared(device);
        let superblock = read_newest(&*device).unwrap();
        let area = Area::new(device.clone(), superblock.geometry);
        let map = NodeMap::load(&area, &superblock).unwrap();
        Self { device, area, superblock, map }
    }

    fn node(&self, id: NodeId) -> Node {
        let place = self.map.get(id).unwrap();
        let bytes = self.area.read(&place.extents, 0, place.bytes as usize).unwrap();
        let header = Header::bytes(&bytes).unwrap();
        let mut node = Header::decode(bytes.slice(..header)).unwrap().node;
        for number in 0..node.parts() {
            let stored = node.stored(number).unwrap();
            node.load(number, bytes.slice(stored.at..stored.at + stored.bytes)).unwrap();
        }
        node
    }

    /// The first node of a kind.
    fn find(&self, is_wanted: impl Fn(&Node) -> bool) -> (NodeId, Node) {
        let nodes = self.map.iter().map(|(id, _)| (id, self.node(id)));
        nodes.into_iter().find(|(_, node)| is_wanted(node)).expect("the example has such a node")
    }

    /// Writes a node to free units, with the number `id` and the generation `generation`.
    fn put(&mut self, at: NodeId, node: &Node, id: NodeId, generation: u64) {
        let encoded = node.encode(Some(&self.superblock.uuid), id, generation);
        let count = self.superblock.geometry.units_for(encoded.bytes.len() as u64);
        let first = self.superblock.geometry.units - 100 - count;
        let extents = Extents::new(&[Extent { first, count }]).unwrap();
        let bytes = encoded.bytes.len() as u32;
        self.area.write(&extents, encoded.bytes).unwrap();
        self.map.insert(at, Place { extents, second: Extents::default(), bytes, header_sum: encoded.header_sum });
    }

    /// Writes map and superblock; returns the findings of the check.
    fn told(mut self) -> String {
        let bytes = self.map.encode(Some(&self.superblock.uuid), self.superblock.generation);
        let count = self.superblock.geometry.units_for(bytes.len() as u64);
        // After the places of `put`, because the map may be longer now.
        self.superblock.map.extents = vec![Extent { first: self.superblock.geometry.units - 64, count }];
        self.superblock.map.bytes = bytes.len() as u64;
        self.superblock.map.sum = NodeMap::sum(&bytes);
        self.superblock.map.node_sum = Some(self.map.node_sum());
        self.area.write(&self.superblock.map.extents, bytes).unwrap();
        write_superblock(&*self.device, &self.superblock).unwrap();
        told(&self.device)
    }
}

fn is_inner(node: &Node) -> bool {
    matches!(node.body, Body::Inner(_))
}

fn is_leaf(node: &Node) -> bool {
    !is_inner(node) && node.parts() > 1
}

#[test]
fn store_is_clean_before_and_after_opening() {
    let device = shared(&example());
    let report = check(&device).unwrap();
    assert_eq!((&report.findings, &report.torn_superblock, report.log_batches), (&vec![], &None, 4));
    assert!(report.levels >= 3 && report.leaves > 20, "{report:?}");
    drop(Evergreen::open(device.clone(), Limits::default()).unwrap());
    let report = check(&device).unwrap();
    assert_eq!((report.findings, report.log_batches), (vec![], 0));
    let statistics = crate::dump(&device, &crate::DumpWhat::Space, 0).unwrap().to_string();
    assert!(statistics.contains(&format!("free extents  {}", report.free_extents)), "{statistics}");
}

#[test]
fn a_forged_field_is_named() {
    type Change = fn(&mut Forge);
    let cases: &[(&str, Change)] = &[
        ("are claimed", |forge| forge.superblock.live_bytes += 1),
        ("superblock: next node", |forge| forge.superblock.next_node = forge.superblock.root.0 + 1),
        ("superblock: key order", |forge| forge.superblock.shape.key_order = KeyOrder::InodeNumber),
        ("node: child is not in the map", |forge| {
            let (id, _) = forge.find(is_leaf);
            forge.map.remove(id);
        }),
        ("node map: node is there", |forge| {
            let (_, leaf) = forge.find(is_leaf);
            let id = NodeId(forge.superblock.next_node);
            forge.superblock.next_node += 1;
            forge.put(id, &leaf, id, 1);
        }),
        ("node map: extent", |forge| {
            let (one, _) = forge.find(is_leaf);
            let (other, _) = forge.find(is_inner);
            let place = forge.map.get(other).unwrap().clone();
            forge.map.insert(one, place);
        }),
        ("node: number", |forge| {
            let (id, leaf) = forge.find(is_leaf);
            forge.put(id, &leaf, NodeId(id.0 + 1), 1);
        }),
        ("node: generation", |forge| {
            let (id, leaf) = forge.find(is_leaf);
            forge.put(id, &leaf, id, forge.superblock.generation + 1);
        }),
        ("node: header sum", |forge| {
            let (id, _) = forge.find(is_leaf);
            let mut place = forge.map.get(id).unwrap().clone();
            place.header_sum += 1;
            forge.map.insert(id, place);
        }),
        ("node: bytes", |forge| {
            let (id, _) = forge.find(is_leaf);
            let mut place = forge.map.get(id).unwrap().clone();
            place.bytes -= 1;
            forge.map.insert(id, place);
        }),
        ("node: lower bound", |forge| {
            let (id, mut leaf) = forge.find(|node| is_leaf(node) && !node.lower.is_empty());
            leaf.lower = Bytes::new();
            forge.put(id, &leaf, id, 1);
        }),
        ("node: upper bound", |forge| {
            let (id, mut leaf) = forge.find(|node| is_leaf(node) && node.upper.is_some());
            leaf.upper = None;
            forge.put(id, &leaf, id, 1);
        }),
        ("node: height", |forge| {
            let root = forge.superblock.root;
            let mut top = forge.node(root);
            let (leaf, _) = forge.find(is_leaf);
            top.inner_mut().children_mut()[0].id = leaf;
            forge.put(root, &top, root, 1);
        }),
        ("node: child is named twice", |forge| {
            let (id, mut inner) = forge.find(|node| is_inner(node) && node.height() == 1);
            let children = inner.inner_mut().children_mut();
            children[1].id = children[0].id;
            forge.put(id, &inner, id, 1);
        }),
        ("before the upper bound", |forge| {
            let (id, inner) = forge.find(|node| is_inner(node) && node.height() == 1);
            let (first, second) = (inner.inner().children()[0].id, inner.inner().children()[1].id);
            let (mut left, right) = (forge.node(first), forge.node(second));
            left.body = right.body;
            forge.put(first, &left, first, 1);
            assert!(id != first);
        }),
        ("within the bounds of the child", |forge| {
            let (id, mut inner) = forge.find(|node| is_inner(node) && node.parts() > 1);
            inner.inner_mut().children_mut()[1]
                .change(|waiting| waiting.send(Bytes::from_static(b"a"), Message::Delete));
            forge.put(id, &inner, id, 1);
        }),
        ("range to", |forge| {
            let (id, mut inner) = forge.find(|node| is_inner(node) && node.upper.is_some());
            let change =
                |from: Bytes, to: Bytes| move |waiting: &mut crate::node::Buffer| waiting.delete_range(from, to);
            let lower = inner.inner().children()[0].lower.clone();
            inner.inner_mut().children_mut()[0].change(change(lower, Bytes::from_static(b"zzz")));
            forge.put(id, &inner, id, 1);
        }),
    ];
    let device = example();
    for (wanted, change) in cases {
        let mut forge = Forge::new(&device);
        change(&mut forge);
        let found = forge.told();
        assert!(found.contains(wanted), "{wanted:?} is not in: {found}");
    }
}

/// Flips one bit of a structure in use; the check must report it.
#[test]
fn every_bit_flip_is_found() {
    let device = example();
    let forge = Forge::new(&device);
    let geometry = forge.superblock.geometry;
    let mut ranges: Vec<(u64, u64, &str)> = vec![(0, 4096, "superblock"), (1 << 20, 4096, "superblock")];
    ranges.push((geometry.unit_at(forge.superblock.map.extents[0].first), forge.superblock.map.bytes, "node map"));
    for (_, place) in forge.map.iter() {
        ranges.push((geometry.unit_at(place.extents[0].first), u64::from(place.bytes), "node"));
    }
    // The last frame may have been cut by a loss of power; those before it were durable.
    let frames = geometry.log_at + forge.superblock.replay.position % geometry.log_bytes;
    ranges.push((frames, 3 * 4096, "log"));
    let mut rng = Rng::for_purpose(Seed(1), "flips");
    for (at, bytes, structure) in ranges {
        for _ in 0..if structure == "node" { 2 } else { 8 } {
            let (byte, bit) = (at + rng.below(bytes), rng.below(8));
            let copy = shared(&device);
            let mut found = [0];
            copy.read_at(byte, &mut found).unwrap();
            copy.write_at(byte, &[found[0] ^ 1 << bit]).unwrap();
            let text = told(&copy);
            assert!(text.contains(structure), "bit {bit} of byte {byte} of a {structure}: {text:?}");
        }
    }
}

#[test]
fn stores_without_files_are_checked() {
    let device = Arc::new(MemoryDevice::new("disk", Size(8 << 20)));
    Evergreen::make(device.clone(), &TINY).unwrap();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    let mut values = 0;
    for number in 0..300u32 {
        let mut batch = Batch::new();
        batch.put(number.to_be_bytes().to_vec(), vec![1; 200]);
        if number % 50 == 49 {
            batch.delete_range((number - 20).to_be_bytes().to_vec(), (number - 10).to_be_bytes().to_vec());
        }
        store.apply(batch).unwrap();
    }
    store.checkpoint().unwrap();
    store
        .scan(&[], &[255; 5], &mut |_, _| {
            values += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    let device: Arc<dyn BlockDevice> = device;
    let report = check_store(&device).unwrap();
    assert_eq!((report.findings, report.keys), (vec![], values));
    assert!(!check(&device).unwrap().is_clean(), "there are no files in it");
}
