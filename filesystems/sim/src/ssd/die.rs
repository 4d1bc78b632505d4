//! One die: its translation layer, its pending tasks, and the time when it is free.

use std::collections::{BTreeMap, VecDeque};

use senesce_core::Nanos;
use senesce_device::{Collected, Ftl};

use super::{Lane, SsdCounts, SsdSpec};

/// A task that a die does when no read is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// A page of the host's blocks comes over the channel and is programmed.
    Program {
        /// Its number on the die.
        page: u32,
    },
    /// Garbage collection reads a page.
    MoveRead,
    /// Garbage collection programs a page.
    MoveProgram,
    /// A block is erased.
    Erase,
}

#[derive(Debug)]
pub(super) struct Die {
    index: u64,
    pub ftl: Ftl,
    free: Nanos,
    /// Tasks in order, each with its earliest start.
    tasks: VecDeque<(Nanos, Task)>,
    /// Blocks in the page that is not full yet.
    open_blocks: u32,
    /// Pages that are read from the cache until the end of their program. Before the program
    /// starts, the end is unknown.
    buffered: BTreeMap<u32, Nanos>,
    /// Ends of started programs that were not collected yet.
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

    /// Writes a block of the host. Returns the resulting tasks, and the collected blocks.
    pub fn write(&mut self, local: u32, spec: &SsdSpec) -> (Vec<Task>, Collected) {
        let per_page = spec.page_blocks;
        let collected = self.ftl.write(local);
        let mut tasks = Vec::new();
        self.open_blocks += 1;
        // Even if garbage collection started at once, the block has not moved: only full erase
        // blocks are collected, and not its own.
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

    /// Adds a task that can start at `now`.
    pub fn queue(&mut self, now: Nanos, task: Task) {
        self.tasks.push_back((now, task));
    }

    /// The start of the next task; the latest time if there is none.
    pub fn next_start(&self) -> Nanos {
        self.tasks.front().map_or(Nanos(u64::MAX), |&(ready, _)| ready.max(self.free))
    }

    /// Starts all tasks that start before `until` if no read arrives. Later requests arrive after
    /// `now`.
    pub fn settle(&mut self, until: Nanos, now: Nanos, spec: &SsdSpec, channels: &mut [Lane], counts: &mut SsdCounts) {
        while self.next_start() < until {
            self.run_next(now, spec, channels, counts);
        }
    }

    /// Starts the next task. Later requests arrive after `now`.
    pub fn run_next(&mut self, now: Nanos, spec: &SsdSpec, channels: &mut [Lane], counts: &mut SsdCounts) {
        let Some((ready, task)) = self.tasks.pop_front() else { return };
        let start = ready.max(self.free);
        match task {
            Task::Program { page } => {
                let channel = (self.index % channels.len() as u64) as usize;
                let time = spec.channel_time(u64::from(spec.page_blocks) * super::BLOCK);
                // The die waits for its data; it does not count as busy meanwhile.
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

    /// Keeps the die busy from `at`, or from the time when it is free; returns the end.
    pub fn occupy(&mut self, at: Nanos, time: Nanos, counts: &mut SsdCounts) -> Nanos {
        self.free = Nanos(at.max(self.free).0 + time.0);
        counts.die_busy += time.0;
        self.free
    }

    /// The page on flash that holds a block; none if it was never written, or is still in the
    /// cache.
    pub fn page_on_flash(&self, local: u32, per_page: u32, now: Nanos) -> Option<u32> {
        let page = self.ftl.place(local)? / per_page;
        self.buffered.get(&page).is_none_or(|until| *until <= now).then_some(page)
    }
}
