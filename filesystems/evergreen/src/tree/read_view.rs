//! The tree as readers see it; batches arrive here.

use std::sync::Arc;

use super::{Cache, Source, cache::Found, prefetch::Visit, size_limits::Sizes};
use crate::{
    disk::NodeId,
    node::{Body, Buffer, Gather, Node},
};

/// The visible state of a tree: its nodes in memory, and the batches that arrived since nodes were
/// taken.
pub(crate) struct View<S: Source> {
    pub(crate) cache: Cache<S>,
    pub(super) root: NodeId,
    /// Whether nodes are taken for a change: then batches wait above the root until they are put
    /// back.
    pub(super) is_taken: bool,
    pub(super) arrived: Arc<Buffer>,
    /// Whether a range arrived since the tree was settled.
    pub(super) is_ranged: bool,
    /// The most weight of a leaf.
    pub(super) node_bytes: usize,
    /// The leaves that readers visited last, the newest first.
    pub(super) recent: [Visit; 2],
    /// The memory limit of the last [`trim`](Self::trim), in bytes.
    pub(super) memory_bytes: usize,
}

impl<S: Source> View<S> {
    /// A view without nodes.
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

    /// Applies a batch. It cannot fail, because the root is in memory. The root may exceed its
    /// limit afterwards.
    pub(crate) fn ingest(&mut self, buffer: Buffer) {
        self.is_ranged |= !buffer.ranges().is_empty();
        if self.is_taken {
            Arc::make_mut(&mut self.arrived).receive(buffer);
        } else {
            self.cache.edit(self.root, |root| root.inner_mut().receive(buffer));
        }
    }

    /// Applies gathered batches.
    pub(crate) fn ingest_all(&mut self, group: &mut Gather) {
        let (first, messages) = group.take();
        if !first.is_empty() {
            self.ingest(first);
        }
        if messages.is_empty() {
            // The root is unchanged, and need not be written.
        } else if self.is_taken {
            Arc::make_mut(&mut self.arrived).receive_messages(messages);
        } else {
            self.cache.edit(self.root, |root| root.inner_mut().receive_messages(messages));
        }
    }

    /// The number of the root.
    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    /// A node with all parts.
    pub(crate) fn whole(&mut self, id: NodeId) -> Found<Arc<Node>> {
        self.cache.whole(id).cloned()
    }

    /// The number of levels of the root above the leaves.
    pub(crate) fn height(&self) -> u8 {
        self.root_node().height()
    }

    /// The most bytes of all messages that wait in the root and above it.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.root_node().weight() + self.arrived.weight()
    }

    /// Whether the root is within its limits.
    pub(super) fn is_within(&self, sizes: &Sizes) -> bool {
        let inner = self.root_node().inner();
        let is_needed = inner.height() == 1 || inner.children().len() > 1;
        is_needed && inner.weight() <= sizes.node_bytes && inner.children().len() <= sizes.fanout
    }

    /// Evicts clean nodes, except the root, until those in memory take at most `most` bytes.
    pub(crate) fn trim(&mut self, most: usize) {
        self.memory_bytes = most;
        self.cache.trim(most, self.root);
    }

    /// The left neighbour of the node at a height that starts at `lower`. `None` if it has another
    /// parent, or if a node above is not in memory.
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

    /// The leaves after the one of a key under the same parent, in order. Empty if a node above is
    /// not in memory.
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
