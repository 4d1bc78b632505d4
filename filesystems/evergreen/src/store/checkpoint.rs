//! Checkpoints: write all dirty nodes to free space, then a superblock that names them.

use std::sync::Arc;

use super::{Core, Durable, State};
use crate::{
    Error, Result,
    disk::{
        Copies, MAX_MAP_PIECES, MAX_SECOND_MAP_PIECES, MapPlace, NodeId, NodeMap, Place, Superblock, write_superblock,
    },
    log::LogStart,
    node::Node,
    tree,
};

/// A snapshot of the tree between two batches.
pub(super) struct Frozen {
    /// The dirty nodes, leaves first, in the order of their keys.
    pub(super) nodes: Vec<(NodeId, Arc<Node>)>,
    /// The nodes that are no longer in the tree.
    pub(super) freed: Vec<NodeId>,
    /// The generation of the new superblock.
    pub(super) generation: u64,
    /// The start of the log after it.
    start: LogStart,
    live: u64,
    root: NodeId,
    next: NodeId,
}

impl Core {
    /// Makes a checkpoint, if anything changed. `cut` is called between two batches and returns the
    /// new start of the log. At most `most` bytes of clean nodes are moved as well, to be adjacent
    /// to others. Returns the start of the log, and the moved bytes.
    ///
    /// Errors: as for [`Evergreen::checkpoint`](super::Evergreen::checkpoint).
    pub(super) fn checkpoint(
        &self,
        durable: &mut Durable,
        cut: impl FnOnce() -> LogStart,
        most: u64,
    ) -> Result<(LogStart, u64)> {
        let frozen = self.freeze(durable.generation + 1, cut).inspect_err(|_| self.lock().gathered.clear())?;
        let is_gathered = !self.lock().gathered.is_empty();
        let is_changed = !frozen.nodes.is_empty() || !frozen.freed.is_empty() || frozen.start != durable.replay;
        if !is_changed && !is_gathered && !self.watch.is_any_bad() {
            return Ok((frozen.start, 0));
        }
        let (placed, moved) = self.write_nodes(&frozen, most).inspect_err(|_| self.unfreeze(&frozen))?;
        let replaced = self.install(placed, &frozen.freed);
        let superblock = match self.write_map(&frozen) {
            Ok(superblock) => superblock,
            Err(error) => {
                // The written nodes may not be durable: the next checkpoint writes all of them
                // again, elsewhere.
                self.uninstall(replaced);
                self.unfreeze(&frozen);
                return Err(error);
            }
        };
        let device = self.area.device();
        let written = write_superblock(device, &superblock).and_then(|()| Ok(device.flush()?));
        let mut state = self.lock();
        if let Err(error) = written {
            drop(state);
            self.fail(&error);
            return Err(error);
        }
        for (_, place) in replaced {
            place.iter().for_each(|place| state.space.give_back_all(place.all()));
        }
        state.space.give_back_all(durable.map.all());
        self.shared.lock().cache.written(frozen.nodes.iter().map(|(id, _)| *id));
        self.watch.end_writing(true);
        *durable = Durable::from(&superblock);
        self.counters.note_checkpoint(superblock.map.bytes);
        Ok((frozen.start, moved))
    }

    /// Takes a snapshot of the tree for a checkpoint of this generation.
    pub(super) fn freeze(&self, generation: u64, cut: impl FnOnce() -> LogStart) -> Result<Frozen> {
        self.expect_working()?;
        let mut tree = self.tree();
        tree.settle()?;
        // No batch may come between the cut of the log and the snapshot of the tree.
        let mut state = self.lock();
        state.unplaced = self.shared.lock().cache.dirty_room().all;
        let (start, live) = (cut(), state.live);
        let tree::Frozen { mut nodes, freed, root, next } = tree.freeze();
        nodes.sort_by(|(_, a), (_, b)| (a.height(), &a.lower).cmp(&(b.height(), &b.lower)));
        Ok(Frozen { nodes, freed, generation, start, live, root, next })
    }

    /// Sets the places of written nodes, and removes freed ones. Returns the old places, which are
    /// not free yet.
    fn install(&self, placed: Vec<(NodeId, Place)>, freed: &[NodeId]) -> Vec<(NodeId, Option<Place>)> {
        let mut view = self.shared.lock();
        let map = view.cache.map_mut();
        let placed = placed.into_iter().map(|(id, place)| (id, Some(place)));
        let changes = placed.chain(freed.iter().map(|id| (*id, None)));
        changes.map(|(id, place)| (id, set(map, id, place))).collect()
    }

    /// Restores the old places, in reverse order.
    fn uninstall(&self, replaced: Vec<(NodeId, Option<Place>)>) {
        let mut state = self.lock();
        let mut view = self.shared.lock();
        for (id, place) in replaced.into_iter().rev() {
            if let Some(place) = set(view.cache.map_mut(), id, place) {
                state.space.give_back_all(place.all());
            }
        }
    }

    /// Writes the map of nodes and flushes. Returns the superblock that is to name it.
    fn write_map(&self, frozen: &Frozen) -> Result<Superblock> {
        let geometry = *self.area.geometry();
        let (bytes, map) = {
            let mut state = self.lock();
            let view = self.shared.lock();
            let nodes = view.cache.map();
            let (bytes, node_sum) = (nodes.encode(self.identity(), frozen.generation), nodes.node_sum());
            state.second_units = nodes.iter().map(|(_, place)| place.second.units()).sum();
            drop(view);
            let units = geometry.units_for(bytes.len() as u64);
            let extents = state.space.take_pieces(units, 0, MAX_MAP_PIECES);
            let Some(extents) = extents else { return Err(self.no_extents(&state, bytes.len() as u64)) };
            let second = match self.watch.copies() {
                Copies::One => Some(Vec::new()),
                Copies::Two => state.space.take_far(units, &extents, MAX_SECOND_MAP_PIECES),
            };
            let second = second.unwrap_or_else(|| {
                self.watch.note_missing(None);
                Vec::new()
            });
            let (len, sum, node_sum) = (bytes.len() as u64, NodeMap::sum(&bytes), self.identity().map(|_| node_sum));
            (bytes, MapPlace { extents, second, bytes: len, sum, node_sum })
        };
        if let Err(error) = self.write_map_copies(&map, bytes) {
            self.lock().space.give_back_all(map.all());
            return Err(error);
        }
        Ok(Superblock {
            version: self.version,
            uuid: self.uuid,
            geometry,
            shape: self.shape,
            copies: self.watch.copies(),
            generation: frozen.generation,
            map,
            root: frozen.root,
            next_node: frozen.next.0,
            live_bytes: frozen.live,
            replay: frozen.start,
        })
    }

    fn write_map_copies(&self, map: &MapPlace, bytes: Vec<u8>) -> Result<()> {
        if !map.second.is_empty() {
            self.area.write(&map.second, bytes.clone())?;
            self.watch.note_write(bytes.len());
        }
        self.area.write(&map.extents, bytes)?;
        Ok(self.area.device().flush()?)
    }

    pub(super) fn unfreeze(&self, frozen: &Frozen) {
        let mut state = self.lock();
        (state.unplaced, state.promised) = (0, 0);
        self.watch.end_writing(false);
        self.shared.lock().cache.unfreeze(frozen.nodes.iter().map(|(id, _)| *id), &frozen.freed);
    }

    pub(super) fn no_extents(&self, state: &State, wanted: u64) -> Error {
        Error::NoSpace { wanted, free: state.space.statistics().free * u64::from(self.area.geometry().unit_bytes) }
    }
}

/// Sets or removes the place of a node; returns the old one.
fn set(map: &mut NodeMap, id: NodeId, place: Option<Place>) -> Option<Place> {
    match place {
        Some(place) => map.insert(id, place),
        None => map.remove(id),
    }
}
