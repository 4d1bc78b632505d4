//! All blocks of an aggregate: trees of files, a cache, free space, and the consistency point that makes changes durable.
//!
//! A block that changes is dirty, and so are all blocks above it up to the superblock: the consistency point then
//! only gives places to dirty blocks, writes them, and writes the superblock. Nothing that the last consistency point uses
//! is written over.

mod areas;
mod cache;
mod chains;
mod cp;
mod find;
mod heap;
mod key;
mod mend;
mod open;
mod rebuild;
mod reserve;
mod scrub;
mod space;
#[cfg(test)]
mod tests;
mod tree;
mod volumes;
mod worth;

use std::collections::BTreeSet;

pub(crate) use cache::Cache;
pub use find::LeftOut;
pub(crate) use key::{AGGREGATE, Key, aggregate, container_of, shape_of, volume};
pub use open::FormatOptions;
pub(crate) use open::{Opened, format, open};
pub use rebuild::RebuildStep;
pub use scrub::{ScrubReport, ScrubStep};
pub(crate) use space::Allocator;
pub(crate) use volumes::Volume;
pub use worth::Worth;

use crate::{
    error::Error,
    format::{label::DriveLabel, superblock::Superblock},
    log::Log,
    raid::{DriveCounts, Raid, RaidCounts},
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
    /// Blocks of volumes that were read.
    pub volume_reads: u64,
    /// Reads of volumes that had to ask the container map, because the place in the pointer did not hold the block.
    pub map_lookups: u64,
    /// Of these, those that found the block at another place.
    pub redirects: u64,
    /// Allocation areas whose free blocks were counted in the bitmap.
    pub areas_counted: u64,
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

/// An open aggregate: what is durable, and what changed since.
pub(crate) struct Store {
    pub raid: Raid,
    pub log: Log,
    /// As it is to be at the next consistency point.
    pub sb: Superblock,
    /// The last one that is durable.
    pub durable: Superblock,
    /// What all drives are part of; their labels differ in the drive's number only.
    label: DriveLabel,
    /// Devices that were given and are not used.
    pub left_out: Vec<LeftOut>,
    pub scrub: ScrubReport,
    /// The place (0 or 1) of its superblock on the drives.
    sb_slot: u64,
    pub cache: Cache,
    dirty: BTreeSet<Key>,
    pub volumes: Vec<Option<Volume>>,
    alloc: Allocator,
    /// PVBNs that became free since the last consistency point, which still uses them.
    pending: BTreeSet<u64>,
    pub limits: Limits,
    pub counts: Counts,
    pub activity: Activity,
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

    pub fn volume(&self, space: u32) -> crate::Result<&Volume> {
        self.volumes.get(space as usize).and_then(Option::as_ref).ok_or_else(|| no_volume(space))
    }

    pub fn volume_mut(&mut self, space: u32) -> crate::Result<&mut Volume> {
        self.volumes.get_mut(space as usize).and_then(Option::as_mut).ok_or_else(|| no_volume(space))
    }
}

fn no_volume(space: u32) -> Error {
    Error::invalid(format!("there is no volume {space}"))
}
