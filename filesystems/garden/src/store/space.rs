//! Free space: a bitmap of PVBNs in the aggregate, and bitmaps of VVBNs and inodes in each volume.
//!
//! Blocks are allocated from one allocation area at a time, each time the one with most free blocks
//! (`areas.rs`). Within an area they are allocated tetris by tetris, and in a tetris drive by
//! drive. So blocks that are written one after another are adjacent on a drive, and a filled tetris
//! consists of whole stripes. With disks and flash, there are three such sequences (`media.rs`).

use std::ops::Range;

use super::{
    AGGREGATE, Freed, Key, Store, aggregate,
    area_heap::AreaHeap,
    areas::{AreaId, AreaStates},
    media::{Cursors, Lane, Run},
    volume,
};
use crate::{
    Medium,
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        bytes::{put, u64_at},
        pointer::{Form, Physical},
    },
    raid::Place,
};

/// Bits in a block of a bitmap.
pub(crate) const BITS: u64 = BLOCK as u64 * 8;

/// The order of allocation.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    /// The areas of each group.
    pub(super) groups: Vec<AreaHeap>,
    pub(super) states: AreaStates,
    /// The position of each lane. If its medium is full, the position is on the other one.
    pub(super) current: Cursors,
    /// Consecutive blocks of a file that are being placed.
    pub(super) run: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub group: usize,
    pub area: u64,
    /// The first stripe of the current tetris.
    tetris: u64,
    place: Place,
}

impl Cursor {
    /// The start of an area.
    pub fn new(group: usize, area: u64, stripe: u64) -> Self {
        Self { group, area, tetris: stripe, place: Place { group, drive: 0, stripe } }
    }

    pub fn area_id(&self) -> AreaId {
        (self.group, self.area as u32)
    }
}

impl Store {
    /// Blocks that can be allocated now: free, and not used by the last consistency point.
    pub fn allocatable(&self) -> u64 {
        self.sb.free.saturating_sub(self.pending.len() as u64)
    }

    /// Whether the last consistency point or the state in memory uses a block.
    pub(super) fn is_used(&mut self, pvbn: u64) -> Result<bool> {
        Ok(self.pending.contains_key(&pvbn) || self.count_bits(AGGREGATE, aggregate::BITMAP, pvbn..pvbn + 1)? > 0)
    }

    /// Allocates a PVBN, on the wanted medium if that has a free one.
    pub(super) fn alloc_pvbn(&mut self, wanted: Medium) -> Result<u64> {
        self.take_in(Lane::to(self.raid.geometry.pool(wanted)))
    }

    /// Allocates a PVBN in a lane.
    pub(super) fn take_in(&mut self, lane: Lane) -> Result<u64> {
        let wanted = self.raid.geometry.pool(lane.medium());
        let mut tried = None;
        loop {
            if let Some(pvbn) = self.advance(lane)? {
                self.flip_bit(AGGREGATE, aggregate::BITMAP, pvbn, true)?;
                self.sb.free = self.sb.free.saturating_sub(1);
                self.score_taken(pvbn)?;
                self.alloc.states.blocks_taken[self.raid.geometry.medium_of(pvbn)] += 1;
                return Ok(pvbn);
            }
            let (group, area) = self.best_area(wanted)?;
            if tried.replace((group, area)) == Some((group, area)) {
                // The area has no free block: the list with its score was wrong.
                self.count_area(group, area as u32)?;
                continue;
            }
            self.note_taken(group, area as u32);
            let stripe = self.raid.geometry.area_stripes(group, area).start;
            self.alloc.current[lane] = Some(Cursor::new(group, area, stripe));
        }
    }

    /// The next free block of the current area; `None` at its end.
    fn advance(&mut self, lane: Lane) -> Result<Option<u64>> {
        let Some(at) = self.alloc.current[lane] else { return Ok(None) };
        let next = self.next_free(at)?;
        self.alloc.current[lane] = next.map(|(_, at)| at);
        Ok(next.map(|(pvbn, _)| pvbn))
    }

    /// The first allocatable block of an area from a cursor on, and the position after it; `None`
    /// at the end of the area.
    pub(super) fn next_free(&mut self, mut at: Cursor) -> Result<Option<(u64, Cursor)>> {
        let stripes = self.raid.geometry.area_stripes(at.group, at.area);
        let drives = usize::from(self.raid.geometry.groups[at.group].data_drives);
        let depth = self.raid.geometry.tetris_stripes;
        while at.tetris < stripes.end {
            let end = (at.tetris + depth).min(stripes.end);
            while at.place.drive < drives {
                let start = self.raid.geometry.pvbn(at.place);
                if let Some(pvbn) = self.find_clear(start..start + (end - at.place.stripe))? {
                    at.place.stripe += pvbn - start + 1;
                    return Ok(Some((pvbn, at)));
                }
                at.place = Place { drive: at.place.drive + 1, stripe: at.tetris, ..at.place };
            }
            at.tetris = end;
            at.place = Place { drive: 0, stripe: end, ..at.place };
        }
        Ok(None)
    }

    fn find_clear(&mut self, range: Range<u64>) -> Result<Option<u64>> {
        let mut next = range.start;
        while next < range.end {
            let Some(found) = self.find_bit(AGGREGATE, aggregate::BITMAP, next..range.end, false)? else { break };
            if !self.pending.contains_key(&found) {
                return Ok(Some(found));
            }
            next = found + 1;
        }
        Ok(None)
    }

    /// Frees a PVBN, unless it is a compacted block with other chunks in use. The last consistency
    /// point uses it until the next one is durable.
    pub(super) fn free_pvbn(&mut self, at: Physical) -> Result<()> {
        if let Some(place) = at.in_object() {
            return self.leave_object(place.object);
        }
        if at.form == Form::Compacted && !self.free_chunk(at.pvbn)? {
            return Ok(());
        }
        self.flip_bit(AGGREGATE, aggregate::BITMAP, at.pvbn, false)?;
        self.sb.free = self.sb.free.saturating_add(1);
        self.pending.insert(at.pvbn, at.tag);
        Ok(())
    }

    /// Makes freed blocks allocatable. Returns them, with the tags of the blocks there.
    pub(super) fn release_pending(&mut self) -> Freed {
        let freed = std::mem::take(&mut self.pending);
        for &pvbn in freed.keys() {
            self.score_given(pvbn);
        }
        for volume in self.volumes.iter_mut().flatten() {
            volume.pending.clear();
        }
        self.end_areas();
        freed
    }

    /// Allocates a VVBN.
    pub(super) fn alloc_vvbn(&mut self, space: u32) -> Result<u64> {
        let volume = self.volume(space)?;
        let (first, end) = (volume.record.first_own(), volume.record.blocks);
        let cursor = volume.cursor.max(first);
        for range in [cursor..end, first..cursor] {
            let mut next = range.start;
            while next < range.end {
                let Some(found) = self.find_free_vvbn(space, next..range.end)? else { break };
                if !self.volume(space)?.pending.contains(&found) {
                    self.flip_bit(space, volume::ACTIVE_MAP, found, true)?;
                    let volume = self.volume_mut(space)?;
                    volume.cursor = found + 1;
                    volume.record.used += 1;
                    volume.record_dirty = true;
                    return Ok(found);
                }
                next = found + 1;
            }
        }
        Err(Error::NoSpace { wanted: 1, free: self.volume(space)?.record.free() })
    }

    /// The first VVBN of the range that neither the volume nor one of its snapshots uses.
    fn find_free_vvbn(&mut self, space: u32, range: Range<u64>) -> Result<Option<u64>> {
        let has_summary = self.has_summary(space)?;
        let mut next = range.start;
        while next < range.end {
            let Some(found) = self.find_bit(space, volume::ACTIVE_MAP, next..range.end, false)? else { break };
            if !has_summary {
                return Ok(Some(found));
            }
            let Some(clear) = self.find_bit(space, volume::SUMMARY_MAP, found..range.end, false)? else { break };
            if clear == found {
                return Ok(Some(found));
            }
            next = clear;
        }
        Ok(None)
    }

    /// Removes a pointer to a VVBN. The last one clears its bit in the volume's map. If no snapshot
    /// uses the VVBN, it also leaves the container map, and its PVBN is freed.
    pub(super) fn free_vvbn(&mut self, space: u32, vvbn: u64) -> Result<()> {
        if self.unshare(space, vvbn)? {
            return Ok(());
        }
        self.flip_bit(space, volume::ACTIVE_MAP, vvbn, false)?;
        let is_held = self.is_held(space, vvbn)?;
        let volume = self.volume_mut(space)?;
        volume.record.used = volume.record.used.saturating_sub(1);
        volume.record.held += u64::from(is_held);
        volume.record_dirty = true;
        if is_held { Ok(()) } else { self.release_vvbn(space, vvbn) }
    }

    /// The lowest free inode number. Does not allocate it.
    pub fn pick_inode(&mut self, space: u32) -> Result<u64> {
        let (hint, end) = (self.volume(space)?.ino_hint, self.volume(space)?.record.inodes);
        let found = self.find_bit(space, volume::INODE_MAP, hint..end, false)?;
        let found = found.ok_or(Error::NoSpace { wanted: 1, free: 0 })?;
        self.volume_mut(space)?.ino_hint = found;
        Ok(found)
    }

    pub fn set_inode_used(&mut self, space: u32, file: u64, used: bool) -> Result<()> {
        self.flip_bit(space, volume::INODE_MAP, file, used)?;
        let volume = self.volume_mut(space)?;
        volume.record_dirty = true;
        if used {
            volume.record.inodes_used += 1;
        } else {
            volume.record.inodes_used = volume.record.inodes_used.saturating_sub(1);
            volume.ino_hint = volume.ino_hint.min(file).max(volume::FIRST_USER);
        }
        Ok(())
    }

    /// Changes a bit. Errors: it has that value already, so the map and the trees contradict each
    /// other.
    fn flip_bit(&mut self, space: u32, file: u64, bit: u64, set: bool) -> Result<()> {
        // Writes a word, because searches read words: a read of a word stalls after a write of one
        // byte.
        let (at, mask) = ((bit % BITS / 64 * 8) as usize, 1 << (bit % 64));
        let block = self.modify(bitmap_key(space, file, bit))?;
        let word = u64_at(&block[..], at);
        if (word & mask != 0) == set {
            let damage = Damage::new("bitmap", "bit", u8::from(set), u8::from(!set));
            return Err(Error::damaged(format!("bit {bit} of file {file} of space {space}"), damage));
        }
        put(&mut block[..], at, &(word ^ mask).to_le_bytes());
        Ok(())
    }

    /// The first bit of the range with the wanted value.
    pub(super) fn find_bit(&mut self, space: u32, file: u64, range: Range<u64>, wanted: bool) -> Result<Option<u64>> {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / BITS + 1) * BITS);
            let block = self.get(bitmap_key(space, file, at))?;
            while at < end {
                let word = u64_at(block, (at % BITS / 64 * 8) as usize);
                let word = if wanted { word } else { !word };
                let ahead = word >> (at % 64);
                if ahead != 0 {
                    let found = at + u64::from(ahead.trailing_zeros());
                    return Ok((found < end).then_some(found));
                }
                at = (at / 64 + 1) * 64;
            }
            at = end;
        }
        Ok(None)
    }

    /// The number of set bits in the range.
    pub(super) fn count_bits(&mut self, space: u32, file: u64, range: Range<u64>) -> Result<u64> {
        let (mut at, mut count) = (range.start, 0);
        while at < range.end {
            let end = range.end.min((at / BITS + 1) * BITS);
            let block = self.get(bitmap_key(space, file, at))?;
            while at < end {
                let word = u64_at(block, (at % BITS / 64 * 8) as usize);
                let bits = (end - at).min(64 - at % 64);
                let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << (at % 64) };
                count += u64::from((word & mask).count_ones());
                at += bits;
            }
        }
        Ok(count)
    }
}

pub(super) fn bitmap_key(space: u32, file: u64, bit: u64) -> Key {
    Key::new(space, file, 0, bit / BITS)
}
