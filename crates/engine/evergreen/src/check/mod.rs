//! The independent check: reads an evergreen from its device, as the last superblock has it.
//!
//! It shares the codecs with the engine and nothing else: it finds nodes by its own walk, merges what waits for a key on its own,
//! counts for itself, and compares. Of what has two copies it reads both. What it holds to be true: the map's nodes lie inside, apart from each other and from the map; each is
//! reached once, under the bounds that its parent has for it, all leaves equally deep; every header and part has its checksum;
//! keys ascend within bounds, and keys and values are not too long; what waits is in normal form; and what must hold of the files
//! in all that.

mod contents;
mod places;
#[cfg(test)]
mod tests;
mod walk;

use std::{fmt, sync::Arc};

use senesce_block::BlockDevice;

use crate::{
    Error, Result,
    disk::{Area, BadSlotCopy, NodeMap, Slots, Superblock, read_newest, read_slots},
    log::Replay,
};
use contents::Contents;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, in words: the structure, its number, its place on the device.
    pub place: String,
    /// What of it, what was found, what was expected.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// What a check saw of copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Copies of inner nodes and of the map that are not as they must be, while the other copy is: nothing is lost, and a repair, or
    /// the checkpoint after one was read, writes them again.
    pub bad: Vec<Finding>,
    /// Copies of superblocks that are not as they must be, while the other copy is, and frames of the log that their parity restored. They are
    /// no findings: power may have been lost while one was written. Opening writes them again, or needs them no more.
    pub torn: Vec<Finding>,
    /// Inner nodes that have one copy although they should have two: there was no space.
    pub single: u64,
}

/// What a check saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is not as it must be, in the order in which it was found; nothing if the evergreen is clean.
    pub findings: Vec<Finding>,
    /// How many more there were than are kept.
    pub more_findings: u64,
    /// What has copies of which not all are as they must be.
    pub copies: CopyReport,
    /// A superblock besides the one that counts that cannot be read. It is no finding: power may have been lost while it was
    /// written. Opening writes it anew.
    pub torn_superblock: Option<Finding>,
    /// The superblock that was looked at.
    pub generation: u64,
    /// Nodes that are reached, and how many of them are leaves.
    pub nodes: u64,
    /// Leaves among them.
    pub leaves: u64,
    /// Levels of the tree.
    pub levels: u64,
    /// Keys that have a value.
    pub keys: u64,
    /// Messages and ranges that wait in nodes.
    pub waiting: u64,
    /// Bytes of units that are in use.
    pub used_bytes: u64,
    /// Bytes of units that are free.
    pub free_bytes: u64,
    /// Extents that these are.
    pub free_extents: u64,
    /// Batches in the log that opening will do again; the check does not see them.
    pub log_batches: u64,
}

/// Findings that a report keeps.
const MAX_FINDINGS: usize = 1000;

impl CheckReport {
    /// Whether nothing was found, and no copy is bad.
    pub fn is_clean(&self) -> bool {
        self.is_whole() && self.copies.bad.is_empty()
    }

    /// Whether all can be read, from one copy or the other.
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }

    fn find_bad_copy(&mut self, place: impl Into<String>, what: impl ToString) {
        if self.copies.bad.len() < MAX_FINDINGS {
            self.copies.bad.push(Finding { place: place.into(), what: what.to_string() });
        }
    }

    fn find(&mut self, place: impl Into<String>, what: impl ToString) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { place: place.into(), what: what.to_string() });
        } else {
            self.more_findings += 1;
        }
    }

    /// Takes damage as a finding. Errors: all others.
    fn take<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Damaged { place, what }) => {
                self.find(place, what);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }
}

/// Checks an evergreen without opening it; nothing is written. Damage is in the report.
///
/// Errors: what keeps from looking at all: no superblock that can be read, another device, the device's errors. Cost: reads all nodes;
/// memory for a path of the tree, and for each inode and name.
pub fn check(device: &Arc<dyn BlockDevice>) -> Result<CheckReport> {
    check_with(device, Contents::check_files)
}

/// The same of a store in which there is no file system.
pub fn check_store(device: &Arc<dyn BlockDevice>) -> Result<CheckReport> {
    check_with(device, Contents::check_keys)
}

fn check_with(device: &Arc<dyn BlockDevice>, look: fn(Contents) -> Result<CheckReport>) -> Result<CheckReport> {
    let superblock = read_newest(&**device)?;
    let mut report = CheckReport { generation: superblock.generation, ..CheckReport::default() };
    let slots = read_slots(&**device)?;
    report.torn_superblock = find_torn(&slots);
    report.copies.torn = slots.bad_copies.into_iter().map(slot_finding).collect();
    report.log_batches = check_log(device, &superblock, &mut report)?;
    let area = Area::new(device.clone(), superblock.geometry);
    let mut bad = Vec::new();
    let loaded = NodeMap::load_noting(&area, &superblock, true, &mut bad);
    for error in bad {
        match error {
            Error::Damaged { place, what } => report.find_bad_copy(place, what),
            other => report.find_bad_copy("the map of nodes", other),
        }
    }
    let Some(map) = report.take(loaded)? else { return Ok(report) };
    places::check(&map, &superblock, &mut report);
    look(Contents::new(area, superblock, map, report))
}

fn find_torn(slots: &Slots) -> Option<Finding> {
    slots.torn().map(|(place, damage)| Finding { place: place.to_owned(), what: damage.to_string() })
}

fn slot_finding((place, damage): BadSlotCopy) -> Finding {
    Finding { place: place.to_owned(), what: damage.to_string() }
}

/// Reads the log to its end; gives the batches in it.
fn check_log(device: &Arc<dyn BlockDevice>, superblock: &Superblock, report: &mut CheckReport) -> Result<u64> {
    let mut replay = Replay::new(device.clone(), &superblock.geometry, superblock.uuid, superblock.replay)
        .beside_torn(report.torn_superblock.is_some())
        .of_version(superblock.version);
    let mut batches = 0;
    for batch in &mut replay {
        batches += u64::from(report.take(batch)?.is_some());
    }
    let restored = |what: &String| Finding { place: "log".to_owned(), what: what.clone() };
    report.copies.torn.extend(replay.restored().iter().map(restored));
    Ok(batches)
}
