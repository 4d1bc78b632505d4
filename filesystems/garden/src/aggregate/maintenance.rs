//! Gardening by load: background work that uses only the resources that clients leave.
//!
//! The caller measures processors, drives and client latency, and reports them about every second
//! with [`MaintenanceController::observe`]. In between it calls [`MaintenanceController::work`] as
//! often as it likes. The [`Scheduler`] limits the blocks of each task. A pass that found nothing
//! to do rests until something was written; a scrub repeats every week. If space is short, the
//! engine reclaims it before it refuses an operation, regardless of the load.
//!
//! The module has no clock: the caller passes times, counted from any origin.

use senesce_core::Nanos;

use crate::{
    aggregate::Garden,
    aggregate::maintenance_limits::{Scheduler, SchedulerLimits, SchedulerSample, Task},
    aggregate::object_gardening::{ObjectGardening, ObjectPass},
    aggregate::packing::RECOMPACTED_BELOW_PERCENT,
    error::{Error, Result},
    store::{Counts, FixUp, Gardening, Headroom},
};

const SECOND: u64 = 1_000_000_000;
/// At most 64 MiB/s. A burst is 8 MiB, about 1/128 of the operations in a log half of 1 GiB. The
/// tolerance is 25%, because p99 of a few hundred operations is not accurate to 5%.
const SCHEDULER_LIMITS: SchedulerLimits = SchedulerLimits {
    most_per_second: 16_384.0,
    burst: 2048.0,
    ceiling: 0.6,
    tolerance: 1.25,
    averages: [Nanos(SECOND), Nanos(10 * SECOND), Nanos(300 * SECOND)],
};
/// p99 is computed over at least this number of operations, or over the operations of the span
/// `LONGEST`.
const OPERATIONS: usize = 100;
const LONGEST: Nanos = Nanos(10 * SECOND);
/// Steps of a task in one call of `work`, at most: steps that find nothing cost few tokens.
const STEPS: u32 = 4;
/// Pointers, VVBNs and stripes that one step scans.
const POINTERS: u64 = 1024;
const VVBNS: u64 = 1024;
const STRIPES: u64 = 16;
/// Pointers in a block.
const PER_BLOCK: u64 = 256;

/// Measurements since the previous report of the caller.
#[derive(Clone, Debug)]
pub struct LoadMeasurements {
    /// The current time.
    pub now: Nanos,
    /// The share of busy processors, 0 to 1.
    pub processors: f64,
    /// The share of busy drives, or the share of the time in which a request waited for a drive, 0
    /// to 1.
    pub drives: f64,
    /// The share of the time in which a consistency point was being written, as far as it is known.
    pub point: f64,
    /// The latency of each client operation.
    pub clients: Vec<Nanos>,
}

/// The state of the scheduler, and the work since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MaintenanceReport {
    /// Blocks per second that gardening may process now.
    pub pace: f64,
    /// The use of the scarcest resource, 0 to 1; `None` before the first measurement.
    pub used: Option<f64>,
    /// The last known p99 of client operations.
    pub p99: Option<Nanos>,
    /// The p99 without gardening at the current load, if it is known.
    pub usual_p99: Option<Nanos>,
    /// Blocks that were moved to clean areas.
    pub moved: u64,
    /// Pointers that were fixed.
    pub fixed: u64,
    /// Blocks that were rewritten in order after a read.
    pub rewritten: u64,
    /// Blocks that moved from drives to objects.
    pub tiered: u64,
    /// Blocks of objects that moved to other objects.
    pub rewritten_in_objects: u64,
    /// Completed passes over areas, pointers, objects, compacted blocks and stripes.
    pub passes: u64,
}

/// A task that repeatedly passes over the whole aggregate.
#[derive(Clone, Copy, Debug)]
struct Pass {
    task: Task,
    /// The least pause after a pass.
    rest: Nanos,
    until: Nanos,
    /// The index of the volume that the pass is at.
    volume: usize,
    /// The number of changes at the start of the last pass. The next pass starts only if the number
    /// differs.
    begun_at: u64,
    is_running: bool,
}

impl Pass {
    const fn new(task: Task, rest_seconds: u64) -> Self {
        Self {
            task,
            rest: Nanos(rest_seconds * SECOND),
            until: Nanos(0),
            volume: 0,
            begun_at: u64::MAX,
            is_running: false,
        }
    }
}

/// Runs the gardening that a policy allows for a garden, while clients are not slowed down.
#[derive(Clone, Debug)]
pub struct MaintenanceController {
    scheduler: Scheduler,
    wished: Gardening,
    passes: [Pass; 5],
    /// The policy for objects, if there is one, and the state of its pass.
    objects: Option<ObjectGardening>,
    object_pass: ObjectPass,
    refilled: Nanos,
    seen: Nanos,
    /// The highest fill level of the log since the last measurement.
    log: f64,
    /// Latencies of client operations since p99 was last computed, and the time of that.
    waits: Vec<Nanos>,
    told: Nanos,
    /// The number of operations and the span of the previous p99 window.
    before: (usize, Nanos),
    /// Whether gardening that the scheduler allowed did something in the current p99 window.
    gardened: bool,
    /// Whether the scheduler allowed anything at the last call of `work`. Work that the engine does
    /// without permission is part of the baseline of clients.
    was_allowed: bool,
    /// The last record of the log: the number of operations that changed something.
    asked: u64,
    counts: Counts,
    report: MaintenanceReport,
}

impl MaintenanceController {
    /// Starts with no measurement. From now on the garden does only the gardening that the
    /// scheduler allows, within the policy `wished`.
    pub fn new(garden: &Garden, wished: Gardening, now: Nanos) -> Self {
        let passes = [
            Pass::new(Task::Cleaning, 10),
            Pass::new(Task::FixUp, 10),
            Pass::new(Task::Objects, 600),
            Pass::new(Task::Recompaction, 600),
            Pass::new(Task::Scrub, 7 * 86_400),
        ];
        let mut scheduler = Scheduler::new(SCHEDULER_LIMITS);
        scheduler.set_idle(Task::Objects, true);
        let controller = Self {
            scheduler,
            wished,
            passes,
            objects: None,
            object_pass: ObjectPass::default(),
            refilled: now,
            seen: now,
            log: 0.0,
            waits: Vec::new(),
            told: now,
            before: (0, Nanos(0)),
            gardened: false,
            was_allowed: false,
            asked: 0,
            counts: garden.shared().lock().counts,
            report: MaintenanceReport::default(),
        };
        garden.set_gardening(controller.allowed());
        // The scheduler decides on the remaining resources, so the engine must not do it a second
        // time.
        garden.set_headroom(Headroom::default());
        controller
    }

    /// Also gardens objects by this policy. The garden then needs an object store.
    pub fn with_objects(mut self, wished: Option<ObjectGardening>) -> Self {
        self.scheduler.set_idle(Task::Objects, wished.is_none());
        self.objects = wished;
        self
    }

    /// Passes the measurements since the previous call to the scheduler.
    pub fn observe(&mut self, seen: LoadMeasurements) {
        let span = Nanos(seen.now.0.saturating_sub(self.seen.0));
        self.seen = seen.now;
        self.waits.extend(seen.clients);
        let window = Nanos(seen.now.0.saturating_sub(self.told.0));
        let per_second = self.per_second(window);
        let is_long = window.0 >= LONGEST.0;
        let is_known = self.waits.len() >= OPERATIONS || is_long && !self.waits.is_empty();
        let p99 = is_known.then(|| p99(&mut self.waits));
        self.scheduler.observe(&SchedulerSample {
            span,
            per_second,
            processors: seen.processors,
            drives: seen.drives,
            log: std::mem::take(&mut self.log),
            point: seen.point,
            p99,
            gardened: self.gardened,
        });
        if is_known || is_long {
            (self.told, self.gardened) = (seen.now, false);
            self.before = (self.waits.len(), window);
            self.waits.clear();
        }
        self.report.p99 = p99.or(self.report.p99);
    }

    /// Client operations per second over this p99 window and the previous one, so that slow clients
    /// still count as load.
    fn per_second(&self, window: Nanos) -> f64 {
        let (operations, span) = self.before;
        (operations + self.waits.len()) as f64 * SECOND as f64 / (span.0 + window.0).max(1) as f64
    }

    fn look_at_log(&mut self, garden: &Garden) {
        let log = &garden.shared().lock().log;
        (self.log, self.asked) = (self.log.max(log.fill()), log.last());
    }

    /// Runs steps of all tasks that the scheduler allows. Returns the findings of a scrub and the
    /// blocks that a task skipped.
    ///
    /// Errors: those of the tasks, except lack of space, which ends the task at its position.
    ///
    /// Cost: the available tokens.
    pub fn work(&mut self, garden: &Garden, now: Nanos) -> Result<Vec<String>> {
        self.look_at_log(garden);
        self.account(garden);
        self.scheduler.refill(Nanos(now.0.saturating_sub(self.refilled.0)));
        self.refilled = now;
        let allowed = self.allowed();
        if allowed != garden.gardening() {
            garden.set_gardening(allowed);
        }
        let mut found = Vec::new();
        for at in 0..self.passes.len() {
            for _ in 0..STEPS {
                if !self.is_on(at, now) {
                    break;
                }
                match self.step(garden, at, now, &mut found) {
                    // One unreadable block, or an object store that is away, must not stop all
                    // gardening.
                    Err(error @ (Error::Damaged { .. } | Error::ColdStore { .. })) => {
                        self.leave_out(at, now, error, &mut found);
                    }
                    // A store with objects of another aggregate stops only the gardening of
                    // objects.
                    Err(error @ (Error::Invalid { .. } | Error::ForeignObjects { .. })) if self.is_at_objects(at) => {
                        found.push(format!("skips objects until the garden is opened again: {error}"));
                        self.objects = None;
                        self.scheduler.set_idle(Task::Objects, true);
                        break;
                    }
                    done => done?,
                }
                self.gardened = true;
            }
        }
        self.account(garden);
        self.was_allowed = self.scheduler.pace() > 0.0;
        Ok(found)
    }

    /// Pauses gardening while the caller does such work itself. The engine neither cleans nor
    /// rewrites, and the work of the caller costs no tokens.
    pub fn pause(&mut self, garden: &Garden, now: Nanos) {
        self.look_at_log(garden);
        self.counts = garden.shared().lock().counts;
        self.refilled = now;
        let allowed = Gardening { cleaning: None, write_after_read: None, ..self.wished };
        if allowed != garden.gardening() {
            garden.set_gardening(allowed);
        }
    }

    fn is_at_objects(&self, at: usize) -> bool {
        self.passes[at].task == Task::Objects
    }

    /// Reports a part that cannot be read. A pass over pointers continues after it; other passes
    /// start again after their pause.
    fn leave_out(&mut self, at: usize, now: Nanos, error: Error, found: &mut Vec<String>) {
        found.push(format!("skipped: {error}"));
        let pass = &mut self.passes[at];
        self.scheduler.spend(pass.task, 1);
        if pass.task == Task::Objects {
            self.object_pass = ObjectPass::default();
        }
        if pass.task != Task::FixUp {
            (pass.is_running, pass.until, pass.volume) = (false, Nanos(now.0 + pass.rest.0), 0);
        }
    }

    /// The state of the scheduler, and the work since the start.
    pub fn report(&self) -> MaintenanceReport {
        let (pace, used) = (self.scheduler.pace(), self.scheduler.used());
        MaintenanceReport { pace, used, usual_p99: self.scheduler.usual_p99(), ..self.report }
    }

    /// Whether a task may do something. Saved tokens do not count while the pace is zero.
    fn may(&self, task: Task) -> bool {
        self.scheduler.pace() > 0.0 && self.scheduler.may(task)
    }

    /// The gardening that the engine may do by itself now.
    fn allowed(&self) -> Gardening {
        Gardening {
            cleaning: self.wished.cleaning.filter(|_| self.may(Task::Cleaning)),
            write_after_read: self.wished.write_after_read.filter(|_| self.may(Task::WriteAfterRead)),
            ..self.wished
        }
    }

    /// Charges finished work to its task, whether a pass or the engine did it.
    fn account(&mut self, garden: &Garden) {
        let now = garden.shared().lock().counts;
        let since = |count: fn(&Counts) -> u64| count(&now) - count(&self.counts);
        let moved = since(|counts| counts.relocations);
        let metadata = since(|counts| counts.metadata_relocations);
        let fixed = since(|counts| counts.fix_ups);
        let rewritten = since(|counts| counts.rewritten_after_read);
        self.counts = now;
        self.scheduler.spend(Task::Cleaning, moved + metadata);
        self.scheduler.hand_over(Task::Cleaning, Task::FixUp, moved);
        self.scheduler.spend(Task::FixUp, fixed);
        self.scheduler.spend(Task::WriteAfterRead, rewritten);
        self.gardened |= self.was_allowed && moved + metadata + fixed + rewritten > 0;
        self.report.moved += moved + metadata;
        self.report.fixed += fixed;
        self.report.rewritten += rewritten;
    }

    /// Whether a pass may take a step. Starts the pass if it is due.
    fn is_on(&mut self, at: usize, now: Nanos) -> bool {
        let may = self.may(self.passes[at].task);
        let pass = &mut self.passes[at];
        // Only moves, to other places or to objects, make pointers stale.
        let moved = self.counts.relocations + self.counts.tiered;
        let done = self.asked + if pass.task == Task::FixUp { moved } else { 0 };
        let is_wished = match pass.task {
            Task::Cleaning => self.wished.cleaning.is_some(),
            Task::FixUp => self.wished.fix_up != FixUp::Never,
            Task::Objects => self.objects.is_some(),
            _ => true,
        };
        if !is_wished || !may {
            return false;
        }
        // A scrub also repeats without changes, because bits decay on idle drives too.
        let is_new = done != pass.begun_at || pass.task == Task::Scrub;
        if !pass.is_running && now.0 >= pass.until.0 && is_new {
            (pass.is_running, pass.begun_at) = (true, done);
        }
        pass.is_running
    }

    fn step(&mut self, garden: &Garden, at: usize, now: Nanos, found: &mut Vec<String>) -> Result<()> {
        let Pass { task, volume, .. } = self.passes[at];
        let volumes = garden.volumes();
        let (cost, ended) = match (task, volumes.get(volume)) {
            (Task::Cleaning, _) => {
                let step = without_space(garden.scan_step(1, self.wished.cleaning.unwrap_or_default()))?;
                (1, step.is_none_or(|step| step.done == step.of))
            }
            (Task::Scrub, _) => {
                let step = garden.scrub_step(STRIPES)?;
                for one in step.repaired.iter().chain(&step.parity_repaired) {
                    found.push(format!("put right: {one}"));
                }
                found.extend(step.lost.iter().map(|one| format!("lost: {one}")));
                let drives = garden.shared().lock().raid.geometry.drives() as u64;
                (STRIPES * drives, step.done == step.of)
            }
            (Task::Objects, _) => self.step_objects(garden)?,
            (_, None) => (0, true),
            (Task::FixUp, Some(name)) => {
                let step = without_space(garden.fix_up_step(name, POINTERS))?;
                let ended = step.is_none_or(|step| step.ended || step.no_space);
                self.passes[at].volume += usize::from(ended);
                (POINTERS / PER_BLOCK, ended && volume + 1 >= volumes.len())
            }
            (_, Some(name)) => {
                let step = match garden.packing(name)?.compaction {
                    true => without_space(garden.recompact_step(name, VVBNS, RECOMPACTED_BELOW_PERCENT))?,
                    false => None,
                };
                let ended = step.is_none_or(|step| step.is_done);
                self.passes[at].volume += usize::from(ended);
                (1 + step.map_or(0, |step| step.read), ended && volume + 1 >= volumes.len())
            }
        };
        self.scheduler.spend(task, cost);
        if ended {
            let pass = &mut self.passes[at];
            (pass.is_running, pass.until, pass.volume) = (false, Nanos(now.0 + pass.rest.0), 0);
            self.report.passes += 1;
        }
        Ok(())
    }

    /// Runs a step of the pass over objects. Returns its cost, and whether the pass has ended.
    fn step_objects(&mut self, garden: &Garden) -> Result<(u64, bool)> {
        let Some(wished) = self.objects else { return Ok((0, true)) };
        let Some(step) = without_space(self.object_pass.step(garden, &wished))? else {
            self.object_pass = ObjectPass::default();
            return Ok((1, true));
        };
        self.report.tiered += step.tiered;
        self.report.rewritten_in_objects += step.rewritten;
        Ok((step.cost, step.ended))
    }
}

/// Turns lack of space into `None`.
fn without_space<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Error::NoSpace { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn p99(waits: &mut [Nanos]) -> Nanos {
    let at = (waits.len() * 99 / 100).min(waits.len() - 1);
    *waits.select_nth_unstable(at).1
}
