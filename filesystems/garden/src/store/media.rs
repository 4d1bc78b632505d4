//! The medium of each block in a *mixed* aggregate, which has disks, and flash as a tier before
//! them.
//!
//! Random writes and all metadata go to flash, because disks would seek for them, now and at the
//! next overwrite. Sequential writes, block after block of a file, go to disks. Disks are good at
//! these, and a later overwrite frees whole areas instead of single blocks. If a medium is full,
//! the other one is used. Blocks on flash that are not written any more move to areas of their own
//! on disks later (`demote.rs`).

use std::ops::{Index, IndexMut, Range};

use super::{AGGREGATE, Key, Store, space::Cursor, volume};
use crate::Medium;

/// Blocks of a run that are checked in advance.
const AHEAD: u64 = 256;

/// A value for each medium.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerMedium<T>([T; 2]);

impl<T> Index<Medium> for PerMedium<T> {
    type Output = T;

    fn index(&self, medium: Medium) -> &T {
        match medium {
            Medium::Hdd => &self.0[0],
            Medium::Ssd => &self.0[1],
        }
    }
}

impl<T> IndexMut<Medium> for PerMedium<T> {
    fn index_mut(&mut self, medium: Medium) -> &mut T {
        match medium {
            Medium::Hdd => &mut self.0[0],
            Medium::Ssd => &mut self.0[1],
        }
    }
}

/// A sequence of places that blocks are written to, area by area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Blocks for disks, except demoted blocks.
    Disks,
    /// Blocks for flash.
    Flash,
    /// Single blocks that leave the flash for the disks. Programs overwrite them one by one. In
    /// areas of their own they leave no holes between the blocks of a sequential stream.
    Demoted,
}

impl Lane {
    const ALL: [Self; 3] = [Self::Disks, Self::Flash, Self::Demoted];

    /// The lane of blocks for a medium.
    pub fn to(medium: Medium) -> Self {
        match medium {
            Medium::Hdd => Self::Disks,
            Medium::Ssd => Self::Flash,
        }
    }

    /// The lane of a block that moves from one medium to another.
    pub fn between(from: Medium, to: Medium) -> Self {
        if (from, to) == (Medium::Ssd, Medium::Hdd) { Self::Demoted } else { Self::to(to) }
    }

    /// The medium of the lane.
    pub fn medium(self) -> Medium {
        match self {
            Self::Disks | Self::Demoted => Medium::Hdd,
            Self::Flash => Medium::Ssd,
        }
    }
}

/// The position of each lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursors([Option<Cursor>; 3]);

impl Cursors {
    /// All positions.
    pub fn iter(&self) -> impl Iterator<Item = &Cursor> {
        self.0.iter().flatten()
    }

    /// Leaves the areas of matching positions.
    pub fn leave(&mut self, is_left: impl Fn(&Cursor) -> bool) {
        for at in &mut self.0 {
            at.take_if(|at| is_left(at));
        }
    }
}

impl Index<Lane> for Cursors {
    type Output = Option<Cursor>;

    fn index(&self, lane: Lane) -> &Option<Cursor> {
        &self.0[lane as usize]
    }
}

impl IndexMut<Lane> for Cursors {
    fn index_mut(&mut self, lane: Lane) -> &mut Option<Cursor> {
        &mut self.0[lane as usize]
    }
}

/// Consecutive blocks of a file that the running consistency point writes to disks.
#[derive(Clone, Debug)]
pub(super) struct Run {
    space: u32,
    file: u64,
    blocks: Range<u64>,
}

impl Store {
    /// The medium for a dirty block. Only used in mixed aggregates.
    pub(super) fn choose_medium(&mut self, key: Key) -> Medium {
        let is_contents = key.space() != AGGREGATE && key.level() == 0 && key.file() >= volume::FIRST_USER;
        if !self.raid.geometry.is_mixed() || !is_contents {
            return Medium::Ssd;
        }
        let before = self.alloc.run.take().filter(|run| (run.space, run.file) == (key.space(), key.file()));
        if let Some(run) = &before
            && run.blocks.contains(&key.index())
        {
            self.alloc.run = before;
            return Medium::Hdd;
        }
        let goes_on = before.is_some_and(|run| run.blocks.end == key.index());
        let count = self.count_run(key);
        // A shorter run is no chain of a disk, and may be a random write.
        if count < self.raid.geometry.tetris_stripes && !goes_on {
            return Medium::Ssd;
        }
        self.alloc.run = Some(Run { space: key.space(), file: key.file(), blocks: key.index()..key.index() + count });
        Medium::Hdd
    }

    /// Lets the next consistency point return to the wanted medium, if that has free blocks again.
    pub(super) fn leave_other_media(&mut self) {
        for lane in Lane::ALL {
            let pool = self.raid.geometry.pool(lane.medium());
            let groups = &self.raid.geometry.groups;
            self.alloc.current[lane].take_if(|at| groups[at.group].medium != pool);
        }
    }

    /// The number of consecutive dirty blocks of a file from this one on, itself included, up to a
    /// limit.
    fn count_run(&self, key: Key) -> u64 {
        let (first, last) = (key.neighbour(key.index() + 1), key.neighbour(key.index() + AHEAD - 1));
        let waiting = self.dirty.range(first, last).filter(|key| !self.fakes.contains_key(key));
        1 + waiting.zip(key.index() + 1..).take_while(|(found, next)| found.index() == *next).count() as u64
    }
}
