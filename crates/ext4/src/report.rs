//! What a reader says beside its result: whether the answer can be trusted.

use std::{collections::BTreeMap, fmt};

use crate::{Damage, Problem, Structure};

/// Something that a user of a result has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The journal waits to be replayed: the file system is mounted for writing now, or was not unmounted before the
    /// image was taken. Recent changes may be in the journal only.
    JournalNotReplayed,
    /// There is no mark of a clean unmount: mounted for writing without a journal, or never unmounted.
    NotUnmounted,
    /// The kernel or the checker recorded errors in this file system.
    ErrorsRecorded,
    /// Blocks may belong to several files (`shared_blocks`): sums over files exceed what is allocated.
    BlocksMayBeShared,
    /// Something was written between the beginning and the end of the reading: the answer mixes several moments.
    ChangedDuringReading {
        /// The superblock was written.
        superblock: bool,
        /// Groups in which blocks or inodes were allocated, freed or changed.
        groups: u32,
        /// The first of them.
        first_group: Option<u32>,
    },
    /// Structures that stayed damaged when they were read again; what they describe is missing from the answer.
    Damaged {
        /// The kind of structure.
        structure: Structure,
        /// Whether the contents were not looked at because the checksum was wrong.
        checksum: bool,
        /// How many.
        count: u64,
        /// The first of them.
        first: Damage,
    },
    /// The numbers of free blocks in group descriptors are not those of the bitmaps.
    FreeCountsDiffer {
        /// In how many groups.
        groups: u32,
        /// The first of them.
        first_group: u32,
        /// Free clusters by its descriptor.
        described: u64,
        /// Free clusters by its bitmap.
        counted: u64,
    },
    /// Directories whose order of listing is not known for certain: names that are not ASCII, in directories that
    /// ignore case, are folded by tables that this reader does not have.
    ListingOrderUncertain {
        /// How many.
        directories: u64,
        /// The first one's inode.
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
                write!(f, "the file system was written during the reading: {groups} group(s) changed")?;
                if let Some(group) = first_group {
                    write!(f, ", the first is group {group}")?;
                }
                if *superblock {
                    f.write_str(", and the superblock")?;
                }
                f.write_str("; the answer mixes several moments")
            }
            Self::Damaged { structure, count, first, .. } => {
                write!(f, "{count} damaged: {structure}; what they describe is missing. The first: {first}")
            }
            Self::FreeCountsDiffer { groups, first_group, described, counted } => write!(
                f,
                "the free space of {groups} group(s) is not what their descriptors say; the first is group \
                 {first_group}: {described} clusters described, {counted} counted"
            ),
            Self::ListingOrderUncertain { directories, first_inode } => write!(
                f,
                "the order of {directories} directories that ignore case is not certain; the first is inode {first_inode}"
            ),
        }
    }
}

/// What was read, in numbers, and what to know about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What a user of the result has to know; empty if the answer is exact.
    pub warnings: Vec<Warning>,
    /// Files, directories and symlinks handed over.
    pub inodes: u64,
    /// Devices, sockets and pipes, which have no extents: not handed over.
    pub special: u64,
    /// Inodes in use without a name: deleted while open, or lost. Not handed over.
    pub unlinked: u64,
    /// How often the reading was begun; more than once if the device changed meanwhile.
    pub attempts: u32,
}

impl Report {
    /// Whether the file system was seen to change during the reading.
    pub fn has_changed(&self) -> bool {
        self.warnings.iter().any(|warning| matches!(warning, Warning::ChangedDuringReading { .. }))
    }
}

/// Damage, counted by kind, with the first of each kind.
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

    /// Takes over what was counted later.
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
