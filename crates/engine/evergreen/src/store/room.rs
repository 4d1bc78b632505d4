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
    /// What may be claimed by all: a share of the area, without the ends of units that nodes do not fill and without second copies. Of a small
    /// device less, so that the nodes that one batch makes dirty have room beside it.
    pub(super) fn most_live(&self, is_removal: bool) -> u64 {
        let geometry = self.area.geometry();
        let area = geometry.data_bytes();
        let copies = self.watch.copies().count();
        let (percent, kept) = if is_removal { (92, 0) } else { (90, area / 50) };
        let share = self.for_leaves(self.without_ends(area) / 100 * percent, copies - 1);
        let beside = area.saturating_sub(kept + self.dirtied_bytes(self.most_levels(area)));
        share.min(self.for_leaves(self.without_ends(beside), copies))
    }

    /// What of `bytes` nodes fill that are filled to two thirds: half a unit of each is empty.
    fn without_ends(&self, bytes: u64) -> u64 {
        let units = u64::from(self.shape.node_bytes).div_ceil(u64::from(self.area.geometry().unit_bytes));
        bytes - bytes / 4 * 3 / units
    }

    /// What of `bytes` is left for leaves beside so many copies of the inner nodes above them: of a unit each, for what waits in them goes
    /// down when little is free.
    fn for_leaves(&self, bytes: u64, copies: u64) -> u64 {
        let unit = u64::from(self.area.geometry().unit_bytes);
        // Nodes are filled to two thirds, by what is in them and by their children; so above n children of each there is an (n - 1)th.
        let of_one = u64::from(self.shape.node_bytes) * 2 / 9 * (2 * u64::from(self.shape.fanout) - 3);
        (u128::from(bytes) * u128::from(of_one) / u128::from(of_one + copies * unit)) as u64
    }

    /// Levels of a tree that fills an area with nodes that are filled to two thirds.
    fn most_levels(&self, area: u64) -> u64 {
        let mut nodes = area * 3 / 2 / u64::from(self.shape.node_bytes);
        let mut levels = 1;
        while nodes > 1 || levels < 2 {
            nodes = (nodes * 3).div_ceil(2 * u64::from(self.shape.fanout));
            levels += 1;
        }
        levels
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

    /// Returns the bytes that are free beyond that.
    pub(super) fn spare(&self, state: &State, batch_bytes: usize) -> u64 {
        let kept = self.area.geometry().data_bytes() / 50;
        self.free_bytes(state).saturating_sub(self.needed_bytes(state) + self.headroom(batch_bytes) + kept)
    }

    /// While this is free beyond what a batch needs, the end of the space is decided by claims
    /// alone.
    pub(super) fn near_end(&self, batch_bytes: usize) -> u64 {
        4 * self.headroom(batch_bytes)
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

    /// Whether a second copy of so many bytes leaves enough for all that a checkpoint must write.
    pub(super) fn has_room_for_copy(&self, state: &State, bytes: u64) -> bool {
        self.free_bytes(state) >= self.needed_bytes(state) + bytes
    }

    fn free_bytes(&self, state: &State) -> u64 {
        state.space.statistics().free * u64::from(self.area.geometry().unit_bytes)
    }

    /// What a checkpoint would take now.
    pub(super) fn needed_bytes(&self, state: &State) -> u64 {
        let view = self.shared.lock();
        let map = NodeMap::most_bytes(view.cache.map().len() + view.cache.dirty_count());
        let maps = self.watch.copies().count() * (map + u64::from(self.area.geometry().unit_bytes));
        view.cache.dirty_room().all + state.unplaced + state.promised + maps
    }

    /// What one batch can make dirty: itself in the root, and on each level a child, a neighbour, and what they are split into. Second copies
    /// of these are not among them: if so little is free, some wait for a later checkpoint.
    fn headroom(&self, batch_bytes: usize) -> u64 {
        let levels = u64::from(self.shared.lock().height()) + 1;
        self.dirtied_bytes(levels) + 2 * batch_bytes as u64
    }

    /// Three nodes on each of so many levels.
    fn dirtied_bytes(&self, levels: u64) -> u64 {
        3 * levels * (u64::from(self.shape.node_bytes) + 2 * u64::from(self.area.geometry().unit_bytes))
    }
}
