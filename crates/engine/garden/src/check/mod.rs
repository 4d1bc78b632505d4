//! The independent check: reads an aggregate from its devices, as the last consistency point has it.
//!
//! It shares the codecs with the engine and nothing else: it finds files by its own walk, counts for itself, and compares.
//! What it holds to be true: every block that is reached is the one that its pointer says, and is reached once; maps and
//! bitmaps name exactly the blocks that are reached; counts and lists of areas are what counting gives; names, links and directories agree;
//! parity is the XOR of its stripe.

mod aggregate;
mod directory;
mod inodes;
mod media;
mod top_areas;
mod volume;

use std::{fmt, sync::Arc};

use senesce_block::BlockDevice;

use crate::{Damage, error::Result};

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
    /// The consistency point that was looked at.
    pub cp: u64,
    /// Drives that are missing, or were when the consistency point was made; their blocks were put together from the
    /// others. That is no finding.
    pub missing_drives: Vec<u32>,
    /// Blocks that are reached.
    pub blocks: u64,
    /// Volumes.
    pub volumes: u64,
    /// Inodes of users, with those that hold attributes.
    pub inodes: u64,
    /// Pointers that name an old place, which the container map puts right.
    pub stale_pointers: u64,
    /// Stripes whose parity was computed.
    pub stripes: u64,
    /// Operations in the log that opening will do again; the check does not see them.
    pub log_operations: u64,
}

impl CheckReport {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn find(&mut self, place: impl Into<String>, damage: Damage) {
        self.findings.push(Finding { place: place.into(), damage });
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
/// Cost: reads all drives whole, for parity; memory: some 40 bytes for each block of a volume.
pub fn check(drives: &[Arc<dyn BlockDevice>], log: &Arc<dyn BlockDevice>) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let media = media::Media::open(drives, log, &mut report)?;
    aggregate::check(&media, &mut report);
    media.check_parity(&mut report)?;
    Ok(report)
}

/// The slots of an aggregate's drives that its last consistency point uses, as drive and offset in bytes.
///
/// For tests that watch over what is written. Errors: as [`check`], and damage of any kind.
pub fn collect_used_slots(drives: &[Arc<dyn BlockDevice>], log: &Arc<dyn BlockDevice>) -> Result<Vec<(usize, u64)>> {
    let mut report = CheckReport::default();
    let media = media::Media::open(drives, log, &mut report)?;
    let used = aggregate::check(&media, &mut report);
    match report.findings.into_iter().next() {
        Some(Finding { place, damage }) => Err(crate::Error::Damaged { place, damage }),
        None => Ok(used.iter().filter_map(|pvbn| media.slot_place(pvbn)).collect()),
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    /// Adds a number; says whether it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        let (word, mask) = ((number / 64) as usize, 1 << (number % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & mask == 0;
        self.words[word] |= mask;
        self.count += u64::from(new);
        new
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..)
            .zip(&self.words)
            .flat_map(|(at, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit))
    }

    /// The set that a bitmap file's bytes describe.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let count = words.iter().map(|word| u64::from(word.count_ones())).sum();
        Self { words, count }
    }

    /// Notes every number that is in one of the sets only.
    pub fn compare(
        &self,
        reached: &Self,
        report: &mut CheckReport,
        field: &'static str,
        place: &dyn Fn(u64) -> String,
    ) {
        for at in 0..self.words.len().max(reached.words.len()) {
            let word = |of: &Self| of.words.get(at).copied().unwrap_or(0);
            let differ = word(self) ^ word(reached);
            for bit in (0..64).filter(|bit| differ >> bit & 1 == 1) {
                let marked = word(self) >> bit & 1;
                report.find(place(at as u64 * 64 + bit), Damage::new("map", field, marked, 1 - marked));
            }
        }
    }
}
