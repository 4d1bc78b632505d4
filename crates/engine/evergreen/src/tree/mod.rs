//! The tree: what becomes of a batch on its way down, and how keys are read. Knows nodes in memory and a [`Source`] of others.
//!
//! **Invariants**, between any two calls, whatever failed:
//! - the root is in memory, all of it, and an inner node, so that a batch only has to wait there;
//! - all leaves are equally deep; the bounds of a node are those between which its parent has it;
//! - what a key has is: the value in its leaf, then what waits on the way to it, the lowest first.
//!
//! **Two sides.** Readers and batches meet at the [`View`], which is [`Shared`]: they look for what is in memory under a lock that nobody
//! holds while a device works. Who flushes has the [`Tree`]: it takes nodes, changes copies of them, and puts them back all at once; so
//! readers see the tree before or after, and what arrives meanwhile waits above the root.
//!
//! Each step reads first all that it needs, then changes nodes, which cannot fail. So after a reading that failed the tree is as
//! it was, or as after one step less.

mod ahead;
mod cache;
mod cover;
mod flush;
mod gather;
mod get;
mod heights;
mod load;
mod nodes;
mod reshape;
mod scan;
mod shared;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod view;

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

pub(crate) use cache::Cache;
pub(crate) use gather::Candidate;
pub(crate) use shared::Shared;
pub(crate) use source::{Known, Room, Source};
pub(crate) use view::View;

use crate::{
    Error, Result,
    disk::{Damage, NodeId, Shape},
    node::{Body, Buffer, Child, Inner, Leaf, Node},
};
use nodes::Nodes;
use sizes::Sizes;

/// A tree of nodes, for who changes it.
pub(crate) struct Tree<S: Source> {
    nodes: Nodes<S>,
    root: NodeId,
    sizes: Sizes,
    /// Children to which nothing could be flushed when it was tried last.
    unreadable: BTreeSet<NodeId>,
    /// A range came since the last [`settle`](Tree::settle).
    is_ranged: bool,
    /// All leaves before this key were looked at by [gather](Tree::gather) in this turn.
    gathered: Bytes,
}

/// A tree as it is between two batches.
pub(crate) struct Frozen {
    /// Its dirty nodes, which are being written from now on.
    pub(crate) nodes: Vec<(NodeId, Arc<Node>)>,
    /// Those that are of no use any more.
    pub(crate) freed: Vec<NodeId>,
    pub(crate) root: NodeId,
    /// The number of the next new node.
    pub(crate) next: NodeId,
}

impl<S: Source> Tree<S> {
    /// An empty one.
    pub(crate) fn new(source: Arc<S>, map: S::Map, shape: &Shape) -> Self {
        let mut tree = Self::with(source, map, shape, NodeId(0), NodeId(1));
        let leaf = tree.nodes.create(Node { lower: Bytes::new(), upper: None, body: Body::Leaf(Leaf::default()) });
        let children = vec![Child::new(Bytes::new(), leaf, Buffer::default())];
        let body = Body::Inner(Inner::new(1, children));
        tree.root = tree.nodes.create(Node { lower: Bytes::new(), upper: None, body });
        tree.nodes.put_back(tree.root);
        tree
    }

    /// One that is there: its root, and the number of the next new node.
    pub(crate) fn open(source: Arc<S>, map: S::Map, shape: &Shape, root: NodeId, next: NodeId) -> Result<Self> {
        let tree = Self::with(source, map, shape, root, next);
        let height = tree.shared().find(|view| view.cache.whole(root).map(|root| root.height()))?;
        if height == 0 {
            let damage = Damage::new("node", "height", height, "1 at least, of the root");
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

    /// What readers see of it.
    pub(crate) fn shared(&self) -> &Arc<Shared<S>> {
        self.nodes.shared()
    }

    /// Children that could not be read when it was settled last, and are passed over for now.
    pub(crate) fn unreadable(&self) -> &BTreeSet<NodeId> {
        &self.unreadable
    }

    /// It as it is now, to be written.
    pub(crate) fn freeze(&self) -> Frozen {
        let (nodes, freed) = self.shared().lock().cache.freeze();
        Frozen { nodes, freed, root: self.root, next: self.nodes.next() }
    }
}
