//! Ranges that cover whole children: these are dropped without a read.

use bytes::Bytes;

use super::{Source, Tree};
use crate::{
    Result,
    node::{Body, Buffer, Child, Inner, Leaf, Node, NodeId},
};

impl<S: Source> Tree<S> {
    /// Drops the children of a node whose keys are all deleted by waiting ranges, with their
    /// subtrees. An empty child replaces each run of them. A range that covers only a grandchild is
    /// flushed, so that little data does not occupy much space. Cost: reads the headers of inner
    /// nodes below, no leaf.
    pub(super) fn drop_covered(&mut self, id: NodeId) -> Result<()> {
        let Body::Inner(inner) = &self.nodes.whole(id)?.body else { return Ok(()) };
        if inner.children().iter().all(|child| child.body.here().ranges().is_empty()) {
            return Ok(());
        }
        while let Some((first, end)) = self.covered_run(id) {
            self.drop_run(id, first, end)?;
        }
        if self.nodes.here(id).height() > 1 {
            while let Some(index) = self.covered_below(id)? {
                self.flush(id, index)?;
            }
        }
        Ok(())
    }

    /// The first child with a waiting range that covers one of its children.
    fn covered_below(&mut self, id: NodeId) -> Result<Option<usize>> {
        let node = self.nodes.here(id).clone();
        for (index, child) in node.inner().children().iter().enumerate() {
            let ranges = child.body.here().ranges();
            if ranges.is_empty() {
                continue;
            }
            let below = self.nodes.peek(child.id)?;
            let mut grandchildren = below.inner().children().iter().enumerate();
            if grandchildren.any(|(number, child)| ranges.cover(&child.lower, below.end(number).map(|end| &end[..]))) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// The first run of covered children.
    fn covered_run(&self, id: NodeId) -> Option<(usize, usize)> {
        let node = self.nodes.here(id);
        let children = node.inner().children();
        let is_covered = |index: usize| {
            children[index].body.here().ranges().cover(&children[index].lower, node.end(index).map(|end| &end[..]))
        };
        let first = (0..children.len()).find(|&index| is_covered(index))?;
        let run = (first..children.len()).take_while(|&index| is_covered(index)).count();
        Some((first, first + run))
    }

    fn drop_run(&mut self, id: NodeId, first: usize, end: usize) -> Result<()> {
        let node = self.nodes.here(id).clone();
        let dropped = &node.inner().children()[first..end];
        let height = node.height() - 1;
        let mut freed = Vec::new();
        for child in dropped {
            self.collect_subtree(child.id, height, &mut freed)?;
        }
        let mut waiting = Buffer::default();
        for child in dropped {
            waiting.receive((**child.body.here()).clone().without_ranges());
        }
        let (lower, upper) = (dropped[0].lower.clone(), node.end(end - 1).cloned());
        let empty = self.create_empty(height, &lower, upper.as_ref());
        self.nodes.edit(id, |node| {
            node.inner_mut().children_mut().splice(first..end, [Child::new(lower, empty, waiting)]);
        });
        for id in freed {
            self.nodes.free(id);
        }
        Ok(())
    }

    /// Collects a node and its subtree.
    fn collect_subtree(&mut self, id: NodeId, height: u8, all: &mut Vec<NodeId>) -> Result<()> {
        all.push(id);
        if height > 0 {
            let children: Vec<NodeId> = self.nodes.peek(id)?.inner().children().iter().map(|child| child.id).collect();
            for child in children {
                self.collect_subtree(child, height - 1, all)?;
            }
        }
        Ok(())
    }

    /// A new subtree of a height, without entries.
    fn create_empty(&mut self, height: u8, lower: &Bytes, upper: Option<&Bytes>) -> NodeId {
        let body = match height.checked_sub(1) {
            None => Body::Leaf(Leaf::default()),
            Some(below) => {
                let child = self.create_empty(below, lower, upper);
                Body::Inner(Inner::new(height, vec![Child::new(lower.clone(), child, Buffer::default())]))
            }
        };
        self.nodes.create(Node { lower: lower.clone(), upper: upper.cloned(), body })
    }
}
