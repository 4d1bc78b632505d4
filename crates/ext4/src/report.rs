//! The report beside a result: whether the result can be trusted.

use std::{collections::BTreeMap, fmt};

use crate::{Damage, Problem, Structure};

/// A limit of a result that its user has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The journal is not replayed: the file system is mounted for writing now, or was not
    /// unmounted before the image was copied. Recent changes may be in the journal only.
    JournalNotReplayed,
    /// The mark of a clean unmount is missing: mounted for writing without a journal, or never
    /// unmounted.
    NotUnmounted,
    /// The kernel or the checker recorded errors in this file system.
    ErrorsRecorded,
    /// Blocks may belong to several files (`shared_blocks`), so sums over files exceed the
    /// allocated space.
    BlocksMayBeShared,
    /// The device was written during the scan, so the result mixes several states.
    ChangedDuringReading {
        /// The superblock was written.
        superblock: bool,
        /// Groups in which blocks or inodes were allocated, freed or changed.
        groups: u32,
        /// The first of them.
        first_group: Option<u32>,
    },
    /// Structures that stayed damaged on retries. What they describe is missing from the result.
    Damaged {
        /// The kind of structure.
        structure: Structure,
        /// Whether the checksum was wrong, so that the contents were not read.
        checksum: bool,
        /// The number of such structures.
        count: u64,
        /// The first of them.
        first: Damage,
    },
    /// The numbers of free blocks in group descriptors differ from those of the bitmaps.
    FreeCountsDiffer {
        /// The number of such groups.
        groups: u32,
        /// The first of them.
        first_group: u32,
        /// Free clusters in its descriptor.
        described: u64,
        /// Free clusters in its bitmap.
        counted: u64,
    },
    /// Directories whose listing order is not certain: they ignore case and have names that are not
    /// ASCII, for which this reader has no folding tables.
    ListingOrderUncertain {
        /// The number of such directories.
        directories: u64,
        /// The inode of the first one.
        first_inode: u32,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JournalNotReplayed => f.write_str(
                "the journal is not replayed: the file system is mounted for writing, or was not unmounted; \
                 recent changes may be missing",
            ),
            Self::NotUnmounted => f.write_str(
                "the file system is mounted for writing, or was not unmounted; recent changes may be missing",
            ),
            Self::ErrorsRecorded => f.write_str("the file system has errors on record; check it with e2fsck"),
            Self::BlocksMayBeShared => f.write_str("files may share blocks, which are counted once for each file"),
            Self::ChangedDuringReading { superblock, groups, first_group } => {
                write!(f, "the file system was written during the scan: {groups} group(s) changed")?;
                if let Some(group) = first_group {
                    write!(f, ", the first is group {group}")?;
                }
                if *superblock {
                    f.write_str(", and the superblock")?;
                }
                f.write_str("; the result mixes several states")
            }
            Self::Damaged { structure, count, first, .. } => {
                write!(f, "{count} damaged: {structure}; what they describe is missing. The first: {first}")
            }
            Self::FreeCountsDiffer { groups, first_group, described, counted } => write!(
                f,
                "the free space of {groups} group(s) differs from their descriptors; the first is group \
                 {first_group}: {described} clusters described, {counted} counted"
            ),
            Self::ListingOrderUncertain { directories, first_inode } => write!(
                f,
                "the order of {directories} directories that ignore case is not certain; the first is inode {first_inode}"
            ),
        }
    }
}

/// The counts and warnings of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Limits of the result; empty if it is exact.
    pub warnings: Vec<Warning>,
    /// Files, directories and symlinks that were returned.
    pub inodes: u64,
    /// Devices, sockets and pipes. They have no extents and were not returned.
    pub special: u64,
    /// Inodes in use without a name: deleted while open, or lost. They were not returned.
    pub unlinked: u64,
    /// The number of attempts; more than one if the device changed during an attempt.
    pub attempts: u32,
}

impl Report {
    /// Whether the file system changed during the scan.
    pub fn has_changed(&self) -> bool {
        self.warnings.iter().any(|warning| matches!(warning, Warning::ChangedDuringReading { .. }))
    }
}

/// Damage counted by kind, with the first of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct DamageCounts(BTreeMap<(Structure, bool), (u64, Damage)>);

impl DamageCounts {
    pub(crate) fn add(&mut self, damage: Damage) {
        self.add_many(1, damage);
    }

    fn add_many(&mut self, count: u64, first: Damage) {
        let key = (first.structure, matches!(first.problem, Problem::Checksum { .. }));
        self.0.entry(key).and_modify(|entry| entry.0 += count).or_insert((count, first));
    }

    /// Adds the counts of a later part.
    pub(crate) fn append(&mut self, later: Self) {
        for (count, first) in later.0.into_values() {
            self.add_many(count, first);
        }
    }

    pub(crate) fn into_warnings(self) -> impl Iterator<Item = Warning> {
        self.0.into_iter().map(|((structure, checksum), (count, first))| Warning::Damaged {
            structure,
            checksum,
            count,
            first,
        })
    }
}
