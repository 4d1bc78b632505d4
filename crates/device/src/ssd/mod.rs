//! The model of an SSD. Commands pass the controller one after the other. All planes read and
//! program pages in parallel. Data shares the channels and the link.
//!
//! - Page p of the device is on plane p mod planes, so that neighbours are on different channels.
//! - A read of a page costs the read time of the array on its plane, then the channel, then the
//!   link. A plane keeps its last read page in its register.
//! - A write crosses the link and is complete when it is in the write cache. Programs empty the
//!   cache. If the cache is full, a write waits for the end of a program. A flush waits for all
//!   programs. A write of a part of a page reads the rest first, unless it continues at the end of
//!   the previous write.
//! - Garbage collection ([`Ftl`]) is modelled on request ([`FlashState`]): moves and erases keep
//!   their plane busy. Each plane collects on its own.
//! - A discard forgets whole pages: they need not be moved, and reading them costs no flash.
//!
//! Not modelled: faster pseudo-SLC regions, read-ahead and read cache of the controller, wear
//! levelling, error correction, suspending a program for a read, temperature.

mod ftl;

use std::{cmp::Reverse, collections::BinaryHeap};

use senesce_core::{BlockOp, BlockRequest, Bytes, Nanos, Rng, SECTOR_BYTES, Seed};
use serde::{Deserialize, Serialize};

pub use ftl::{Collected, Ftl, compute_greedy_write_amplification};

use crate::{DeviceModel, DeviceSpec, Error, ServiceTimes, Totals};

/// The largest table of a modelled translation layer: 8 TiB in pages of 8 KiB, about 9 GiB of
/// memory if all are written.
const MOST_MAPPED_PAGES: u64 = 1 << 30;

/// The state of the flash when the model is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlashState {
    /// No garbage collection: writes cost their programs only, and every page reads as if it were
    /// written.
    #[default]
    NotModelled,
    /// Erased, as from the factory or after a discard of everything.
    Erased,
    /// Used for a long time: every page was written once, then `rounds` times the capacity in pages
    /// drawn uniformly.
    Used {
        /// Random overwrites of the whole capacity. From 3 on, the amplification changes little.
        rounds: u32,
        /// The seed of the random pages.
        seed: Seed,
    },
}

/// One plane.
struct Plane {
    /// The end of its current work.
    free: Nanos,
    /// The end of its moves and erases.
    collecting: Nanos,
    /// The page in its register.
    register: Option<u64>,
    ftl: Option<Ftl>,
}

/// An SSD in use.
pub(crate) struct Ssd {
    name: String,
    sectors: u64,
    page_sectors: u64,
    planes: Vec<Plane>,
    /// The times at which each channel, the link and the controller are free.
    channels: Vec<Nanos>,
    link_free: Nanos,
    controller_free: Nanos,
    page_read: Nanos,
    page_program: Nanos,
    block_erase: Nanos,
    command_overhead: Nanos,
    channel_mb_per_second: f64,
    link_mb_per_second: f64,
    /// The ends of the programs of pages in the write cache, and the wait of each for garbage
    /// collection.
    programs: BinaryHeap<Reverse<(Nanos, Nanos)>>,
    cache_pages: usize,
    /// The end of the previous write, at which a write may continue without reading the rest of its
    /// page.
    open_end: u64,
    last_arrival: Nanos,
    last_done: Nanos,
    totals: Totals,
}

/// The times of the page that determines the end of a request.
#[derive(Clone, Copy, Default)]
struct Critical {
    done: Nanos,
    queue: Nanos,
    collection: Nanos,
    flash: Nanos,
}

impl Ssd {
    /// The drive of a checked description, idle. Cost: for used flash, that of the writes.
    pub(crate) fn new(spec: &DeviceSpec, state: FlashState) -> Result<Self, Error> {
        let count = |key| spec.value(key) as u64;
        let planes = count("channels") * count("chips") * count("dies") * count("planes");
        let page_bytes = count("page") * Bytes::KIB;
        let sectors = spec.capacity_bytes() / SECTOR_BYTES;
        let page_sectors = page_bytes / SECTOR_BYTES;
        let pages_per_plane = sectors.div_ceil(page_sectors).div_ceil(planes);
        let spare = spec.value("spare");
        let physical = pages_per_plane as f64 * (1.0 + spare);
        if physical > 4e9 || planes > 1 << 20 {
            let problem = format!(
                "{} GB on {planes} planes are {pages_per_plane} pages on each; at most {:.0} on at most 1048576 planes \
                 would be possible",
                spec.value("capacity"),
                4e9 / (1.0 + spare)
            );
            return Err(spec.absurd("capacity", problem));
        }
        let pages = pages_per_plane * planes;
        if state != FlashState::NotModelled && pages > MOST_MAPPED_PAGES {
            let problem = format!(
                "{} GB are {pages} pages, too many for a table of where each lies; {MOST_MAPPED_PAGES} would be possible, \
                 or a model without garbage collection",
                spec.value("capacity")
            );
            return Err(spec.absurd("capacity", problem));
        }
        if pages_per_plane < 4 * count("pages_per_block") {
            let problem = format!(
                "{} pages are not possible where a plane has {pages_per_plane}; at most a quarter of them would be",
                count("pages_per_block")
            );
            return Err(spec.absurd("pages_per_block", problem));
        }
        let us = |key| Nanos((spec.value(key) * 1e3).round() as u64);
        let make = |index: u64| {
            let ftl = match state {
                FlashState::NotModelled => None,
                FlashState::Erased => Some(Ftl::new(pages_per_plane as u32, count("pages_per_block") as u32, spare)),
                FlashState::Used { rounds, seed } => {
                    let mut ftl = Ftl::new(pages_per_plane as u32, count("pages_per_block") as u32, spare);
                    for page in 0..pages_per_plane {
                        ftl.write(page as u32);
                    }
                    let mut rng = Rng::for_purpose(seed, &format!("used flash, plane {index}"));
                    for _ in 0..u64::from(rounds) * pages_per_plane {
                        ftl.write(rng.below(pages_per_plane) as u32);
                    }
                    Some(ftl)
                }
            };
            Plane { free: Nanos(0), collecting: Nanos(0), register: None, ftl }
        };
        Ok(Self {
            name: spec.model_name(),
            sectors,
            page_sectors,
            planes: (0..planes).map(make).collect(),
            channels: vec![Nanos(0); count("channels") as usize],
            link_free: Nanos(0),
            controller_free: Nanos(0),
            page_read: us("page_read"),
            page_program: us("page_program"),
            block_erase: us("block_erase"),
            command_overhead: us("command_overhead"),
            channel_mb_per_second: spec.value("channel_rate"),
            link_mb_per_second: spec.value("link_rate"),
            programs: BinaryHeap::new(),
            cache_pages: (spec.value("write_cache") * Bytes::MIB as f64) as usize / page_bytes as usize,
            open_end: u64::MAX,
            last_arrival: Nanos(0),
            last_done: Nanos(0),
            totals: Totals::default(),
        })
    }

    /// The plane of a page, and the number of the page on the plane.
    fn locate(&self, page: u64) -> (usize, u32) {
        let planes = self.planes.len() as u64;
        ((page % planes) as usize, (page / planes) as u32)
    }

    /// The pages of a run of sectors, each with the number of its sectors in the run.
    fn pages(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let size = self.page_sectors;
        (start / size..end.div_ceil(size)).map(move |page| (page, end.min((page + 1) * size) - start.max(page * size)))
    }

    fn read(&mut self, start: u64, end: u64, ready: Nanos, times: &mut ServiceTimes) -> Nanos {
        let mut last = Critical { done: ready, ..Critical::default() };
        let mut hits = true;
        for (page, sectors) in self.pages(start, end) {
            let (index, local) = self.locate(page);
            let plane = &mut self.planes[index];
            let mut way = Critical::default();
            let mut at = ready;
            if plane.ftl.as_ref().is_none_or(|ftl| ftl.is_mapped(local)) {
                if plane.register != Some(page) {
                    at = ready.max(plane.free);
                    way.collection = Nanos(at.0.min(plane.collecting.0)).since(ready);
                    way.queue = Nanos(at.since(ready).0 - way.collection.0);
                    way.flash = self.page_read;
                    at = Nanos(at.0 + self.page_read.0);
                    (plane.free, plane.register) = (at, Some(page));
                    hits = false;
                }
                at = self.cross_channel(index, sectors, at);
            }
            at = self.cross_link(sectors, at);
            way.done = at;
            if way.done >= last.done {
                last = way;
            }
        }
        self.totals.buffer_hits += u64::from(hits);
        (times.collection, times.flash) = (last.collection, last.flash);
        times.queue.0 += last.queue.0;
        times.transfer = Nanos(last.done.0 - ready.0 - last.collection.0 - last.queue.0 - last.flash.0);
        last.done
    }

    fn write(&mut self, start: u64, end: u64, ready: Nanos, times: &mut ServiceTimes) -> Nanos {
        while self.programs.peek().is_some_and(|Reverse((end, _))| *end <= ready) {
            self.programs.pop();
        }
        let (mut now, mut programmed) = (ready, Nanos(0));
        let goes_on = start == self.open_end;
        for (page, sectors) in self.pages(start, end) {
            let whole = sectors == self.page_sectors;
            now = self.cross_link(sectors, now);
            if goes_on && !whole && page == start / self.page_sectors && !start.is_multiple_of(self.page_sectors) {
                continue; // joins the part of this page that is still in the cache
            }
            while self.cache_pages > 0 && self.programs.len() >= self.cache_pages {
                let Some(Reverse((end, collecting))) = self.programs.pop() else { break };
                let waited = end.since(now);
                let collecting = waited.min(collecting);
                times.collection.0 += collecting.0;
                times.write_back.0 += waited.0 - collecting.0;
                now = now.max(end);
            }
            let (end, collecting) = self.program(page, whole, now);
            programmed = programmed.max(end);
            self.programs.push(Reverse((end, collecting)));
        }
        self.open_end = end;
        times.transfer = Nanos(now.0 - ready.0 - times.collection.0 - times.write_back.0);
        if self.cache_pages == 0 {
            self.programs.clear();
            times.flash = programmed.since(now);
            return now.max(programmed);
        }
        now
    }

    /// Programs a page whose data is available at `now`. Returns the end, and the part of the time
    /// until then that was collection.
    fn program(&mut self, page: u64, whole: bool, now: Nanos) -> (Nanos, Nanos) {
        let (index, local) = self.locate(page);
        let at = self.cross_channel(index, self.page_sectors, now);
        let plane = &mut self.planes[index];
        let collecting = plane.free.min(plane.collecting).since(at);
        let mut at = at.max(plane.free);
        if !whole && plane.ftl.as_ref().is_none_or(|ftl| ftl.is_mapped(local)) && plane.register != Some(page) {
            at.0 += self.page_read.0;
        }
        at.0 += self.page_program.0;
        (plane.free, plane.register) = (at, None);
        self.totals.host_pages += 1;
        self.totals.programmed_pages += 1;
        if let Some(ftl) = &mut plane.ftl {
            let collected = ftl.write(local);
            let moves = collected.moved_pages * (self.page_read.0 + self.page_program.0);
            let busy = moves + collected.erased_blocks * self.block_erase.0;
            if busy > 0 {
                plane.free.0 += busy;
                plane.collecting = plane.free;
            }
            self.totals.programmed_pages += collected.moved_pages;
            self.totals.erased_blocks += collected.erased_blocks;
        }
        (at, collecting)
    }

    fn discard(&mut self, start: u64, end: u64) {
        let last = if end == self.sectors { end.div_ceil(self.page_sectors) } else { end / self.page_sectors };
        for page in start.div_ceil(self.page_sectors)..last {
            let (index, local) = self.locate(page);
            if let Some(ftl) = &mut self.planes[index].ftl {
                ftl.discard(local);
            }
        }
    }

    fn cross_channel(&mut self, plane: usize, sectors: u64, now: Nanos) -> Nanos {
        let channel = plane % self.channels.len();
        let done = Nanos(now.max(self.channels[channel]).0 + data_time(sectors, self.channel_mb_per_second));
        self.channels[channel] = done;
        done
    }

    fn cross_link(&mut self, sectors: u64, now: Nanos) -> Nanos {
        self.link_free = Nanos(now.max(self.link_free).0 + data_time(sectors, self.link_mb_per_second));
        self.link_free
    }
}

/// Nanoseconds for `sectors` sectors: bytes over MB/s are microseconds.
fn data_time(sectors: u64, mb_per_second: f64) -> u64 {
    ((sectors * SECTOR_BYTES) as f64 / mb_per_second * 1000.0).round() as u64
}

impl DeviceModel for Ssd {
    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos {
        let arrival = arrival.max(self.last_arrival);
        self.last_arrival = arrival;
        self.totals.requests += 1;
        if request.end() > self.sectors {
            self.totals.beyond_end += 1;
        }
        let sectors = u64::from(request.sectors).min(self.sectors);
        let start = request.sector.min(self.sectors - sectors);
        let end = start + sectors;

        let begin = arrival.max(self.controller_free);
        let ready = Nanos(begin.0 + self.command_overhead.0);
        self.controller_free = ready;
        let mut times =
            ServiceTimes { queue: begin.since(arrival), overhead: self.command_overhead, ..ServiceTimes::default() };
        let done = match request.op {
            BlockOp::Flush => {
                let all = self.programs.drain().map(|Reverse((end, _))| end).max().unwrap_or_default();
                times.write_back = all.since(ready);
                ready.max(all)
            }
            BlockOp::Discard => {
                self.discard(start, end);
                ready
            }
            _ if sectors == 0 => ready,
            BlockOp::Read => self.read(start, end, ready, &mut times),
            BlockOp::Write => self.write(start, end, ready, &mut times),
        };
        self.last_done = self.last_done.max(done);
        self.totals.times += times;
        done
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn now(&self) -> Nanos {
        self.last_arrival.max(self.last_done)
    }

    fn totals(&self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests;
