//! The independent check: reads an aggregate from its devices, at the last consistency point.
//!
//! It shares codecs, geometry, and the identification of drives and copies of the log with the
//! engine. It finds files by its own walk, counts for itself, and compares. It verifies:
//!
//! - Each reached block is the one that its pointer names, and is reached once, or once by each
//!   tree of a volume and its snapshots.
//! - Maps and bitmaps name exactly the reached blocks.
//! - Counts and lists of areas equal the counted values.
//! - Names, links and directories agree.
//! - Compressed groups are complete and decompressible, unless a part is in objects.
//! - Chunks of compacted blocks belong to the VVBNs in the maps, and are counted.
//! - Parity is the XOR of its stripe.

mod aggregate;
mod chunks;
mod compression_groups;
mod directory;
mod inodes;
mod log;
mod media;
mod objects;
mod snapshots;
mod top_areas;
mod volume;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
    sync::Arc,
};

use senesce_block::BlockDevice;
use senesce_objects::ObjectStore;

use crate::{Damage, error::Result, format::BLOCK, log::LogDevices, raid::Geometry};
use aggregate::Contents;
pub(crate) use media::Media;

/// A deviation from the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, in words: the drive, volume, file, block.
    pub place: String,
    /// The field, the found value, and the expected one.
    pub damage: Damage,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.damage)
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Findings in the order of the check; empty if the aggregate is clean.
    pub findings: Vec<Finding>,
    /// The number of further findings that were not kept.
    pub more_findings: u64,
    /// The consistency point that was checked.
    pub cp: u64,
    /// Drives that are missing, or were missing at the consistency point. If parity replaces them,
    /// their blocks were restored from the others, which is no finding.
    pub missing_drives: Vec<u32>,
    /// Reached blocks.
    pub blocks: u64,
    /// Volumes.
    pub volumes: u64,
    /// Snapshots of these volumes.
    pub snapshots: u64,
    /// Inodes of users, including those that hold attributes; without those of snapshots.
    pub inodes: u64,
    /// Pointers that name an old place. The container map has the new one.
    pub stale_pointers: u64,
    /// Objects that hold cold blocks.
    pub objects: u64,
    /// Blocks in these objects.
    pub cold_blocks: u64,
    /// Visits of cold blocks that were not checked, because the object store was not given or is
    /// away.
    pub cold_unread: u64,
    /// Objects that were not checked, because the given store could not be reached. After the first
    /// such answer the check sends no more requests. This is one finding.
    pub objects_unread: u64,
    /// Orphans: objects of this aggregate that no record knows. They were put at a loss of power,
    /// and may be deleted. This is no finding.
    pub orphan_objects: u64,
    /// Stripes whose parity was computed.
    pub stripes: u64,
    /// Operations in the log that opening will replay. The check does not apply them.
    pub log_operations: u64,
}

/// Findings that a report keeps, at most.
const MAX_FINDINGS: usize = 1000;

impl CheckReport {
    /// Whether there is no finding.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn find(&mut self, place: impl Into<String>, damage: Damage) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { place: place.into(), damage });
        } else {
            self.more_findings += 1;
        }
    }

    /// Reports groups with more missing drives than parity can replace. Their contents are lost,
    /// even if no file needs them. `held` is the number of stripes that each drive holds.
    fn find_too_many_missing(&mut self, geometry: &Geometry, held: &[u64]) {
        for (group, shape) in geometry.groups.iter().enumerate() {
            let is_of_it = |&number: &u32| geometry.group_of(number as usize) == group;
            let missing: Vec<u32> = self.missing_drives.iter().copied().filter(is_of_it).collect();
            let filled = |number: u32| {
                let (done, of) = (held[number as usize], shape.stripes);
                let is_part = done < of && !missing.contains(&number);
                is_part.then(|| format!(", and drive {number} holds {done} of {of} stripes"))
            };
            let filling: Vec<String> = (0..held.len() as u32).filter(is_of_it).filter_map(filled).collect();
            if missing.len() + filling.len() > usize::from(shape.parity) {
                let most = if shape.parity { "at most one: its parity" } else { "none: it has no parity" };
                let found = format!("{missing:?}{}", filling.concat());
                self.find(format!("RAID group {group}"), Damage::new("drives", "missing", found, most));
            }
        }
    }

    /// Reports a finding if two numbers differ that must be equal.
    pub(crate) fn expect(
        &mut self,
        place: impl FnOnce() -> String,
        structure: &'static str,
        field: &'static str,
        found: u64,
        expected: u64,
    ) {
        if found != expected {
            self.find(place(), Damage::new(structure, field, found, expected));
        }
    }
}

/// Checks an aggregate without opening it. Writes nothing. Damage is in the report.
///
/// Errors: the check cannot start, because of no labels, no superblock, devices of different
/// aggregates, or a failing device.
///
/// Cost: reads all drives completely for parity. Memory: about 40 bytes for each block of a volume,
/// twice that with snapshots.
pub fn check(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>) -> Result<CheckReport> {
    check_with(drives, log, None)
}

/// Like [`check`], with the store of the objects, each of which is read completely. Errors: also if
/// the store cannot list its objects, although it returned them.
pub fn check_with(
    drives: &[Arc<dyn BlockDevice>],
    log: impl Into<LogDevices>,
    objects: Option<&Arc<dyn ObjectStore>>,
) -> Result<CheckReport> {
    run(drives, &log.into(), objects, Stripes::All, None)
}

/// Like [`check_with`], with a choice of stripes, and with reports of progress.
pub fn check_telling(
    drives: &[Arc<dyn BlockDevice>],
    log: impl Into<LogDevices>,
    objects: Option<&Arc<dyn ObjectStore>>,
    stripes: Stripes,
    tell: Rc<dyn Fn(CheckProgress)>,
) -> Result<CheckReport> {
    run(drives, &log.into(), objects, stripes, Some(tell))
}

fn run(
    drives: &[Arc<dyn BlockDevice>],
    log: &LogDevices,
    objects: Option<&Arc<dyn ObjectStore>>,
    stripes: Stripes,
    tell: Option<media::Tell>,
) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let mut media = media::Media::open(drives, log, &mut report)?;
    media.tell = tell;
    let used = aggregate::check(&media, &mut report, objects)?;
    media.check_parity(&used, stripes, &mut report)?;
    Ok(report)
}

/// The stripes whose parity a check computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stripes {
    /// Stripes with a block in use: the cost is proportional to the stored bytes. A scrub reads the
    /// others.
    InUse,
    /// All stripes: the cost is proportional to the size of the drives.
    All,
}

/// The phases of a check, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPart {
    /// Blocks in use, by the trees that reach them.
    Blocks,
    /// Stripes of groups with parity.
    Stripes,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// The phase.
    pub part: CheckPart,
    /// Finished items of the phase.
    pub done: u64,
    /// All items of the phase, as far as their number is known.
    pub of: u64,
}

/// The slots of an aggregate's drives that its last consistency point uses, as drive and offset in
/// bytes. For tests that check which slots are written.
///
/// Errors: those of [`check`], and damage of any kind.
pub fn collect_used_slots(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>) -> Result<Vec<(usize, u64)>> {
    let mut report = CheckReport::default();
    let media = media::Media::open(drives, &log.into(), &mut report)?;
    let used = aggregate::check(&media, &mut report, None)?;
    match report.findings.into_iter().next() {
        Some(Finding { place, damage }) => Err(crate::Error::Damaged { place, damage }),
        None => Ok(used.iter().filter_map(|pvbn| media.slot_place(pvbn)).collect()),
    }
}

/// A set of numbers, most of which are neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    /// Bits of a block's size, by the number of the block.
    blocks: BTreeMap<u64, Box<[u64; WORDS]>>,
    count: u64,
}

const WORDS: usize = BLOCK / 8;
const BITS: u64 = 8 * BLOCK as u64;

impl Bits {
    /// Adds a number. Returns whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        let block = self.blocks.entry(number / BITS).or_insert_with(|| Box::new([0; WORDS]));
        let (word, mask) = (&mut block[(number % BITS / 64) as usize], 1 << (number % 64));
        let new = *word & mask == 0;
        *word |= mask;
        self.count += u64::from(new);
        new
    }

    /// Adds all numbers of another set.
    pub fn insert_all(&mut self, other: &Self) {
        for (number, words) in &other.blocks {
            let own = self.blocks.entry(*number).or_insert_with(|| Box::new([0; WORDS]));
            for (own, word) in own.iter_mut().zip(words.iter()) {
                self.count += u64::from((word & !*own).count_ones());
                *own |= word;
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.blocks.iter().flat_map(|(block, words)| (block * WORDS as u64..).zip(words.iter()));
        words.flat_map(|(at, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit))
    }

    /// The set that the blocks of a bitmap file describe.
    pub fn of_contents(contents: &Contents) -> Self {
        let mut bits = Self::default();
        for (&number, data) in contents {
            let mut words = Box::new([0; WORDS]);
            words.iter_mut().zip(data.as_chunks::<8>().0).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
            bits.count += words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            bits.blocks.insert(number, words);
        }
        bits
    }

    /// Reports every number that is in only one of the sets.
    pub fn compare(
        &self,
        reached: &Self,
        report: &mut CheckReport,
        field: &'static str,
        place: &dyn Fn(u64) -> String,
    ) {
        const NONE: &[u64; WORDS] = &[0; WORDS];
        let numbers: BTreeSet<u64> = self.blocks.keys().chain(reached.blocks.keys()).copied().collect();
        for number in numbers {
            let block = |of: &Self| of.blocks.get(&number).map_or(*NONE, |words| **words);
            for (at, (own, other)) in (number * WORDS as u64..).zip(block(self).into_iter().zip(block(reached))) {
                for bit in (0..64).filter(|bit| (own ^ other) >> bit & 1 == 1) {
                    let marked = own >> bit & 1;
                    report.find(place(at * 64 + bit), Damage::new("map", field, marked, 1 - marked));
                }
            }
        }
    }
}
