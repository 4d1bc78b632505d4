//! Clones of volumes: a snapshot that continues as a volume.
//!
//! Nothing is copied. The root of a clone is that of the snapshot. Its VVBNs up to the size of the
//! origin belong to the origin: they are in its container, and their blocks can be moved as usual.
//! The clone's own writes use higher VVBNs, which are in its own container. So the VVBN shows the
//! owner, and the trailer of a block must name the container of that owner. The snapshot cannot be
//! deleted before the clone.

use std::collections::BTreeSet;

use super::{
    AGGREGATE, Key, Store, Volume, container_of, reference_counts, snapshot_space,
    snapshots::slot_of,
    space::BITS,
    volume, volume_of,
    volumes::{check_name, fixed_file},
};
use crate::{
    error::{Error, Result},
    format::{
        BLOCK, Damage,
        pointer::VVBN_END,
        volume::{Origin, VolumeRecord},
    },
};

/// The most blocks that change besides those of growing maps: tables, inodes.
const CLONE_BLOCKS: u64 = 64;

impl Store {
    /// Makes a volume from a snapshot, with its size and contents. It is durable with the next
    /// consistency point. Nothing may have changed since the last one.
    ///
    /// Errors: `Invalid` for a name that is taken, empty or too long, and for too many volumes or
    /// VVBNs; `NoSpace`.
    ///
    /// Cost: reads the maps of VVBNs of the snapshot.
    pub fn create_clone(&mut self, space: u32, name: &[u8]) -> Result<u32> {
        debug_assert!(!self.is_waiting(), "the snapshot's blocks are all on the drives");
        check_name("volume", name)?;
        if self.find_volume(name).is_ok() {
            return Err(Error::invalid(format!("a volume {} exists", String::from_utf8_lossy(name))));
        }
        let (parent, was) = (volume_of(space), self.volume(space)?.record.clone());
        let behind = was.blocks;
        // The clone has as many own VVBNs as its origin.
        let blocks = behind.saturating_add(behind - was.first_own());
        if blocks >= VVBN_END {
            return Err(Error::invalid(format!("a clone would have {blocks} VVBNs; fewer than {VVBN_END}")));
        }
        let clone = self.free_place()?;
        let (held, used_or_held) = self.count_kept(space, behind)?;
        let origin = Origin { volume: parent, snapshot: slot_of(space), blocks: behind, gone: behind - used_or_held };
        let record = VolumeRecord {
            name: name.to_vec(),
            blocks,
            held,
            // VVBNs of other snapshots of the origin do not concern the clone. Its first scan
            // removes them.
            reclaim: if held > 0 || !self.blocks_of_map(space, volume::SUMMARY_MAP)?.is_empty() {
                blocks.div_ceil(BITS)
            } else {
                0
            },
            origin: Some(origin),
            ..was
        };
        self.put_volume(clone, Volume::new(record), CLONE_BLOCKS)?;
        self.put_inode(AGGREGATE, container_of(clone), &fixed_file(AGGREGATE, blocks * BLOCK as u64))?;
        for (file, bytes) in [
            (volume::ACTIVE_MAP, blocks.div_ceil(8)),
            (volume::SUMMARY_MAP, blocks.div_ceil(8)),
            (volume::REFERENCES, blocks * reference_counts::COUNT),
        ] {
            self.grow(clone, file, bytes.div_ceil(BLOCK as u64))?;
            let mut inode = self.inode(clone, file)?;
            inode.size = bytes;
            self.put_inode(clone, file, &inode)?;
        }
        self.load_orphans(clone)?;
        self.save_record(clone)?;
        self.volume_mut(clone)?.record_dirty = true;
        Ok(clone)
    }

    /// Counts VVBNs below `end`: those that only snapshots use by the summary map of the tree, and
    /// those in use by the tree or snapshots.
    pub(super) fn count_kept(&mut self, space: u32, end: u64) -> Result<(u64, u64)> {
        let (mut held, mut kept) = (0, 0);
        let mut blocks: BTreeSet<u64> = self.blocks_of_map(space, volume::ACTIVE_MAP)?.into_iter().collect();
        blocks.extend(self.blocks_of_map(space, volume::SUMMARY_MAP)?);
        for &block in blocks.range(..end.div_ceil(BITS)) {
            let summary = *self.get(Key::new(space, volume::SUMMARY_MAP, 0, block))?;
            let active = self.get(Key::new(space, volume::ACTIVE_MAP, 0, block))?;
            for (byte, (summary, active)) in (0..).zip(summary.iter().zip(active)) {
                let below = (end - block * BITS).saturating_sub(8 * byte).min(8);
                let mask = ((1_u32 << below) - 1) as u8;
                held += u64::from((summary & !active & mask).count_ones());
                kept += u64::from(((summary | active) & mask).count_ones());
            }
        }
        Ok((held, kept))
    }

    /// The existing volume that was made from a snapshot.
    pub fn clone_of(&self, snapshot: u32) -> Option<&Volume> {
        let slot = slot_of(snapshot);
        self.volumes.iter().flatten().find(|volume| volume.record.origin.is_some_and(|origin| origin.snapshot == slot))
    }

    /// Checks the origins of all clones, after everything is loaded.
    pub(super) fn check_origins(&self) -> Result<()> {
        for space in self.spaces() {
            let Some(origin) = self.volume(space)?.record.origin else { continue };
            let of = self.volumes.get(origin.volume as usize).and_then(Option::as_ref);
            let snapshot = snapshot_space(origin.snapshot, origin.volume);
            if of.is_none_or(|of| of.record.blocks != origin.blocks) || !self.views.contains_key(&snapshot) {
                let found = format!("snapshot {} of volume {}", origin.snapshot, origin.volume);
                let damage = Damage::new("volume record", "origin", found, "a snapshot of a volume of that size");
                return Err(Error::damaged(format!("volume {space}"), damage));
            }
        }
        Ok(())
    }
}
