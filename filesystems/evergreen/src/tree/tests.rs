//! The tree compared with the model, with tiny nodes. Its invariants are checked after each
//! operation.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use proptest::prelude::*;
use senesce_core::{Rng, Seed};

use super::{Frozen, Known, Room, Source, Tree, View, size_limits::Sizes};
use crate::{
    Batch, Change, KeyValue, Message, ModelStore, Result,
    disk::{KeyOrder, NodeId, Shape},
    node::{Body, Node},
};

const TINY: Shape = Shape { node_bytes: 1024, basement_bytes: 256, fanout: 4, key_order: KeyOrder::BirthPath };

/// Encoded nodes in memory.
#[derive(Default)]
struct Shelf {
    leaf_reads: AtomicU64,
    /// A callback during reads.
    meanwhile: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

/// The bytes of a node, and the checksum of its header.
type Lying = (Arc<Vec<u8>>, u64);

impl Source for Shelf {
    type Place = Lying;
    type Map = HashMap<NodeId, Lying>;

    fn find(map: &Self::Map, id: NodeId) -> Option<&Lying> {
        map.get(&id)
    }

    fn known(&self, (bytes, header_sum): &Lying) -> Known {
        Known { bytes: bytes.len(), header_sum: *header_sum }
    }

    fn read(&self, (all, _): &Lying, at: usize, bytes: usize) -> Result<Bytes> {
        if let Some(meanwhile) = &mut *self.meanwhile.lock().unwrap() {
            meanwhile();
        }
        Ok(Bytes::copy_from_slice(&all[at..at + bytes]))
    }

    fn read_row(&self, (all, _): &Lying, at: usize, behind: &[(NodeId, Lying)]) -> Result<Vec<Bytes>> {
        // Two of three nodes are adjacent to the one before.
        let row = behind.iter().take_while(|(id, _)| id.0 % 3 > 0).map(|(_, (bytes, _))| bytes.to_vec().into());
        Ok(std::iter::once(all[at..].to_vec().into()).chain(row).collect())
    }

    fn note_read(&self, is_leaf: bool, _bytes: usize) {
        self.leaf_reads.fetch_add(u64::from(is_leaf), Relaxed);
    }

    fn describe(&self, id: NodeId, _place: Option<&Lying>) -> String {
        format!("shelf, {id}")
    }

    fn room(&self, bytes: usize, _is_leaf: bool) -> Room {
        Room { once: bytes as u64, all: bytes as u64 }
    }
}

/// A tree and its model.
struct Pair {
    shelf: Arc<Shelf>,
    tree: Tree<Shelf>,
    model: ModelStore,
    sizes: Sizes,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        let shelf = Arc::new(Shelf::default());
        Self {
            tree: Tree::new(shelf.clone(), HashMap::new(), &shape),
            shelf,
            model: ModelStore::new(u64::MAX, 0),
            sizes: Sizes::new(&shape),
        }
    }

    fn apply(&mut self, batch: Batch) {
        self.model.apply(batch.clone()).unwrap();
        self.tree.settle().unwrap();
        self.view().ingest(batch.into());
    }

    fn view(&self) -> MutexGuard<'_, View<Shelf>> {
        self.tree.shared().lock()
    }

    fn whole(&self, id: NodeId) -> Arc<Node> {
        self.tree.shared().find(|view| view.whole(id)).unwrap()
    }

    fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.tree.shared().find(|view| view.get(key)).unwrap()
    }

    /// Writes all dirty nodes to the shelf, and evicts all.
    fn shelve(&mut self) {
        let Frozen { nodes, freed, .. } = self.tree.freeze();
        let written: BTreeSet<NodeId> = nodes.iter().map(|(id, _)| *id).collect();
        let root = self.view().root();
        self.expect_ways(root, &written);
        for (id, node) in &nodes {
            let encoded = node.encode(Some(&[7; 16]), *id, 7);
            assert!(
                encoded.bytes.len() <= node.most_bytes(),
                "{} bytes; at most {} expected",
                encoded.bytes.len(),
                node.most_bytes()
            );
            self.view().cache.map_mut().insert(*id, (Arc::new(encoded.bytes), encoded.header_sum));
        }
        for id in freed {
            self.view().cache.map_mut().remove(&id);
        }
        self.view().cache.written(nodes.into_iter().map(|(id, _)| id));
        self.view().trim(0);
    }

    /// Checks that no node is older than a node below it. Returns whether the node or one below it
    /// is written.
    fn expect_ways(&mut self, id: NodeId, written: &BTreeSet<NodeId>) -> bool {
        let node = self.whole(id);
        let mut below = false;
        if let Body::Inner(inner) = &node.body {
            for child in inner.children() {
                below |= self.expect_ways(child.id, written);
            }
        }
        assert!(!below || written.contains(&id), "{id} is older than one below it");
        below || written.contains(&id)
    }

    fn entries(&mut self) -> Vec<(Bytes, Bytes)> {
        let (mut all, mut from) = (Vec::new(), Some(Bytes::new()));
        let mut most = 1;
        while let Some(at) = from {
            let to = Bytes::from_static(&[0xff; 4]);
            let step = self.tree.shared().find(|view| view.scan_step(&at, &to, most, most > 3)).unwrap();
            all.extend(step.entries);
            from = step.next;
            most = most % 40 + 1;
        }
        all
    }

    /// Checks the invariants: bounds, depth, sizes, normal form, and that exactly the reachable
    /// nodes exist.
    fn audit(&mut self) -> BTreeSet<NodeId> {
        let mut reached = BTreeSet::new();
        let root = self.view().root();
        let height = self.whole(root).height();
        self.audit_node(root, height, &Bytes::new(), None, &mut reached);
        assert_eq!(self.whole(root).upper, None);
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
        let node = self.whole(id);
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
                assert!(leaf.weight() <= self.sizes.node_bytes || leaf.parts().len() == 1 || id == self.view().root());
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
        // Many long ranges would leave the tree empty.
        if number % 50 != 0 {
            batch.retain(|change| matches!(change, Change::One { .. }));
        }
        pair.apply(batch.into());
        let at = key(rng.below(keys));
        assert_eq!(pair.get(&at), pair.model.get(&at).unwrap(), "operation {number}");
        if number % shelve_every == 0 {
            pair.tree.settle().unwrap();
            let reached = pair.audit();
            pair.same();
            pair.shelve();
            assert_eq!(
                pair.view().cache.map().keys().copied().collect::<BTreeSet<_>>(),
                reached,
                "the map has exactly the reachable nodes"
            );
        }
    }
    pair.same();
}

#[test]
fn long_runs_agree_with_the_model() {
    for seed in 0..4 {
        play(&mut Pair::new(TINY), seed, 2500, 1500, 7);
    }
    play(&mut Pair::new(Shape { node_bytes: 512, ..TINY }), 9, 2500, 300, 3);
}

/// Gathers leaves. Afterwards no messages wait for them, and no neighbours among them can be
/// joined.
fn gather(pair: &mut Pair, rng: &mut Rng) -> Result<()> {
    let (most, is_worth) = (rng.between(1, 5000) as usize, rng.below(3) > 0);
    let mut looked_at = 0;
    let found = pair.tree.gather(most, &mut |leaves| {
        looked_at = leaves.len();
        let bytes: usize = leaves.iter().map(|leaf| leaf.bytes).sum();
        assert!(leaves.len() == 1 || bytes <= most, "{bytes} bytes");
        is_worth
    });
    assert!(looked_at > 0 && found.leaves.is_empty() != is_worth);
    let nodes: Vec<Arc<Node>> =
        found.leaves.iter().map(|id| pair.tree.shared().find(|view| view.whole(*id)).unwrap()).collect();
    for beside in nodes.windows(2) {
        assert_eq!(beside[0].upper.as_ref(), Some(&beside[1].lower));
        let bytes: usize = beside.iter().map(|node| node.weight()).sum();
        assert!(bytes > TINY.node_bytes as usize / 4, "{bytes} bytes are in two leaves");
        // Basements are not divided: the first leaf takes all that fit.
        let first = beside[1].leaf().parts().first().map_or(0, |part| part.weight);
        assert!(beside[0].weight() + first > TINY.node_bytes as usize / 10 * 8, "{bytes} bytes");
    }
    let mut stack = vec![pair.view().root()];
    while let Some(id) = stack.pop() {
        let node = pair.tree.shared().find(|view| view.whole(id)).unwrap();
        for child in node.inner().children() {
            assert!(child.weight == 0 || !found.leaves.contains(&child.id), "something waits for {}", child.id);
            if node.height() > 1 {
                stack.push(child.id);
            }
        }
    }
    Ok(())
}

#[test]
fn gathering_and_flushing_keep_all_entries() {
    let mut pair = Pair::new(TINY);
    play(&mut pair, 5, 800, 900, 50);
    let mut rng = Rng::for_purpose(Seed(6), "ways");
    loop {
        let is_more = match rng.below(3) {
            0 => gather(&mut pair, &mut rng).map(|()| true),
            _ => pair.tree.flush_one_way(),
        };
        pair.audit();
        pair.same();
        if rng.below(2) == 0 {
            pair.shelve();
        }
        if !is_more.unwrap() {
            break;
        }
    }
}

#[test]
fn a_range_over_all_frees_without_leaf_reads() {
    let mut pair = Pair::new(TINY);
    for number in 0..2000 {
        let mut batch = Batch::new();
        batch.put(key(number), vec![1; 40]);
        pair.apply(batch);
    }
    pair.tree.settle().unwrap();
    pair.shelve();
    let before = pair.shelf.leaf_reads.load(Relaxed);
    let nodes = pair.view().cache.map().len();
    assert!(nodes > 100, "{nodes} nodes");
    let mut batch = Batch::new();
    batch.delete_range(Bytes::from_static(b"a0"), Bytes::from_static(b"z"));
    batch.put(key(7), vec![2]);
    pair.apply(batch);
    pair.tree.settle().unwrap();
    let read = pair.shelf.leaf_reads.load(Relaxed) - before;
    assert!(read <= 4, "{read} leaves were read, at the ends");
    pair.shelve();
    pair.audit();
    pair.same();
    let left = pair.view().cache.map().len();
    assert!(left * 5 < nodes, "{left} of {nodes} nodes are left");
}

/// Other threads evict all possible nodes during each read.
#[test]
fn reader_progresses_when_all_nodes_are_evicted() {
    let mut pair = Pair::new(TINY);
    for number in 0..600 {
        let mut batch = Batch::new();
        batch.put(key(number), vec![number as u8; 40]);
        pair.apply(batch);
    }
    pair.tree.settle().unwrap();
    pair.shelve();
    assert!(pair.view().height() > 2, "a path is longer than the last read");
    let (shared, forgotten) = (pair.tree.shared().clone(), Arc::new(AtomicU64::new(0)));
    let count = forgotten.clone();
    *pair.shelf.meanwhile.lock().unwrap() = Some(Box::new(move || {
        shared.try_lock().expect("no thread holds the lock during a read").trim(0);
        assert!(count.fetch_add(1, Relaxed) < 1000, "the reader makes no progress");
    }));
    let mut most = 0;
    for number in (0..600).step_by(13) {
        pair.view().trim(0);
        assert_eq!(pair.get(&key(number)), Some(vec![number as u8; 40].into()), "{number}");
        most = most.max(forgotten.swap(0, Relaxed));
    }
    assert!((25..60).contains(&most), "{most} reads for one key");
    pair.view().trim(0);
    let view = pair.view();
    let left = view.cache.map().keys().filter(|id| view.cache.get(**id).is_some()).count();
    drop(view);
    assert_eq!(left, 1, "only the root; no node stays pinned");
    *pair.shelf.meanwhile.lock().unwrap() = None;
    pair.same();
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
    let leaves = pair.view().cache.map().values().filter(|(bytes, _)| bytes[21] == 0).count();
    let filled = 3000 * (6 + 30 + 8) * 100 / (leaves * TINY.node_bytes as usize);
    assert!(filled > 75, "{leaves} leaves are filled to {filled}%");
}

#[test]
fn every_bit_flip_is_detected() {
    let mut pair = Pair::new(TINY);
    play(&mut pair, 3, 120, 200, 1000);
    pair.shelve();
    let entries = pair.model.entries();
    let map = pair.view().cache.map().clone();
    let root = pair.view().root();
    let next = pair.tree.freeze().next;
    let ids: Vec<NodeId> = map.keys().copied().collect();
    let mut rng = Rng::for_purpose(Seed(1), "bits");
    for id in ids {
        for _ in 0..40 {
            let mut map = map.clone();
            let bytes = Arc::make_mut(&mut map.get_mut(&id).unwrap().0);
            let bit = rng.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = Tree::open(Arc::<Shelf>::default(), map, &TINY, root, next).and_then(|tree| {
                let (mut from, mut all) = (Some(Bytes::new()), 0);
                while let Some(at) = from {
                    let to = Bytes::from_static(b"z");
                    let step = tree.shared().find(|view| view.scan_step(&at, &to, 100, true))?;
                    all += step.entries.len();
                    from = step.next;
                }
                Ok(all)
            });
            assert!(read.is_err(), "bit {bit} of {id}: {read:?} entries of {}", entries.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_runs_agree_with_the_model(seed: u64, operations in 1u64..250, keys in 3u64..400, shelve_every in 1u64..60) {
        play(&mut Pair::new(TINY), seed, operations, keys, shelve_every);
    }
}
