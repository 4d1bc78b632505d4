//! The cache: nodes in memory, with a budget, and the set of dirty ones.

mod reading;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use super::{
    heights::Heights,
    load_parts::{Want, What},
    node_source::{Room, Source},
};
use crate::node::{Basement, Body, Buffer, Node, NodeId, Part};

/// The nodes in memory, and the places of the others. It never reads: it returns a [`Want`] for a
/// missing node.
pub(crate) struct Cache<S: Source> {
    source: Arc<S>,
    map: S::Map,
    slots: HashMap<NodeId, Slot>,
    /// Clean nodes by their last use, the next victims first.
    order: BTreeMap<u64, NodeId>,
    dirty: BTreeSet<NodeId>,
    tick: u64,
    memory_bytes: usize,
    /// The most bytes that dirty nodes take on the device.
    dirty_room: Room,
    /// Nodes freed since the last [`freeze`](Self::freeze).
    freed: Vec<NodeId>,
    /// Nodes that a thread reads now.
    loading: HashSet<NodeId>,
    /// Nodes that must stay, with the number of pins.
    pinned: HashMap<NodeId, usize>,
    heights: Heights,
}

struct Slot {
    node: Arc<Node>,
    state: State,
    memory_bytes: usize,
    /// The most bytes on the device; zero if the node is clean.
    room: Room,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// As on the device; the value is the time of the last use.
    Clean(u64),
    /// Changed since the last checkpoint.
    Dirty,
    /// A checkpoint writes it as it is.
    Writing,
}

/// A result from memory, or what is missing.
pub(crate) type Found<T> = std::result::Result<T, Want>;

impl<S: Source> Cache<S> {
    /// An empty cache.
    pub(super) fn new(source: Arc<S>, map: S::Map) -> Self {
        Self {
            source,
            map,
            slots: HashMap::new(),
            order: BTreeMap::new(),
            dirty: BTreeSet::new(),
            tick: 0,
            memory_bytes: 0,
            dirty_room: Room::default(),
            freed: Vec::new(),
            loading: HashSet::new(),
            pinned: HashMap::new(),
            heights: Heights::default(),
        }
    }

    /// Counts the bytes that a flush moved from an inner node to a child.
    pub(super) fn note_flush(&self, height: u8, bytes: usize) {
        self.source.note_flush(height, bytes);
    }

    /// The places of the nodes on the device.
    pub(crate) fn map(&self) -> &S::Map {
        &self.map
    }

    /// Like [`map`](Self::map), but mutable.
    pub(crate) fn map_mut(&mut self) -> &mut S::Map {
        &mut self.map
    }

    /// The most bytes that dirty nodes take on the device.
    pub(crate) fn dirty_room(&self) -> Room {
        self.dirty_room
    }

    /// The number of dirty nodes.
    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// Whether the node is dirty: then another change costs no write.
    pub(super) fn is_dirty(&self, id: NodeId) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.state == State::Dirty)
    }

    /// The bytes of a node on the device, now or after the next checkpoint.
    pub(super) fn bytes(&self, id: NodeId) -> usize {
        match S::find(&self.map, id) {
            Some(place) if !self.is_dirty(id) => self.source.known(place).bytes,
            _ => self.get(id).map_or(usize::MAX / 2, |node| node.weight()),
        }
    }

    /// The node, if it is in memory.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.slots.get(&id).map(|slot| &slot.node)
    }

    /// The node, if it is in memory and clean.
    pub(crate) fn clean(&self, id: NodeId) -> Option<&Arc<Node>> {
        let is_clean = |slot: &&Slot| matches!(slot.state, State::Clean(_));
        self.slots.get(&id).filter(is_clean).map(|slot| &slot.node)
    }

    /// A node; some of its parts may be missing.
    pub(super) fn peek(&mut self, id: NodeId) -> Found<&Arc<Node>> {
        if !self.slots.contains_key(&id) {
            return Err(Want { id, node: None, what: What::Header });
        }
        self.touch(id);
        Ok(&self.slots[&id].node)
    }

    /// The buffer of a child of an inner node.
    pub(super) fn buffer(&mut self, id: NodeId, child: usize) -> Found<Arc<Buffer>> {
        let node = self.parts(id, child..child + 1)?;
        Ok(node.inner().children()[child].body.here().clone())
    }

    /// A basement of a leaf.
    pub(super) fn basement(&mut self, id: NodeId, number: usize) -> Found<Arc<Basement>> {
        let node = self.parts(id, number..number + 1)?;
        Ok(node.leaf().parts()[number].body.here().clone())
    }

    /// A node with the given parts; one read loads the missing ones.
    pub(super) fn parts(&mut self, id: NodeId, parts: Range<usize>) -> Found<&Arc<Node>> {
        let node = self.peek(id)?;
        if parts.clone().any(|number| node.stored(number).is_some()) {
            return Err(Want { id, node: Some(node.clone()), what: What::Parts(parts) });
        }
        Ok(&self.slots[&id].node)
    }

    /// A node with all parts.
    pub(super) fn whole(&mut self, id: NodeId) -> Found<&Arc<Node>> {
        match self.slots.get(&id) {
            Some(slot) if is_whole(&slot.node) => self.touch(id),
            Some(slot) => return Err(Want { id, node: Some(slot.node.clone()), what: What::Whole }),
            None => return Err(Want { id, node: None, what: What::Whole }),
        }
        Ok(&self.slots[&id].node)
    }

    /// Changes a node with all parts in memory, and makes it dirty.
    pub(super) fn edit(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let slot = self.slots.get_mut(&id).expect("a node that is changed is in memory");
        debug_assert!(is_whole(&slot.node));
        change(Arc::make_mut(&mut slot.node));
        self.make_dirty(id);
    }

    /// Sets a node with all parts in memory. Returns the old one.
    pub(super) fn put(&mut self, id: NodeId, node: Arc<Node>) -> Option<Arc<Node>> {
        debug_assert!(is_whole(&node));
        let old = match self.slots.get_mut(&id) {
            Some(slot) => Some(std::mem::replace(&mut slot.node, node)),
            None => {
                self.slots.insert(id, Slot { node, state: State::Dirty, memory_bytes: 0, room: Room::default() });
                None
            }
        };
        self.make_dirty(id);
        old
    }

    /// Frees a node that is no longer in the tree.
    pub(super) fn free(&mut self, id: NodeId) {
        self.forget(id);
        self.freed.push(id);
    }

    /// Evicts the least recently used clean nodes until all take at most `most` bytes of memory.
    /// Keeps `kept` and [pinned](Self::pin) ones.
    pub(super) fn trim(&mut self, most: usize, kept: NodeId) {
        while self.memory_bytes > most {
            let may_go = |id: &NodeId| *id != kept && !self.pinned.contains_key(id);
            let Some(id) = self.order.values().copied().find(may_go) else { return };
            self.forget(id);
        }
    }

    /// Keeps a node in memory, once it is read, until [`unpin`](Self::unpin) was called as often.
    pub(super) fn pin(&mut self, id: NodeId) {
        *self.pinned.entry(id).or_default() += 1;
    }

    /// Releases a pin.
    pub(super) fn unpin(&mut self, id: NodeId) {
        if let Some(count) = self.pinned.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.pinned.remove(&id);
            }
        }
    }

    /// Marks the dirty nodes as being written, and returns them with the freed ones.
    pub(super) fn freeze(&mut self) -> (Vec<(NodeId, Arc<Node>)>, Vec<NodeId>) {
        let dirty = std::mem::take(&mut self.dirty);
        let mut frozen = Vec::with_capacity(dirty.len());
        for id in dirty {
            let slot = self.slots.get_mut(&id).expect("a dirty node is in memory");
            slot.state = State::Writing;
            self.dirty_room.remove(std::mem::take(&mut slot.room));
            frozen.push((id, slot.node.clone()));
        }
        (frozen, std::mem::take(&mut self.freed))
    }

    /// Marks frozen nodes as clean, unless they changed since.
    pub(crate) fn written(&mut self, frozen: impl IntoIterator<Item = NodeId>) {
        for id in frozen {
            if let Some(slot) = self.slots.get_mut(&id)
                && slot.state == State::Writing
            {
                self.tick += 1;
                slot.state = State::Clean(self.tick);
                self.order.insert(self.tick, id);
            }
        }
    }

    /// Makes frozen nodes dirty again after a failed write.
    pub(crate) fn unfreeze(&mut self, frozen: impl IntoIterator<Item = NodeId>, freed: &[NodeId]) {
        for id in frozen {
            if let Some(slot) = self.slots.get_mut(&id)
                && slot.state == State::Writing
            {
                self.make_dirty(id);
            }
        }
        self.freed.extend(freed);
    }

    fn make_dirty(&mut self, id: NodeId) {
        let slot = self.slots.get_mut(&id).expect("a dirty node is in memory");
        if let State::Clean(tick) = slot.state {
            self.order.remove(&tick);
        }
        slot.state = State::Dirty;
        self.dirty.insert(id);
        self.weigh(id);
    }

    fn touch(&mut self, id: NodeId) {
        let slot = self.slots.get_mut(&id).expect("a used node is in memory");
        if let State::Clean(tick) = slot.state {
            self.order.remove(&tick);
            self.tick += 1;
            slot.state = State::Clean(self.tick);
            self.order.insert(self.tick, id);
        }
    }

    fn forget(&mut self, id: NodeId) {
        let Some(slot) = self.slots.remove(&id) else { return };
        self.memory_bytes -= slot.memory_bytes;
        self.dirty_room.remove(slot.room);
        self.dirty.remove(&id);
        if let State::Clean(tick) = slot.state {
            self.order.remove(&tick);
        }
    }

    /// Updates the size of a node.
    fn weigh(&mut self, id: NodeId) {
        let slot = self.slots.get_mut(&id).expect("a node that is weighed is in memory");
        self.memory_bytes -= slot.memory_bytes;
        self.dirty_room.remove(slot.room);
        slot.memory_bytes = slot.node.memory_bytes();
        slot.room = if slot.state == State::Dirty {
            self.source.room(slot.node.most_bytes(), slot.node.height() == 0)
        } else {
            Room::default()
        };
        self.memory_bytes += slot.memory_bytes;
        self.dirty_room.add(slot.room);
    }
}

/// Whether all parts of a node are in memory.
pub(super) fn is_whole(node: &Node) -> bool {
    match &node.body {
        Body::Leaf(leaf) => leaf.parts().iter().all(|part| part.body.is_here()),
        Body::Inner(inner) => inner.children().iter().all(|child| matches!(child.body, Part::Here(_))),
    }
}
