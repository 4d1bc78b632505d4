//! One die: its translation layer, what it still has to do, and when it is free.

use std::collections::{BTreeMap, VecDeque};

use senesce_core::Nanos;
use senesce_device::{Collected, Ftl};

use super::{Lane, SsdCounts, SsdSpec};

/// What a die does when no read is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A page of the host's blocks comes over the channel and is programmed.
    Program {
        /// Its number on the die.
        page: u32,
    },
    /// Collection reads a page.
    MoveRead,
    /// Collection programs a page.
    MoveProgram,
    /// A block is erased.
    Erase,
}

#[derive(Debug)]
pub(super) struct Die {
    index: u64,
    pub ftl: Ftl,
    free: Nanos,
    /// In this order, each not before its time.
    tasks: VecDeque<(Nanos, Task)>,
    /// Blocks appended to the page that is not full yet.
    open_blocks: u32,
    /// Pages that are read from the cache: until their program ends, or for ever until it begins.
    buffered: BTreeMap<u32, Nanos>,
    /// Ends of the programs that have begun and nobody has asked for.
    pub begun: Vec<Nanos>,
}

impl Die {
    pub fn new(spec: &SsdSpec, index: u32) -> Self {
        let ftl = Ftl::new(spec.blocks_per_die(), spec.blocks_per_erase(), f64::from(spec.spare_per_mille) / 1000.0);
        Self {
            index: u64::from(index),
            ftl: ftl.in_groups(spec.page_blocks),
            free: Nanos(0),
            tasks: VecDeque::new(),
            open_blocks: 0,
            buffered: BTreeMap::new(),
            begun: Vec::new(),
        }
    }

    /// Takes a block of the host; gives what is to be done because of it, and what was collected.
    pub fn write(&mut self, local: u32, spec: &SsdSpec) -> (Vec<Task>, Collected) {
        let per_page = spec.page_blocks;
        let collected = self.ftl.write(local);
        let mut tasks = Vec::new();
        self.open_blocks += 1;
        // Where collection began at once the block has not moved: only full blocks are collected, and not its own.
        let page = self.ftl.place(local).map_or(0, |at| at / per_page);
        self.buffered.insert(page, Nanos(u64::MAX));
        if self.open_blocks >= per_page {
            self.open_blocks = 0;
            tasks.push(Task::Program { page });
        }
        if collected.erased_blocks > 0 {
            tasks.extend((0..collected.read_groups).map(|_| Task::MoveRead));
            let moved = u64::from(self.open_blocks) + collected.moved_pages;
            tasks.extend((0..moved / u64::from(per_page)).map(|_| Task::MoveProgram));
            self.open_blocks = (moved % u64::from(per_page)) as u32;
            tasks.extend((0..collected.erased_blocks).map(|_| Task::Erase));
        }
        (tasks, collected)
    }

    /// Adds a task that can begin at `now`.
    pub fn queue(&mut self, now: Nanos, task: Task) {
        self.tasks.push_back((now, task));
    }

    /// When the next task would begin; never without one.
    pub fn next_start(&self) -> Nanos {
        self.tasks.front().map_or(Nanos(u64::MAX), |&(ready, _)| ready.max(self.free))
    }

    /// Begins all tasks that begin before `until` if no read comes; requests that come later come after `now`.
    pub fn settle(&mut self, until: Nanos, now: Nanos, spec: &SsdSpec, channels: &mut [Lane], counts: &mut SsdCounts) {
        while self.next_start() < until {
            self.run_next(now, spec, channels, counts);
        }
    }

    /// Begins the next task; requests that come later come after `now`.
    pub fn run_next(&mut self, now: Nanos, spec: &SsdSpec, channels: &mut [Lane], counts: &mut SsdCounts) {
        let Some((ready, task)) = self.tasks.pop_front() else { return };
        let start = ready.max(self.free);
        match task {
            Task::Program { page } => {
                let channel = (self.index % channels.len() as u64) as usize;
                let time = spec.channel_time(u64::from(spec.page_blocks) * super::BLOCK);
                // The die waits for its data; that is no time in which it is busy.
                let there = channels[channel].reserve(now.min(start), start, time);
                let end = self.occupy(there, spec.page_program, counts);
                counts.page_programs += 1;
                self.buffered.retain(|_, until| *until > now);
                self.buffered.insert(page, end);
                self.begun.push(end);
            }
            Task::MoveRead => drop(self.occupy(start, spec.page_read, counts)),
            Task::MoveProgram => {
                counts.page_programs += 1;
                self.occupy(start, spec.page_program, counts);
            }
            Task::Erase => drop(self.occupy(start, spec.block_erase, counts)),
        }
    }

    /// Keeps the die busy from `at` or when it is free; gives the end.
    pub fn occupy(&mut self, at: Nanos, time: Nanos, counts: &mut SsdCounts) -> Nanos {
        self.free = Nanos(at.max(self.free).0 + time.0);
        counts.die_busy += time.0;
        self.free
    }

    /// The page a block is read from; none if it was never written, or is still in the cache.
    pub fn page_on_flash(&self, local: u32, per_page: u32, now: Nanos) -> Option<u32> {
        let page = self.ftl.place(local)? / per_page;
        self.buffered.get(&page).is_none_or(|until| *until <= now).then_some(page)
    }
}
