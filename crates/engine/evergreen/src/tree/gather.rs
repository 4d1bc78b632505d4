//! Leaves that stand side by side are made ready to be written anew together.

use bytes::Bytes;

use super::{Source, Tree};
use crate::{
    Result,
    node::{Child, NodeId},
};

/// Leaves that are to lie behind each other.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// In the order of their keys; none if it was not worth it.
    pub(crate) leaves: Vec<NodeId>,
    /// Bytes that they take.
    pub(crate) bytes: usize,
    /// Nothing of the tree is behind them.
    pub(crate) is_last: bool,
}

/// A leaf that may be gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: NodeId,
    /// Bytes that it takes, with what waits for it.
    pub(crate) bytes: usize,
    /// Bytes of what waits for it.
    pub(crate) waiting: usize,
    /// Ranges wait for it: some of it is dead.
    pub(crate) is_ranged: bool,
}

/// What is asked of leaves, and what came of it.
struct Turn<'a> {
    most: usize,
    is_worth: &'a mut dyn FnMut(&[Candidate]) -> bool,
    end: Option<Bytes>,
    gathered: Gathered,
}

impl<S: Source> Tree<S> {
    /// The next leaves to be gathered are the first ones.
    pub(crate) fn gather_from_start(&mut self) {
        self.gathered = Bytes::new();
    }

    /// Takes leaves under one parent, `most` bytes of them or one, that stand after those of the last time. If that is worth it, all
    /// that waits for them is brought down, so that nothing of them is dead, and each is filled before the next one begins.
    ///
    /// Errors: of reading. The next time those behind come.
    pub(crate) fn gather(&mut self, most: usize, is_worth: &mut dyn FnMut(&[Candidate]) -> bool) -> Result<Gathered> {
        let from = std::mem::take(&mut self.gathered);
        let mut turn = Turn { most, is_worth, end: None, gathered: Gathered::default() };
        self.nodes.begin(&mut self.shared().lock());
        let done = self.gather_below(self.root, &from, &mut turn);
        self.gathered = turn.end.unwrap_or_default();
        turn.gathered.is_last = self.gathered.is_empty();
        let settled = self.settle_taken();
        self.nodes.put_back(self.root);
        done.and(settled)?;
        Ok(turn.gathered)
    }

    fn gather_below(&mut self, id: NodeId, key: &[u8], turn: &mut Turn<'_>) -> Result<()> {
        let node = self.nodes.whole(id)?;
        let (inner, index) = (node.inner(), node.inner().index(key));
        // If what is below cannot be read, the next time those behind it come.
        turn.end = node.end(index).cloned();
        if inner.height() == 1 {
            return self.gather_from(id, index, turn);
        }
        let child = &inner.children()[index];
        let (below, weight) = (child.id, child.weight);
        if weight > 0 {
            self.push_down(id, index)?;
        }
        self.gather_below(below, key, turn)?;
        self.nodes.whole(id)?;
        self.nodes.whole(below)?;
        self.relieve(below)?;
        self.reshape(id, index, false)
    }

    fn gather_from(&mut self, id: NodeId, first: usize, turn: &mut Turn<'_>) -> Result<()> {
        let node = self.nodes.here(id).clone();
        let mut bytes = 0;
        let candidate = |child: &Child| Candidate {
            id: child.id,
            bytes: self.nodes.bytes(child.id).saturating_add(child.weight),
            waiting: child.weight,
            is_ranged: !child.body.here().ranges().is_empty(),
        };
        let candidates: Vec<Candidate> = node.inner().children()[first..]
            .iter()
            .map(candidate)
            .take_while(|leaf| {
                bytes = leaf.bytes.saturating_add(bytes);
                bytes == leaf.bytes || bytes <= turn.most
            })
            .collect();
        let end = first + candidates.len();
        turn.end = node.end(end - 1).cloned();
        if !(turn.is_worth)(&candidates) {
            return Ok(());
        }
        for index in (first..end).rev() {
            if node.inner().children()[index].weight > 0 {
                let is_appended = self.push_down(id, index)?;
                self.reshape(id, index, is_appended)?;
            }
        }
        // It is written with them: so nothing is newer than what is above it, by which a repair knows old copies.
        self.nodes.edit(id, |_| ());
        let lower = &node.inner().children()[first].lower;
        self.fill(id, lower, turn.end.as_ref())?;
        let children = self.nodes.here(id).inner().children();
        let is_within = |at: &Bytes| at >= lower && turn.end.as_ref().is_none_or(|end| at < end);
        let leaves: Vec<NodeId> =
            children.iter().filter(|child| is_within(&child.lower)).map(|child| child.id).collect();
        turn.gathered.bytes = leaves.iter().map(|leaf| self.nodes.bytes(*leaf)).sum();
        turn.gathered.leaves = leaves;
        Ok(())
    }

    /// The most bytes to which a leaf is filled.
    pub(crate) fn filled_bytes(&self) -> usize {
        self.sizes.leaf_target(true)
    }

    /// Fills the leaves of a parent between two keys, each before the next one begins.
    fn fill(&mut self, parent: NodeId, lower: &Bytes, upper: Option<&Bytes>) -> Result<()> {
        // What is nearly full stays: entries are not divided.
        let full = self.sizes.node_bytes / 10 * 8;
        let mut left = self.nodes.here(parent).inner().children().partition_point(|child| child.lower < *lower);
        loop {
            let children = self.nodes.here(parent).inner().children();
            let (Some(a), Some(b)) = (children.get(left), children.get(left + 1)) else { return Ok(()) };
            if upper.is_some_and(|upper| b.lower >= *upper) {
                return Ok(());
            }
            if self.nodes.bytes(a.id) >= full {
                left += 1;
                continue;
            }
            let before = children.len();
            self.nodes.whole(parent)?;
            self.join(parent, left)?;
            self.reshape_as_appended(parent, left);
            // Both are as full as they can be.
            left += usize::from(self.nodes.here(parent).inner().children().len() >= before);
        }
    }
}
