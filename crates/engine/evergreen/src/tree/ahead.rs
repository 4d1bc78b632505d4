//! Reading ahead: whoever reads keys one by one, in their order, gets nodes in few readings.

use std::{ops::Range, sync::Arc};

use super::{Source, View, cache::Found};
use crate::node::{Basement, Buffer, NodeId};

/// Leaves that are read at once at most, if one lies behind the other.
const ROW: usize = 4;

/// A leaf to which a reader came, and whether he read the last of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Visit {
    leaf: NodeId,
    is_to_end: bool,
}

impl<S: Source> View<S> {
    /// Takes parts of a node into memory. If one of them is not there, as many are read as there are in memory before them in a row, if
    /// that is more, and all that is missing of a leaf if all before it is there: who comes from the left has a node in few readings,
    /// and who does not has one part in one.
    pub(super) fn parts_ahead(&mut self, id: NodeId, wanted: Range<usize>) -> Found<()> {
        let node = self.cache.peek(id)?.clone();
        let Some(first) = wanted.clone().find(|&part| node.stored(part).is_some()) else { return Ok(()) };
        let before = (0..first).rev().take_while(|&part| node.stored(part).is_none()).count();
        let is_rest = node.height() == 0 && before == first && first > 0;
        let end = if is_rest { node.parts() } else { first + before };
        self.cache.parts(id, first..end.max(wanted.end).min(node.parts())).map(drop)
    }

    /// A reader comes to a leaf. If he read the one before to its end, and nothing of this one is in memory but its header, he gets it in one
    /// reading with [those behind it](ROW). `left`: the one before, if it has the same parent; `key`: one of its keys.
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

    /// A reader comes to an inner node above leaves. If he read a leaf to its end before, and nothing of this node is in memory, he gets it in one
    /// reading with those behind it under the same parent that lie directly behind it, a quarter of a node of them at most. `index`: which
    /// child of its parent it is.
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

    /// A basement of a leaf to which a reader has come; read so if it is not in memory.
    pub(super) fn basement_ahead(&mut self, id: NodeId, number: usize) -> Found<Arc<Basement>> {
        self.parts_ahead(id, number..number + 1)?;
        let basement = self.cache.basement(id, number)?;
        self.recent[0].is_to_end |= self.cache.get(id).is_some_and(|leaf| number + 1 == leaf.parts());
        Ok(basement)
    }

    /// What waits in an inner node for a child; read so if it is not in memory.
    pub(super) fn buffer_ahead(&mut self, id: NodeId, child: usize) -> Found<Arc<Buffer>> {
        self.parts_ahead(id, child..child + 1)?;
        self.cache.buffer(id, child)
    }

    /// The leaves behind the one of a key that are not in memory, up to the first that is: under the same parent, and few enough for
    /// all of the row to stay in memory until it was read.
    fn row_behind(&self, key: &[u8]) -> Vec<NodeId> {
        let most = (self.memory_bytes / 4 / self.node_bytes).min(ROW).saturating_sub(1);
        let is_away = |id: &NodeId| self.cache.get(*id).is_none();
        self.behind(key).into_iter().take_while(is_away).take(most).collect()
    }
}
