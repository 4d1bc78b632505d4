//! Packing: compression and compaction of file contents.

use crate::{
    aggregate::Garden,
    error::{Error, Result},
    format::{pointer::MAX_GROUP, volume},
    store::{PackingSurvey, RecompactStep},
};

/// How a volume reduces the contents of regular files that it writes. The default is not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// Blocks of 4,096 bytes that are compressed together: 2, 4 or 8; 0 disables compression.
    /// Changing one block reads and rewrites its whole group. So 2 suits files that are overwritten
    /// in places, and 8 suits files that are written once.
    pub group_blocks: u8,
    /// Whether partial blocks share a block: the ends of compressed groups, and blocks that end in
    /// zeros.
    pub compaction: bool,
}

impl Packing {
    /// A good choice for most volumes: groups of two blocks, where an overwrite costs at most one
    /// more block, and compaction.
    pub const USUAL: Self = Self { group_blocks: 2, compaction: true };
}

/// The default threshold of recompaction: a compacted block is read if fewer than this percentage
/// of its chunks are left. Four such blocks become three.
pub const RECOMPACTED_BELOW_PERCENT: u64 = 75;
/// VVBNs that are scanned under one lock.
const AT_ONCE: u64 = 1024;

impl Garden {
    /// Sets how contents are reduced that the volume writes from now on. The setting is durable on
    /// return. Existing contents stay as they are until they are rewritten.
    ///
    /// Errors: `Invalid` if the volume does not exist, or for another group size; `NoSpace` for the
    /// map of chunks.
    pub fn set_packing(&self, volume: &[u8], packing: Packing) -> Result<()> {
        if !matches!(packing.group_blocks, 0 | 2 | 4 | MAX_GROUP) {
            let what = format!("groups of {} blocks are compressed; 2, 4 or 8, or 0 for none", packing.group_blocks);
            return Err(Error::invalid(what));
        }
        self.change(|_, store| {
            let space = store.find_volume(volume)?;
            let Packing { group_blocks, compaction } = packing;
            store.set_packing(space, group_blocks, compaction)
        })
    }

    /// Returns how contents of a volume are reduced.
    ///
    /// Errors: `Invalid` if the volume does not exist.
    pub fn packing(&self, volume: &[u8]) -> Result<Packing> {
        let store = self.shared.lock();
        let volume::Packing { group_blocks, compaction, .. } = store.volume(store.find_volume(volume)?)?.record.packing;
        Ok(Packing { group_blocks, compaction })
    }

    /// Scans up to `most` VVBNs of a volume, and merges compacted blocks that have few chunks left:
    /// less than `threshold_percent` (see [`RECOMPACTED_BELOW_PERCENT`]). Continues where the last
    /// step ended; durable with the next consistency point. The contents of the volume and its
    /// snapshots do not change.
    ///
    /// Errors: `Invalid` if the volume does not exist; `NoSpace`, after which the next step
    /// continues there.
    ///
    /// Cost: reads the container map, and each block that lost enough chunks.
    pub fn recompact_step(&self, volume: &[u8], most: u64, threshold_percent: u64) -> Result<RecompactStep> {
        let space = self.space_of(volume)?;
        self.take_steps(most, AT_ONCE, |store, most| store.recompact_step(space, most, threshold_percent))
    }

    /// The size of the contents of a volume's regular files, and their size without packing. Blocks
    /// that only snapshots use do not count.
    ///
    /// Errors: `Invalid` if the volume does not exist; those of a consistency point, which is made
    /// first.
    ///
    /// Cost: reads all pointers and the container map, and locks the aggregate meanwhile.
    pub fn survey_packing(&self, volume: &[u8]) -> Result<PackingSurvey> {
        self.consistency_point()?;
        let mut store = self.shared.lock();
        let space = store.find_volume(volume)?;
        let found = store.survey_packing(space);
        store.shrink_cache();
        found
    }
}
