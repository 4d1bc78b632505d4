//! What a snapshot that was deleted leaves behind becomes free: little by little, with the consistency points that come.
//!
//! A snapshot that was deleted is not looked at. The summary map is gone through, from its last block to its first, and each block becomes what
//! the snapshots that are left say together. What they do not use, and the volume does not, has its place taken from the
//! container map. The block that comes next stands in the volume's record: power may be lost at any time, and another snapshot
//! deleted, which begins anew. A block may be done in parts, for the same block again gives what is left of it.
//!
//! All that a block of the summary wants is read before anything changes. A volume of which something cannot be read waits, and costs its
//! space only; the others go on.

use std::collections::BTreeSet;

use super::{
    Key, Store,
    chunks::PER_BLOCK,
    space::{BITS, bitmap_key},
    tree::container_key,
    volume,
    volumes::record_place,
};
use crate::{
    error::{Error, Result},
    format::{BLOCK, Block, Damage},
};

/// Blocks of the summary map that go along with a consistency point.
const ALONG: u64 = 4;
/// Blocks of a volume that one block of the summary changes at most, besides the maps of VVBNs in use.
pub(super) const RECLAIM_BLOCKS: u64 = 8;
/// VVBNs that are released at once if there is hardly any space.
pub(super) const LEAST_RELEASED: u64 = 16;

impl Store {
    /// Blocks of summary maps that are still to be gone through.
    pub fn reclaim_left(&self) -> u64 {
        let records = self.volumes.iter().flatten().map(|volume| &volume.record);
        records.chain(self.deleted.values()).map(|record| record.reclaim).sum()
    }

    fn reclaim_left_of(&self, space: u32) -> u64 {
        let of_deleted = self.deleted.get(&space).map(|record| record.reclaim);
        of_deleted.unwrap_or_else(|| self.volume(space).map_or(0, |volume| volume.record.reclaim))
    }

    /// Goes through at most `blocks` blocks of summary maps, as far as the space suffices that one consistency point may
    /// use; what no snapshot uses any more is free when that is durable. Gives why the first volume waits of those of which
    /// something cannot be read.
    ///
    /// Errors: in the middle of a change, after which the engine must stop. Cost: for each block, reads that of the maps of the
    /// volume and of each of its snapshots, and the maps of what becomes free.
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
                    // The others may need less.
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

    /// The part of it that goes along with every consistency point.
    pub(super) fn reclaim_along(&mut self) -> Result<()> {
        // A later one tries again what cannot be read now.
        self.reclaim_step(ALONG).map(|_| ())
    }

    /// Does the next block of a volume's summary; `false` if space sufficed for a part of it only, or for nothing.
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

    /// A block of the map of VVBNs that snapshots of a volume use.
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

    /// Clears bits of the summary that are not wanted, from the first on, as many as space suffices for; says whether that is all.
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

    /// Reads what the consistency point wants that takes VVBNs out of the container map, so that it cannot fail by that.
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

    /// Takes a VVBN that nothing uses any more out of the container map, and gives its PVBN back. One that a clone has from
    /// its origin stays where it is.
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
        self.give_pvbn(at)?;
        let volume = self.volume_mut(space)?;
        volume.pending.insert(vvbn);
        volume.record_dirty = true;
        Ok(())
    }

    /// In a consistency point: what was released leaves the container map.
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
