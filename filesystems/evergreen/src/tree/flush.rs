//! Flushes: moves waiting messages to the children.

use super::{Source, Tree};
use crate::{
    Result,
    node::{Body, Child, Inner, NodeId},
};

impl<S: Source> Tree<S> {
    /// Brings the root and the nodes on the way within their limits. Cost: usually nothing, else
    /// some flushes.
    ///
    /// Errors: those of reads. The next call continues.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.is_settled() {
            return Ok(());
        }
        let mut view = self.shared().lock();
        self.nodes.begin(&mut view);
        let is_ranged = std::mem::take(&mut view.is_ranged);
        drop(view);
        self.is_ranged |= is_ranged;
        let done = self.settle_taken();
        self.nodes.put_back(self.root);
        done
    }

    /// Whether there is nothing to settle.
    pub(crate) fn is_settled(&self) -> bool {
        let view = self.shared().lock();
        !view.is_ranged && !self.is_ranged && view.is_within(&self.sizes)
    }

    pub(super) fn settle_taken(&mut self) -> Result<()> {
        self.nodes.whole(self.root)?;
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

    /// Flushes on one path to a leaf, from the highest inner node with waiting messages, to the
    /// child with most of them. Returns whether messages waited. Repeated calls free all space of
    /// overwritten and deleted data. Ranges come first, because they may delete much. Each call
    /// makes few nodes dirty.
    pub(crate) fn flush_one_way(&mut self) -> Result<bool> {
        self.nodes.begin(&mut self.shared().lock());
        let was_any = self.flush_way(self.root);
        let settled = self.settle_taken();
        self.nodes.put_back(self.root);
        settled.and(was_any)
    }

    fn flush_way(&mut self, id: NodeId) -> Result<bool> {
        let a_range = self.sizes.node_bytes / 16;
        let Body::Inner(inner) = &self.nodes.whole(id)?.body else { return Ok(false) };
        let (height, children) = (inner.height(), inner.children().len());
        let heaviest = heaviest(inner, |child| child.weight + child.body.here().ranges().len() * a_range);
        let ways = heaviest.map_or(0..if height > 1 { children } else { 0 }, |index| index..index + 1);
        for index in ways {
            let mut is_appended = false;
            if heaviest.is_some() {
                is_appended = self.push_down(id, index)?;
            }
            let child = self.nodes.here(id).inner().children()[index].id;
            if (height > 1 && self.flush_way(child)?) || heaviest.is_some() {
                self.nodes.whole(id)?;
                self.nodes.whole(child)?;
                self.reshape(id, index, is_appended)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Flushes from a node until its messages are within the limit. Returns whether all of them
    /// were after the last key.
    ///
    /// Errors: those of reads. Then messages for that child stay, and other children are flushed,
    /// until twice the limit waits.
    pub(super) fn relieve(&mut self, id: NodeId) -> Result<bool> {
        let mut is_appended = true;
        loop {
            let Body::Inner(inner) = &self.nodes.here(id).body else { return Ok(false) };
            if inner.weight() <= self.sizes.node_bytes {
                return Ok(is_appended);
            }
            let all = |child: &Child| child.weight * self.cheapness(child.id);
            let readable = |child: &Child| if self.unreadable.contains(&child.id) { 0 } else { all(child) };
            let is_too_much = inner.weight() > 2 * self.sizes.node_bytes;
            let Some(index) = heaviest(inner, readable).or_else(|| heaviest(inner, all).filter(|_| is_too_much)) else {
                return Ok(false);
            };
            let child = inner.children()[index].id;
            match self.flush(id, index) {
                Ok(appended) => is_appended &= appended,
                Err(error) => {
                    self.unreadable.insert(child);
                    return Err(error);
                }
            }
            self.unreadable.remove(&child);
        }
    }

    /// The weight of a flush to a child: a dirty child is written anyway. It does not depend on the
    /// state of the cache, except for dirty nodes.
    fn cheapness(&self, child: NodeId) -> usize {
        if self.nodes.is_dirty(child) { 4 } else { 1 }
    }

    /// Flushes the messages of a child to it, then brings the child within its limits. Returns
    /// whether it was the last child and all messages were after its last key.
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

    /// Moves the messages of a child into it. Returns whether the child is a leaf and all messages
    /// were after its last key.
    pub(super) fn push_down(&mut self, parent: NodeId, index: usize) -> Result<bool> {
        self.nodes.whole(parent)?;
        let child = self.nodes.here(parent).inner().children()[index].id;
        self.nodes.whole(child)?;
        let sizes = self.sizes.basements;
        let buffer = self.nodes.edit(parent, |parent| parent.inner_mut().children_mut()[index].take());
        self.shared().lock().cache.note_flush(self.nodes.here(parent).height(), buffer.weight());
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

/// The child with the highest weight; `None` if all weights are 0.
fn heaviest(inner: &Inner, weight: impl Fn(&Child) -> usize) -> Option<usize> {
    let (index, weight) = inner.children().iter().map(weight).enumerate().max_by_key(|(_, weight)| *weight)?;
    (weight > 0).then_some(index)
}
