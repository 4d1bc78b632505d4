//! Space limits: by claims, and by free units.
//!
//! **By claims**: the live bytes may be 90% of the area, and 92% for removals. The rest is for
//! messages in inner nodes, and for rewriting nodes.
//!
//! **By free units**: before a batch is applied, the free space holds all dirty nodes, the map of
//! nodes, and a headroom. The headroom is the space that one batch can make dirty with a flush at
//! each level. So a checkpoint always fits. If it would not, a checkpoint is made first, which
//! frees the old places of nodes. If that does not suffice, messages are flushed, which frees the
//! data that they delete.

use super::{Core, State};
use crate::{Claim, Error, Result, disk::NodeMap};

impl Core {
    /// The most live bytes: a share of the area, without the unused ends of units and without
    /// second copies. On a small device it is less, so that the dirty nodes of one batch fit as
    /// well.
    pub(super) fn most_live(&self, is_removal: bool) -> u64 {
        let geometry = self.area.geometry();
        let area = geometry.data_bytes();
        let copies = self.watch.copies().count();
        let (percent, kept) = if is_removal { (92, 0) } else { (90, area / 50) };
        let share = self.for_leaves(self.without_ends(area) / 100 * percent, copies - 1);
        let beside = area.saturating_sub(kept + self.dirtied_bytes(self.most_levels(area)));
        share.min(self.for_leaves(self.without_ends(beside), copies))
    }

    /// The part of `bytes` that nodes fill, if they are two thirds full: each wastes half a unit.
    fn without_ends(&self, bytes: u64) -> u64 {
        let units = u64::from(self.shape.node_bytes).div_ceil(u64::from(self.area.geometry().unit_bytes));
        bytes - bytes / 4 * 3 / units
    }

    /// The part of `bytes` that is left for leaves, beside `copies` copies of the inner nodes.
    /// These count as a unit each, because their messages are flushed when little space is free.
    fn for_leaves(&self, bytes: u64, copies: u64) -> u64 {
        let unit = u64::from(self.area.geometry().unit_bytes);
        // Nodes are filled to two thirds, with bytes and with children. So n children of each node
        // need 1/(n - 1) as many inner nodes.
        let of_one = u64::from(self.shape.node_bytes) * 2 / 9 * (2 * u64::from(self.shape.fanout) - 3);
        (u128::from(bytes) * u128::from(of_one) / u128::from(of_one + copies * unit)) as u64
    }

    /// The levels of a tree that fills an area, with nodes filled to two thirds.
    fn most_levels(&self, area: u64) -> u64 {
        let mut nodes = area * 3 / 2 / u64::from(self.shape.node_bytes);
        let mut levels = 1;
        while nodes > 1 || levels < 2 {
            nodes = (nodes * 3).div_ceil(2 * u64::from(self.shape.fanout));
            levels += 1;
        }
        levels
    }

    /// The live bytes after a claim. Errors: `NoSpace`.
    pub(super) fn claim(&self, state: &State, claim: &Claim) -> Result<u64> {
        let live = state.live.saturating_add_signed(claim.bytes);
        let most = self.most_live(claim.is_removal);
        if claim.bytes > 0 && live > most {
            let free = most.saturating_sub(state.live);
            return Err(Error::NoSpace { wanted: claim.bytes as u64, free });
        }
        Ok(live)
    }

    /// Whether the free space suffices for a batch of `batch_bytes`.
    pub(super) fn has_room(&self, state: &State, batch_bytes: usize, is_removal: bool) -> bool {
        let kept = if is_removal { 0 } else { self.area.geometry().data_bytes() / 50 };
        self.free_bytes(state) >= self.needed_bytes(state) + self.headroom(batch_bytes) + kept
    }

    /// The free bytes beyond those that [`has_room`](Self::has_room) requires.
    pub(super) fn spare(&self, state: &State, batch_bytes: usize) -> u64 {
        let kept = self.area.geometry().data_bytes() / 50;
        self.free_bytes(state).saturating_sub(self.needed_bytes(state) + self.headroom(batch_bytes) + kept)
    }

    /// If more than this is free beyond the needs of a batch, claims alone decide whether space is
    /// left.
    pub(super) fn near_end(&self, batch_bytes: usize) -> u64 {
        4 * self.headroom(batch_bytes)
    }

    /// Whether the free space suffices for several batches before the next flush.
    pub(super) fn has_much_room(&self, state: &State, batch_bytes: usize) -> bool {
        const FLUSHES: u64 = 8;
        let kept = self.area.geometry().data_bytes() / 50;
        self.free_bytes(state) >= self.needed_bytes(state) + FLUSHES * self.headroom(batch_bytes) + kept
    }

    /// The error for a full store. Use it only after [`reclaim`](Self::reclaim) frees nothing more.
    pub(super) fn no_space(&self, batch_bytes: usize) -> Error {
        let state = self.lock();
        let free = self.free_bytes(&state).saturating_sub(self.needed_bytes(&state));
        Error::NoSpace { wanted: self.headroom(batch_bytes), free }
    }

    /// Flushes messages after a checkpoint, as long as the nodes that become dirty fit. The next
    /// checkpoint frees their old places. Returns whether it flushed anything.
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

    /// Whether `bytes` bytes of optional writes fit, in addition to a checkpoint of all dirty
    /// nodes.
    pub(super) fn has_spare(&self, state: &State, bytes: u64) -> bool {
        self.free_bytes(state) >= self.needed_bytes(state) + self.headroom(0) + bytes
    }

    /// Whether a second copy of `bytes` bytes leaves enough space for the rest of the checkpoint.
    pub(super) fn has_room_for_copy(&self, state: &State, bytes: u64) -> bool {
        self.free_bytes(state) >= self.needed_bytes(state) + bytes
    }

    fn free_bytes(&self, state: &State) -> u64 {
        state.space.statistics().free * u64::from(self.area.geometry().unit_bytes)
    }

    /// The bytes that a checkpoint takes now.
    pub(super) fn needed_bytes(&self, state: &State) -> u64 {
        let view = self.shared.lock();
        let map = NodeMap::most_bytes(view.cache.map().len() + view.cache.dirty_count());
        let maps = self.watch.copies().count() * (map + u64::from(self.area.geometry().unit_bytes));
        view.cache.dirty_room().all + state.unplaced + state.promised + maps
    }

    /// The bytes that one batch can make dirty: itself in the root, and at each level a child, a
    /// neighbour, and the parts of a split. Second copies do not count: if so little is free, some
    /// wait for a later checkpoint.
    fn headroom(&self, batch_bytes: usize) -> u64 {
        let levels = u64::from(self.shared.lock().height()) + 1;
        self.dirtied_bytes(levels) + 2 * batch_bytes as u64
    }

    /// Three nodes at each of the levels.
    fn dirtied_bytes(&self, levels: u64) -> u64 {
        3 * levels * (u64::from(self.shape.node_bytes) + 2 * u64::from(self.area.geometry().unit_bytes))
    }
}
