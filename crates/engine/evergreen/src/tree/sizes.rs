//! What follows from the shape that a tree has.

use crate::{disk::Shape, node::BasementSizes};

/// The limits of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// What a leaf, and what waits in an inner node, may weigh.
    pub(super) node_bytes: usize,
    /// Children of an inner node.
    pub(super) fanout: usize,
    /// Basements.
    pub(super) basements: BasementSizes,
}

impl Sizes {
    pub(super) fn new(shape: &Shape) -> Self {
        let most = shape.basement_bytes as usize;
        Self {
            node_bytes: shape.node_bytes as usize,
            fanout: shape.fanout as usize,
            basements: BasementSizes { least: most / 2, most },
        }
    }

    /// What a leaf is filled to when one is split: 70%, or 90% where entries are only appended.
    pub(super) fn leaf_target(&self, is_appended: bool) -> usize {
        self.node_bytes / 10 * if is_appended { 9 } else { 7 }
    }

    /// The same of an inner node, in children.
    pub(super) fn fanout_target(&self, is_appended: bool) -> usize {
        (self.fanout * if is_appended { 9 } else { 7 } / 10).max(2)
    }
}
