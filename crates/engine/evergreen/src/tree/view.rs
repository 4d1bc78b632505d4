//! The tree as readers see it, and where batches arrive.

use std::sync::Arc;

use super::{Cache, Source, ahead::Visit, cache::Found, sizes::Sizes};
use crate::{
    disk::NodeId,
    node::{Body, Buffer, Gather, Node},
};

/// What is seen of a tree: its nodes in memory, and what arrived since its nodes were taken to be changed.
pub(crate) struct View<S: Source> {
    pub(crate) cache: Cache<S>,
    pub(super) root: NodeId,
    /// Somebody has taken nodes to change them: what arrives waits above the root until they are put back.
    pub(super) is_taken: bool,
    pub(super) arrived: Arc<Buffer>,
    /// A range came since the tree was settled.
    pub(super) is_ranged: bool,
    /// What a leaf may weigh.
    pub(super) node_bytes: usize,
    /// The leaves to which readers came last, the newest first.
    pub(super) recent: [Visit; 2],
    /// What nodes in memory took at most when it was trimmed last.
    pub(super) memory_bytes: usize,
}

impl<S: Source> View<S> {
    /// Of no nodes yet.
    pub(super) fn new(cache: Cache<S>, root: NodeId, node_bytes: usize) -> Self {
        Self {
            cache,
            root,
            is_taken: false,
            arrived: Arc::default(),
            is_ranged: true,
            node_bytes,
            recent: Default::default(),
            memory_bytes: 0,
        }
    }

    /// What a batch does is done. It cannot fail, for the root is in memory; the root may be over its limit then.
    pub(crate) fn ingest(&mut self, buffer: Buffer) {
        self.is_ranged |= !buffer.ranges().is_empty();
        if self.is_taken {
            Arc::make_mut(&mut self.arrived).receive(buffer);
        } else {
            self.cache.edit(self.root, |root| root.inner_mut().receive(buffer));
        }
    }

    /// The same of what many batches do.
    pub(crate) fn ingest_all(&mut self, group: &mut Gather) {
        let (first, messages) = group.take();
        if !first.is_empty() {
            self.ingest(first);
        }
        if messages.is_empty() {
            // The root is as it was, and need not be written.
        } else if self.is_taken {
            Arc::make_mut(&mut self.arrived).receive_messages(messages);
        } else {
            self.cache.edit(self.root, |root| root.inner_mut().receive_messages(messages));
        }
    }

    /// Its root.
    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    /// A node, all of it.
    pub(crate) fn whole(&mut self, id: NodeId) -> Found<Arc<Node>> {
        self.cache.whole(id).cloned()
    }

    /// How many levels the root is above the leaves.
    pub(crate) fn height(&self) -> u8 {
        self.root_node().height()
    }

    /// The most bytes that all takes that waits in the root and above it.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.root_node().weight() + self.arrived.weight()
    }

    /// Whether nothing has to go down: the root is within the limits.
    pub(super) fn is_within(&self, sizes: &Sizes) -> bool {
        let inner = self.root_node().inner();
        let is_needed = inner.height() == 1 || inner.children().len() > 1;
        is_needed && inner.weight() <= sizes.node_bytes && inner.children().len() <= sizes.fanout
    }

    /// Forgets clean nodes until those in memory take at most so many bytes, but not the root.
    pub(crate) fn trim(&mut self, most: usize) {
        self.memory_bytes = most;
        self.cache.trim(most, self.root);
    }

    /// The node left of the one of a height that begins at `lower`, under the same parent, if all above it are in memory.
    pub(crate) fn left_of(&self, height: u8, lower: &[u8]) -> Option<NodeId> {
        let mut id = self.root;
        loop {
            let node = self.cache.get(id)?;
            let Body::Inner(inner) = &node.body else { return None };
            let index = inner.index(lower);
            if inner.height() == height + 1 {
                return index.checked_sub(1).map(|left| inner.children()[left].id);
            }
            id = inner.children()[index].id;
        }
    }

    /// The leaves behind the one of a key under the same parent, in their order, if all above it are in memory.
    pub(super) fn behind(&self, key: &[u8]) -> Vec<NodeId> {
        let mut id = self.root;
        while let Some(node) = self.cache.get(id) {
            let Body::Inner(inner) = &node.body else { break };
            let index = inner.index(key);
            if inner.height() == 1 {
                return inner.children()[index + 1..].iter().map(|child| child.id).collect();
            }
            id = inner.children()[index].id;
        }
        Vec::new()
    }

    pub(super) fn root_node(&self) -> &Arc<Node> {
        self.cache.get(self.root).expect("the root is in memory")
    }
}
