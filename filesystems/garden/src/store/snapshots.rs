//! Snapshots: their table, their trees as spaces of their own, and the summary map of the VVBNs
//! that they use.
//!
//! A snapshot is the root of a volume's tree at a consistency point. Nothing of the tree is copied.
//! Its blocks stay because the summary map names them: a VVBN is only free if neither the volume's
//! map nor the summary map has it.

use std::collections::BTreeSet;

use senesce_fsapi::{FsError, FsResult, Timestamp};

use super::{
    AGGREGATE, Key, Store, Volume, aggregate, snapshot_space,
    space::{BITS, bitmap_key},
    volume, volume_of,
    volumes::check_name,
};
use crate::{
    error::{Error, Result},
    format::{
        Damage,
        snapshot::{MAX_SNAPSHOTS, PER_BLOCK, SNAPSHOT, SnapshotRecord},
        volume::VolumeRecord,
    },
};

/// A readable snapshot.
#[derive(Debug)]
pub(crate) struct View {
    pub record: SnapshotRecord,
    /// The volume at that time.
    pub volume: Volume,
}

impl Store {
    /// Loads the snapshot table, after the volumes.
    pub(super) fn load_snapshots(&mut self) -> Result<()> {
        let (end, mut from) = (u64::from(MAX_SNAPSHOTS) / PER_BLOCK, 0);
        while let Some(block) = self.find_block(AGGREGATE, aggregate::SNAPSHOTS, from, end, true)? {
            let data = *self.get(Key::new(AGGREGATE, aggregate::SNAPSHOTS, 0, block))?;
            for (slot, bytes) in (block * PER_BLOCK..).zip(data.as_chunks::<SNAPSHOT>().0) {
                let found = SnapshotRecord::decode(bytes);
                let found = found.map_err(|damage| Error::damaged(format!("snapshot {slot}"), damage))?;
                found.map_or(Ok(()), |record| self.add_view(slot as u32, record))?;
            }
            from = block + 1;
        }
        Ok(())
    }

    fn add_view(&mut self, slot: u32, record: SnapshotRecord) -> Result<()> {
        let owner = self.volumes.get_mut(record.volume as usize).and_then(Option::as_mut);
        let Some(owner) = owner else {
            let damage = Damage::new("snapshot record", "volume", record.volume, "the number of a volume");
            return Err(Error::damaged(format!("snapshot {slot}"), damage));
        };
        owner.snapshots += 1;
        let volume = Volume::new(record.as_volume(&owner.record));
        self.views.insert(snapshot_space(slot, record.volume), View { record, volume });
        Ok(())
    }

    /// The spaces of a volume's snapshots, the oldest first.
    pub fn snapshots_of(&self, volume: u32) -> Vec<u32> {
        let mut own: Vec<(u64, u32)> = self.views_of(volume).map(|(space, view)| (view.record.cp, space)).collect();
        own.sort_unstable();
        own.into_iter().map(|(_, space)| space).collect()
    }

    fn views_of(&self, volume: u32) -> impl Iterator<Item = (u32, &View)> {
        self.views.iter().map(|(space, view)| (*space, view)).filter(move |(space, _)| volume_of(*space) == volume)
    }

    pub fn find_snapshot(&self, volume: u32, name: &[u8]) -> Option<u32> {
        self.views_of(volume).find(|(_, view)| view.record.name == name).map(|(space, _)| space)
    }

    /// The number of the volume or snapshot in a space, which differs for a later one in the same
    /// space.
    ///
    /// Errors: `Stale` if the space is empty.
    pub fn number_of(&self, space: u32) -> FsResult<u64> {
        match self.views.get(&space) {
            Some(view) => Ok(view.record.cp),
            None => self.volume(space).map(|volume| volume.number).map_err(|_| FsError::Stale),
        }
    }

    /// Whether snapshots may use VVBNs of a volume.
    pub(super) fn has_summary(&self, space: u32) -> Result<bool> {
        Ok(self.volume(space)?.has_summary())
    }

    /// Makes a snapshot of a volume at the last consistency point; nothing may have changed since.
    /// It is durable with the next one.
    ///
    /// Errors: `Invalid` for a name that is taken, empty or too long; `NoSpace`.
    ///
    /// Cost: reads the bits of VVBNs in use, and rewrites the blocks of the summary map that lack
    /// some.
    pub fn create_snapshot(&mut self, volume: u32, name: &[u8], created: Timestamp) -> Result<()> {
        debug_assert!(!self.is_waiting(), "the maps in memory are those of the tree that is kept");
        check_name("snapshot", name)?;
        if self.find_snapshot(volume, name).is_some() {
            return Err(Error::invalid(format!("a snapshot {} exists", String::from_utf8_lossy(name))));
        }
        let is_free = |slot: &u32| !self.is_place_used(*slot);
        let Some(slot) = (0..MAX_SNAPSHOTS).find(is_free) else {
            return Err(Error::invalid(format!("{MAX_SNAPSHOTS} snapshots are the most there can be")));
        };
        let active = self.blocks_of_map(volume, volume::ACTIVE_MAP)?;
        let blocks = active.len() as u64;
        // Reserves the space for deleting the first snapshot.
        let kept = if self.has_summary(volume)? { 0 } else { self.kept_for_snapshots_of(volume)? };
        self.reserve(Some(volume), blocks + blocks.div_ceil(256) + SNAPSHOT_BLOCKS + kept, false)?;
        for block in active {
            let bits = *self.get(Key::new(volume, volume::ACTIVE_MAP, 0, block))?;
            let key = Key::new(volume, volume::SUMMARY_MAP, 0, block);
            if self.get(key)?.iter().zip(&bits).any(|(held, used)| used & !held != 0) {
                self.modify(key)?.iter_mut().zip(&bits).for_each(|(held, used)| *held |= used);
            }
        }
        let of = &self.volume(volume)?.record;
        let record = SnapshotRecord {
            volume,
            name: name.to_vec(),
            created,
            cp: self.durable.point,
            used: of.used,
            inodes_used: of.inodes_used,
            births: of.births,
            hash_seed: of.hash_seed,
            shared: of.shared,
            saved: of.saved,
            inode_file: of.inode_file.clone(),
        };
        let (key, at) = record_place(slot);
        record.encode(&mut self.modify(key)?[at..at + SNAPSHOT]);
        self.add_view(slot, record)
    }

    /// Whether a snapshot of any volume has this place in the table.
    fn is_place_used(&self, slot: u32) -> bool {
        let spaces = snapshot_space(slot, 0)..=snapshot_space(slot, aggregate::MAX_VOLUMES - 1);
        self.views.range(spaces).next().is_some()
    }

    /// The blocks of a volume's bitmap that are no holes.
    pub(super) fn blocks_of_map(&mut self, space: u32, file: u64) -> Result<Vec<u64>> {
        let (end, mut from, mut found) = (self.volume(space)?.record.blocks.div_ceil(BITS), 0, Vec::new());
        while let Some(block) = self.find_block(space, file, from, end, true)? {
            found.push(block);
            from = block + 1;
        }
        Ok(found)
    }

    /// Deletes a snapshot, durable with the next consistency point.
    /// [`reclaim_step`](Self::reclaim_step) frees the blocks that only it used.
    ///
    /// Errors: `Invalid` if it has a clone; `NoSpace` if even the reserve for deletions is used up.
    pub fn delete_snapshot(&mut self, space: u32) -> Result<()> {
        let volume = volume_of(space);
        if let Some(clone) = self.clone_of(space) {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let (own, clone) = (name(&self.volume(space)?.record.name), name(&clone.record.name));
            return Err(Error::invalid(format!("snapshot {own} has a clone: volume {clone}")));
        }
        self.reserve_reclaim(volume, SNAPSHOT_BLOCKS, 0)?;
        let (key, at) = record_place(slot_of(space));
        self.modify(key)?[at..at + SNAPSHOT].fill(0);
        self.views.remove(&space);
        self.cache.remove_space(space);
        let owner = self.volume_mut(volume)?;
        owner.snapshots -= 1;
        owner.record.reclaim = owner.record.blocks.div_ceil(BITS);
        self.save_record(volume)
    }

    /// Reverts a volume to a snapshot of it, durable with the next consistency point. Nothing may
    /// have changed since the last one.
    ///
    /// The current state is kept as if by a snapshot that is deleted at once. Errors: `Busy` if
    /// inodes are held, `NoSpace`.
    ///
    /// Cost: reads the bits of VVBNs in use, and rewrites the summary map.
    pub fn restore_snapshot(&mut self, space: u32) -> Result<()> {
        let volume = volume_of(space);
        debug_assert!(!self.is_waiting(), "blocks of the volume leave memory");
        if !self.volume(volume)?.held.is_empty() {
            return Err(FsError::Busy.into());
        }
        let mut blocks: BTreeSet<u64> = self.blocks_of_map(volume, volume::ACTIVE_MAP)?.into_iter().collect();
        blocks.extend(self.blocks_of_map(volume, volume::SUMMARY_MAP)?);
        blocks.extend(self.blocks_of_map(space, volume::SUMMARY_MAP)?);
        let count = blocks.len() as u64;
        self.reserve(Some(volume), count + count.div_ceil(256) + SNAPSHOT_BLOCKS, false)?;
        let mut summary = Vec::new();
        for &block in &blocks {
            let mut bits = *self.get(Key::new(volume, volume::SUMMARY_MAP, 0, block))?;
            let active = self.get(Key::new(volume, volume::ACTIVE_MAP, 0, block))?;
            bits.iter_mut().zip(active).for_each(|(held, used)| *held |= used);
            summary.push((block, bits));
        }
        self.take_root(space)?;
        for (block, bits) in summary {
            let key = Key::new(volume, volume::SUMMARY_MAP, 0, block);
            if *self.get(key)? != bits {
                *self.modify(key)? = bits;
            }
        }
        let (blocks, first_own) = (self.volume(volume)?.record.blocks, self.volume(volume)?.record.first_own());
        let (held, _) = self.count_kept(volume, blocks)?;
        let (_, kept) = self.count_kept(volume, first_own)?;
        let record = &mut self.volume_mut(volume)?.record;
        record.held = held;
        if let Some(origin) = &mut record.origin {
            origin.gone = first_own - kept;
        }
        self.save_record(volume)
    }

    /// Replaces the root of a volume by that of a snapshot. Its inodes without a name remain for
    /// the caller to remove.
    fn take_root(&mut self, space: u32) -> Result<()> {
        let volume = volume_of(space);
        let was = self.volume(space)?.record.clone();
        self.touched = true;
        self.cache.remove_space(volume);
        self.gardener.fixing.forget(volume);
        self.reading.forget(volume);
        let now = self.volume_mut(volume)?;
        // Numbers of inodes that were made are never reused.
        now.record = VolumeRecord {
            used: was.used,
            inodes_used: was.inodes_used,
            shared: was.shared,
            saved: was.saved,
            inode_file: was.inode_file,
            reclaim: now.record.blocks.div_ceil(BITS),
            ..now.record.clone()
        };
        now.ino_hint = volume::FIRST_USER;
        self.load_orphans(volume)
    }

    /// Whether a snapshot of the volume uses a VVBN.
    pub(super) fn is_held(&mut self, space: u32, vvbn: u64) -> Result<bool> {
        if !self.has_summary(space)? {
            return Ok(false);
        }
        let block = self.get(bitmap_key(space, volume::SUMMARY_MAP, vvbn))?;
        Ok(block[(vvbn % BITS / 8) as usize] >> (vvbn % 8) & 1 == 1)
    }
}

/// The most blocks of the aggregate that change when a snapshot is made or deleted, and blocks
/// above those of the summary map.
const SNAPSHOT_BLOCKS: u64 = 16;

/// The place of a snapshot in the table.
pub(super) fn slot_of(space: u32) -> u32 {
    space / aggregate::MAX_VOLUMES - 1
}

fn record_place(slot: u32) -> (Key, usize) {
    let (block, within) = (u64::from(slot) / PER_BLOCK, u64::from(slot) % PER_BLOCK);
    (Key::new(AGGREGATE, aggregate::SNAPSHOTS, 0, block), within as usize * SNAPSHOT)
}
