//! Enough space for the next consistency point, before anything is changed.
//!
//! A block that changes takes a new place before the old one is free, and so do the maps that say where it lies. What an
//! operation may change at most is asked for here, with all that waits already, so that a consistency point never lacks
//! space. Operations that free leave a part to those that only they may use: a full aggregate can always be emptied.

use super::{
    Store, Volume,
    reclaim::{LEAST_RELEASED, RECLAIM_BLOCKS},
    space::BITS,
};
use crate::{
    error::{Error, Result},
    format::{pointer::Shape, volume::VolumeRecord},
};

/// Blocks that an operation which frees may change at most, besides the maps.
const FREEING_BLOCKS: u64 = 64;
/// Blocks of inode files and tables that maps bring with them.
const FIXED_BLOCKS: u64 = 24;
/// Blocks that an operation which makes a name changes at most, besides the maps.
const NAME_BLOCKS: u64 = 60;
/// Of so many changed blocks, one more may be a new block of a map.
const NEW_MAP_PART: u64 = 128;

impl Store {
    /// Whether an operation on a volume that changes `blocks` blocks at most may begin.
    ///
    /// Errors: `NoSpace`; a consistency point may make some, if [`may_gain`](Self::may_gain) says
    /// so.
    pub fn reserve(&self, space: Option<u32>, blocks: u64, frees: bool) -> Result<()> {
        let kept = if frees { self.kept_for_snapshots() } else { self.kept() };
        // What an operation frees itself is not known before it is done: as much as there is.
        let released = if frees { u64::MAX / 16 } else { 0 };
        self.check_aggregate(blocks, released, kept)?;
        let Some(space) = space else { return Ok(()) };
        let mut kept = if frees { 0 } else { FREEING_BLOCKS + own_maps(self.volume(space)?) };
        if self.has_summary(space)? {
            kept += self.kept_for_snapshots_of(space)?;
        }
        self.check_volume(space, blocks, kept)
    }

    /// Blocks that are free for a volume, and of these the ones that its operations may use. Counts
    /// what the next consistency point frees, because an operation without space makes one.
    ///
    /// As long as any may be used, neither the making of a name nor the writing of a block is
    /// refused.
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

    /// Whether what was deleted, and is not free yet, can make room for an operation that has none: all of it if the aggregate is
    /// short of blocks, only what snapshots of this volume held if the volume is.
    pub fn may_reclaim(&self, space: u32, blocks: u64, frees: bool) -> bool {
        match self.reserve(None, blocks, frees) {
            Err(_) => self.reclaim_left() > 0,
            Ok(()) => self.volume(space).is_ok_and(|volume| volume.record.reclaim > 0),
        }
    }

    /// Whether a snapshot of a volume may be deleted, or so many VVBNs be released that only snapshots used, which changes
    /// `blocks` blocks at most. Nothing else may use the last of the space.
    pub fn reserve_reclaim(&self, space: u32, blocks: u64, released: u64) -> Result<()> {
        self.reserve_release(blocks, released)?;
        self.check_volume(space, blocks, 0)
    }

    /// The same if it changes no block of a volume.
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

    /// VVBNs that leave the maps with the next consistency point.
    fn freed(&self) -> u64 {
        self.volumes.iter().flatten().map(|volume| (volume.freed.len() + volume.released.len()) as u64).sum()
    }

    /// Blocks that the next consistency point frees because operations on a volume removed them. None if it may free fewer than
    /// were removed: snapshots hold some, other files share them, several are in one compacted block, or they are in objects.
    pub fn removed_blocks(&self, space: u32) -> Option<u64> {
        let volume = self.volume(space).ok()?;
        let record = &volume.record;
        let is_exact = !volume.has_summary() && record.shared == 0 && !record.packing.was_on && self.sb.cold == 0;
        is_exact.then_some(volume.freed.len() as u64)
    }

    /// Whether operations removed blocks that [`removed_blocks`](Self::removed_blocks) cannot count.
    pub fn has_uncounted_removals(&self) -> bool {
        let spaces = self.spaces().into_iter();
        let mut waiting = spaces.filter(|&space| self.volume(space).is_ok_and(|volume| !volume.freed.is_empty()));
        waiting.any(|space| self.removed_blocks(space).is_none())
    }

    /// Whether an operation that has no space may have enough of it after a consistency point. A
    /// point frees what operations removed, and what changed blocks reserve and do not use. If both
    /// are too little, further points are of no use until another operation frees something.
    pub fn may_gain(&self, space: u32, blocks: u64, frees: bool) -> bool {
        let is_packed = self.volumes.iter().flatten().any(|volume| volume.record.packing.was_on);
        // How much these free is known only after the point.
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

    /// Whether so much waits that a consistency point is due.
    pub fn is_due(&self) -> bool {
        self.dirty_blocks() * crate::format::BLOCK as u64 > self.limits.dirty_bytes || self.freed() > 1 << 20
    }

    /// Blocks that only operations which free may use.
    pub fn kept(&self) -> u64 {
        FREEING_BLOCKS + self.maps(u64::MAX / 16) + self.kept_for_snapshots()
    }

    /// Blocks that only the deleting of snapshots may use. A block that changes the first time after a snapshot does not
    /// give its old place back; what deleting changes are the maps of the volumes, each block of them once.
    fn kept_for_snapshots(&self) -> u64 {
        let with = self.volumes.iter().flatten().filter(|volume| volume.has_summary());
        let own: u64 = with.map(|volume| summary_maps(&volume.record)).sum();
        if own == 0 { 0 } else { own + RECLAIM_BLOCKS + self.maps(RECLAIM_BLOCKS + LEAST_RELEASED) }
    }

    /// VVBNs of a volume with snapshots that only their deleting may use.
    pub(super) fn kept_for_snapshots_of(&self, space: u32) -> Result<u64> {
        let volume = self.volume(space)?;
        Ok(RECLAIM_BLOCKS + own_maps(volume) + summary_maps(&volume.record))
    }

    /// Blocks of maps that change at most when `blocks` blocks of volumes are written or freed: bits of VVBNs, counts of
    /// references, containers, bits of PVBNs, records of objects.
    fn maps(&self, blocks: u64) -> u64 {
        let (mut active, mut references, mut container) = (0, 0, 0);
        for volume in self.volumes.iter().flatten() {
            active += map_blocks(Shape::Volume, volume.record.blocks.div_ceil(BITS));
            references += volume.reference_blocks();
            // Only as much of the map as the volume can use of the aggregate.
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

/// Blocks of a volume's maps that change at most with a consistency point.
fn own_maps(volume: &Volume) -> u64 {
    map_blocks(Shape::Volume, volume.record.blocks.div_ceil(BITS)) + volume.reference_blocks() + FIXED_BLOCKS
}

/// The same with the summary map.
fn summary_maps(record: &VolumeRecord) -> u64 {
    2 * map_blocks(Shape::Volume, record.blocks.div_ceil(BITS)) + FIXED_BLOCKS
}

/// All blocks of a tree with as many blocks of contents.
pub(super) fn map_blocks(shape: Shape, contents: u64) -> u64 {
    let (mut all, mut level) = (contents, contents);
    while level > shape.roots() {
        level = level.div_ceil(shape.fanout());
        all += level;
    }
    all
}
