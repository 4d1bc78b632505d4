//! A garden under a load whose drives are written down.

use std::{cell::Cell, collections::BTreeSet, ops::Range, sync::Arc};

use senesce_block::{BlockDevice, CompactDevice};
use senesce_garden::{AreaMoves, Gardening, WriteAfterRead};
use senesce_sim::{
    CpuEvents,
    storage::{PointTrace, Trace},
};
use senesce_trials::{CleaningPolicy, Fact, LoadKind, Point, Request, Rig, Setup, Trial, Way};

use crate::{
    Entry, Result, Tape, TapedDrive,
    collect::{compute_cleaning_events, compute_operation, compute_point},
    tape::content,
};

/// An aggregate with a load, as in `senesce-trials`, on drives that are written down.
pub struct TimedTrial {
    trial: Trial,
    tape: Tape,
    /// Blocks that the garden reads ahead at most.
    garden_ahead: u64,
}

/// A trace, and what was counted while it was made.
#[derive(Clone, Debug)]
pub struct Window {
    /// What the simulation is fed with.
    pub trace: Trace,
    /// The sum of its points, as the garden counted it.
    pub counted: Point,
}

impl TimedTrial {
    /// Makes the aggregate and writes the whole file once, in order. With `history` all that drives are written is kept, for
    /// drives that remember (SSDs).
    pub fn new(setup: Setup, load: LoadKind, history: bool) -> Result<Self> {
        let tape = Tape::new(setup.area_stripes.into(), history);
        let next = Cell::new(0);
        let rig = Rig::on(&setup, &|name, size| {
            let number = next.replace(next.get() + 1);
            Arc::new(TapedDrive::new(CompactDevice::new(name, size), number, tape.clone())) as Arc<dyn BlockDevice>
        })?;
        Ok(Self { trial: Trial::on(setup, load, rig)?, tape, garden_ahead: 0 })
    }

    /// The trial: what it has counted, and the aggregate.
    pub fn trial(&mut self) -> &mut Trial {
        &mut self.trial
    }

    /// How areas are cleaned from now on.
    pub fn set_cleaning(&mut self, cleaning: CleaningPolicy) {
        self.trial.set_cleaning(cleaning);
    }

    /// What is set now, in words.
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

    /// Lets the garden read ahead for clients that read in order, so many blocks at most, besides what the runner does.
    pub fn set_read_ahead(&mut self, blocks: u64) {
        self.garden_ahead = blocks;
        self.trial.rig().garden().set_read_ahead(blocks);
    }

    /// Goes on until clients have written as many thousandths of the file, to the end of a point. Nothing is collected.
    pub fn age(&mut self, turnover_thousandths: u64) -> Result<()> {
        Ok(self.trial.run(turnover_thousandths)?)
    }

    /// Goes on for so many consistency points and collects them. Cost: about a tenth more than without, and some 150 bytes for
    /// each operation.
    pub fn collect(&mut self, points: usize) -> Result<Window> {
        self.collect_gardened(points, &mut |_| Ok(()))
    }

    /// The same; `garden` does something before each point's operations, of which all that drives are asked for is the point's.
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

    /// Reads the file in order by some clients at a time, each from a place of its own, `blocks` at once; so many operations
    /// in all. Collected as a trace without writes.
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

    /// Makes all blocks of an allocation area move with the next consistency point; also says which of them are contents of the file.
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
        // An area may hold older contents of a block as well, but not in use, and who reads for moving reads what is in use.
        let contents = trailers.flatten().filter_map(|trailer| content(&trailer, file));
        Ok((moves, contents.collect()))
    }

    /// Reads the file in order once from one end to the other by a single client, for whom the garden reads ahead, and writes together
    /// again what lies apart: with a consistency point after as many blocks as that may have. Says how many blocks moved.
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

/// Blocks that are read together where the garden reads ahead, and what it reads ahead at most: its default.
const READ: u64 = 64;
const READ_AHEAD: u64 = 256;

/// All that the runner reads for a request.
fn read_ahead(request: &Request, unit: u64, blocks: u64) -> Range<u64> {
    let Range { start, end } = request.blocks;
    match request.way {
        Way::Random => start..end,
        Way::Sequential => start / unit * unit..end.next_multiple_of(unit).min(blocks),
    }
}

/// The same with what the garden reads ahead: it begins to read the next window before the last one ends.
fn with_garden_ahead(read: Range<u64>, garden_ahead: u64, blocks: u64) -> Range<u64> {
    read.start..blocks.min(read.end + 2 * garden_ahead)
}

impl Window {
    /// A window that was collected after this one on the same aggregate, behind it.
    pub fn then(mut self, mut later: Self) -> Self {
        self.trace.points.append(&mut later.trace.points);
        self.counted = self.counted.plus(later.counted);
        self
    }

    /// Operations.
    pub fn operations(&self) -> u64 {
        self.trace.points.iter().map(|point| point.operations.len() as u64).sum()
    }

    /// Events of processors because blocks are moved, in the whole window.
    pub fn cleaning_events(&self) -> CpuEvents {
        compute_cleaning_events(&self.counted)
    }
}
