//! Enough space for the next consistency point, before anything is changed.
//!
//! A block that changes takes a new place before the old one is free, and so do the maps that say where it lies. What an
//! operation may change at most is asked for here, with all that waits already, so that a consistency point never lacks
//! space. Operations that free leave a part to those that only they may use: a full aggregate can always be emptied.

use super::{Store, space::BITS};
use crate::{
    error::{Error, Result},
    format::pointer::Shape,
};

/// Blocks that an operation which frees may change at most, besides the maps.
const FREEING_BLOCKS: u64 = 64;
/// Blocks of inode files and tables that maps bring with them.
const FIXED_BLOCKS: u64 = 24;

impl Store {
    /// Whether an operation on a volume that changes `blocks` blocks at most may begin.
    ///
    /// Errors: `NoSpace`; if [`waiting`](Self::is_waiting), a consistency point may make some.
    pub fn reserve(&self, space: Option<u32>, blocks: u64, frees: bool) -> Result<()> {
        let kept = if frees { 0 } else { self.kept() };
        let changed = self.dirty_blocks() + blocks;
        let freed: u64 = self.volumes.iter().flatten().map(|volume| volume.freed.len() as u64).sum();
        let wanted = changed + self.maps(changed + freed) + kept;
        if wanted > self.allocatable() {
            return Err(Error::NoSpace { wanted, free: self.allocatable().saturating_sub(kept) });
        }
        let Some(space) = space else { return Ok(()) };
        let volume = self.volume(space)?;
        let own_maps = map_blocks(Shape::Volume, volume.record.blocks.div_ceil(BITS)) + FIXED_BLOCKS;
        let kept = if frees { 0 } else { FREEING_BLOCKS + own_maps };
        let wanted = volume.dirty + blocks + own_maps + kept;
        let free = volume.record.blocks.saturating_sub(volume.record.used);
        if wanted > free {
            return Err(Error::NoSpace { wanted, free: free.saturating_sub(kept) });
        }
        Ok(())
    }

    /// Whether a consistency point would change anything.
    pub fn is_waiting(&self) -> bool {
        !self.dirty.is_empty() || self.volumes.iter().flatten().any(|volume| !volume.freed.is_empty())
    }

    /// Whether so much waits that a consistency point is due.
    pub fn is_due(&self) -> bool {
        let freed: usize = self.volumes.iter().flatten().map(|volume| volume.freed.len()).sum();
        self.dirty_blocks() * crate::format::BLOCK as u64 > self.limits.dirty_bytes || freed > 1 << 20
    }

    /// Blocks that only operations which free may use.
    pub fn kept(&self) -> u64 {
        FREEING_BLOCKS + self.maps(u64::MAX / 16)
    }

    /// Blocks of maps that change at most when `blocks` blocks of volumes are written or freed: bits of VVBNs, containers,
    /// bits of PVBNs.
    fn maps(&self, blocks: u64) -> u64 {
        let (mut active, mut container) = (0, 0);
        for volume in self.volumes.iter().flatten() {
            active += map_blocks(Shape::Volume, volume.record.blocks.div_ceil(BITS));
            // Only as much of the map as the volume can use of the aggregate.
            let mapped = volume.record.blocks.min(self.raid.geometry.blocks());
            container += map_blocks(Shape::Aggregate, mapped.div_ceil(Shape::Aggregate.fanout()));
        }
        let active = active.min(2 * blocks);
        let container = container.min(3 * (2 * blocks + 2 * active));
        let bitmap = map_blocks(Shape::Aggregate, self.raid.geometry.blocks().div_ceil(BITS));
        let bitmap = bitmap.min(4 * (blocks + active + container));
        let top_areas = map_blocks(Shape::Aggregate, self.raid.geometry.groups.len() as u64);
        active + container + bitmap + top_areas + FIXED_BLOCKS
    }
}

/// All blocks of a tree with as many blocks of contents.
fn map_blocks(shape: Shape, contents: u64) -> u64 {
    let (mut all, mut level) = (contents, contents);
    while level > shape.roots() {
        level = level.div_ceil(shape.fanout());
        all += level;
    }
    all
}
