//! What waits goes down.

use super::{Source, Tree};
use crate::{
    Result,
    node::{Body, Inner, NodeId},
};

impl<S: Source> Tree<S> {
    /// Brings the root, and what is touched for that, within the limits. Cost: nothing mostly; else some flushes.
    ///
    /// Errors: of reading; what was not done is done the next time.
    pub(crate) fn settle(&mut self) -> Result<()> {
        loop {
            if self.is_ranged {
                self.drop_covered(self.root)?;
                self.is_ranged = false;
            }
            self.relieve(self.root)?;
            if !self.fit_root()? {
                return Ok(());
            }
        }
    }

    /// Brings to the leaves what waits under one child of some inner node, the highest that has any. Returns whether there was one.
    /// It gives back the space of what was overwritten or deleted.
    pub(crate) fn flush_one_down(&mut self) -> Result<bool> {
        let was_any = self.bring_down(self.root)?;
        self.settle()?;
        Ok(was_any)
    }

    fn bring_down(&mut self, id: NodeId) -> Result<bool> {
        let Body::Inner(inner) = &self.nodes.peek(id)?.body else { return Ok(false) };
        if let Some(index) = heaviest(inner, |_| 1) {
            self.nodes.whole(id)?;
            self.flush_all_below(id, index)?;
            return Ok(true);
        }
        let children: Vec<NodeId> = inner.children().iter().map(|child| child.id).collect();
        if inner.height() > 1 {
            for (index, child) in children.into_iter().enumerate() {
                if self.bring_down(child)? {
                    self.nodes.whole(id)?;
                    self.reshape(id, index, false)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn flush_all_below(&mut self, parent: NodeId, index: usize) -> Result<()> {
        let child = self.nodes.here(parent).inner().children()[index].id;
        let is_appended = self.push_down(parent, index)?;
        while let Body::Inner(inner) = &self.nodes.here(child).body
            && let Some(next) = heaviest(inner, |_| 1)
        {
            self.flush_all_below(child, next)?;
        }
        self.reshape(parent, index, is_appended)
    }

    /// Flushes from a node until what waits in it is within the limit. Returns whether all that went came behind the last key.
    fn relieve(&mut self, id: NodeId) -> Result<bool> {
        let mut is_appended = true;
        loop {
            let Body::Inner(inner) = &self.nodes.here(id).body else { return Ok(false) };
            if inner.weight() <= self.sizes.node_bytes {
                return Ok(is_appended);
            }
            let Some(index) = heaviest(inner, |child| self.cheapness(child)) else { return Ok(false) };
            is_appended &= self.flush(id, index)?;
        }
    }

    /// How much cheaper than others it is to flush to a child: one that is written anyway costs nothing more. It does not depend on
    /// what is in memory, so that replaying a log does what was done.
    fn cheapness(&self, child: NodeId) -> usize {
        if self.nodes.is_dirty(child) { 4 } else { 1 }
    }

    /// What waits for a child goes to it; then the child is brought within the limits. Returns whether it was the last child, and all
    /// of it came behind the last key there.
    pub(super) fn flush(&mut self, parent: NodeId, index: usize) -> Result<bool> {
        let inner = self.nodes.here(parent).inner();
        let (child, is_last) = (inner.children()[index].id, index + 1 == inner.children().len());
        let mut is_appended = self.push_down(parent, index)?;
        if self.nodes.here(child).height() > 0 {
            is_appended = self.relieve(child)?;
        }
        self.reshape(parent, index, is_appended)?;
        Ok(is_appended && is_last)
    }

    /// What waits for a child is the child's. Returns whether the child is a leaf and all of it came behind its last key.
    pub(super) fn push_down(&mut self, parent: NodeId, index: usize) -> Result<bool> {
        self.nodes.whole(parent)?;
        let child = self.nodes.here(parent).inner().children()[index].id;
        self.nodes.whole(child)?;
        let sizes = self.sizes.basements;
        let buffer = self.nodes.edit(parent, |parent| parent.inner_mut().children_mut()[index].take());
        let is_appended = self.nodes.edit(child, |child| match &mut child.body {
            Body::Leaf(leaf) => leaf.receive(&buffer, sizes),
            Body::Inner(inner) => {
                inner.receive(buffer);
                false
            }
        });
        self.drop_covered(child)?;
        Ok(is_appended)
    }
}

/// The child for which most waits, times a factor; none if nothing waits.
fn heaviest(inner: &Inner, factor: impl Fn(NodeId) -> usize) -> Option<usize> {
    let weights = inner.children().iter().map(|child| child.weight * factor(child.id));
    let (index, weight) = weights.enumerate().max_by_key(|(_, weight)| *weight)?;
    (weight > 0).then_some(index)
}
