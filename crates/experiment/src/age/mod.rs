//! Aging without an experiment: one workload runs on one place until it has the requested age.
//!
//! [`plan_aging`] makes a plan of a workload's name and settings. [`age_into`] applies its steps to
//! a directory, with the executor and the log of experiments. It measures nothing on the way,
//! compares nothing, and cannot be resumed.

mod layout;
mod plan;
mod until;

use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use senesce_core::{Bytes, Clock};
use senesce_exec::{Guard, Latencies, LatencyHistogram, OpKind, Target, TimedTarget, apply_step_parallel};
use senesce_oplog::{DoneStep, LogWriter, Op, Outcome, SpaceChange};
use senesce_workload::Feedback;
use serde::{Serialize, Serializer};

use crate::{
    Error, Onto, Source,
    arm::{check_signal, sync_step, written_bytes},
    plan::{Engine, Plan, WorkloadKind},
};

pub use layout::{Layout, collect_layout};
pub use plan::plan_aging;
pub use until::{Ages, Until};

/// A requested layout score is checked each time that this percentage of the bytes of set-up was
/// written.
const LOOK_EVERY_PERCENT: u64 = 2;

/// The reason why the aging stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgeEnded {
    /// All requested ages are reached.
    Reached,
    /// The bound on counted steps is reached.
    Steps,
    /// The workload has no more steps.
    Workload,
}

/// The result of an aging.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgeEnd {
    /// The reason why it stopped.
    pub ended: AgeEnded,
    /// The requested ages that are not reached, in words.
    pub missed: Vec<String>,
    /// Steps applied, with set-up and synchronisations.
    pub steps: u64,
    /// Steps after set-up: rounds, pulls, cycles.
    pub counted_steps: u64,
    /// Applied operations.
    pub operations: u64,
    /// Bytes of content that were written.
    pub written_bytes: u64,
    /// Bytes that were reserved for files and not written.
    pub reserved_bytes: u64,
    /// Steps that stopped for lack of space.
    pub no_space_steps: u64,
    /// Capacity of the file system, bytes.
    pub capacity_bytes: u64,
    /// Free space at the end, bytes.
    pub free_bytes: u64,
    /// 1 − free / capacity.
    pub fullness: f64,
    /// Bytes written or reserved after set-up, divided by those of set-up. 0 if set-up is not
    /// complete.
    pub turnover: f64,
    /// The layout of the tree. `None` if the file system does not report it.
    pub layout: Option<Layout>,
    /// Latencies of operations by kind. If set-up is complete, only those after it.
    pub latencies: Vec<AgeLatency>,
    /// The figures that the workload itself reports. A value that is a number is a number in JSON.
    #[serde(serialize_with = "write_figures")]
    #[schemars(schema_with = "figures_schema")]
    pub workload: Vec<(String, String)>,
}

fn figures_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": ["number", "string"] } })
}

fn write_figures<S: Serializer>(figures: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    let number = |text: &str| text.parse::<serde_json::Number>().map_or(text.into(), serde_json::Value::Number);
    to.collect_map(figures.iter().map(|(name, value)| (name, number(value))))
}

/// Latency of the operations of one kind, nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgeLatency {
    /// The kind, as results spell it.
    pub kind: &'static str,
    /// Number of operations.
    pub operations: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl AgeLatency {
    fn of(latencies: &Latencies) -> Vec<Self> {
        let row = |(kind, of): (OpKind, &LatencyHistogram)| {
            let at = |quantile| of.quantile(quantile).map_or(0, |latency| latency.0);
            let (p50_ns, p99_ns, p999_ns) = (at(0.5), at(0.99), at(0.999));
            Self { kind: kind.name(), operations: of.count(), p50_ns, p99_ns, p999_ns, max_ns: of.max().0 }
        };
        latencies.iter().map(row).collect()
    }
}

/// The parameters of [`age_into`].
pub struct AgeOptions<'a> {
    /// The plan. Its first arm has the workload.
    pub plan: &'a Plan,
    /// The place: an empty directory, or an empty engine in this process.
    pub onto: Onto<'a>,
    /// The plan's source. The caller opens it before it makes the volume.
    pub source: &'a Source,
    /// A new operation log.
    pub log: Option<&'a Path>,
    /// The condition that stops the aging.
    pub until: &'a Until,
    /// Threads that read the layout.
    pub threads: usize,
    /// Threads that apply operations. More than one is for the workload `profile` only.
    pub apply_threads: usize,
    /// Times the operations.
    pub clock: &'a dyn Clock,
}

/// Applies the workload below the root until `until` holds, and synchronizes.
///
/// Calls `make_anew` for a workload that needs a fresh volume: it makes one at the same root. Calls
/// `each` with the ages after every step.
///
/// Errors: a parameter out of range, a volume too small, an operation that fails, a signal. The
/// volume keeps the applied steps. Cost: a requested layout score also needs some maps of the tree.
/// A map writes back cached data, which has a small effect on the layout.
pub fn age_into(
    options: &AgeOptions<'_>,
    make_anew: &mut dyn FnMut() -> Result<(), Error>,
    each: &mut dyn FnMut(&Ages),
) -> Result<AgeEnd, Error> {
    age_all(options, make_anew, each).or_else(|error| {
        // Work that a signal stopped returns its own error.
        check_signal()?;
        Err(error)
    })
}

fn age_all(
    options: &AgeOptions<'_>,
    make_anew: &mut dyn FnMut() -> Result<(), Error>,
    each: &mut dyn FnMut(&Ages),
) -> Result<AgeEnd, Error> {
    let AgeOptions { plan, onto, source, log, until, threads, apply_threads, clock } = *options;
    let mut arm = plan.arms().swap_remove(0);
    arm.engine = Engine::Native;
    let (mut workload, contents) = source.workload(plan, &arm)?;
    let header = || source.log_header(plan, &arm);
    let mut log = log.map(|path| LogWriter::create(path, &header())).transpose()?;
    // The workload may be a stranger's recorded log.
    let guard = Guard::new(false);
    let open = || -> Result<Vec<Box<dyn Target>>, Error> {
        let guarded =
            |_| -> Result<Box<dyn Target>, Error> { Ok(Box::new(guard.over(onto.open(source.is_direct())?))) };
        (0..apply_threads.max(1)).map(guarded).collect()
    };
    let ask = |target: &mut Box<dyn Target>| target.space().map_err(|error| onto.no_space_told(error));
    let mut targets = open()?;
    let mut latencies = vec![Latencies::default(); targets.len()];
    let mut volume = Aging { onto, threads, ages: Ages::default(), set_up_bytes: None, given_bytes: 0, looked_at: 0 };
    let (mut written, mut reserved) = (0, 0);
    let (mut last, mut unsynced, mut no_space_steps) = (None, 0u64, 0u64);
    let (mut steps, mut operations) = (0u64, 0u64);
    let every = plan.workload.sync_every_operations;
    let fills =
        plan.fills_volume() || plan.workload.overwrite.as_ref().is_some_and(|table| table.fill_percent.is_some());
    // The full-disk edition of git also fills the volume, but deletes whole copies when it is full.
    let holds = fills && plan.workload.kind != WorkloadKind::History;
    let mut apply = |targets: &mut [Box<dyn Target>], latencies: &mut [Latencies], number, step| -> Result<_, Error> {
        let timed = targets.iter_mut().zip(latencies).map(|(target, own)| TimedTarget::new(target, clock, own));
        let done = apply_step_parallel(&mut timed.collect::<Vec<_>>(), number, step, &*contents)?;
        if let Some(log) = &mut log {
            log.append(&done)?;
        }
        Ok(done)
    };
    let ended = loop {
        check_signal()?;
        let space = ask(&mut targets[0])?;
        volume.ages.note_space(space.capacity, space.free);
        if until.is_reached(&volume.ages, fills, holds) {
            break AgeEnded::Reached;
        }
        let at_bound = until.steps.is_some_and(|steps| volume.ages.counted_steps >= steps);
        if at_bound && last.is_none_or(|last| workload.is_whole(&last)) {
            break AgeEnded::Steps;
        }
        let feedback = Feedback { capacity: space.capacity, free: space.free, last };
        let Some(step) = workload.next_step(&feedback)? else { break AgeEnded::Workload };
        if volume.set_up_bytes.is_none() && (step.counted || workload.is_set_up()) {
            volume.set_up_bytes = Some(volume.given_bytes);
            latencies = vec![Latencies::default(); targets.len()];
        }
        if workload.wants_fresh_volume() {
            drop(targets);
            make_anew()?;
            targets = open()?;
        }
        volume.ages.counted_steps += u64::from(step.counted);
        let done = apply(&mut targets, &mut latencies, steps, step)?;
        steps += 1;
        operations += done.step.ops.len() as u64;
        unsynced += done.step.ops.len() as u64;
        written += written_bytes(&done);
        reserved += reserved_bytes(&done);
        volume.given_bytes = written + reserved;
        if let Outcome::NoSpace { .. } = done.outcome {
            no_space_steps += 1;
            workload.on_partial_step(&done.step.ops);
        }
        last = Some(done.outcome);
        if every > 0 && unsynced >= every {
            apply(&mut targets, &mut latencies, steps, sync_step())?;
            (steps, unsynced) = (steps + 1, 0);
        }
        volume.grow_older(until)?;
        each(&volume.ages);
    };
    // Every log ends with this step, so the figures describe the data on the volume.
    apply(&mut targets, &mut latencies, steps, sync_step())?;
    if let Some(log) = log {
        log.finish()?;
    }
    let space = ask(&mut targets[0])?;
    drop(targets);
    let layout = onto.collect_layout(threads)?;
    let mut ages = volume.ages;
    ages.note_space(space.capacity, space.free);
    ages.layout_score = layout.as_ref().and_then(|layout| layout.layout_score);
    let reached = workload.reached().into_iter().map(|(name, value)| (name.to_owned(), value));
    let withheld = (!guard.withheld().is_nothing()).then(|| ("not replayed".to_owned(), guard.withheld().to_string()));
    let mut all = Latencies::default();
    latencies.iter().for_each(|own| all.add(own));
    Ok(AgeEnd {
        ended,
        missed: until.compute_missed(&ages, holds),
        steps: steps + 1,
        counted_steps: ages.counted_steps,
        operations,
        written_bytes: written,
        reserved_bytes: reserved,
        no_space_steps,
        capacity_bytes: space.capacity.0,
        free_bytes: space.free.0,
        fullness: ages.fullness,
        turnover: ages.turnover,
        layout,
        latencies: AgeLatency::of(&all),
        workload: reached.chain(withheld).collect(),
    })
}

struct Aging<'a> {
    onto: Onto<'a>,
    threads: usize,
    ages: Ages,
    /// Bytes that set-up wrote and reserved. `None` until it is complete.
    set_up_bytes: Option<u64>,
    /// Bytes written or reserved for files.
    given_bytes: u64,
    /// Value of `given_bytes` at the last check of the layout.
    looked_at: u64,
}

impl Aging<'_> {
    fn grow_older(&mut self, until: &Until) -> Result<(), Error> {
        let Some(set_up) = self.set_up_bytes else { return Ok(()) };
        self.ages.turnover = (self.given_bytes - set_up) as f64 / set_up.max(1) as f64;
        let since = self.given_bytes - self.looked_at;
        if until.layout_score.is_some() && since * 100 >= set_up.max(Bytes::MIB) * LOOK_EVERY_PERCENT {
            self.looked_at = self.given_bytes;
            self.ages.layout_score = self.onto.collect_layout(self.threads)?.and_then(|layout| layout.layout_score);
        }
        Ok(())
    }
}

/// Bytes that a step reserved without writing them.
fn reserved_bytes(done: &DoneStep) -> u64 {
    let of = |op: &Op| match op {
        Op::Allocate { len, .. }
        | Op::Fallocate { how: SpaceChange::Reserve | SpaceChange::ReserveKeepSize, len, .. } => *len,
        _ => 0,
    };
    let end = match done.outcome {
        Outcome::NoSpace { failed_op, .. } => failed_op,
        Outcome::Done => done.step.ops.len(),
    };
    done.step.ops.iter().take(end).map(of).sum()
}
