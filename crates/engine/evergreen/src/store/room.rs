//! Whether there is room: by what is claimed, and by what is free.
//!
//! **By claims**: the sum of what is live may be 90% of the area, and 92% for removals. The rest is for what waits in inner nodes, and for
//! writing anew what is there.
//!
//! **By what is free**: before a batch is done, free are the most bytes that all dirty nodes take, the map of nodes, and a headroom: what
//! one batch can make dirty, by a flush to each level. So a checkpoint always fits. If that is not so, a checkpoint is made, which
//! gives back what was written anew; and if that is not enough, what waits is brought down, which gives back what it deletes.

use super::{Core, State};
use crate::{Claim, Error, Result, disk::NodeMap};

impl Core {
    /// What may be claimed by all: a share of the area, without the ends of units that nodes do not fill. Of a small device less, so that
    /// the nodes that one batch makes dirty have room beside it.
    pub(super) fn most_live(&self, is_removal: bool) -> u64 {
        const NODES: u64 = 9;
        let geometry = self.area.geometry();
        let (unit, node) = (u64::from(geometry.unit_bytes), u64::from(self.shape.node_bytes));
        let area = geometry.data_bytes();
        // Half a unit of a node that is filled to two thirds.
        let filled = area - area / 4 * 3 / node.div_ceil(unit);
        let (percent, kept) = if is_removal { (92, 0) } else { (90, area / 50) };
        (filled / 100 * percent).min(area.saturating_sub(kept + NODES * (node + 2 * unit)))
    }

    /// What is live after a claim. Errors: `NoSpace`.
    pub(super) fn claim(&self, state: &State, claim: &Claim) -> Result<u64> {
        let live = state.live.saturating_add_signed(claim.bytes);
        let most = self.most_live(claim.is_removal);
        if claim.bytes > 0 && live > most {
            let free = most.saturating_sub(state.live);
            return Err(Error::NoSpace { wanted: claim.bytes as u64, free });
        }
        Ok(live)
    }

    /// Whether so much is free that a batch of so many bytes may come.
    pub(super) fn has_room(&self, state: &State, batch_bytes: usize, is_removal: bool) -> bool {
        let kept = if is_removal { 0 } else { self.area.geometry().data_bytes() / 50 };
        self.free_bytes(state) >= self.needed_bytes(state) + self.headroom(batch_bytes) + kept
    }

    /// Whether so much is free that several batches may come before anything is brought down.
    pub(super) fn has_much_room(&self, state: &State, batch_bytes: usize) -> bool {
        const FLUSHES: u64 = 8;
        let kept = self.area.geometry().data_bytes() / 50;
        self.free_bytes(state) >= self.needed_bytes(state) + FLUSHES * self.headroom(batch_bytes) + kept
    }

    /// There is not. Only behind [`reclaim`](Self::reclaim), when nothing more can be given back.
    pub(super) fn no_space(&self, batch_bytes: usize) -> Error {
        let state = self.lock();
        let free = self.free_bytes(&state).saturating_sub(self.needed_bytes(&state));
        Error::NoSpace { wanted: self.headroom(batch_bytes), free }
    }

    /// Brings down what waits, behind a checkpoint, as long as there is room for what that makes dirty: the next checkpoint gives back
    /// what was there before. Returns whether anything was done.
    pub(super) fn reclaim(&self) -> Result<bool> {
        let mut tree = self.tree();
        let mut was_any = false;
        while self.has_spare(&self.lock(), 0) {
            if !tree.flush_one_way()? {
                break;
            }
            was_any = true;
        }
        Ok(was_any)
    }

    /// Whether so much may be written that need not be, and a checkpoint of what is dirty fits nevertheless.
    pub(super) fn has_spare(&self, state: &State, bytes: u64) -> bool {
        self.free_bytes(state) >= self.needed_bytes(state) + self.headroom(0) + bytes
    }

    fn free_bytes(&self, state: &State) -> u64 {
        state.space.statistics().free * u64::from(self.area.geometry().unit_bytes)
    }

    /// What a checkpoint would take now.
    pub(super) fn needed_bytes(&self, state: &State) -> u64 {
        let view = self.shared.lock();
        let map = NodeMap::most_bytes(view.cache.map().len() + view.cache.dirty_count());
        view.cache.dirty_bytes() + state.unplaced + state.promised + map + u64::from(self.area.geometry().unit_bytes)
    }

    /// What one batch can make dirty: itself in the root, and on each level a child, a neighbour, and what they are split into.
    fn headroom(&self, batch_bytes: usize) -> u64 {
        let levels = u64::from(self.shared.lock().height()) + 1;
        let node = u64::from(self.shape.node_bytes) + 2 * u64::from(self.area.geometry().unit_bytes);
        3 * levels * node + 2 * batch_bytes as u64
    }
}
