//! Deleted volumes: their blocks are freed in steps, with later consistency points.
//!
//! The record is marked as deleted. From then on the name is free, and nothing of the tree is read.
//! The container map names all blocks of the volume and its snapshots. It is processed from its end
//! to its start: each place is freed and removed from the map. The record stores the progress, so
//! power may be lost at any time. When the map is empty, the container and the record are removed.

use senesce_fsapi::FsError;

use super::{
    AGGREGATE, Key, Store, container_of,
    reclaim::{LEAST_RELEASED, RECLAIM_BLOCKS},
    space::BITS,
    tree::container_key,
    volumes::record_place,
};
use crate::{
    error::{Error, Result},
    format::volume::VOLUME,
};

/// The most blocks of the aggregate that change when a volume is deleted.
const DELETION_BLOCKS: u64 = 16;

impl Store {
    /// Deletes a volume, durable with the next consistency point. Nothing may have changed since
    /// the last one. [`reclaim_step`](Self::reclaim_step) frees its blocks later.
    ///
    /// Errors: `Busy` if inodes are held; `Invalid` if it has snapshots; `NoSpace` if even the
    /// reserve for deletions is used up.
    pub fn delete_volume(&mut self, space: u32) -> Result<()> {
        debug_assert!(!self.is_waiting(), "blocks of the volume leave memory");
        let volume = self.volume(space)?;
        if !volume.held.is_empty() {
            return Err(FsError::Busy.into());
        }
        if volume.snapshots > 0 {
            let name = String::from_utf8_lossy(&volume.record.name);
            let what = format!("volume {name} has {} snapshot(s): delete them first", volume.snapshots);
            return Err(Error::invalid(what));
        }
        let mut record = volume.record.clone();
        self.reserve_release(DELETION_BLOCKS, 0)?;
        // Reads first, because a failure after the first change would leave a volume that is
        // neither present nor deleted.
        self.read_for_change(record_place(space).0)?;
        (record.deleted, record.reclaim) = (true, record.blocks.div_ceil(BITS) + 1);
        self.cache.remove_space(space);
        self.gardener.fixing.forget(space);
        self.reading.forget(space);
        self.volumes[space as usize] = None;
        self.deleted.insert(space, record);
        self.save_deleted(space)
    }

    fn save_deleted(&mut self, space: u32) -> Result<()> {
        let (key, at) = record_place(space);
        if let Some(record) = self.deleted.get(&space).cloned() {
            record.encode(&mut self.modify(key)?[at..at + VOLUME]);
        }
        Ok(())
    }

    /// Processes the next part of a deleted volume's container map. Returns `false` if the part is
    /// not finished, for lack of space or of a consistency point.
    pub(super) fn delete_step(&mut self, space: u32) -> Result<bool> {
        self.read_for_change(record_place(space).0)?;
        // The end of the map is mostly a hole, so the last block gives the progress. The record is
        // only for reports.
        let last = self.last_block(AGGREGATE, container_of(space))?;
        let left = last.map_or(1, |last| last / BITS + 2);
        if left <= 1 {
            self.note_left(space, 1)?;
            return self.end_deletion(space);
        }
        let whole = self.release_part(space, left - 2)?;
        self.note_left(space, left - u64::from(whole))?;
        Ok(whole)
    }

    fn note_left(&mut self, space: u32, left: u64) -> Result<()> {
        match self.deleted.get_mut(&space) {
            Some(record) if record.reclaim != left => record.reclaim = left,
            _ => return Ok(()),
        }
        self.save_deleted(space)
    }

    /// Frees the places of one map block's range of VVBNs, as far as space suffices. Returns
    /// whether all are freed.
    fn release_part(&mut self, space: u32, part: u64) -> Result<bool> {
        let Some(end) = self.deleted.get(&space).map(|record| record.blocks.min((part + 1) * BITS)) else {
            return Ok(true);
        };
        let mut most = BITS;
        // The only error is lack of space. Then fewer places are tried, or the rest waits for the
        // next consistency point.
        while self.reserve_release(RECLAIM_BLOCKS, most).is_err() {
            if most <= LEAST_RELEASED {
                return Ok(false);
            }
            most = (most / 2).max(LEAST_RELEASED);
        }
        let found = self.find_places(space, part * BITS..end, most)?;
        self.read_for_release(space, found.iter().copied())?;
        for &vvbn in &found {
            if let Some(at) = self.container(space, vvbn)? {
                self.set_container(space, vvbn, None)?;
                self.free_pvbn(at)?;
            }
        }
        Ok((found.len() as u64) < most || most == BITS)
    }

    /// The first VVBNs of a range that have a place in the container map.
    pub(super) fn find_places(&mut self, space: u32, range: std::ops::Range<u64>, most: u64) -> Result<Vec<u64>> {
        let height = self.inode(AGGREGATE, container_of(space))?.height;
        let (mut found, mut at) = (Vec::new(), range.start);
        while at < range.end && (found.len() as u64) < most {
            let key = container_key(space, at);
            let hole = self.hole_around(key, height)?;
            if hole > 1 {
                at += hole;
                continue;
            }
            if self.pointer(key)?.is_some() {
                found.push(at);
            }
            at += 1;
        }
        Ok(found)
    }

    /// Removes the container and the record, after consistency points made holes of all blocks of
    /// the map.
    fn end_deletion(&mut self, space: u32) -> Result<bool> {
        let file = container_of(space);
        let inode = self.inode(AGGREGATE, file)?;
        let last = Key::new(AGGREGATE, file, u8::MAX, u64::MAX);
        let waits = self.dirty.range(Key::new(AGGREGATE, file, 0, 0), last).next().is_some();
        if waits || inode.area.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        self.reserve_release(DELETION_BLOCKS, 0)?;
        self.clear_inode(AGGREGATE, file)?;
        let (key, at) = record_place(space);
        self.modify(key)?[at..at + VOLUME].fill(0);
        self.deleted.remove(&space);
        Ok(true)
    }
}
