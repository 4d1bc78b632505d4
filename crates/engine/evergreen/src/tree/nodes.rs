//! The nodes that are taken to be changed: copies, which readers see when all of them are put back.

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard},
};

use super::{Shared, Source, View, cache::is_whole};
use crate::{
    Result,
    node::{Body, Node, NodeId},
};

/// Nodes for who changes them. What was taken stays here until it is put back.
pub(crate) struct Nodes<S: Source> {
    shared: Arc<Shared<S>>,
    taken: HashMap<NodeId, Taken>,
    freed: Vec<NodeId>,
    next: NodeId,
}

struct Taken {
    node: Arc<Node>,
    is_changed: bool,
}

impl<S: Source> Nodes<S> {
    /// None taken. `next`: the number of the next new one.
    pub(super) fn new(shared: Arc<Shared<S>>, next: NodeId) -> Self {
        Self { shared, taken: HashMap::new(), freed: Vec::new(), next }
    }

    /// Where they are taken from.
    pub(crate) fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// The number of the next new one.
    pub(super) fn next(&self) -> NodeId {
        self.next
    }

    /// Whether it is not on the device as it is: then to change it costs nothing more.
    pub(super) fn is_dirty(&self, id: NodeId) -> bool {
        self.is_changed(id) || self.lock().cache.is_dirty(id)
    }

    /// What a node takes on the device, or will; not what of it is in memory.
    pub(super) fn bytes(&self, id: NodeId) -> usize {
        if self.is_changed(id) { self.here(id).weight() } else { self.lock().cache.bytes(id) }
    }

    /// A node, without those of its parts that are not in memory. Cost: a read, if it is not in memory.
    pub(super) fn peek(&mut self, id: NodeId) -> Result<&Arc<Node>> {
        if !self.taken.contains_key(&id) {
            let node = self.shared.find(|view| view.cache.peek(id).cloned())?;
            self.taken.insert(id, Taken { node, is_changed: false });
        }
        Ok(self.here(id))
    }

    /// A node, all of it. Cost: one read, if something of it is not in memory.
    pub(super) fn whole(&mut self, id: NodeId) -> Result<&Arc<Node>> {
        if !self.taken.get(&id).is_some_and(|taken| is_whole(&taken.node)) {
            let node = self.shared.find(|view| view.cache.whole(id).cloned())?;
            self.taken.insert(id, Taken { node, is_changed: false });
        }
        Ok(self.here(id))
    }

    /// A node that was taken.
    pub(super) fn here(&self, id: NodeId) -> &Arc<Node> {
        &self.taken[&id].node
    }

    /// Changes a node, all of which must be taken.
    pub(super) fn edit<T>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> T) -> T {
        let taken = self.taken.get_mut(&id).expect("a node that is changed is taken");
        debug_assert!(is_whole(&taken.node));
        taken.is_changed = true;
        change(Arc::make_mut(&mut taken.node))
    }

    /// A new node.
    pub(super) fn create(&mut self, node: Node) -> NodeId {
        let id = self.next;
        self.next.0 += 1;
        self.taken.insert(id, Taken { node: Arc::new(node), is_changed: true });
        id
    }

    /// A node is of no use any more.
    pub(super) fn free(&mut self, id: NodeId) {
        self.taken.remove(&id);
        self.freed.push(id);
    }

    /// Begins to take nodes: what arrives from now on waits above the root.
    pub(super) fn begin(&self, view: &mut View<S>) {
        debug_assert!(self.taken.is_empty() && !view.is_taken);
        view.is_taken = true;
    }

    /// Puts all back: readers see what was changed at once, with all that arrived meanwhile.
    pub(super) fn put_back(&mut self, root: NodeId) {
        self.renew_ways(root);
        // What nobody has any more goes when the lock is free again.
        let mut old = Vec::with_capacity(self.taken.len());
        let mut view = self.shared.lock();
        for (id, taken) in self.taken.drain() {
            if taken.is_changed {
                old.push(view.cache.put(id, taken.node));
            } else {
                old.push(Some(taken.node));
            }
        }
        for id in self.freed.drain(..) {
            view.cache.free(id);
        }
        view.root = root;
        view.is_taken = false;
        let arrived = Arc::unwrap_or_clone(std::mem::take(&mut view.arrived));
        if !arrived.is_empty() {
            // Else all that waits in the old root would be copied before anything is added to it.
            old.clear();
            view.ingest(arrived);
        }
        drop(view);
    }

    /// What is above a changed node is written with it, even if it is as it was: so no node on the device is older than one below it, and one
    /// that is tells a repair that it is a copy of before. Returns whether anything changed, of a node and what is below it.
    fn renew_ways(&mut self, id: NodeId) -> bool {
        let Some(Taken { node, .. }) = self.taken.get(&id) else { return false };
        let mut is_new = self.is_changed(id);
        if let Body::Inner(inner) = &node.clone().body {
            for child in inner.children() {
                is_new |= self.renew_ways(child.id);
            }
        }
        if let Some(taken) = self.taken.get_mut(&id) {
            taken.is_changed = is_new;
        }
        is_new
    }

    fn is_changed(&self, id: NodeId) -> bool {
        self.taken.get(&id).is_some_and(|taken| taken.is_changed)
    }

    fn lock(&self) -> MutexGuard<'_, View<S>> {
        self.shared.lock()
    }
}
