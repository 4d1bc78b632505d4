//! Reclaiming: blocks of deleted snapshots are freed in steps, with later consistency points.
//!
//! The scan does not read the deleted snapshot. It visits the summary map from its last block to
//! its first. Each block becomes the union of the maps of the remaining snapshots. VVBNs that
//! neither they nor the volume use lose their places in the container map. The volume's record
//! stores the next block, so power may be lost at any time. The deletion of another snapshot starts
//! the scan again. A block may be done in parts, because a repeated scan of it finds the rest.
//!
//! All blocks that a step needs are read before any change. A volume with an unreadable block
//! waits, which costs only its space. The other volumes continue.

use std::collections::BTreeSet;

use super::{
    Key, Store,
    chunk_counts::PER_BLOCK,
    space::{BITS, bitmap_key},
    tree::container_key,
    volume,
    volumes::record_place,
};
use crate::{
    error::{Error, Result},
    format::{BLOCK, Block, Damage},
};

/// Blocks of summary maps that each consistency point scans.
const ALONG: u64 = 4;
/// The most blocks of a volume that the scan of one block changes, besides the maps of VVBNs in
/// use.
pub(super) const RECLAIM_BLOCKS: u64 = 8;
/// VVBNs that are released at once when space is very short.
pub(super) const LEAST_RELEASED: u64 = 16;

impl Store {
    /// Blocks of summary maps that remain to be scanned.
    pub fn reclaim_left(&self) -> u64 {
        let records = self.volumes.iter().flatten().map(|volume| &volume.record);
        records.chain(self.deleted.values()).map(|record| record.reclaim).sum()
    }

    fn reclaim_left_of(&self, space: u32) -> u64 {
        let of_deleted = self.deleted.get(&space).map(|record| record.reclaim);
        of_deleted.unwrap_or_else(|| self.volume(space).map_or(0, |volume| volume.record.reclaim))
    }

    /// Scans up to `blocks` blocks of summary maps, as far as space for one consistency point
    /// suffices. VVBNs that no snapshot uses any more are free when that point is durable. Returns
    /// the error of the first volume with an unreadable block.
    ///
    /// Errors: a failure in the middle of a change, after which the engine must stop.
    ///
    /// Cost: for each block, reads the corresponding block of the maps of the volume and its
    /// snapshots, and the maps of the freed blocks.
    pub fn reclaim_step(&mut self, blocks: u64) -> Result<Option<Error>> {
        let (mut done, mut unread) = (0, None);
        let deleted: Vec<u32> = self.deleted.keys().copied().collect();
        for space in self.spaces().into_iter().chain(deleted) {
            while done < blocks && self.reclaim_left_of(space) > 0 {
                self.touched = false;
                let step =
                    if self.deleted.contains_key(&space) { self.delete_step(space) } else { self.reclaim_block(space) };
                match step {
                    Ok(true) => done += 1,
                    // The other volumes may need less.
                    Ok(false) => break,
                    Err(error) if self.touched => return Err(error),
                    Err(error) => {
                        unread.get_or_insert(error);
                        break;
                    }
                }
            }
        }
        Ok(unread)
    }

    /// Scans the blocks that each consistency point includes.
    pub(super) fn reclaim_along(&mut self) -> Result<()> {
        // A later scan tries unreadable blocks again.
        self.reclaim_step(ALONG).map(|_| ())
    }

    /// Scans the next block of a volume's summary map. Returns `false` if space sufficed only for a
    /// part, or for nothing.
    fn reclaim_block(&mut self, space: u32) -> Result<bool> {
        let block = self.volume(space)?.record.reclaim - 1;
        let key = Key::new(space, volume::SUMMARY_MAP, 0, block);
        let mut whole = true;
        self.read_for_change(record_place(space).0)?;
        if self.has_block(key)? {
            let summary = *self.get(key)?;
            let wanted = self.held_by_snapshots(space, block)?;
            if let Some(at) = summary.iter().zip(&wanted).position(|(held, wanted)| wanted & !held != 0) {
                let bit = block * BITS + 8 * at as u64;
                let damage = Damage::new("summary map", "bits", summary[at], format!("those of {} too", wanted[at]));
                return Err(Error::damaged(format!("VVBN {bit} and up of volume {space}"), damage));
            }
            if summary != wanted {
                whole = self.shrink_summary(space, block, &summary, &wanted)?;
            }
        }
        if whole {
            self.volume_mut(space)?.record.reclaim = block;
            self.save_record(space)?;
        }
        Ok(whole)
    }

    /// A block of the union of the snapshots' maps.
    fn held_by_snapshots(&mut self, space: u32, block: u64) -> Result<Block> {
        let mut held = [0; BLOCK];
        for view in self.snapshots_of(space) {
            let key = Key::new(view, volume::ACTIVE_MAP, 0, block);
            if self.has_block(key)? {
                self.get(key)?.iter().zip(&mut held).for_each(|(used, held)| *held |= used);
            }
        }
        Ok(held)
    }

    /// Clears the bits of the summary that no snapshot needs, from the first on, as far as space
    /// suffices. Returns whether all are cleared.
    fn shrink_summary(&mut self, space: u32, block: u64, summary: &Block, wanted: &Block) -> Result<bool> {
        let active = *self.get(Key::new(space, volume::ACTIVE_MAP, 0, block))?;
        let dropped = |bit: u64| {
            let (at, mask) = ((bit / 8) as usize, 1_u8 << (bit % 8));
            (summary[at] & !wanted[at] & mask != 0).then_some(active[at] & mask == 0)
        };
        let released: Vec<u64> = (0..BITS).filter(|&bit| dropped(bit) == Some(true)).collect();
        let mut most = released.len() as u64;
        while self.reserve_reclaim(space, RECLAIM_BLOCKS, most).is_err() {
            if most <= LEAST_RELEASED {
                return Ok(false);
            }
            most = (most / 2).max(LEAST_RELEASED);
        }
        let first = block * BITS;
        self.read_for_release(space, released[..most as usize].iter().map(|bit| first + bit))?;
        self.read_for_change(bitmap_key(space, volume::SUMMARY_MAP, first))?;
        let end = released.get(most as usize).copied().unwrap_or(BITS);
        let data = self.modify(bitmap_key(space, volume::SUMMARY_MAP, first))?;
        for bit in (0..end).filter(|&bit| dropped(bit).is_some()) {
            data[(bit / 8) as usize] &= !(1 << (bit % 8));
        }
        self.volume_mut(space)?.released.extend(released[..most as usize].iter().map(|bit| first + bit));
        Ok(end == BITS)
    }

    /// Loads the blocks that the consistency point needs to remove VVBNs from the container map, so
    /// that it cannot fail on them.
    pub(super) fn read_for_release(&mut self, space: u32, vvbns: impl Iterator<Item = u64>) -> Result<()> {
        let (mut above, mut bits) = (None, BTreeSet::new());
        for vvbn in vvbns.filter(|vvbn| self.home(space, *vvbn) == space).collect::<Vec<_>>() {
            let key = container_key(space, vvbn);
            if above.replace(key.parent().0) != Some(key.parent().0) {
                self.read_above(key)?;
            }
            let at = self.container(space, vvbn)?.ok_or_else(|| no_place(space, vvbn))?;
            if bits.insert((at.form, at.pvbn / PER_BLOCK)) {
                self.read_for_give(at)?;
            }
        }
        Ok(())
    }

    /// Removes an unused VVBN from the container map, and frees its PVBN. A VVBN that a clone has
    /// from its origin stays in the map.
    pub(super) fn release_vvbn(&mut self, space: u32, vvbn: u64) -> Result<()> {
        if let Some(origin) = &mut self.volume_mut(space)?.record.origin
            && vvbn < origin.blocks
        {
            origin.gone += 1;
            self.volume_mut(space)?.record_dirty = true;
            return Ok(());
        }
        let at = self.container(space, vvbn)?.ok_or_else(|| no_place(space, vvbn))?;
        self.set_container(space, vvbn, None)?;
        self.free_pvbn(at)?;
        let volume = self.volume_mut(space)?;
        volume.pending.insert(vvbn);
        volume.record_dirty = true;
        Ok(())
    }

    /// Removes the released VVBNs from the container map, within a consistency point.
    pub(super) fn release_held(&mut self, space: u32) -> Result<()> {
        let released = std::mem::take(&mut self.volume_mut(space)?.released);
        for &vvbn in &released {
            self.release_vvbn(space, vvbn)?;
        }
        let record = &mut self.volume_mut(space)?.record;
        record.held = record.held.saturating_sub(released.len() as u64);
        Ok(())
    }
}

fn no_place(space: u32, vvbn: u64) -> Error {
    let damage = Damage::new("container map", "place", "none", "one");
    Error::damaged(format!("VVBN {vvbn} of volume {space}"), damage)
}
