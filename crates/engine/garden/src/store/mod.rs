//! All blocks of an aggregate: trees of files, a cache, free space, and the consistency point that makes changes durable.
//!
//! A block that changes is dirty, and so are all blocks above it up to the superblock: the consistency point then
//! only gives places to dirty blocks, writes them, and writes the superblock. Nothing that the last consistency point uses
//! is written over.

mod areas;
mod cache;
mod chains;
mod chunks;
mod clean;
mod clones;
mod commit;
mod cp;
mod dedup;
mod defrag;
mod deletion;
mod demote;
mod diff;
mod dirty;
mod fake;
mod fetches;
mod find;
mod fixup;
mod flight;
mod groups;
mod heap;
mod identify;
mod key;
mod layout;
mod media;
mod mend;
mod objects;
mod open;
mod packing;
mod places;
mod reading;
mod rebuild;
mod reclaim;
mod recompact;
mod references;
mod relocate;
mod reserve;
mod scrub;
mod snapshots;
mod space;
#[cfg(test)]
mod tests;
mod tier;
mod tree;
mod volumes;
mod worth;

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasherDefault,
};

use clean::Gardener;
use dirty::KeySet;
use fake::Fake;
use flight::Flight;
use layout::Forecast;
use packing::Packing;
use relocate::Moves;

pub(crate) use cache::{Cache, KeyHasher};
pub use clean::{Cleaning, Gardening, ScanStep};
pub use dedup::DedupStep;
pub(crate) use dedup::{Dedup, fingerprint};
pub use defrag::{DefragCounts, Placing};
pub use demote::Demotion;
pub use diff::{Change, InodeChange};
pub(crate) use fetches::Fetches;
pub use find::LeftOut;
pub(crate) use find::{drive_length, find_aggregate, of_version, read_labels};
pub(crate) use fixup::Fixing;
pub use fixup::{FixUp, FixUpStep};
pub(crate) use groups::THAWED;
pub(crate) use identify::{Stranger, identify};
pub(crate) use key::{
    AGGREGATE, Key, aggregate, container_of, is_snapshot, shape_of, snapshot_space, volume, volume_of,
};
pub(crate) use layout::WINDOW;
pub(crate) use objects::Objects;
pub use open::FormatOptions;
pub use open::LOST_POINT;
pub(crate) use open::{Opened, format, open};
pub(crate) use reading::Reading;
pub use reading::{Headroom, WriteAfterRead};
pub use rebuild::RebuildStep;
pub use recompact::{PackingSurvey, RecompactStep};
pub use relocate::AreaMoves;
pub use scrub::{ScrubReport, ScrubStep};
pub(crate) use snapshots::View;
pub(crate) use space::Allocator;
pub use tier::Tiering;
pub(crate) use tier::{Cold, Filling};
pub(crate) use volumes::Volume;
pub use worth::Worth;

use crate::{
    error::Error,
    format::{label::Aggregate, superblock::Superblock, volume::VolumeRecord},
    log::Log,
    raid::{DriveCounts, Raid, RaidCounts},
    report::OpeningReport,
};

/// How much is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks that are as the devices have them, in bytes.
    pub cache_bytes: u64,
    /// Blocks that changed since the last consistency point, in bytes: with more, there is one.
    pub dirty_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, dirty_bytes: 64 << 20 }
    }
}

/// What was counted since the aggregate was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Consistency points.
    pub consistency_points: u64,
    /// Of these, points that were written while operations went on.
    pub points_beside: u64,
    /// Blocks of volumes that were read.
    pub volume_reads: u64,
    /// Reads of volumes that had to ask the container map, because the place in the pointer did not hold the block.
    pub map_lookups: u64,
    /// Of these, those that found the block at another place.
    pub redirects: u64,
    /// Allocation areas whose free blocks were counted in the bitmap.
    pub areas_counted: u64,
    /// Blocks of volumes that consistency points wrote, without those that only moved to clean an area.
    pub volume_writes: u64,
    /// Blocks of volumes that were moved.
    pub relocations: u64,
    /// Of these, blocks that went from flash to disks.
    pub demotions: u64,
    /// Blocks of the aggregate's own files that cleaning wanted to be written elsewhere.
    pub metadata_relocations: u64,
    /// Blocks that were to move, but were freed before they did.
    pub moves_dropped: u64,
    /// Blocks in use that could not be moved: they are damaged, or no map names them.
    pub moves_stuck: u64,
    /// Allocation areas whose blocks in use were all made to move.
    pub areas_cleaned: u64,
    /// Allocation areas that blocks were taken from when none of theirs was in use.
    pub ready_areas_taken: u64,
    /// Those of which some were.
    pub other_areas_taken: u64,
    /// Pointers of volumes that named an old place and were put right.
    pub fix_ups: u64,
    /// Blocks of contents that were made to change their places only.
    pub fake_dirty: u64,
    /// Blocks that were written elsewhere under their VVBNs, those of pointers among them.
    pub fake_writes: u64,
    /// Reads of files that went on where one before them ended.
    pub sequential_reads: u64,
    /// Of these, those with which more was read than they asked for.
    pub read_aheads: u64,
    /// Blocks that were read with them, those of memory among them.
    pub read_ahead_blocks: u64,
    /// Blocks that were made to change their places because they were read in order and lay badly.
    pub rewritten_after_read: u64,
    /// Times that reading in order was not followed by that, because processors or drives had no time or the consistency point had
    /// enough.
    pub rewrites_put_off: u64,
    /// Groups of blocks that were compressed.
    pub groups_written: u64,
    /// VVBNs that were not used because of that.
    pub blocks_saved: u64,
    /// Partial blocks that were written as chunks, those among them that only moved.
    pub chunks_written: u64,
    /// Blocks that were put together from them.
    pub compacted_blocks_written: u64,
    /// Blocks that were written to objects.
    pub tiered: u64,
    /// Objects that were put.
    pub object_puts: u64,
    /// Ranges of objects that were read.
    pub object_gets: u64,
    /// Blocks that were in them.
    pub cold_reads: u64,
    /// Objects that were deleted.
    pub object_deletes: u64,
}

/// What the drives were asked for from one consistency point to the next.
#[derive(Default)]
pub(crate) struct Activity {
    /// What they had been asked for when the last one had ended, all together and by drive.
    before: (RaidCounts, Vec<DriveCounts>),
    /// From the end of the one before to the end of the last one.
    pub last: (RaidCounts, Vec<DriveCounts>),
}

impl Activity {
    /// A consistency point has ended.
    fn end(&mut self, now: (RaidCounts, Vec<DriveCounts>)) {
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        // The first one has nothing before it.
        let drives = now
            .1
            .iter()
            .enumerate()
            .map(|(drive, counts)| counts.since(before.1.get(drive).copied().unwrap_or_default()));
        self.last = (now.0.since(before.0), drives.collect());
    }
}

/// PVBNs, and the tags of what lies there.
pub(crate) type Freed = HashMap<u64, u16, BuildHasherDefault<KeyHasher>>;

/// An open aggregate: what is durable, and what changed since.
pub(crate) struct Store {
    pub raid: Raid,
    pub log: Log,
    /// As it is to be at the next consistency point.
    pub sb: Superblock,
    /// The last one that is durable.
    pub durable: Superblock,
    /// What all labels say.
    aggregate: Aggregate,
    /// What opening it found out.
    pub opening: OpeningReport,
    pub scrub: ScrubReport,
    /// The place (0 or 1) of its superblock on the drives.
    sb_slot: u64,
    pub cache: Cache,
    dirty: KeySet,
    pub volumes: Vec<Option<Volume>>,
    /// Volumes that were deleted and whose blocks are not all free yet, by their places in the table.
    pub deleted: BTreeMap<u32, VolumeRecord>,
    /// Snapshots, by their spaces.
    pub views: BTreeMap<u32, View>,
    alloc: Allocator,
    /// PVBNs that became free since the last consistency point, which still uses them, and the tags of what lies there.
    pending: Freed,
    pub limits: Limits,
    pub counts: Counts,
    pub activity: Activity,
    /// Blocks that move at the next consistency point.
    moves: Moves,
    /// Blocks of volumes that only change their places at the next consistency point.
    fakes: BTreeMap<Key, Fake>,
    /// What the running consistency point packs.
    packing: Packing,
    /// Where blocks will lie that get their places next.
    forecast: Option<Forecast>,
    pub reading: Reading,
    pub objects: Objects,
    pub gardener: Gardener,
    /// The consistency point that is on its way to the drives.
    flight: Option<Flight>,
    /// Why nothing may be changed any more.
    pub stopped: Option<String>,
    /// Something was changed since this was cleared.
    pub touched: bool,
}

impl Store {
    /// Remembers a failure in the middle of a change: memory is unfit to go on, the devices are not touched any more.
    pub fn stop(&mut self, reason: &Error) {
        self.stopped.get_or_insert_with(|| reason.to_string());
    }

    pub fn check_running(&self) -> crate::Result<()> {
        match &self.stopped {
            None => Ok(()),
            Some(reason) => Err(Error::Stopped { reason: reason.clone() }),
        }
    }

    /// Lets clean blocks go that are more than may be kept in memory.
    pub fn shrink_cache(&mut self) {
        self.cache.shrink(self.limits.cache_bytes);
    }

    /// A volume, or a snapshot as the volume that it was.
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
