//! A garden with packed contents, read by clients while the remaining chunks of compacted blocks
//! are written together.

use std::{cell::Cell, sync::Arc};

use senesce_block::{BlockDevice, CompactDevice};
use senesce_core::{Rng, Seed};
use senesce_garden::{AggregateReport, RECOMPACTED_BELOW_PERCENT, RecompactStep, Trailer};
use senesce_sim::{
    CpuEvents,
    storage::{Chain, Exclusive, Operation, PointTrace, Trace},
};
use senesce_trials::{Kind, PAGE, PackedRig, Point, Scale, Setup};

use crate::{
    Entry, Error, IoTrace, Result, TracingDrive, Window,
    io_trace::{blocks, content, part},
};

/// Pointers that a step of the scan for stale pointers corrects: those of one block, as in the
/// garden. Below: steps between two consistency points.
const FIX_UP_POINTERS: u64 = 256;
const FIX_UP_STEPS: usize = 16;
/// Blocks of a page.
const PAGE_BLOCKS: u32 = (PAGE / 4096) as u32;

/// An aggregate as in `senesce-trials`' experiment E10, on recorded drives.
pub struct PackedTrial {
    rig: PackedRig,
    kind: Kind,
    tape: IoTrace,
}

impl PackedTrial {
    /// Overwrites pages at random until the savings are stable. Then it reopens the aggregate, so
    /// that memory holds little of it.
    pub fn new(kind: Kind, scale: Scale) -> Result<Self> {
        let tape = IoTrace::new(Setup::published(scale).area_stripes.into(), true);
        let next = Cell::new(0);
        let mut rig = PackedRig::on(kind, PackedRig::pages_of(kind, scale), &|name, size| {
            let number = next.replace(next.get() + 1);
            Arc::new(TracingDrive::new(CompactDevice::new(name, size), number, tape.clone())) as Arc<dyn BlockDevice>
        })?;
        rig.overwrite(scale)?;
        rig.reopen()?;
        Ok(Self { rig, kind, tape })
    }

    /// The aggregate.
    pub fn rig(&self) -> &PackedRig {
        &self.rig
    }

    /// Compares all pages with their last written contents, and checks the aggregate.
    pub fn verify(self) -> Result<()> {
        Ok(self.rig.verify()?)
    }

    /// Reads pages at random, one an operation. The same number of reads comes before, so that
    /// memory is in a steady state.
    pub fn collect_reads(&mut self, operations: u64) -> Result<Window> {
        self.read(&mut Rng::for_purpose(Seed(2), "reads of pages"), operations)?;
        let before = self.rig.report();
        let history = self.begin();
        let operations = self.read(&mut Rng::for_purpose(Seed(1), "reads of pages"), operations)?;
        let point = PointTrace { operations, ..PointTrace::default() };
        Ok(self.end(vec![point], &before, history))
    }

    /// Reads the same pages in `points` parts during one pass of recompaction over the volume: a
    /// part of the pass, reads, and a consistency point. Also returns the result of the pass.
    pub fn collect_recompaction(&mut self, points: u64, operations: u64) -> Result<(Window, RecompactStep)> {
        self.read(&mut Rng::for_purpose(Seed(2), "reads of pages"), operations)?;
        let before = self.rig.report();
        let history = self.begin();
        let mut rng = Rng::for_purpose(Seed(1), "reads of pages");
        // Pages that compress have a VVBN each.
        let each = self.rig.pages().div_ceil(points);
        let (mut traced, mut all) = (Vec::new(), RecompactStep::default());
        while !all.is_done {
            let earlier = self.rig.report();
            let step = self.rig.recompact_step(each, RECOMPACTED_BELOW_PERCENT)?;
            let (scanned, mut writes) = part(self.tape.take());
            let operations = self.read(&mut rng, operations.div_ceil(points))?;
            self.rig.consistency_point()?;
            let (reads, others) = part(self.tape.take());
            writes.extend(others);
            let now = self.rig.report();
            let scan_events = CpuEvents {
                context_check: blocks(&scanned),
                // A pointer of the container for each scanned VVBN, and for each chunk of the
                // blocks that were read.
                map_lookup: step.looked_at + step.chunks,
                relocation: step.chunks,
                ..CpuEvents::default()
            };
            let events = compute_events(&PackedRig::count(&earlier, &now), &earlier, &now, &reads);
            let exclusive = Vec::new();
            traced.push(PointTrace { operations, scanned, scan_events, exclusive, reads, writes, events });
            all += step;
        }
        Ok((self.end(traced, &before, history), all))
    }

    /// Reads pages at random while a scan corrects the volume's stale pointers, which excludes
    /// clients during each of its steps. Also returns the number of corrected pointers.
    pub fn collect_fix_up(&mut self, operations: u64) -> Result<(Window, u64)> {
        let before = self.rig.report();
        let history = self.begin();
        let mut rng = Rng::for_purpose(Seed(3), "reads of pages");
        let (mut traced, mut fixed, mut is_done) = (Vec::new(), 0, false);
        while !is_done {
            let earlier = self.rig.report();
            let (mut exclusive, mut writes) = (Vec::new(), Vec::new());
            while !is_done && exclusive.len() < FIX_UP_STEPS {
                let step = self.rig.fix_up_step(FIX_UP_POINTERS)?;
                let (reads, written) = part(self.tape.take());
                writes.extend(written);
                let events = CpuEvents {
                    context_check: blocks(&reads),
                    map_lookup: step.looked,
                    fix_up: step.fixed,
                    ..CpuEvents::default()
                };
                exclusive.push(Exclusive { reads, events });
                (fixed, is_done) = (fixed + step.fixed, step.ended || step.no_space);
            }
            let each = (operations * FIX_UP_STEPS as u64 * FIX_UP_POINTERS / (2 * self.rig.pages())).max(1);
            let operations = self.read(&mut rng, each)?;
            self.rig.consistency_point()?;
            let (reads, others) = part(self.tape.take());
            writes.extend(others);
            let now = self.rig.report();
            let counted = Point { fix_ups: 0, ..PackedRig::count(&earlier, &now) };
            let events = compute_events(&counted, &earlier, &now, &reads);
            traced.push(PointTrace { operations, exclusive, reads, writes, events, ..PointTrace::default() });
        }
        Ok((self.end(traced, &before, history), fixed))
    }

    fn begin(&mut self) -> Vec<Chain> {
        let history = self.tape.history();
        self.tape.take();
        self.tape.set_recording(true);
        history
    }

    fn end(&mut self, points: Vec<PointTrace>, before: &AggregateReport, history: Vec<Chain>) -> Window {
        self.tape.set_recording(false);
        let reads = points.iter().map(|point| point.operations.len() as u64).sum::<u64>();
        let counted = Point {
            client_reads: reads,
            client_blocks_read: reads * u64::from(PAGE_BLOCKS),
            ..PackedRig::count(before, &self.rig.report())
        };
        Window { trace: Trace { points, before: history }, counted }
    }

    /// Reads pages at random, and returns the operations.
    fn read(&mut self, rng: &mut Rng, operations: u64) -> Result<Vec<Operation>> {
        let mut done = Vec::new();
        let mut redirects = self.rig.report().counts.redirects;
        for _ in 0..operations {
            self.rig.read(rng.below(self.rig.pages()))?;
            let now = self.rig.report().counts.redirects;
            let compressed = self.kind.group_blocks() > 0;
            done.push(compute_packed_operation(self.tape.take(), self.rig.file(), now - redirects, compressed)?);
            redirects = now;
        }
        Ok(done)
    }
}

/// An operation that reads a page. A request with contents of its file, or with several chunks, is
/// contents. Any other request is pointers, or the map if it comes after contents. The last
/// `redirects` contents were read again because a pointer was stale. Errors: `WrittenByRead`.
fn compute_packed_operation(entries: Vec<Entry>, file: u64, redirects: u64, compressed: bool) -> Result<Operation> {
    let mut operation = Operation { blocks: PAGE_BLOCKS, ..Operation::default() };
    for entry in entries {
        let (chain, trailers) = match entry {
            Entry::Read(chain, trailers) => (chain, trailers),
            Entry::Write(chain) => return Err(Error::WrittenByRead(chain)),
        };
        if trailers.iter().any(|trailer| is_contents(trailer.as_ref(), file)) {
            operation.reads.push(chain);
        } else if operation.reads.is_empty() {
            operation.pointers.push(chain);
        } else {
            operation.lookups.push(chain);
        }
    }
    let again = operation.reads.len().saturating_sub(redirects as usize);
    operation.redirected = operation.reads.split_off(again.max(usize::from(!operation.reads.is_empty())));
    match operation.reads.is_empty() {
        true => operation.cache_hits = PAGE_BLOCKS,
        false => operation.decompressed = if compressed { PAGE_BLOCKS } else { 0 },
    }
    Ok(operation)
}

/// The trailer of a compacted block only marks it as one.
fn is_contents(trailer: Option<&Trailer>, file: u64) -> bool {
    trailer.is_none_or(|trailer| content(trailer, file).is_some())
}

/// The processor events of a consistency point that writes chunks together: each chunk is a block
/// that gets a location.
fn compute_events(counted: &Point, before: &AggregateReport, now: &AggregateReport, reads: &[Chain]) -> CpuEvents {
    let chunks = now.counts.chunks_written - before.counts.chunks_written;
    let compacted = now.counts.compacted_blocks_written - before.counts.compacted_blocks_written;
    CpuEvents {
        block_clean: counted.writes.blocks + chunks - compacted,
        xor: counted.writes.blocks + counted.parity_reads.blocks,
        context_check: blocks(reads).saturating_sub(counted.parity_reads.blocks),
        fix_up: counted.fix_ups,
        // At least two blocks a group. No client writes here, so there are none.
        compression: u64::from(PAGE_BLOCKS) * (now.counts.groups_written - before.counts.groups_written),
        ..CpuEvents::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_during_a_read_is_an_error() {
        let chain = Chain { drive: 3, block: 17, blocks: 2 };
        let contents = Trailer { of_volume: true, level: 0, file: 40, block: 5 };
        let entries = vec![Entry::Read(chain, vec![Some(contents); 2])];
        let operation = compute_packed_operation(entries.clone(), 40, 0, false).unwrap();
        assert_eq!((operation.reads, operation.cache_hits), (vec![chain], 0));
        let written = [entries, vec![Entry::Write(chain)]].concat();
        let refused = compute_packed_operation(written, 40, 0, false).unwrap_err().to_string();
        assert!(refused.contains("drive 3") && refused.contains("2 blocks from 17 on"), "{refused}");
    }
}
