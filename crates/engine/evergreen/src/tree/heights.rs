//! How high nodes must be: what the node above says, wherever it lies. A node never changes its height, so nothing of this grows old.

use std::collections::HashMap;

use crate::{
    Error, Result,
    disk::Damage,
    node::{Body, Node, NodeId},
};

/// Heights of nodes that some node named that was read.
#[derive(Default)]
pub(super) struct Heights(HashMap<NodeId, u8>);

impl Heights {
    /// A node was read. Errors: `Damaged` if it, or one below it, is of another height than was said: nothing could be done with it.
    pub(super) fn check(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let damage = |field, found: String, expected: String| {
            Err(Error::damaged(format!("node {id}"), &Damage::new("node", field, found, expected)))
        };
        let height = node.height();
        if let Some(said) = self.0.get(&id).filter(|said| **said != height) {
            return damage("height", height.to_string(), format!("{said}, one less than its parent's"));
        }
        let Body::Inner(inner) = &node.body else { return Ok(()) };
        for child in inner.children() {
            let said = *self.0.entry(child.id).or_insert(height - 1);
            if said != height - 1 {
                return damage(
                    "child",
                    format!("{} of height {said}", child.id),
                    format!("a node of height {}", height - 1),
                );
            }
        }
        Ok(())
    }
}
