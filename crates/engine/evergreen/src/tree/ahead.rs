//! Reading ahead: whoever reads keys one by one, in their order, gets a leaf in few readings.

use std::{ops::Range, sync::Arc};

use super::{Source, Tree};
use crate::{
    Result,
    node::{Basement, Node, NodeId},
};

impl<S: Source> Tree<S> {
    /// Takes parts of a leaf into memory. If one of them is not there, as many parts are read as there are in memory before them in a row,
    /// if that is more; and all of the leaf from its first part on, if all of the left neighbour is there. So a leaf of *n* basements is
    /// read in log2 *n* pieces by who comes from the left, and one basement by who does not.
    pub(super) fn parts_ahead(&mut self, id: NodeId, wanted: Range<usize>) -> Result<()> {
        let node = self.nodes.peek(id)?.clone();
        let Some(first) = wanted.clone().find(|&part| node.stored(part).is_some()) else { return Ok(()) };
        let before = (0..first).rev().take_while(|&part| node.stored(part).is_none()).count();
        let end = if before == first && self.is_left_whole(&node) { node.parts() } else { first + before };
        self.nodes.parts(id, first..end.max(wanted.end).min(node.parts()))
    }

    /// A basement of a leaf; read so if it is not in memory.
    pub(super) fn basement_ahead(&mut self, id: NodeId, number: usize) -> Result<Arc<Basement>> {
        self.parts_ahead(id, number..number + 1)?;
        self.nodes.basement(id, number)
    }

    /// Whether all of the leaf before this one is in memory.
    fn is_left_whole(&self, leaf: &Node) -> bool {
        let left = self.left_of(0, &leaf.lower).and_then(|left| self.nodes.get(left));
        left.is_some_and(|left| (0..left.parts()).all(|part| left.stored(part).is_none()))
    }
}
