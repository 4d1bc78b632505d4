//! Loads nodes into the cache: reads under way, and their results.

use std::sync::Arc;

use super::{
    super::{
        load_parts::{Load, Want, What},
        node_source::{Room, Source},
    },
    Cache, Slot, State,
};
use crate::{
    Error, Result,
    disk::Damage,
    node::{Node, NodeId},
};

impl<S: Source> Cache<S> {
    /// Wants a whole node, and the following ones if they are adjacent.
    pub(in crate::tree) fn want_row(&self, id: NodeId, behind: Vec<NodeId>) -> Want {
        Want { id, node: self.get(id).cloned(), what: What::Row(behind) }
    }

    /// Whether a thread reads a part of the node now.
    pub(in crate::tree) fn is_loading(&self, id: NodeId) -> bool {
        self.loading.contains(&id)
    }

    /// Marks the wanted nodes as being read. Errors: `Damaged` if the map has no place for the
    /// node.
    pub(in crate::tree) fn begin(&mut self, want: Want) -> Result<Load<S>> {
        let Some(place) = S::find(&self.map, want.id) else {
            let damage = Damage::new("node map", "node", "none", "a place, because a node names it");
            return Err(Error::damaged(self.source.describe(want.id, None), &damage));
        };
        let (place, mut behind) = (place.clone(), Vec::new());
        if let What::Row(row) = &want.what {
            let free = row.iter().take_while(|id| !self.loading.contains(id));
            behind.extend(free.map_while(|id| Some((*id, S::find(&self.map, *id)?.clone()))));
        }
        self.loading.extend(behind.iter().map(|(id, _)| *id).chain([want.id]));
        Ok(Load { source: self.source.clone(), place, behind, want })
    }

    /// Ends a read, successful or not. If the node moved, or changed in memory, the result is
    /// dropped; the caller reads it again.
    pub(in crate::tree) fn finish(&mut self, load: Load<S>, read: Result<Vec<Arc<Node>>>) -> Result<()> {
        let Load { place, behind, want, .. } = load;
        let all: Vec<(NodeId, S::Place)> = std::iter::once((want.id, place)).chain(behind).collect();
        let is_current = |(id, place): &(NodeId, S::Place)| S::find(&self.map, *id) == Some(place);
        let are_current: Vec<bool> = all.iter().map(is_current).collect();
        for (id, _) in &all {
            self.loading.remove(id);
        }
        // The place is no longer that of the node: the caller searches again.
        if are_current.contains(&false) && read.is_err() {
            return Ok(());
        }
        for (((id, _), is_current), node) in all.into_iter().zip(are_current).zip(read?) {
            if is_current {
                match self.heights.check(id, &node) {
                    Err(error) if id == want.id => return Err(error),
                    // The caller that reads this node itself receives the error.
                    Err(_) => break,
                    Ok(()) => {}
                }
                self.take_in(id, node, want.node.as_ref().filter(|_| id == want.id));
            }
        }
        Ok(())
    }

    /// Stores a node that was read and is current. `before`: the node in memory at the start of the
    /// read.
    fn take_in(&mut self, id: NodeId, node: Arc<Node>, before: Option<&Arc<Node>>) {
        match self.slots.get_mut(&id) {
            None => {
                self.tick += 1;
                self.order.insert(self.tick, id);
                let slot = Slot { node, state: State::Clean(self.tick), memory_bytes: 0, room: Room::default() };
                self.slots.insert(id, slot);
            }
            Some(slot) if before.is_some_and(|before| Arc::ptr_eq(before, &slot.node)) => {
                slot.node = node;
                self.touch(id);
            }
            Some(_) => return,
        }
        self.weigh(id);
    }
}
