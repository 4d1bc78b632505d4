//! The tree: what becomes of a batch on its way down, and how keys are read. Knows nodes in memory and a [`Source`] of others.
//!
//! **Invariants**, between any two calls, whatever failed:
//! - the root is in memory, all of it, and an inner node, so that a batch only has to wait there;
//! - all leaves are equally deep; the bounds of a node are those between which its parent has it;
//! - what a key has is: the value in its leaf, then what waits on the way to it, the lowest first.
//!
//! Each step reads first all that it needs, then changes nodes, which cannot fail. So after a reading that failed the tree is as
//! it was, or as after one step less.

mod ahead;
mod cover;
mod flush;
mod get;
mod nodes;
mod reshape;
mod scan;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeSet;

use bytes::Bytes;

pub(crate) use nodes::Nodes;
pub(crate) use source::{Known, Source};

use crate::{
    Result,
    disk::{NodeId, Shape},
    node::{Body, Buffer, Child, Inner, Leaf, Node},
};
use ahead::Visit;
use sizes::Sizes;

/// A tree of nodes.
pub(crate) struct Tree<S> {
    pub(crate) nodes: Nodes<S>,
    root: NodeId,
    sizes: Sizes,
    /// Children to which nothing could be flushed when it was tried last.
    unreadable: BTreeSet<NodeId>,
    /// A range came since the last [`settle`](Tree::settle).
    is_ranged: bool,
    /// The leaves to which readers came last, the newest first.
    recent: [Visit; 2],
    /// What nodes in memory took at most when it was trimmed last.
    memory_bytes: usize,
}

impl<S: Source> Tree<S> {
    /// An empty one.
    pub(crate) fn new(source: S, shape: &Shape) -> Self {
        let mut nodes = Nodes::new(source, NodeId(1));
        let leaf = nodes.create(Node { lower: Bytes::new(), upper: None, body: Body::Leaf(Leaf::default()) });
        let children = vec![Child::new(Bytes::new(), leaf, Buffer::default())];
        let root = nodes.create(Node { lower: Bytes::new(), upper: None, body: Body::Inner(Inner::new(1, children)) });
        Self {
            nodes,
            root,
            sizes: Sizes::new(shape),
            unreadable: BTreeSet::new(),
            is_ranged: false,
            recent: Default::default(),
            memory_bytes: 0,
        }
    }

    /// One that is there: its root, and the number of the next new node.
    pub(crate) fn open(source: S, shape: &Shape, root: NodeId, next: NodeId) -> Result<Self> {
        let mut nodes = Nodes::new(source, next);
        nodes.whole(root)?;
        Ok(Self {
            nodes,
            root,
            sizes: Sizes::new(shape),
            unreadable: BTreeSet::new(),
            is_ranged: true,
            recent: Default::default(),
            memory_bytes: 0,
        })
    }

    /// Its root.
    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    /// How many levels the root is above the leaves.
    pub(crate) fn height(&self) -> u8 {
        self.nodes.here(self.root).height()
    }

    /// What a batch does is done. It cannot fail, for the root is in memory; the root may be over its limit then.
    pub(crate) fn ingest(&mut self, buffer: Buffer) {
        self.is_ranged |= !buffer.ranges().is_empty();
        self.nodes.edit(self.root, |root| root.inner_mut().receive(buffer));
    }

    /// Forgets clean nodes until those in memory take at most so many bytes, but not the root.
    pub(crate) fn trim(&mut self, most: usize) {
        self.memory_bytes = most;
        self.nodes.trim(most, self.root);
    }
}
