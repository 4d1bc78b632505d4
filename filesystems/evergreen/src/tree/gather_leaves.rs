//! Gathers adjacent leaves for a joint rewrite.

use std::ops::Range;

use bytes::Bytes;

use super::{Source, Tree};
use crate::{
    Result,
    node::{Child, NodeId},
};

/// Leaves that are to be written to adjacent places.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The leaves in the order of their keys; empty if `is_worth` refused.
    pub(crate) leaves: Vec<NodeId>,
    /// The bytes of the leaves.
    pub(crate) bytes: usize,
    /// Whether the leaves are the last of the tree.
    pub(crate) is_last: bool,
    /// Whether an unreadable part of the tree was skipped.
    pub(crate) is_skipped: bool,
}

/// A leaf that may be gathered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: NodeId,
    /// The bytes of the leaf and of its waiting messages.
    pub(crate) bytes: usize,
    /// The bytes of its waiting messages.
    pub(crate) waiting: usize,
    /// Whether ranges wait for it: then a part of it is dead.
    pub(crate) is_ranged: bool,
}

/// The parameters and the result of one turn.
struct Turn<'a> {
    most: usize,
    is_worth: &'a mut dyn FnMut(&[Candidate]) -> bool,
    end: Option<Bytes>,
    gathered: Gathered,
}

impl<S: Source> Tree<S> {
    /// Exchanges the key at which the next turn starts.
    pub(crate) fn exchange_gathered(&mut self, key: &mut Bytes) {
        std::mem::swap(&mut self.gathered, key);
    }

    /// Selects leaves under one parent from the key of the last turn on: one leaf, or several with
    /// at most `most` bytes. If `is_worth` accepts them, it flushes all their messages, so that no
    /// data in them is dead. It also fills each leaf before the next one.
    ///
    /// It skips an unreadable leaf, or the subtree of an unreadable inner node. If a leaf of a
    /// group cannot be read, the next turn has the others.
    pub(crate) fn gather(&mut self, most: usize, is_worth: &mut dyn FnMut(&[Candidate]) -> bool) -> Gathered {
        let from = std::mem::take(&mut self.gathered);
        let mut turn = Turn { most, is_worth, end: None, gathered: Gathered::default() };
        let known = self.unreadable.len();
        self.nodes.begin(&mut self.shared().lock());
        let done = self.gather_below(self.root, &from, &mut turn);
        let settled = self.settle_taken();
        self.nodes.put_back(self.root);
        let mut gathered = turn.gathered;
        // The next turn ends before the leaf that is now known to be unreadable.
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
        // If the subtree cannot be read, the next turn starts after it.
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
            // Small neighbours are read as well.
            let children =
                &node.inner().children()[first.saturating_sub(1)..node.inner().children().len().min(end + 1)];
            let unreadable = children.iter().map(|child| child.id).filter(|id| self.nodes.whole(*id).is_err());
            self.unreadable.extend(unreadable.collect::<Vec<_>>());
        })
    }

    /// Whether a leaf that could not be read is still unreadable.
    fn is_still_unreadable(&mut self, leaf: &Child) -> bool {
        let is_unreadable = self.unreadable.contains(&leaf.id) && self.nodes.whole(leaf.id).is_err();
        if !is_unreadable {
            self.unreadable.remove(&leaf.id);
        }
        is_unreadable
    }

    /// Flushes all messages of these leaves of a node, and fills the leaves.
    fn ready(&mut self, id: NodeId, leaves: Range<usize>, turn: &mut Turn<'_>) -> Result<()> {
        let node = self.nodes.here(id).clone();
        for index in leaves.clone().rev() {
            if node.inner().children()[index].weight > 0 {
                let is_appended = self.push_down(id, index)?;
                self.reshape(id, index, is_appended)?;
            }
        }
        // Write the parent with them. A repair detects old copies by the rule that no node is newer
        // than its parent.
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

    /// Fills the leaves of a parent between two keys, each before the next one.
    fn fill(&mut self, parent: NodeId, lower: &Bytes, upper: Option<&Bytes>) -> Result<()> {
        // A nearly full leaf stays as it is, because basements are not divided.
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
            // Both leaves are as full as possible.
            left += usize::from(self.nodes.here(parent).inner().children().len() >= before);
        }
    }
}
