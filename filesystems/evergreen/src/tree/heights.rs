//! The expected heights of nodes, from their parents. A node never changes its height, so these
//! never expire.

use std::collections::HashMap;

use crate::{
    Error, Result,
    disk::Damage,
    node::{Body, Node, NodeId},
};

/// The heights of the children of all nodes read so far.
#[derive(Default)]
pub(super) struct Heights(HashMap<NodeId, u8>);

impl Heights {
    /// Checks a node after a read. Errors: `Damaged` if its height, or that of a child, contradicts
    /// another parent.
    pub(super) fn check(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let damage = |field, found: String, expected: String| {
            Err(Error::damaged(format!("node {id}"), &Damage::new("node", field, found, expected)))
        };
        let height = node.height();
        if let Some(said) = self.0.get(&id).filter(|said| **said != height) {
            return damage("height", height.to_string(), format!("{said}, 1 less than its parent"));
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
