//! The independent check: reads an aggregate from its devices, as the last consistency point has it.
//!
//! It shares the codecs with the engine and nothing else: it finds files by its own walk, counts for itself, and compares.
//! What it holds to be true: every block that is reached is the one that its pointer says, and is reached once (by the tree of
//! a volume and those of its snapshots once each); maps and
//! bitmaps name exactly the blocks that are reached; counts and lists of areas are what counting gives; names, links and directories agree;
//! compressed groups are whole and can be decompressed, unless a part of them lies in objects; chunks of compacted blocks are whose the maps say, and counted; parity is the XOR of its stripe.

mod aggregate;
mod chunks;
mod directory;
mod groups;
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

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, in words: the drive, volume, file, block.
    pub place: String,
    /// What of it, what was found, what was expected.
    pub damage: Damage,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.damage)
    }
}

/// What a check saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is not as it must be, in the order in which it was found; nothing if the aggregate is clean.
    pub findings: Vec<Finding>,
    /// How many more there were than are kept.
    pub more_findings: u64,
    /// The consistency point that was looked at.
    pub cp: u64,
    /// Drives that are missing, or were when the consistency point was made. If parity makes up for them their blocks were put together
    /// from the others, and that is no finding.
    pub missing_drives: Vec<u32>,
    /// Blocks that are reached.
    pub blocks: u64,
    /// Volumes.
    pub volumes: u64,
    /// Snapshots of them.
    pub snapshots: u64,
    /// Inodes of users, with those that hold attributes; not those of snapshots.
    pub inodes: u64,
    /// Pointers that name an old place, which the container map puts right.
    pub stale_pointers: u64,
    /// Objects that hold cold blocks.
    pub objects: u64,
    /// Blocks that lie in them.
    pub cold_blocks: u64,
    /// Of these, how often one was met that was not looked at, because the object store was not given, or away.
    pub cold_unread: u64,
    /// Objects that were not looked at, because the store that was given could not be reached: from the first such answer on it was not
    /// asked again. That is one finding.
    pub objects_unread: u64,
    /// Objects of this aggregate that it does not know: they were put when power was lost, and may be deleted. That is no finding.
    pub orphan_objects: u64,
    /// Stripes whose parity was computed.
    pub stripes: u64,
    /// Operations in the log that opening will do again; the check does not see them.
    pub log_operations: u64,
}

/// Findings that a report keeps.
const MAX_FINDINGS: usize = 1000;

impl CheckReport {
    /// Whether nothing was found.
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

    /// Notes the drives that are missing in groups whose parity does not make up for them: what they held is lost, even if it is
    /// nothing that a file needs. `held`: stripes that each drive holds, unless all.
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

    /// Notes it if two numbers that must be equal are not.
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

/// Checks an aggregate without opening it; nothing is written. Damage is in the report.
///
/// Errors: what keeps from looking at all: no labels, no superblock, devices of different aggregates, devices' errors.
/// Cost: reads all drives whole, for parity; memory: some 40 bytes for each block of a volume, twice
/// that with snapshots.
pub fn check(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>) -> Result<CheckReport> {
    check_with(drives, log, None)
}

/// The same with the store of its objects, each of which is read whole. Errors: also if the store does
/// not say what it has, though it gave the objects.
pub fn check_with(
    drives: &[Arc<dyn BlockDevice>],
    log: impl Into<LogDevices>,
    objects: Option<&Arc<dyn ObjectStore>>,
) -> Result<CheckReport> {
    run(drives, &log.into(), objects, Stripes::All, None)
}

/// The same with a choice of stripes, and reports progress.
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
    /// Those that hold a block in use: the cost grows with the stored bytes. A scrub reads the others.
    InUse,
    /// All: the cost grows with the drives.
    All,
}

/// What a check goes through, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPart {
    /// Blocks in use, by the trees that reach them.
    Blocks,
    /// Stripes of groups with parity.
    Stripes,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// In what.
    pub part: CheckPart,
    /// So many of it are done.
    pub done: u64,
    /// As far as it is known how many there are.
    pub of: u64,
}

/// The slots of an aggregate's drives that its last consistency point uses, as drive and offset in bytes.
///
/// For tests that watch over what is written. Errors: as [`check`], and damage of any kind.
pub fn collect_used_slots(drives: &[Arc<dyn BlockDevice>], log: impl Into<LogDevices>) -> Result<Vec<(usize, u64)>> {
    let mut report = CheckReport::default();
    let media = media::Media::open(drives, &log.into(), &mut report)?;
    let used = aggregate::check(&media, &mut report, None)?;
    match report.findings.into_iter().next() {
        Some(Finding { place, damage }) => Err(crate::Error::Damaged { place, damage }),
        None => Ok(used.iter().filter_map(|pvbn| media.slot_place(pvbn)).collect()),
    }
}

/// A set of numbers, most of them neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    /// As many bits as a block has, by the number of the block.
    blocks: BTreeMap<u64, Box<[u64; WORDS]>>,
    count: u64,
}

const WORDS: usize = BLOCK / 8;
const BITS: u64 = 8 * BLOCK as u64;

impl Bits {
    /// Adds a number; says whether it is new.
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

    /// Notes every number that is in one of the sets only.
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
