//! Prefetching: a reader of adjacent keys loads nodes in few reads.

use std::{ops::Range, sync::Arc};

use super::{Source, View, cache::Found};
use crate::node::{Basement, Buffer, NodeId};

/// The most adjacent leaves of one read.
const ROW: usize = 4;

/// A leaf that a reader visited, and whether it read the last basement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Visit {
    leaf: NodeId,
    is_to_end: bool,
}

impl<S: Source> View<S> {
    /// Loads parts of a node. If one is missing, it reads at least the number of parts that are in
    /// memory directly before it. If all before it is in memory, it reads the rest of a leaf. So a
    /// sequential reader loads a node in few reads, and a random reader loads one part.
    pub(super) fn parts_ahead(&mut self, id: NodeId, wanted: Range<usize>) -> Found<()> {
        let node = self.cache.peek(id)?.clone();
        let Some(first) = wanted.clone().find(|&part| node.stored(part).is_some()) else { return Ok(()) };
        let before = (0..first).rev().take_while(|&part| node.stored(part).is_none()).count();
        let is_rest = node.height() == 0 && before == first && first > 0;
        let end = if is_rest { node.parts() } else { first + before };
        self.cache.parts(id, first..end.max(wanted.end).min(node.parts())).map(drop)
    }

    /// Notes that a reader visits a leaf. If the reader finished the leaf before it, and only the
    /// header of this one is in memory, one read loads it with [the next ones](ROW). `left`: the
    /// leaf before it, if it has the same parent; `key`: one of its keys.
    pub(super) fn come_to(&mut self, leaf: NodeId, left: Option<NodeId>, key: &[u8]) -> Found<()> {
        let is_away = self.cache.get(leaf).is_none_or(|leaf| leaf.parts() > 0 && leaf.stored(0).is_some());
        if is_away && left.is_some_and(|left| self.recent.contains(&Visit { leaf: left, is_to_end: true })) {
            let row = self.row_behind(key);
            return Err(self.cache.want_row(leaf, row));
        }
        if self.recent[0].leaf != leaf {
            self.recent = [Visit { leaf, is_to_end: false }, self.recent[0]];
        }
        Ok(())
    }

    /// Notes that a reader visits an inner node above leaves. If the reader finished a leaf, and
    /// this node is not in memory, one read loads it with the adjacent ones that follow under the
    /// same parent. Their limit is a quarter of a node. `index`: the child of its parent.
    pub(super) fn come_to_parent(&mut self, above: NodeId, index: usize) -> Found<()> {
        let Some(above) = self.cache.get(above) else { return Ok(()) };
        let children = above.inner().children();
        let id = children[index].id;
        if self.cache.get(id).is_some() || !self.recent.iter().any(|visit| visit.is_to_end) {
            return Ok(());
        }
        let mut bytes = 0;
        let row = children[index + 1..].iter().map(|child| child.id).take_while(|id| {
            bytes = self.cache.bytes(*id).saturating_add(bytes);
            bytes <= self.node_bytes / 4 && self.cache.get(*id).is_none()
        });
        Err(self.cache.want_row(id, row.collect()))
    }

    /// A basement of a visited leaf; missing parts are prefetched.
    pub(super) fn basement_ahead(&mut self, id: NodeId, number: usize) -> Found<Arc<Basement>> {
        self.parts_ahead(id, number..number + 1)?;
        let basement = self.cache.basement(id, number)?;
        self.recent[0].is_to_end |= self.cache.get(id).is_some_and(|leaf| number + 1 == leaf.parts());
        Ok(basement)
    }

    /// The buffer of a child of an inner node; missing parts are prefetched.
    pub(super) fn buffer_ahead(&mut self, id: NodeId, child: usize) -> Found<Arc<Buffer>> {
        self.parts_ahead(id, child..child + 1)?;
        self.cache.buffer(id, child)
    }

    /// The leaves after the one of a key, up to the first that is in memory. They have the same
    /// parent, and fit the memory until they are read.
    fn row_behind(&self, key: &[u8]) -> Vec<NodeId> {
        let most = (self.memory_bytes / 4 / self.node_bytes).min(ROW).saturating_sub(1);
        let is_away = |id: &NodeId| self.cache.get(*id).is_none();
        self.behind(key).into_iter().take_while(is_away).take(most).collect()
    }
}
