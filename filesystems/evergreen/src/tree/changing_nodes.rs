//! Nodes that are being changed: copies, which readers see once all of them are put back.

use std::{
    collections::HashMap,
    sync::{Arc, MutexGuard},
};

use super::{Shared, Source, View, cache::is_whole};
use crate::{
    Result,
    node::{Body, Node, NodeId},
};

/// The nodes of the thread that changes the tree. They stay here until they are put back.
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
    /// No nodes taken; `next` is the number of the next new node.
    pub(super) fn new(shared: Arc<Shared<S>>, next: NodeId) -> Self {
        Self { shared, taken: HashMap::new(), freed: Vec::new(), next }
    }

    /// The tree for readers, which the nodes come from.
    pub(crate) fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// The number of the next new node.
    pub(super) fn next(&self) -> NodeId {
        self.next
    }

    /// Whether the node is dirty: then another change costs no write.
    pub(super) fn is_dirty(&self, id: NodeId) -> bool {
        self.is_changed(id) || self.lock().cache.is_dirty(id)
    }

    /// The bytes of a node on the device, now or after the next checkpoint.
    pub(super) fn bytes(&self, id: NodeId) -> usize {
        if self.is_changed(id) { self.here(id).weight() } else { self.lock().cache.bytes(id) }
    }

    /// A node; some of its parts may be missing. Cost: a read, if it is not in memory.
    pub(super) fn peek(&mut self, id: NodeId) -> Result<&Arc<Node>> {
        if !self.taken.contains_key(&id) {
            let node = self.shared.find(|view| view.cache.peek(id).cloned())?;
            self.taken.insert(id, Taken { node, is_changed: false });
        }
        Ok(self.here(id))
    }

    /// A node with all parts. Cost: one read, if a part is not in memory.
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

    /// Changes a node, which must be taken with all parts.
    pub(super) fn edit<T>(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> T) -> T {
        let taken = self.taken.get_mut(&id).expect("a node that is changed is taken");
        debug_assert!(is_whole(&taken.node));
        taken.is_changed = true;
        change(Arc::make_mut(&mut taken.node))
    }

    /// Creates a node.
    pub(super) fn create(&mut self, node: Node) -> NodeId {
        let id = self.next;
        self.next.0 += 1;
        self.taken.insert(id, Taken { node: Arc::new(node), is_changed: true });
        id
    }

    /// Frees a node that is no longer in the tree.
    pub(super) fn free(&mut self, id: NodeId) {
        self.taken.remove(&id);
        self.freed.push(id);
    }

    /// Starts to take nodes: new batches wait above the root until [`put_back`](Self::put_back).
    pub(super) fn begin(&self, view: &mut View<S>) {
        debug_assert!(self.taken.is_empty() && !view.is_taken);
        view.is_taken = true;
    }

    /// Puts all nodes back. Readers see the changes at once, with the batches that arrived
    /// meanwhile.
    pub(super) fn put_back(&mut self, root: NodeId) {
        self.renew_ways(root);
        // Old nodes are dropped after the lock is released.
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
            // Otherwise the shared buffers of the old root would be copied by the next change.
            old.clear();
            view.ingest(arrived);
        }
        drop(view);
    }

    /// Marks the ancestors of changed nodes as changed, so that they are written as well. So no
    /// node on the device is older than a node below it, and a repair detects old copies. Returns
    /// whether the node or its subtree changed.
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
