//! Where a node stands among the others, as far as is known in memory.

use super::{Source, Tree};
use crate::node::{Body, NodeId};

impl<S: Source> Tree<S> {
    /// The node left of the one of a height that begins at `lower`, under the same parent, if all above it are in memory.
    pub(crate) fn left_of(&self, height: u8, lower: &[u8]) -> Option<NodeId> {
        let mut id = self.root;
        loop {
            let node = self.nodes.get(id)?;
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
        while let Some(node) = self.nodes.get(id) {
            let Body::Inner(inner) = &node.body else { break };
            let index = inner.index(key);
            if inner.height() == 1 {
                return inner.children()[index + 1..].iter().map(|child| child.id).collect();
            }
            id = inner.children()[index].id;
        }
        Vec::new()
    }
}
