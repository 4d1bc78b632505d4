//! Reading ahead: whoever reads keys one by one, in their order, gets a leaf in few readings.

use std::sync::Arc;

use super::{Source, Tree};
use crate::{
    Result,
    node::{Basement, Node, NodeId},
};

impl<S: Source> Tree<S> {
    /// A basement of a leaf. If it is not in memory, it is read with as many behind it as there are before it in a row that are; and with
    /// all of the leaf if it is the first one and all of the left neighbour is there. So a leaf of *n* basements is read in log2 *n*
    /// pieces by who comes from the left, and one basement by who does not.
    pub(super) fn basement_ahead(&mut self, id: NodeId, number: usize) -> Result<Arc<Basement>> {
        self.nodes.peek(id)?;
        let node = self.nodes.here(id);
        if node.stored(number).is_some() {
            let before = (0..number).rev().take_while(|&part| node.stored(part).is_none()).count();
            let end = if before == number && self.is_left_whole(node) { node.parts() } else { number + before.max(1) };
            let wanted = number..end.min(node.parts());
            self.nodes.parts(id, wanted)?;
        }
        self.nodes.basement(id, number)
    }

    /// Whether all of the leaf before this one is in memory.
    fn is_left_whole(&self, leaf: &Node) -> bool {
        let left = self.left_of(0, &leaf.lower).and_then(|left| self.nodes.get(left));
        left.is_some_and(|left| (0..left.parts()).all(|part| left.stored(part).is_none()))
    }
}
