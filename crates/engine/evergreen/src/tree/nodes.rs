//! The nodes that are in memory, with a budget, and which of them are not on the device as they are.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::Arc,
};

use super::source::{Source, read_header, read_part, read_parts, read_row, read_whole};
use crate::{
    Result,
    node::{Basement, Body, Buffer, Node, NodeId, Part},
};

/// Nodes in memory. What is clean may be forgotten, but only in [`trim`](Self::trim), so that what was read stays until then.
pub(crate) struct Nodes<S> {
    source: S,
    slots: HashMap<NodeId, Slot>,
    /// Clean ones by when they were used last, those that are to be forgotten first.
    order: BTreeMap<u64, NodeId>,
    dirty: BTreeSet<NodeId>,
    tick: u64,
    memory_bytes: usize,
    /// The most bytes that the dirty ones take on the device.
    dirty_bytes: u64,
    next: NodeId,
    /// Those that are of no use any more since it was asked last.
    freed: Vec<NodeId>,
}

struct Slot {
    node: Arc<Node>,
    state: State,
    memory_bytes: usize,
    /// The most bytes on the device; 0 if it is not dirty.
    dirty_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// As it is on the device; when it was used last.
    Clean(u64),
    /// Not.
    Dirty,
    /// A checkpoint writes it, as it is.
    Writing,
}

impl<S: Source> Nodes<S> {
    /// None in memory. `next`: the number of the next new one.
    pub(crate) fn new(source: S, next: NodeId) -> Self {
        Self {
            source,
            slots: HashMap::new(),
            order: BTreeMap::new(),
            dirty: BTreeSet::new(),
            tick: 0,
            memory_bytes: 0,
            dirty_bytes: 0,
            next,
            freed: Vec::new(),
        }
    }

    /// Where they are read from.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// The same, to change it.
    pub(crate) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The number of the next new one.
    pub(crate) fn next(&self) -> NodeId {
        self.next
    }

    /// The most bytes that those that are not on the device take there.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    /// How many are not on the device as they are.
    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// Whether it is not on the device as it is: then to change it costs nothing more.
    pub(crate) fn is_dirty(&self, id: NodeId) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.state == State::Dirty)
    }

    /// A node, without those of its parts that are not in memory. Cost: a read, if it is not in memory.
    pub(crate) fn peek(&mut self, id: NodeId) -> Result<&Arc<Node>> {
        if self.slots.contains_key(&id) {
            self.touch(id);
        } else {
            let node = read_header(&self.source, id)?;
            self.insert(id, node);
        }
        Ok(&self.slots[&id].node)
    }

    /// A node that is in memory.
    pub(crate) fn here(&self, id: NodeId) -> &Arc<Node> {
        &self.slots[&id].node
    }

    /// One that is in memory, if it is.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.slots.get(&id).map(|slot| &slot.node)
    }

    /// What waits in an inner node for a child. Cost: a read, if it is not in memory, and one if nothing of the node is.
    pub(crate) fn buffer(&mut self, id: NodeId, child: usize) -> Result<Arc<Buffer>> {
        self.load_part(id, child)?;
        Ok(self.slots[&id].node.inner().children()[child].body.here().clone())
    }

    /// A basement of a leaf. Cost: as [`buffer`](Self::buffer).
    pub(crate) fn basement(&mut self, id: NodeId, number: usize) -> Result<Arc<Basement>> {
        self.load_part(id, number)?;
        Ok(self.slots[&id].node.leaf().parts()[number].body.here().clone())
    }

    /// Takes some parts of a node into memory. Cost: one read, if one of them is not there.
    pub(crate) fn parts(&mut self, id: NodeId, parts: Range<usize>) -> Result<()> {
        let node = self.peek(id)?;
        if parts.clone().any(|number| node.stored(number).is_some()) {
            let node = node.clone();
            let node = read_parts(&self.source, id, &node, parts)?;
            self.replace(id, node);
        }
        Ok(())
    }

    /// Takes what is missing of a leaf into memory, and some that follow it and are not there, as far as they lie directly behind it.
    /// Cost: one read.
    pub(crate) fn row(&mut self, id: NodeId, behind: &[NodeId]) -> Result<()> {
        for (id, node) in read_row(&self.source, (id, self.get(id)), behind)? {
            if self.slots.contains_key(&id) {
                self.replace(id, node);
            } else {
                self.insert(id, node);
            }
        }
        Ok(())
    }

    /// A node, all of it. Cost: one read, if something of it is not in memory.
    pub(crate) fn whole(&mut self, id: NodeId) -> Result<&Arc<Node>> {
        match self.slots.get(&id) {
            Some(slot) if is_whole(&slot.node) => self.touch(id),
            Some(slot) => {
                let node = read_parts(&self.source, id, &slot.node, 0..slot.node.parts())?;
                self.replace(id, node);
            }
            None => {
                let node = read_whole(&self.source, id)?;
                self.insert(id, node);
            }
        }
        Ok(&self.slots[&id].node)
    }

    /// Changes a node, all of which must be in memory: it is dirty then.
    pub(crate) fn edit<T>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> T) -> T {
        let slot = self.slots.get_mut(&id).expect("a node that is changed is in memory");
        debug_assert!(is_whole(&slot.node));
        if let State::Clean(tick) = slot.state {
            self.order.remove(&tick);
        }
        slot.state = State::Dirty;
        self.dirty.insert(id);
        let result = change(Arc::make_mut(&mut slot.node));
        self.weigh(id);
        result
    }

    /// A new node.
    pub(crate) fn create(&mut self, node: Node) -> NodeId {
        let id = self.next;
        self.next.0 += 1;
        self.slots.insert(id, Slot { node: Arc::new(node), state: State::Dirty, memory_bytes: 0, dirty_bytes: 0 });
        self.dirty.insert(id);
        self.weigh(id);
        id
    }

    /// A node is of no use any more.
    pub(crate) fn free(&mut self, id: NodeId) {
        self.forget(id);
        self.freed.push(id);
    }

    /// Forgets those clean ones that were not used for longest, but not `kept`, until all take at most so many bytes of memory.
    pub(crate) fn trim(&mut self, most: usize, kept: NodeId) {
        while self.memory_bytes > most {
            let Some(id) = self.order.values().copied().find(|id| *id != kept) else { return };
            self.forget(id);
        }
    }

    /// All dirty ones as they are now, which from now on are being written, and those that were freed.
    pub(crate) fn freeze(&mut self) -> (Vec<(NodeId, Arc<Node>)>, Vec<NodeId>) {
        let dirty = std::mem::take(&mut self.dirty);
        let mut frozen = Vec::with_capacity(dirty.len());
        for id in dirty {
            let slot = self.slots.get_mut(&id).expect("a dirty node is in memory");
            slot.state = State::Writing;
            self.dirty_bytes -= std::mem::take(&mut slot.dirty_bytes);
            frozen.push((id, slot.node.clone()));
        }
        (frozen, std::mem::take(&mut self.freed))
    }

    /// What was frozen is on the device: what has not been changed since is clean.
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

    /// What was frozen could not be written: it is dirty as before.
    pub(crate) fn unfreeze(&mut self, frozen: impl IntoIterator<Item = NodeId>, freed: &[NodeId]) {
        for id in frozen {
            if let Some(slot) = self.slots.get_mut(&id)
                && slot.state == State::Writing
            {
                slot.state = State::Dirty;
                self.dirty.insert(id);
                self.weigh(id);
            }
        }
        self.freed.extend(freed);
    }

    fn load_part(&mut self, id: NodeId, number: usize) -> Result<()> {
        self.peek(id)?;
        let slot = &self.slots[&id];
        if let Some(stored) = slot.node.stored(number) {
            let mut node = slot.node.clone();
            read_part(&self.source, id, Arc::make_mut(&mut node), number, stored)?;
            self.replace(id, node);
        }
        Ok(())
    }

    /// A clean node was read.
    fn insert(&mut self, id: NodeId, node: Arc<Node>) {
        self.tick += 1;
        self.order.insert(self.tick, id);
        self.slots.insert(id, Slot { node, state: State::Clean(self.tick), memory_bytes: 0, dirty_bytes: 0 });
        self.weigh(id);
    }

    /// More of a node was read.
    fn replace(&mut self, id: NodeId, node: Arc<Node>) {
        self.slots.get_mut(&id).expect("a part of it was in memory").node = node;
        self.touch(id);
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
        self.dirty_bytes -= slot.dirty_bytes;
        self.dirty.remove(&id);
        if let State::Clean(tick) = slot.state {
            self.order.remove(&tick);
        }
    }

    /// Counts anew what a node takes.
    fn weigh(&mut self, id: NodeId) {
        let slot = self.slots.get_mut(&id).expect("a node that is weighed is in memory");
        self.memory_bytes -= slot.memory_bytes;
        self.dirty_bytes -= slot.dirty_bytes;
        slot.memory_bytes = slot.node.memory_bytes();
        slot.dirty_bytes = if slot.state == State::Dirty { self.source.room_bytes(slot.node.most_bytes()) } else { 0 };
        self.memory_bytes += slot.memory_bytes;
        self.dirty_bytes += slot.dirty_bytes;
    }
}

fn is_whole(node: &Node) -> bool {
    match &node.body {
        Body::Leaf(leaf) => leaf.parts().iter().all(|part| part.body.is_here()),
        Body::Inner(inner) => inner.children().iter().all(|child| matches!(child.body, Part::Here(_))),
    }
}
