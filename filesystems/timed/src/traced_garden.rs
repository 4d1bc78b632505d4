//! A garden under load on recorded drives.

use std::{cell::Cell, collections::BTreeSet, ops::Range, sync::Arc};

use senesce_block::{BlockDevice, CompactDevice};
use senesce_garden::{AreaMoves, Gardening, WriteAfterRead};
use senesce_sim::{
    CpuEvents,
    storage::{PointTrace, Trace},
};
use senesce_trials::{CleaningPolicy, Fact, LoadKind, Point, Request, Rig, Setup, Trial, Way};

use crate::{
    Entry, IoTrace, Result, TracingDrive,
    io_trace::content,
    trace_operations::{compute_cleaning_events, compute_operation, compute_point},
};

/// An aggregate with a load, as in `senesce-trials`, on recorded drives.
pub struct TimedTrial {
    trial: Trial,
    tape: IoTrace,
    /// The largest read-ahead of the garden, blocks.
    garden_ahead: u64,
}

/// A trace, and the counters of its time.
#[derive(Clone, Debug)]
pub struct Window {
    /// The input of the simulation.
    pub trace: Trace,
    /// The sum over its points, as the garden counted it.
    pub counted: Point,
}

impl TimedTrial {
    /// Makes the aggregate and writes the whole file once, in order. With `history` every write of
    /// a drive is stored, for drives with internal state (SSDs).
    pub fn new(setup: Setup, load: LoadKind, history: bool) -> Result<Self> {
        let tape = IoTrace::new(setup.area_stripes.into(), history);
        let next = Cell::new(0);
        let rig = Rig::on(&setup, &|name, size| {
            let number = next.replace(next.get() + 1);
            Arc::new(TracingDrive::new(CompactDevice::new(name, size), number, tape.clone())) as Arc<dyn BlockDevice>
        })?;
        Ok(Self { trial: Trial::on(setup, load, rig)?, tape, garden_ahead: 0 })
    }

    /// The trial, with its counters and its aggregate.
    pub fn trial(&mut self) -> &mut Trial {
        &mut self.trial
    }

    /// Sets how areas are cleaned from now on.
    pub fn set_cleaning(&mut self, cleaning: CleaningPolicy) {
        self.trial.set_cleaning(cleaning);
    }

    /// The current settings, in words.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = self.trial.setup().facts();
        if self.garden_ahead > 0 {
            let told = format!("{} blocks at most, by the garden", self.garden_ahead);
            facts.iter_mut().filter(|fact| fact.what == "read-ahead").for_each(|fact| fact.told.clone_from(&told));
        }
        facts.push(Fact::new("load", self.trial.load().tell()));
        facts.push(Fact::new("gardening", self.trial.tell_gardening()));
        facts
    }

    /// Lets the garden read ahead for sequential clients, up to `blocks` blocks, in addition to the
    /// runner's own read-ahead.
    pub fn set_read_ahead(&mut self, blocks: u64) {
        self.garden_ahead = blocks;
        self.trial.rig().garden().set_read_ahead(blocks);
    }

    /// Runs until clients have written the given thousandths of the file, to the end of a point.
    /// Collects nothing.
    pub fn age(&mut self, turnover_thousandths: u64) -> Result<()> {
        Ok(self.trial.run(turnover_thousandths)?)
    }

    /// Runs for `points` consistency points and collects them. Cost: about a tenth more than
    /// without, and some 150 bytes for each operation.
    pub fn collect(&mut self, points: usize) -> Result<Window> {
        self.collect_gardened(points, &mut |_| Ok(()))
    }

    /// The same. Before the operations of each point it calls `garden`, whose requests to drives
    /// count for the point.
    pub fn collect_gardened(
        &mut self,
        points: usize,
        garden: &mut dyn FnMut(&mut Trial) -> Result<()>,
    ) -> Result<Window> {
        let (file, unit) = (self.trial.rig().file(), self.trial.setup().read_ahead);
        let (blocks, garden_ahead) = (self.trial.rig().blocks(), self.garden_ahead);
        let mut window =
            Window { trace: Trace { points: Vec::new(), before: self.tape.history() }, counted: Point::default() };
        let first = self.trial.series().points.len();
        self.tape.set_recording(true);
        for _ in 0..points {
            garden(&mut self.trial)?;
            let mut background = self.tape.take();
            let (tape, mut operations) = (self.tape.clone(), Vec::new());
            self.trial.run_point_watched(&mut |request| {
                let ahead = with_garden_ahead(read_ahead(request, unit, blocks), garden_ahead, blocks);
                operations.push(compute_operation(request, file, &ahead, tape.take()));
            })?;
            let counted = self.trial.series().points.last().copied().unwrap_or_default();
            background.extend(self.tape.take());
            window.trace.points.push(compute_point(operations, &counted, background));
        }
        self.tape.set_recording(false);
        window.counted = self.trial.series().sum_from(first);
        Ok(window)
    }

    /// Reads the file in order by several clients, each from another position, `blocks` at once,
    /// `operations` in total. The result is a trace without writes.
    pub fn collect_reads(&mut self, clients: u64, blocks: u64, operations: u64) -> Result<Window> {
        let (file, unit) = (self.trial.rig().file(), self.trial.setup().read_ahead);
        let all = self.trial.rig().blocks();
        let before = self.trial.rig().garden().report();
        let mut point = PointTrace::default();
        self.tape.take();
        self.tape.set_recording(true);
        for number in 0..operations {
            let (client, step) = (number % clients, number / clients);
            let start = (all / clients * client / unit * unit + step * blocks) % all;
            let request = Request {
                at: senesce_core::Nanos(0),
                is_read: true,
                way: Way::Sequential,
                blocks: start..all.min(start + blocks),
            };
            let ahead = read_ahead(&request, unit, all);
            self.trial.rig().read(ahead.clone())?;
            let ahead = with_garden_ahead(ahead, self.garden_ahead, all);
            point.operations.push(compute_operation(&request, file, &ahead, self.tape.take()));
        }
        self.tape.set_recording(false);
        let mut counted = Point::default();
        let now = self.trial.rig().garden().report();
        let (reads, earlier) = (now.raid.data.reads, before.raid.data.reads);
        counted.reads.blocks = reads.blocks - earlier.blocks;
        counted.reads.requests = reads.requests - earlier.requests;
        counted.client_reads = operations;
        counted.client_blocks_read = operations * blocks;
        counted.redirects = now.counts.redirects - before.counts.redirects;
        Ok(Window { trace: Trace { points: vec![point], before: self.tape.history() }, counted })
    }

    /// Moves all blocks of an allocation area with the next consistency point. Also returns those
    /// that are contents of the file.
    pub fn move_area(&mut self, area: u64) -> Result<(AreaMoves, BTreeSet<u64>)> {
        self.tape.take();
        self.tape.set_recording(true);
        let moves = self.trial.rig().garden().move_area(0, area)?;
        self.tape.set_recording(false);
        let file = self.trial.rig().file();
        let trailers = self.tape.take().into_iter().flat_map(|entry| match entry {
            Entry::Read(_, trailers) => trailers,
            Entry::Write(_) => Vec::new(),
        });
        // An area may also hold unused, older contents of a block. The mover reads only blocks in
        // use.
        let contents = trailers.flatten().filter_map(|trailer| content(&trailer, file));
        Ok((moves, contents.collect()))
    }

    /// Reads the file in order once by a single client, with read-ahead of the garden and
    /// write-after-read. A consistency point comes after every `blocks_per_point` blocks. Returns
    /// the number of moved blocks.
    pub fn write_after_read(&mut self) -> Result<u64> {
        let policy = WriteAfterRead::default();
        let rig = self.trial.rig();
        let (blocks, gardening) = (rig.blocks(), rig.garden().gardening());
        let before = rig.garden().report().counts.rewritten_after_read;
        rig.garden().set_gardening(Gardening { write_after_read: Some(policy), ..gardening });
        rig.garden().set_read_ahead(READ_AHEAD);
        for first in (0..blocks).step_by(READ as usize) {
            rig.read(first..blocks.min(first + READ))?;
            if (first + READ).is_multiple_of(policy.blocks_per_point) {
                rig.garden().consistency_point()?;
            }
        }
        rig.garden().consistency_point()?;
        rig.garden().set_read_ahead(0);
        rig.garden().set_gardening(gardening);
        Ok(rig.garden().report().counts.rewritten_after_read - before)
    }
}

/// Blocks of one read if the garden reads ahead, and the largest read-ahead: its default.
const READ: u64 = 64;
const READ_AHEAD: u64 = 256;

/// All blocks that the runner reads for a request.
fn read_ahead(request: &Request, unit: u64, blocks: u64) -> Range<u64> {
    let Range { start, end } = request.blocks;
    match request.way {
        Way::Random => start..end,
        Way::Sequential => start / unit * unit..end.next_multiple_of(unit).min(blocks),
    }
}

/// The same plus the read-ahead of the garden, which starts the next window before the last one
/// ends.
fn with_garden_ahead(read: Range<u64>, garden_ahead: u64, blocks: u64) -> Range<u64> {
    read.start..blocks.min(read.end + 2 * garden_ahead)
}

impl Window {
    /// Appends a window that was collected later on the same aggregate.
    pub fn then(mut self, mut later: Self) -> Self {
        self.trace.points.append(&mut later.trace.points);
        self.counted = self.counted.plus(later.counted);
        self
    }

    /// The number of operations.
    pub fn operations(&self) -> u64 {
        self.trace.points.iter().map(|point| point.operations.len() as u64).sum()
    }

    /// Processor events caused by relocation, in the whole window.
    pub fn cleaning_events(&self) -> CpuEvents {
        compute_cleaning_events(&self.counted)
    }
}
