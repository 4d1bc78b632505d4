//! The tree against the model, with tiny nodes, its invariants checked after each operation.

use std::{cell::RefCell, collections::BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use senesce_core::{Rng, Seed};

use super::{Known, Source, Tree, sizes::Sizes};
use crate::{
    Batch, Change, KeyValue, Message, ModelStore, Result,
    disk::{KeyOrder, NodeId, Shape},
    node::Body,
};

const TINY: Shape = Shape { node_bytes: 1024, basement_bytes: 256, fanout: 4, key_order: KeyOrder::BirthPath };

/// Nodes in bytes, in memory.
#[derive(Default)]
struct Shelf {
    nodes: std::collections::HashMap<NodeId, (Vec<u8>, u64)>,
    leaf_reads: RefCell<u64>,
}

impl Source for Shelf {
    fn known(&self, id: NodeId) -> Option<Known> {
        self.nodes.get(&id).map(|(bytes, sum)| Known { bytes: bytes.len(), header_sum: *sum })
    }

    fn read(&self, id: NodeId, at: usize, bytes: usize) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(&self.nodes[&id].0[at..at + bytes]))
    }

    fn read_row(&self, id: NodeId, at: usize, behind: &[NodeId]) -> Result<Vec<Bytes>> {
        // Two of three lie behind the one before.
        let row = behind.iter().take_while(|id| id.0 % 3 > 0).map(|id| self.nodes[id].0.clone().into());
        Ok(std::iter::once(self.nodes[&id].0[at..].to_vec().into()).chain(row).collect())
    }

    fn note_read(&self, is_leaf: bool, _bytes: usize) {
        *self.leaf_reads.borrow_mut() += u64::from(is_leaf);
    }

    fn place(&self, id: NodeId) -> String {
        format!("shelf, {id}")
    }

    fn room_bytes(&self, bytes: usize) -> u64 {
        bytes as u64
    }
}

/// A tree and what it should be.
struct Pair {
    tree: Tree<Shelf>,
    model: ModelStore,
    sizes: Sizes,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        Self {
            tree: Tree::new(Shelf::default(), &shape),
            model: ModelStore::new(u64::MAX, 0),
            sizes: Sizes::new(&shape),
        }
    }

    fn apply(&mut self, batch: Batch) {
        self.model.apply(batch.clone()).unwrap();
        self.tree.settle().unwrap();
        self.tree.ingest(batch.into());
    }

    /// All dirty nodes go to the shelf, and all are forgotten.
    fn shelve(&mut self) {
        let (frozen, freed) = self.tree.nodes.freeze();
        for (id, node) in &frozen {
            let encoded = node.encode(*id, 7);
            assert!(
                encoded.bytes.len() <= node.most_bytes(),
                "{} bytes, {} said",
                encoded.bytes.len(),
                node.most_bytes()
            );
            self.tree.nodes.source_mut().nodes.insert(*id, (encoded.bytes, encoded.header_sum));
        }
        for id in freed {
            self.tree.nodes.source_mut().nodes.remove(&id);
        }
        self.tree.nodes.written(frozen.into_iter().map(|(id, _)| id));
        self.tree.trim(0);
    }

    fn entries(&mut self) -> Vec<(Bytes, Bytes)> {
        let (mut all, mut from) = (Vec::new(), Some(Bytes::new()));
        let mut most = 1;
        while let Some(at) = from {
            let step = self.tree.scan_step(&at, &Bytes::from_static(&[0xff; 4]), most, most > 3).unwrap();
            all.extend(step.entries);
            from = step.next;
            most = most % 40 + 1;
        }
        all
    }

    /// Invariants: bounds, depth, sizes, normal form, nothing unreachable, nothing freed that is reached.
    fn audit(&mut self) -> BTreeSet<NodeId> {
        let mut reached = BTreeSet::new();
        let root = self.tree.root();
        let height = self.tree.nodes.whole(root).unwrap().height();
        self.audit_node(root, height, &Bytes::new(), None, &mut reached);
        assert_eq!(self.tree.nodes.whole(root).unwrap().upper, None);
        reached
    }

    fn audit_node(
        &mut self,
        id: NodeId,
        height: u8,
        lower: &Bytes,
        upper: Option<&Bytes>,
        reached: &mut BTreeSet<NodeId>,
    ) {
        assert!(reached.insert(id), "{id} is reached twice");
        let node = self.tree.nodes.whole(id).unwrap().clone();
        assert_eq!((node.height(), &node.lower, node.upper.as_ref()), (height, lower, upper), "{id}");
        match &node.body {
            Body::Leaf(leaf) => {
                let parts: Vec<_> = leaf.parts().iter().map(|part| part.body.here().clone()).collect();
                let keys: Vec<&Bytes> = parts.iter().flat_map(|part| part.entries()).map(|(key, _)| key).collect();
                assert!(keys.is_sorted_by(|a, b| a < b), "{id}");
                assert!(keys.first().is_none_or(|key| *key >= lower), "{id}");
                assert!(keys.last().is_none_or(|key| upper.is_none_or(|upper| *key < upper)), "{id}");
                for part in parts {
                    assert!(part.weight() <= self.sizes.basements.most || part.entries().len() == 1);
                }
                assert!(leaf.weight() <= self.sizes.node_bytes || leaf.parts().len() == 1 || id == self.tree.root());
            }
            Body::Inner(inner) => {
                assert!(inner.children().len() <= self.sizes.fanout, "{id}");
                assert_eq!(inner.children()[0].lower, node.lower, "{id}");
                for (index, child) in inner.children().iter().enumerate() {
                    let buffer = child.body.here();
                    assert_eq!((buffer.fault(), buffer.weight()), (None, child.weight), "{id}");
                    let keys =
                        || buffer.messages().keys().chain(buffer.ranges().iter().flat_map(|(from, to)| [from, to]));
                    assert!(
                        keys().all(|key| *key >= child.lower && node.end(index).is_none_or(|end| key <= end)),
                        "{id}"
                    );
                    self.audit_node(child.id, height - 1, &child.lower, node.end(index), reached);
                }
            }
        }
    }

    fn same(&mut self) {
        assert_eq!(self.entries(), self.model.entries());
    }
}

fn key(number: u64) -> Bytes {
    Bytes::from(format!("{}{:03}", ["a", "directory/", "directory/x/"][number as usize % 3], number / 3))
}

fn draw(rng: &mut Rng, keys: u64) -> Change {
    let at = key(rng.below(keys));
    let mut bytes = vec![0; rng.between(1, 40) as usize];
    rng.fill(&mut bytes);
    let message = match rng.weighted(&[40, 15, 20, 5, 8, 1]) {
        0 => Message::put(bytes.into()),
        1 => Message::Delete,
        2 => Message::patch(rng.below(30) as u32, bytes.into()),
        3 => Message::cut(rng.below(30) as u32),
        4 => {
            let (a, b) = (at, key(rng.below(keys)));
            return Change::DeleteRange { from: a.clone().min(b.clone()), to: a.max(b) };
        }
        _ => Message::put(vec![7; rng.between(200, 3000) as usize].into()),
    };
    Change::One { key: at, message }
}

fn play(pair: &mut Pair, seed: u64, operations: u64, keys: u64, shelve_every: u64) {
    let mut rng = Rng::for_purpose(Seed(seed), "tree");
    for number in 0..operations {
        let mut batch: Vec<Change> = (0..rng.between(1, 6)).map(|_| draw(&mut rng, keys)).collect();
        // Long ranges would leave nothing to look at.
        if number % 50 != 0 {
            batch.retain(|change| matches!(change, Change::One { .. }));
        }
        pair.apply(batch.into());
        let at = key(rng.below(keys));
        assert_eq!(pair.tree.get(&at).unwrap(), pair.model.get(&at).unwrap(), "operation {number}");
        if number % shelve_every == 0 {
            pair.tree.settle().unwrap();
            let reached = pair.audit();
            pair.same();
            pair.shelve();
            assert_eq!(
                pair.tree.nodes.source().nodes.keys().copied().collect::<BTreeSet<_>>(),
                reached,
                "none is lost, none left"
            );
        }
    }
    pair.same();
}

#[test]
fn long_runs_are_what_the_model_is() {
    for seed in 0..4 {
        play(&mut Pair::new(TINY), seed, 2500, 1500, 7);
    }
    play(&mut Pair::new(Shape { node_bytes: 512, ..TINY }), 9, 2500, 300, 3);
}

#[test]
fn what_is_brought_down_is_what_it_was() {
    let mut pair = Pair::new(TINY);
    play(&mut pair, 5, 800, 900, 50);
    while pair.tree.flush_one_way().unwrap() {
        pair.audit();
        pair.same();
    }
}

#[test]
fn a_range_over_all_frees_all_but_the_way_down_and_reads_no_leaf() {
    let mut pair = Pair::new(TINY);
    for number in 0..2000 {
        let mut batch = Batch::new();
        batch.put(key(number), vec![1; 40]);
        pair.apply(batch);
    }
    pair.tree.settle().unwrap();
    pair.shelve();
    let before = *pair.tree.nodes.source().leaf_reads.borrow();
    let nodes = pair.tree.nodes.source().nodes.len();
    assert!(nodes > 100, "{nodes} nodes");
    let mut batch = Batch::new();
    batch.delete_range(Bytes::from_static(b"a0"), Bytes::from_static(b"z"));
    batch.put(key(7), vec![2]);
    pair.apply(batch);
    pair.tree.settle().unwrap();
    let read = *pair.tree.nodes.source().leaf_reads.borrow() - before;
    assert!(read <= 4, "{read} leaves were read, at the ends");
    pair.shelve();
    pair.audit();
    pair.same();
    let left = pair.tree.nodes.source().nodes.len();
    assert!(left * 5 < nodes, "{left} of {nodes} nodes are left");
}

#[test]
fn ascending_keys_fill_their_leaves() {
    let mut pair = Pair::new(TINY);
    for number in 0..3000 {
        let mut batch = Batch::new();
        batch.put(format!("{number:06}"), vec![1; 30]);
        pair.apply(batch);
    }
    while pair.tree.flush_one_way().unwrap() {}
    pair.shelve();
    pair.same();
    let leaves = pair.tree.nodes.source().nodes.values().filter(|(bytes, _)| bytes[21] == 0).count();
    let filled = 3000 * (6 + 30 + 8) * 100 / (leaves * TINY.node_bytes as usize);
    assert!(filled > 75, "{leaves} leaves are filled to {filled}%");
}

#[test]
fn a_flipped_bit_anywhere_is_seen() {
    let mut pair = Pair::new(TINY);
    play(&mut pair, 3, 120, 200, 1000);
    pair.shelve();
    let entries = pair.model.entries();
    let ids: Vec<NodeId> = pair.tree.nodes.source().nodes.keys().copied().collect();
    let mut rng = Rng::for_purpose(Seed(1), "bits");
    for id in ids {
        for _ in 0..40 {
            let bytes = &mut pair.tree.nodes.source_mut().nodes.get_mut(&id).unwrap().0;
            let bit = rng.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let root = pair.tree.root();
            let shelf = Shelf { nodes: pair.tree.nodes.source().nodes.clone(), ..Shelf::default() };
            let read = Tree::open(shelf, &TINY, root, pair.tree.nodes.next()).and_then(|mut tree| {
                let (mut from, mut all) = (Some(Bytes::new()), 0);
                while let Some(at) = from {
                    let step = tree.scan_step(&at, &Bytes::from_static(b"z"), 100, true)?;
                    all += step.entries.len();
                    from = step.next;
                }
                Ok(all)
            });
            assert!(read.is_err(), "bit {bit} of {id}: {read:?} entries of {}", entries.len());
            pair.tree.nodes.source_mut().nodes.get_mut(&id).unwrap().0[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_run_is_what_the_model_is(seed: u64, operations in 1u64..250, keys in 3u64..400, shelve_every in 1u64..60) {
        play(&mut Pair::new(TINY), seed, operations, keys, shelve_every);
    }
}
