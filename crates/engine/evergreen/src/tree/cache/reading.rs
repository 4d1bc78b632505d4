//! Nodes that come into memory: who reads them, and what was read.

use std::sync::Arc;

use super::{
    super::{
        load::{Load, Want, What},
        source::{Room, Source},
    },
    Cache, Slot, State,
};
use crate::{
    Error, Result,
    disk::Damage,
    node::{Node, NodeId},
};

impl<S: Source> Cache<S> {
    /// That all of a node is lacked, and of those that follow as many as come with it.
    pub(in crate::tree) fn want_row(&self, id: NodeId, behind: Vec<NodeId>) -> Want {
        Want { id, node: self.get(id).cloned(), what: What::Row(behind) }
    }

    /// Whether somebody reads something of a node now.
    pub(in crate::tree) fn is_loading(&self, id: NodeId) -> bool {
        self.loading.contains(&id)
    }

    /// Marks the wanted nodes as being read. Errors: `Damaged` if the map has no place for the
    /// node.
    pub(in crate::tree) fn begin(&mut self, want: Want) -> Result<Load<S>> {
        let Some(place) = S::find(&self.map, want.id) else {
            let damage = Damage::new("node map", "node", "none", "one, for it is named");
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

    /// Ends a read, successful or not. If the node has moved, or is a different one in memory,
    /// drops the result: the caller that needs the node reads it again.
    pub(in crate::tree) fn finish(&mut self, load: Load<S>, read: Result<Vec<Arc<Node>>>) -> Result<()> {
        let Load { place, behind, want, .. } = load;
        let all: Vec<(NodeId, S::Place)> = std::iter::once((want.id, place)).chain(behind).collect();
        let is_current = |(id, place): &(NodeId, S::Place)| S::find(&self.map, *id) == Some(place);
        let are_current: Vec<bool> = all.iter().map(is_current).collect();
        for (id, _) in &all {
            self.loading.remove(id);
        }
        // The place that could not be read is no longer the node's: the caller looks again.
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

    /// A node was read that is what lies there. `before`: what of it was in memory.
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
