//! The tree: applies batches and reads keys. It knows the nodes in memory, and a [`Source`] of the
//! others.
//!
//! **Invariants** between any two calls, also after failures:
//! - The root is an inner node, and all of it is in memory. So a batch only has to be added to its
//!   buffers.
//! - All leaves have the same depth. The bounds of a node are those in its parent.
//! - The value of a key is the value in its leaf, changed by the messages on the path, the lowest
//!   first.
//!
//! **Two sides.** Readers and batches use the [`View`] in [`Shared`]. They search the memory under
//! a lock that no thread holds during device requests. The thread that flushes has the [`Tree`]: it
//! changes copies of nodes, and puts all of them back at once. So readers see the tree before or
//! after the change, and new batches wait above the root meanwhile.
//!
//! Each step first reads all that it needs, and then changes nodes, which cannot fail. So a failed
//! read leaves the tree unchanged, or changed by the previous steps.

mod cache;
mod changing_nodes;
mod covered_children;
mod flush;
mod gather_leaves;
mod get;
mod heights;
mod load_parts;
mod node_source;
mod prefetch;
mod read_view;
mod scan;
mod shared_tree;
mod size_limits;
mod split;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

pub(crate) use cache::Cache;
pub(crate) use gather_leaves::Candidate;
pub(crate) use node_source::{Known, Room, Source};
pub(crate) use read_view::View;
pub(crate) use shared_tree::Shared;

use crate::{
    Error, Result,
    disk::{Damage, NodeId, Shape},
    node::{Body, Buffer, Child, Inner, Leaf, Node},
};
use changing_nodes::Nodes;
use size_limits::Sizes;

/// A tree of nodes, for the thread that changes it.
pub(crate) struct Tree<S: Source> {
    nodes: Nodes<S>,
    root: NodeId,
    sizes: Sizes,
    /// Children that could not be read at the last flush.
    unreadable: BTreeSet<NodeId>,
    /// Whether a range arrived since the last [`settle`](Tree::settle).
    is_ranged: bool,
    /// The key before which [gather](Tree::gather) has visited all leaves in this round.
    gathered: Bytes,
}

/// A snapshot of the tree between two batches.
pub(crate) struct Frozen {
    /// The dirty nodes, which are being written.
    pub(crate) nodes: Vec<(NodeId, Arc<Node>)>,
    /// The freed nodes.
    pub(crate) freed: Vec<NodeId>,
    pub(crate) root: NodeId,
    /// The number of the next new node.
    pub(crate) next: NodeId,
}

impl<S: Source> Tree<S> {
    /// An empty tree.
    pub(crate) fn new(source: Arc<S>, map: S::Map, shape: &Shape) -> Self {
        let mut tree = Self::with(source, map, shape, NodeId(0), NodeId(1));
        let leaf = tree.nodes.create(Node { lower: Bytes::new(), upper: None, body: Body::Leaf(Leaf::default()) });
        let children = vec![Child::new(Bytes::new(), leaf, Buffer::default())];
        let body = Body::Inner(Inner::new(1, children));
        tree.root = tree.nodes.create(Node { lower: Bytes::new(), upper: None, body });
        tree.nodes.put_back(tree.root);
        tree
    }

    /// An existing tree with its root and the number of the next new node.
    pub(crate) fn open(source: Arc<S>, map: S::Map, shape: &Shape, root: NodeId, next: NodeId) -> Result<Self> {
        let tree = Self::with(source, map, shape, root, next);
        let height = tree.shared().find(|view| view.cache.whole(root).map(|root| root.height()))?;
        if height == 0 {
            let damage = Damage::new("node", "height", height, "at least 1 for the root");
            return Err(Error::damaged(format!("node {root}"), &damage));
        }
        Ok(tree)
    }

    fn with(source: Arc<S>, map: S::Map, shape: &Shape, root: NodeId, next: NodeId) -> Self {
        let sizes = Sizes::new(shape);
        let shared = Arc::new(Shared::new(View::new(Cache::new(source, map), root, sizes.node_bytes)));
        let nodes = Nodes::new(shared, next);
        Self { nodes, root, sizes, unreadable: BTreeSet::new(), is_ranged: false, gathered: Bytes::new() }
    }

    /// The tree for readers.
    pub(crate) fn shared(&self) -> &Arc<Shared<S>> {
        self.nodes.shared()
    }

    /// Children that could not be read at the last settle, and are skipped for now.
    pub(crate) fn unreadable(&self) -> &BTreeSet<NodeId> {
        &self.unreadable
    }

    /// A snapshot of the tree, for a checkpoint.
    pub(crate) fn freeze(&self) -> Frozen {
        let (nodes, freed) = self.shared().lock().cache.freeze();
        Frozen { nodes, freed, root: self.root, next: self.nodes.next() }
    }
}
