//! Reservation of space for the next consistency point, before any change.
//!
//! A changed block gets a new place before the old one is free, and so do the maps that name it.
//! Each operation reserves the most blocks that it may change, in addition to all dirty blocks. So
//! a consistency point never lacks space. A part is reserved for operations that free blocks, so a
//! full aggregate can always be emptied.

use super::{
    Store, Volume,
    reclaim::{LEAST_RELEASED, RECLAIM_BLOCKS},
    space::BITS,
};
use crate::{
    error::{Error, Result},
    format::{pointer::Shape, volume::VolumeRecord},
};

/// The most blocks that an operation which frees may change, besides the maps.
const FREEING_BLOCKS: u64 = 64;
/// Blocks of inode files and tables that change with maps.
const FIXED_BLOCKS: u64 = 24;
/// The most blocks that an operation which makes a name changes, besides the maps.
const NAME_BLOCKS: u64 = 60;
/// For this number of changed blocks, one more may be a new block of a map.
const NEW_MAP_PART: u64 = 128;

impl Store {
    /// Checks whether an operation on a volume that changes up to `blocks` blocks may start.
    ///
    /// Errors: `NoSpace`. A consistency point may free some, if [`may_gain`](Self::may_gain) says
    /// so.
    pub fn reserve(&self, space: Option<u32>, blocks: u64, frees: bool) -> Result<()> {
        let kept = if frees { self.kept_for_snapshots() } else { self.kept() };
        // The blocks that an operation frees are unknown before it runs, so the most is assumed.
        let released = if frees { u64::MAX / 16 } else { 0 };
        self.check_aggregate(blocks, released, kept)?;
        let Some(space) = space else { return Ok(()) };
        let mut kept = if frees { 0 } else { FREEING_BLOCKS + own_maps(self.volume(space)?) };
        if self.has_summary(space)? {
            kept += self.kept_for_snapshots_of(space)?;
        }
        self.check_volume(space, blocks, kept)
    }

    /// The blocks that are free for a volume, and the ones of these that its operations may use.
    /// Includes blocks that the next consistency point frees, because an operation without space
    /// makes one.
    ///
    /// While the second number is above 0, neither making a name nor writing a block fails.
    pub fn usable(&self, space: u32) -> Result<(u64, u64)> {
        let volume = self.volume(space)?;
        let removed = self.removed_blocks(space).unwrap_or(0);
        let changed = self.dirty_blocks();
        let of_aggregate = (self.sb.free + removed).saturating_sub(self.kept() + changed);
        let of_volume = volume.record.free() + removed;
        let names = NAME_BLOCKS + changed / NEW_MAP_PART;
        let mut kept = names + FREEING_BLOCKS + 2 * own_maps(volume) + volume.dirty;
        if self.has_summary(space)? {
            kept += self.kept_for_snapshots_of(space)?;
        }
        let usable = of_aggregate.saturating_sub(names + self.maps(names)).min(of_volume.saturating_sub(kept));
        Ok((of_aggregate.min(of_volume), usable))
    }

    /// Whether reclaiming deleted snapshots and volumes can help an operation that lacks space. If
    /// the aggregate lacks blocks, all of them count; if the volume does, only its own snapshots.
    pub fn may_reclaim(&self, space: u32, blocks: u64, frees: bool) -> bool {
        match self.reserve(None, blocks, frees) {
            Err(_) => self.reclaim_left() > 0,
            Ok(()) => self.volume(space).is_ok_and(|volume| volume.record.reclaim > 0),
        }
    }

    /// Checks space for deleting a snapshot, or for releasing `released` VVBNs that only snapshots
    /// used, which changes up to `blocks` blocks. Only these operations may use the last blocks.
    pub fn reserve_reclaim(&self, space: u32, blocks: u64, released: u64) -> Result<()> {
        self.reserve_release(blocks, released)?;
        self.check_volume(space, blocks, 0)
    }

    /// Like [`reserve_reclaim`](Self::reserve_reclaim), if no block of a volume changes.
    pub(super) fn reserve_release(&self, blocks: u64, released: u64) -> Result<()> {
        self.check_aggregate(blocks, released, 0)
    }

    fn check_aggregate(&self, blocks: u64, released: u64, kept: u64) -> Result<()> {
        let changed = self.dirty_blocks() + blocks;
        let wanted = changed + self.maps(changed + self.freed() + released) + kept;
        if wanted > self.allocatable() {
            return Err(Error::NoSpace { wanted, free: self.allocatable().saturating_sub(kept) });
        }
        Ok(())
    }

    fn check_volume(&self, space: u32, blocks: u64, kept: u64) -> Result<()> {
        let volume = self.volume(space)?;
        let wanted = volume.dirty + blocks + own_maps(volume) + kept;
        let free = volume.record.free();
        if wanted > free {
            return Err(Error::NoSpace { wanted, free: free.saturating_sub(kept) });
        }
        Ok(())
    }

    /// VVBNs that leave the maps at the next consistency point.
    fn freed(&self) -> u64 {
        self.volumes.iter().flatten().map(|volume| (volume.freed.len() + volume.released.len()) as u64).sum()
    }

    /// Blocks that the next consistency point frees because operations on a volume removed them.
    /// `None` if it may free fewer: snapshots hold some, other files share them, several are in one
    /// compacted block, or they are in objects.
    pub fn removed_blocks(&self, space: u32) -> Option<u64> {
        let volume = self.volume(space).ok()?;
        let record = &volume.record;
        let is_exact = !volume.has_summary() && record.shared == 0 && !record.packing.was_on && self.sb.cold == 0;
        is_exact.then_some(volume.freed.len() as u64)
    }

    /// Whether operations removed blocks that [`removed_blocks`](Self::removed_blocks) cannot
    /// count.
    pub fn has_uncounted_removals(&self) -> bool {
        let spaces = self.spaces().into_iter();
        let mut waiting = spaces.filter(|&space| self.volume(space).is_ok_and(|volume| !volume.freed.is_empty()));
        waiting.any(|space| self.removed_blocks(space).is_none())
    }

    /// Whether an operation without space may have enough after a consistency point. A point frees
    /// removed blocks, and the unused part of reservations. If both do not suffice, further points
    /// do not help until another operation frees something.
    pub fn may_gain(&self, space: u32, blocks: u64, frees: bool) -> bool {
        let is_packed = self.volumes.iter().flatten().any(|volume| volume.record.packing.was_on);
        // The blocks that these free are known only after the point.
        if frees || is_packed || self.reclaim_left() > 0 || self.objects.door.is_some() {
            return self.is_waiting();
        }
        let Ok(volume) = self.volume(space) else { return false };
        let of_aggregate = self.sb.free + self.freed();
        let of_volume = volume.record.free() + (volume.freed.len() + volume.released.len()) as u64;
        let fits = blocks + self.maps(blocks) + self.kept() <= of_aggregate
            && blocks + 2 * own_maps(volume) + FREEING_BLOCKS <= of_volume;
        fits && self.is_waiting()
    }

    /// Whether a consistency point would change anything.
    pub fn is_waiting(&self) -> bool {
        !self.dirty.is_empty() || self.freed() > 0
    }

    /// Whether enough blocks wait for a consistency point to be due.
    pub fn is_due(&self) -> bool {
        self.dirty_blocks() * crate::format::BLOCK as u64 > self.limits.dirty_bytes || self.freed() > 1 << 20
    }

    /// Blocks that only operations which free may use.
    pub fn kept(&self) -> u64 {
        FREEING_BLOCKS + self.maps(u64::MAX / 16) + self.kept_for_snapshots()
    }

    /// Blocks that only the deletion of snapshots may use. The first change of a block after a
    /// snapshot does not free its old place. A deletion changes the maps of the volumes, each block
    /// of them once.
    fn kept_for_snapshots(&self) -> u64 {
        let with = self.volumes.iter().flatten().filter(|volume| volume.has_summary());
        let own: u64 = with.map(|volume| summary_maps(&volume.record)).sum();
        if own == 0 { 0 } else { own + RECLAIM_BLOCKS + self.maps(RECLAIM_BLOCKS + LEAST_RELEASED) }
    }

    /// VVBNs of a volume with snapshots that only the deletion of these may use.
    pub(super) fn kept_for_snapshots_of(&self, space: u32) -> Result<u64> {
        let volume = self.volume(space)?;
        Ok(RECLAIM_BLOCKS + own_maps(volume) + summary_maps(&volume.record))
    }

    /// The most blocks of maps that change when `blocks` blocks of volumes are written or freed:
    /// bits of VVBNs, counts of references, containers, bits of PVBNs, records of objects.
    fn maps(&self, blocks: u64) -> u64 {
        let (mut active, mut references, mut container) = (0, 0, 0);
        for volume in self.volumes.iter().flatten() {
            active += map_blocks(Shape::Volume, volume.record.blocks.div_ceil(BITS));
            references += volume.reference_blocks();
            // Counts only the part of the map that fits into the aggregate.
            let mapped = volume.record.blocks.min(self.raid.geometry.blocks());
            container += map_blocks(Shape::Aggregate, mapped.div_ceil(Shape::Aggregate.fanout()));
        }
        for record in self.deleted.values() {
            let mapped = record.blocks.min(self.raid.geometry.blocks());
            container += map_blocks(Shape::Aggregate, mapped.div_ceil(Shape::Aggregate.fanout()));
        }
        let active = active.min(2 * blocks);
        let references = references.min(4 * blocks);
        let container = container.min(3 * (2 * blocks + 2 * active + 2 * references));
        let bitmap = map_blocks(Shape::Aggregate, self.raid.geometry.blocks().div_ceil(BITS));
        let bitmap = bitmap.min(4 * (blocks + active + references + container));
        let chunks = self.chunk_map_blocks(blocks + active + references);
        let objects = self.objects.table_blocks().min(3 * blocks);
        let top_areas = map_blocks(Shape::Aggregate, self.raid.geometry.groups.len() as u64);
        active + references + container + bitmap + chunks + objects + top_areas + FIXED_BLOCKS
    }
}

/// The most blocks of a volume's maps that change in a consistency point.
fn own_maps(volume: &Volume) -> u64 {
    map_blocks(Shape::Volume, volume.record.blocks.div_ceil(BITS)) + volume.reference_blocks() + FIXED_BLOCKS
}

/// The most blocks that change in the maps of a volume with a summary map.
fn summary_maps(record: &VolumeRecord) -> u64 {
    2 * map_blocks(Shape::Volume, record.blocks.div_ceil(BITS)) + FIXED_BLOCKS
}

/// All blocks of a tree with this number of blocks of contents.
pub(super) fn map_blocks(shape: Shape, contents: u64) -> u64 {
    let (mut all, mut level) = (contents, contents);
    while level > shape.roots() {
        level = level.div_ceil(shape.fanout());
        all += level;
    }
    all
}
