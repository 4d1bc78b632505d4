//! The limits that follow from the shape of the tree.

use crate::{disk::Shape, node::BasementSizes};

/// The limits of nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The most weight of a leaf, and of all buffers of an inner node.
    pub(super) node_bytes: usize,
    /// The most children of an inner node.
    pub(super) fanout: usize,
    /// The sizes of basements.
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

    /// The fill of a leaf after a split: 70%, or 90% where entries are only appended.
    pub(super) fn leaf_target(&self, is_appended: bool) -> usize {
        self.node_bytes / 10 * if is_appended { 9 } else { 7 }
    }

    /// The fill of an inner node after a split, in children.
    pub(super) fn fanout_target(&self, is_appended: bool) -> usize {
        (self.fanout * if is_appended { 9 } else { 7 } / 10).max(2)
    }
}
