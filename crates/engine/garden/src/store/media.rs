//! Which medium a block goes to where there are disks and flash: a *mixed* aggregate, whose flash is a tier before its disks.
//!
//! What is written here and there goes to flash, and so do all metadata: disks would seek for it, now and when the place is written
//! again. What is written in order, one block of a file behind the other, goes to disks, the first time or again: they are good at that, and when it is
//! written over the next time whole areas become free, where single blocks would leave holes. Where a medium has no block left, the other one's are
//! taken. What is on flash and not written any more leaves it for the disks later (`demote.rs`).

use std::ops::{Index, IndexMut, Range};

use super::{AGGREGATE, Key, Store, volume};
use crate::Medium;

/// Blocks of a run that are looked at ahead.
const AHEAD: u64 = 256;

/// Something for each medium.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PerMedium<T>([T; 2]);

impl<T> PerMedium<T> {
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

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

/// Blocks of a file that the running consistency point writes one behind the other, and that go to disks.
#[derive(Clone, Debug)]
pub(super) struct Run {
    space: u32,
    file: u64,
    blocks: Range<u64>,
}

impl Store {
    /// The medium that a dirty block is to be written to; what it says counts in mixed aggregates only.
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
        // Shorter ones are no chain of a disk, and may be what is written here and there.
        if count < self.raid.geometry.tetris_stripes && !goes_on {
            return Medium::Ssd;
        }
        self.alloc.run = Some(Run { space: key.space(), file: key.file(), blocks: key.index()..key.index() + count });
        Medium::Hdd
    }

    /// The next consistency point takes what it wants from where that is, if there is some again.
    pub(super) fn leave_other_media(&mut self) {
        for medium in Medium::ALL {
            let pool = self.raid.geometry.pool(medium);
            let groups = &self.raid.geometry.groups;
            self.alloc.current[medium].take_if(|at| groups[at.group].medium != pool);
        }
    }

    /// How many blocks of a file wait to be written from this one on, itself included; some at most.
    fn count_run(&self, key: Key) -> u64 {
        let (first, last) = (key.neighbour(key.index() + 1), key.neighbour(key.index() + AHEAD - 1));
        let waiting = self.dirty.range(first, last).filter(|key| !self.fakes.contains_key(key));
        1 + waiting.zip(key.index() + 1..).take_while(|(found, next)| found.index() == *next).count() as u64
    }
}
