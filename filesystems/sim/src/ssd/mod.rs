//! An SSD in blocks of 4 KiB: pages of several blocks, and parallel dies with a translation layer
//! each.
//!
//! It uses the constants, the translation layer and the formula of `senesce-device`, and extends
//! its model:
//! - The translation layer maps blocks, not pages. A page holds any blocks that were written one
//!   after the other. So a run of blocks that was written at once needs one read per page, and a
//!   run that was written in pieces needs more.
//! - Reads go before programs, moves and erases that have not started. Started ones are not
//!   suspended.
//! - Garbage collection consists of many short tasks of its die, not of one long task.
//! - The write cache survives a power loss: a flush costs only its command.
//!
//! Not modelled: wear levelling, error correction and retries, planes that must use equal pages, a
//! map that does not fit into memory, suspended programs, pseudo-SLC regions, temperature.

mod data_path;
mod die;
mod spec;

use std::{cmp::Reverse, collections::BinaryHeap};

use senesce_core::{BlockOp, Nanos, Rng, Seed};
use serde::{Deserialize, Serialize};

use crate::Error;
use data_path::Lane;
use die::{Die, Task};
pub use spec::{SsdFill, SsdSpec};

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// An SSD in use.
#[derive(Debug)]
pub struct Ssd {
    spec: SsdSpec,
    dies: Vec<Die>,
    channels: Vec<Lane>,
    link: Lane,
    controller_free: Nanos,
    /// Ends of the programs whose pages are still in the cache.
    programs: BinaryHeap<Reverse<Nanos>>,
    /// Pages in the cache whose program has not started.
    cached: u32,
    counts: SsdCounts,
}

/// Counters of an SSD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsdCounts {
    /// Blocks written by the host.
    pub written: u64,
    /// Blocks that garbage collection moved.
    pub moved: u64,
    /// Pages read for the host.
    pub page_reads: u64,
    /// Pages programmed, for host and garbage collection.
    pub page_programs: u64,
    /// Erase blocks erased.
    pub erases: u64,
    /// Sum of the busy times of all dies, ns.
    pub die_busy: u64,
}

impl SsdCounts {
    /// Write amplification: blocks programmed / blocks written; none before the first write.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.written > 0).then(|| (self.written + self.moved) as f64 / self.written as f64)
    }

    /// The sum of these counters and those of another drive.
    pub fn plus(&self, other: &SsdCounts) -> SsdCounts {
        SsdCounts {
            written: self.written + other.written,
            moved: self.moved + other.moved,
            page_reads: self.page_reads + other.page_reads,
            page_programs: self.page_programs + other.page_programs,
            erases: self.erases + other.erases,
            die_busy: self.die_busy + other.die_busy,
        }
    }

    /// The difference to `earlier`.
    pub fn since(&self, earlier: &SsdCounts) -> SsdCounts {
        SsdCounts {
            written: self.written - earlier.written,
            moved: self.moved - earlier.moved,
            page_reads: self.page_reads - earlier.page_reads,
            page_programs: self.page_programs - earlier.page_programs,
            erases: self.erases - earlier.erases,
            die_busy: self.die_busy - earlier.die_busy,
        }
    }
}

impl Ssd {
    /// An idle drive of this description. Errors: those of [`SsdSpec::check`]. Cost: that of the
    /// writes that fill it.
    pub fn new(spec: &SsdSpec, fill: SsdFill) -> Result<Self, Error> {
        spec.check()?;
        let dies = (0..spec.dies()).map(|index| Die::new(spec, index)).collect();
        let mut ssd = Self {
            spec: spec.clone(),
            dies,
            channels: vec![Lane::default(); spec.channels as usize],
            link: Lane::default(),
            controller_free: Nanos(0),
            programs: BinaryHeap::new(),
            cached: 0,
            counts: SsdCounts::default(),
        };
        ssd.fill(fill);
        Ok(ssd)
    }

    fn fill(&mut self, fill: SsdFill) {
        if fill == SsdFill::Erased {
            return;
        }
        for block in 0..self.spec.blocks {
            let (die, local) = self.locate(block);
            self.dies[die].ftl.write(local);
        }
        if let SsdFill::Random { rounds, seed } = fill {
            self.overwrite_at_random(u64::from(rounds) * self.spec.blocks, seed);
        }
    }

    fn overwrite_at_random(&mut self, writes: u64, seed: Seed) {
        let mut rng = Rng::for_purpose(seed, "used flash");
        for _ in 0..writes {
            let (die, local) = self.locate(rng.below(self.spec.blocks));
            self.dies[die].ftl.write(local);
        }
    }

    /// Writes blocks without using time, to bring the drive to a used state. Blocks beyond the end
    /// wrap around.
    pub fn prime(&mut self, block: u64, blocks: u32) {
        for block in block..block + u64::from(blocks) {
            let (die, local) = self.locate(block % self.spec.blocks);
            self.dies[die].ftl.write(local);
        }
    }

    /// The counters since it was built.
    pub fn counts(&self) -> SsdCounts {
        self.counts
    }

    /// The busy time of the dies since `earlier`, divided by their total time. `time` is the
    /// elapsed time.
    pub fn die_utilisation(&self, earlier: &SsdCounts, time: Nanos) -> f64 {
        let all = time.0 as f64 * self.dies.len() as f64;
        if all == 0.0 { 0.0 } else { self.counts.since(earlier).die_busy as f64 / all }
    }

    /// Serves a request for `blocks` blocks from `block` on, which arrives at `now`; returns its
    /// completion.
    ///
    /// Time must not go backwards from one request to the next. Blocks beyond the end wrap around.
    pub fn serve(&mut self, op: BlockOp, block: u64, blocks: u32, now: Nanos) -> Nanos {
        let ready = Nanos(now.max(self.controller_free).0 + self.spec.command.0);
        self.controller_free = ready;
        match op {
            BlockOp::Flush => ready,
            BlockOp::Discard => {
                for block in block..block + u64::from(blocks) {
                    let (die, local) = self.locate(block % self.spec.blocks);
                    self.dies[die].ftl.discard(local);
                }
                ready
            }
            BlockOp::Read => self.read(block, blocks, ready),
            BlockOp::Write => self.write(block, blocks, ready),
        }
    }

    /// The die of a block, and its number there. Consecutive pages go to different channels first.
    fn locate(&self, block: u64) -> (usize, u32) {
        let (per_page, dies) = (u64::from(self.spec.page_blocks), self.dies.len() as u64);
        let page = block / per_page;
        ((page % dies) as usize, (page / dies * per_page + block % per_page) as u32)
    }

    fn read(&mut self, block: u64, blocks: u32, ready: Nanos) -> Nanos {
        // Blocks by the page that holds them; none for those in the cache or never written.
        let mut pages: Vec<(usize, Option<u32>, u32)> = Vec::new();
        for block in block..block + u64::from(blocks) {
            let (die, local) = self.locate(block % self.spec.blocks);
            self.dies[die].settle(ready, ready, &self.spec, &mut self.channels, &mut self.counts);
            self.collect_ends(die);
            let page = self.dies[die].page_on_flash(local, self.spec.page_blocks, ready);
            match pages.iter_mut().find(|known| (known.0, known.1) == (die, page)) {
                Some(known) => known.2 += 1,
                None => pages.push((die, page, 1)),
            }
        }
        let mut done = ready;
        for (die, page, count) in pages {
            let bytes = u64::from(count) * BLOCK;
            let mut at = ready;
            if page.is_some() {
                at = self.dies[die].occupy(ready, self.spec.page_read, &mut self.counts);
                self.counts.page_reads += 1;
                let channel = die % self.channels.len();
                at = self.channels[channel].reserve(ready, at, self.spec.channel_time(bytes));
            }
            done = done.max(self.link.reserve(ready, at, self.spec.link_time(bytes)));
        }
        done
    }

    fn write(&mut self, block: u64, blocks: u32, ready: Nanos) -> Nanos {
        let mut now = ready;
        for block in block..block + u64::from(blocks) {
            now = self.link.reserve(ready, now, self.spec.link_time(BLOCK));
            let (die, local) = self.locate(block % self.spec.blocks);
            self.counts.written += 1;
            let (tasks, collected) = self.dies[die].write(local, &self.spec);
            self.counts.moved += collected.moved_pages;
            self.counts.erases += collected.erased_blocks;
            for task in tasks {
                if let Task::Program { .. } = task {
                    now = self.wait_for_room(now, ready);
                    self.cached += 1;
                }
                self.dies[die].queue(now, task);
            }
        }
        now
    }

    /// Waits from `now` until the cache has a free page; returns that time. The command arrived at
    /// `ready`, and later ones may arrive from then on.
    fn wait_for_room(&mut self, now: Nanos, ready: Nanos) -> Nanos {
        let mut now = now;
        loop {
            while self.programs.peek().is_some_and(|Reverse(end)| *end <= now) {
                self.programs.pop();
            }
            if (self.cached as usize + self.programs.len()) < self.spec.cache_pages as usize {
                return now;
            }
            // The cache may only seem full: programs that started meanwhile are not counted yet.
            let before = self.cached;
            for die in 0..self.dies.len() {
                self.dies[die].settle(now, ready, &self.spec, &mut self.channels, &mut self.counts);
                self.collect_ends(die);
            }
            if self.cached < before {
                continue;
            }
            match self.programs.pop() {
                Some(Reverse(end)) => now = now.max(end),
                // Moves and erases are queued before the programs: the die that can start first
                // does its next task.
                None => match (0..self.dies.len()).min_by_key(|&die| self.dies[die].next_start()) {
                    Some(die) => {
                        self.dies[die].run_next(ready, &self.spec, &mut self.channels, &mut self.counts);
                        self.collect_ends(die);
                    }
                    None => return now,
                },
            }
        }
    }

    /// Registers the ends of started programs of a die. Their pages leave the cache at these times.
    fn collect_ends(&mut self, die: usize) {
        for end in self.dies[die].begun.drain(..) {
            self.programs.push(Reverse(end));
            self.cached -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
