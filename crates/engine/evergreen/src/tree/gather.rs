//! Leaves that stand side by side are made ready to be written anew together.

use std::ops::Range;

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
    /// A part of the tree cannot be read, and was skipped.
    pub(crate) is_skipped: bool,
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
    /// Exchanges the first key of the leaves that are gathered next.
    pub(crate) fn exchange_gathered(&mut self, key: &mut Bytes) {
        std::mem::swap(&mut self.gathered, key);
    }

    /// Takes leaves under one parent, `most` bytes of them or one, that stand after those of the last time. If that is worth it, all
    /// that waits for them is brought down, so that nothing of them is dead, and each is filled before the next one begins.
    ///
    /// What cannot be read is skipped: a leaf, or all that is below an inner node. If others are beside that leaf, they come the next time.
    pub(crate) fn gather(&mut self, most: usize, is_worth: &mut dyn FnMut(&[Candidate]) -> bool) -> Gathered {
        let from = std::mem::take(&mut self.gathered);
        let mut turn = Turn { most, is_worth, end: None, gathered: Gathered::default() };
        let known = self.unreadable.len();
        self.nodes.begin(&mut self.shared().lock());
        let done = self.gather_below(self.root, &from, &mut turn);
        let settled = self.settle_taken();
        self.nodes.put_back(self.root);
        let mut gathered = turn.gathered;
        // A leaf that is known from now on ends the others before it.
        let is_again = (done.is_err() || settled.is_err()) && self.unreadable.len() > known;
        if done.is_err() || is_again {
            gathered = Gathered { is_skipped: !is_again, ..Gathered::default() };
        }
        self.gathered = if is_again { from } else { turn.end.unwrap_or_default() };
        gathered.is_last = !is_again && self.gathered.is_empty();
        gathered
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
        if self.is_still_unreadable(&node.inner().children()[first]) {
            turn.end = node.end(first).cloned();
            turn.gathered.is_skipped = true;
            return Ok(());
        }
        let mut bytes = 0;
        let candidate = |child: &Child| Candidate {
            id: child.id,
            bytes: self.nodes.bytes(child.id).saturating_add(child.weight),
            waiting: child.weight,
            is_ranged: !child.body.here().ranges().is_empty(),
        };
        let candidates: Vec<Candidate> = node.inner().children()[first..]
            .iter()
            .take_while(|child| !self.unreadable.contains(&child.id))
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
        self.ready(id, first..end, turn).inspect_err(|_| {
            // Their neighbours are read, too, if they are small.
            let children =
                &node.inner().children()[first.saturating_sub(1)..node.inner().children().len().min(end + 1)];
            let unreadable = children.iter().map(|child| child.id).filter(|id| self.nodes.whole(*id).is_err());
            self.unreadable.extend(unreadable.collect::<Vec<_>>());
        })
    }

    /// Whether a leaf that could not be read cannot be read now.
    fn is_still_unreadable(&mut self, leaf: &Child) -> bool {
        let is_unreadable = self.unreadable.contains(&leaf.id) && self.nodes.whole(leaf.id).is_err();
        if !is_unreadable {
            self.unreadable.remove(&leaf.id);
        }
        is_unreadable
    }

    /// Brings down all that waits for these leaves of a node, and fills them.
    fn ready(&mut self, id: NodeId, leaves: Range<usize>, turn: &mut Turn<'_>) -> Result<()> {
        let node = self.nodes.here(id).clone();
        for index in leaves.clone().rev() {
            if node.inner().children()[index].weight > 0 {
                let is_appended = self.push_down(id, index)?;
                self.reshape(id, index, is_appended)?;
            }
        }
        // It is written with them: so nothing is newer than what is above it, by which a repair knows old copies.
        self.nodes.edit(id, |_| ());
        let lower = &node.inner().children()[leaves.start].lower;
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
