//! All blocks of an aggregate: trees of files, a cache, free space, and the consistency point that
//! makes changes durable.
//!
//! A changed block is dirty, as are all blocks above it up to the superblock. So the consistency
//! point only has to allocate places for dirty blocks, write them, and write the superblock.
//! Nothing that the last consistency point uses is overwritten.

mod area_heap;
mod areas;
mod block_key;
mod cache;
mod chunk_counts;
mod clean;
mod cleaning_worth;
mod clones;
mod compression_groups;
mod consistency_point;
mod dedup;
mod defrag;
mod deletion;
mod demote;
mod diff;
mod dirty;
mod fake_dirty;
mod fetches;
mod find_drives;
mod identify_drives;
mod inflight_checkpoint;
mod media;
mod mend;
mod objects;
mod open;
mod packing;
mod places;
mod pointer_fixup;
mod read_chains;
mod read_requests;
mod rebuild;
mod reclaim;
mod recompact;
mod reference_counts;
mod relocate;
mod reserve;
mod scrub;
mod sequential_reads;
mod snapshots;
mod space;
mod superblocks;
#[cfg(test)]
mod tests;
mod tier;
mod tree;
mod volumes;

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasherDefault,
};

use clean::Gardener;
use dirty::KeySet;
use fake_dirty::Fake;
use inflight_checkpoint::InflightCheckpoint;
use packing::Packing;
use read_requests::Forecast;
use relocate::Moves;

pub(crate) use block_key::{
    AGGREGATE, Key, aggregate, container_of, is_snapshot, shape_of, snapshot_space, volume, volume_of,
};
pub(crate) use cache::{Cache, KeyHasher};
pub use clean::{Cleaning, Gardening, ScanStep};
pub use cleaning_worth::Worth;
pub(crate) use compression_groups::THAWED;
pub use dedup::DedupStep;
pub(crate) use dedup::{Dedup, fingerprint};
pub use defrag::{DefragCounts, Placing};
pub use demote::Demotion;
pub use diff::{Change, InodeChange};
pub(crate) use fetches::Fetches;
pub use find_drives::LeftOut;
pub(crate) use find_drives::{drive_length, find_aggregate, of_version, read_labels};
pub(crate) use identify_drives::{Stranger, identify};
pub(crate) use objects::Objects;
pub use open::FormatOptions;
pub use open::LOST_POINT;
pub(crate) use open::{Opened, format, open};
pub(crate) use pointer_fixup::Fixing;
pub use pointer_fixup::{FixUp, FixUpStep};
pub(crate) use read_requests::WINDOW;
pub use rebuild::RebuildStep;
pub use recompact::{PackingSurvey, RecompactStep};
pub use relocate::AreaMoves;
pub use scrub::{ScrubReport, ScrubStep};
pub(crate) use sequential_reads::Reading;
pub use sequential_reads::{Headroom, WriteAfterRead};
pub(crate) use snapshots::View;
pub(crate) use space::Allocator;
pub use tier::Tiering;
pub(crate) use tier::{Cold, Filling};
pub(crate) use volumes::Volume;

use crate::{
    aggregate::report::OpeningReport,
    error::Error,
    format::{label::Aggregate, superblock::Superblock, volume::VolumeRecord},
    log::Log,
    raid::{DriveCounts, Raid, RaidCounts},
};

/// Limits of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clean blocks in memory, in bytes.
    pub cache_bytes: u64,
    /// Dirty blocks, in bytes. Above this, a consistency point is due.
    pub dirty_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, dirty_bytes: 64 << 20 }
    }
}

/// Counts since the opening of the aggregate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Consistency points.
    pub consistency_points: u64,
    /// Consistency points that were written in the background.
    pub points_beside: u64,
    /// Blocks of volumes that were read.
    pub volume_reads: u64,
    /// Reads of volumes that needed the container map, because the block was not at the place in
    /// its pointer.
    pub map_lookups: u64,
    /// Map lookups that found the block at another place.
    pub redirects: u64,
    /// Allocation areas whose free blocks were counted in the bitmap.
    pub areas_counted: u64,
    /// Blocks of volumes that consistency points wrote, except those that only moved for cleaning.
    pub volume_writes: u64,
    /// Blocks of volumes that were moved.
    pub relocations: u64,
    /// Moved blocks that went from flash to disks.
    pub demotions: u64,
    /// Blocks of the aggregate's own files that were rewritten for cleaning.
    pub metadata_relocations: u64,
    /// Blocks that were to move, but were freed before.
    pub moves_dropped: u64,
    /// Blocks in use that could not be moved, because they are damaged or no map names them.
    pub moves_stuck: u64,
    /// Allocation areas whose blocks in use all were made to move.
    pub areas_cleaned: u64,
    /// Allocation areas without blocks in use that allocation started to use.
    pub ready_areas_taken: u64,
    /// Allocation areas with blocks in use that allocation started to use.
    pub other_areas_taken: u64,
    /// Stale pointers of volumes that were fixed.
    pub fix_ups: u64,
    /// Blocks of contents that were made to change their places only.
    pub fake_dirty: u64,
    /// Blocks that were rewritten under their VVBNs, including blocks of pointers.
    pub fake_writes: u64,
    /// Reads of files that continued where an earlier read ended.
    pub sequential_reads: u64,
    /// Sequential reads that read more than the client requested.
    pub read_aheads: u64,
    /// Blocks of these read-aheads, including cached blocks.
    pub read_ahead_blocks: u64,
    /// Blocks that changed their places after a sequential read, because their layout was bad.
    pub rewritten_after_read: u64,
    /// Sequential reads without such a rewrite, because processors or drives were busy or the
    /// consistency point had enough.
    pub rewrites_put_off: u64,
    /// Groups of blocks that were compressed.
    pub groups_written: u64,
    /// VVBNs that compression saved.
    pub blocks_saved: u64,
    /// Partial blocks that were written as chunks, including chunks that only moved.
    pub chunks_written: u64,
    /// Compacted blocks that were written.
    pub compacted_blocks_written: u64,
    /// Blocks that were written to objects.
    pub tiered: u64,
    /// Objects that were put.
    pub object_puts: u64,
    /// Ranges of objects that were read.
    pub object_gets: u64,
    /// Blocks in these ranges.
    pub cold_reads: u64,
    /// Objects that were deleted.
    pub object_deletes: u64,
}

/// Requests to the drives between consistency points.
#[derive(Default)]
pub(crate) struct Activity {
    /// The counts at the end of the last consistency point, of all drives together and of each.
    before: (RaidCounts, Vec<DriveCounts>),
    /// The difference between the ends of the last two consistency points.
    pub last: (RaidCounts, Vec<DriveCounts>),
}

impl Activity {
    /// Takes the counts at the end of a consistency point.
    fn end(&mut self, now: (RaidCounts, Vec<DriveCounts>)) {
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        // The first consistency point has no earlier counts.
        let drives = now
            .1
            .iter()
            .enumerate()
            .map(|(drive, counts)| counts.since(before.1.get(drive).copied().unwrap_or_default()));
        self.last = (now.0.since(before.0), drives.collect());
    }
}

/// PVBNs, and the tags of the blocks there.
pub(crate) type Freed = HashMap<u64, u16, BuildHasherDefault<KeyHasher>>;

/// An open aggregate: the durable state and the changes since.
pub(crate) struct Store {
    pub raid: Raid,
    pub log: Log,
    /// The superblock of the next consistency point.
    pub sb: Superblock,
    /// The last durable superblock.
    pub durable: Superblock,
    /// The contents of all labels.
    aggregate: Aggregate,
    /// Findings of the opening.
    pub opening: OpeningReport,
    pub scrub: ScrubReport,
    /// The place (0 or 1) of the durable superblock on the drives.
    sb_slot: u64,
    pub cache: Cache,
    dirty: KeySet,
    pub volumes: Vec<Option<Volume>>,
    /// Deleted volumes with blocks that are not free yet, by their places in the table.
    pub deleted: BTreeMap<u32, VolumeRecord>,
    /// Snapshots, by their spaces.
    pub views: BTreeMap<u32, View>,
    alloc: Allocator,
    /// PVBNs that became free since the last consistency point, which still uses them, and the tags
    /// of the blocks there.
    pending: Freed,
    pub limits: Limits,
    pub counts: Counts,
    pub activity: Activity,
    /// Blocks that move at the next consistency point.
    moves: Moves,
    /// Blocks of volumes that only change their places at the next consistency point.
    fakes: BTreeMap<Key, Fake>,
    /// The packing of the running consistency point.
    packing: Packing,
    /// The next places to be allocated, if known.
    forecast: Option<Forecast>,
    pub reading: Reading,
    pub objects: Objects,
    pub gardener: Gardener,
    /// The background consistency point.
    inflight: Option<InflightCheckpoint>,
    /// Why the engine stopped and refuses changes.
    pub stopped: Option<String>,
    /// Whether something changed since this was cleared.
    pub touched: bool,
}

impl Store {
    /// Stops the engine after a failure in the middle of a change. The state in memory is
    /// inconsistent, so the devices are not written any more.
    pub fn stop(&mut self, reason: &Error) {
        self.stopped.get_or_insert_with(|| reason.to_string());
    }

    pub fn check_running(&self) -> crate::Result<()> {
        match &self.stopped {
            None => Ok(()),
            Some(reason) => Err(Error::Stopped { reason: reason.clone() }),
        }
    }

    /// Evicts clean blocks beyond the limit.
    pub fn shrink_cache(&mut self) {
        self.cache.shrink(self.limits.cache_bytes);
    }

    /// A volume, or a snapshot as the volume at that time.
    pub fn volume(&self, space: u32) -> crate::Result<&Volume> {
        let found = match self.views.get(&space) {
            Some(view) => Some(&view.volume),
            None => self.volumes.get(space as usize).and_then(Option::as_ref),
        };
        found.ok_or_else(|| no_volume(space))
    }

    pub fn volume_mut(&mut self, space: u32) -> crate::Result<&mut Volume> {
        let found = match self.views.get_mut(&space) {
            Some(view) => Some(&mut view.volume),
            None => self.volumes.get_mut(space as usize).and_then(Option::as_mut),
        };
        found.ok_or_else(|| no_volume(space))
    }
}

fn no_volume(space: u32) -> Error {
    Error::invalid(format!("there is no volume {space}"))
}
