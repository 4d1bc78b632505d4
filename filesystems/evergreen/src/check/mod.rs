//! The independent check: reads an evergreen from its device, in the state of the newest
//! superblock.
//!
//! It shares only the codecs with the engine. It has its own walk, merges messages itself, counts
//! itself, and compares. It reads both copies of metadata. It checks that:
//! - nodes are inside the area and do not overlap each other or the map;
//! - each node is reached once, has the bounds of its parent, and all leaves have the same depth;
//! - each header and part has its checksum;
//! - keys ascend within the bounds, and keys and values are not too long;
//! - buffers are in normal form;
//! - the rules of the files hold.

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

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The structure, its number, and its place on the device.
    pub place: String,
    /// The field, the value found, and the value expected.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// The findings about copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Damaged copies of inner nodes and of the map whose other copy is whole. Nothing is lost. A
    /// repair rewrites them, and so does the checkpoint after a read of one.
    pub bad: Vec<Finding>,
    /// Damaged copies of superblocks whose other copy is whole, and frames of the log that were
    /// restored by parity. They are no findings, because a loss of power can cause them. Opening
    /// rewrites the superblocks, and does not need the frames afterwards.
    pub torn: Vec<Finding>,
    /// Inner nodes with one copy instead of two, because there was no space.
    pub single: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The violated rules, in the order in which they were found; empty if the evergreen is clean.
    pub findings: Vec<Finding>,
    /// The number of further findings, which are not kept.
    pub more_findings: u64,
    /// The findings about copies.
    pub copies: CopyReport,
    /// A superblock, besides the current one, that cannot be read. It is no finding, because a loss
    /// of power can cause it. Opening rewrites it.
    pub torn_superblock: Option<Finding>,
    /// The generation of the checked superblock.
    pub generation: u64,
    /// The reached nodes.
    pub nodes: u64,
    /// The leaves among them.
    pub leaves: u64,
    /// The levels of the tree.
    pub levels: u64,
    /// The keys with a value.
    pub keys: u64,
    /// The messages and ranges that wait in nodes.
    pub waiting: u64,
    /// The bytes of units in use.
    pub used_bytes: u64,
    /// The bytes of free units.
    pub free_bytes: u64,
    /// The number of free extents.
    pub free_extents: u64,
    /// The batches in the log that opening will apply; the check does not read their contents.
    pub log_batches: u64,
}

/// The most findings that a report keeps.
const MAX_FINDINGS: usize = 1000;

impl CheckReport {
    /// Whether there are no findings and no damaged copies of nodes and of the map.
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

    /// Turns damage into a finding. Errors: all other errors.
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

/// Checks an evergreen without opening it, read-only. Damage is in the report.
///
/// Errors: those that prevent the check: no readable superblock, another device, errors of the
/// device. Cost: reads all nodes; memory for a path of the tree, and for each inode and name.
pub fn check(device: &Arc<dyn BlockDevice>) -> Result<CheckReport> {
    check_with(device, Contents::check_files)
}

/// Checks a store that has no file system.
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

/// Reads the log to its end; returns the number of batches.
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
