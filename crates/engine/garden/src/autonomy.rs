//! Gardening that fits itself into what clients leave.
//!
//! Whoever serves a garden measures processors, drives and how long clients wait, and says so every second or so; in between it gives
//! the tasks a turn as often as it likes. The [`Scheduler`] says which of them may do how much. Passes that found all in order rest
//! until something was written again, but for scrubs, which come again every week. Where space is short the engine reclaims by itself, before it refuses anything, and asks nobody.
//!
//! Without a clock of its own: times are told, from any beginning on.

use senesce_core::Nanos;

use crate::{
    engine::Garden,
    error::{Error, Result},
    object_gardening::{ObjectGardening, ObjectPass},
    packing::RECOMPACTED_BELOW_PERCENT,
    scheduler::{Caution, Observed, Scheduler, Task},
    store::{Counts, FixUp, Gardening, Headroom},
};

const SECOND: u64 = 1_000_000_000;
/// 64 MiB/s at most, and a hundredth of what a log half of 1 GiB stands for at once. p99 of some hundred operations of real clients is
/// not known to a twentieth.
const CAUTION: Caution = Caution {
    most_per_second: 16_384.0,
    burst: 2048.0,
    ceiling: 0.6,
    tolerance: 1.25,
    averages: [Nanos(SECOND), Nanos(10 * SECOND), Nanos(300 * SECOND)],
};
/// p99 is of so many operations at least, or of what there were in so long.
const OPERATIONS: usize = 100;
const LONGEST: Nanos = Nanos(10 * SECOND);
/// Steps of a task in one turn at most: what finds nothing costs no tokens.
const STEPS: u32 = 4;
/// What one step looks at: pointers, VVBNs, stripes.
const POINTERS: u64 = 1024;
const VVBNS: u64 = 1024;
const STRIPES: u64 = 16;
/// Pointers in a block.
const PER_BLOCK: u64 = 256;

/// What whoever serves a garden measured since it said so the last time.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The time of now.
    pub now: Nanos,
    /// Busy processors, of all: 0 to 1.
    pub processors: f64,
    /// Busy drives, of all, or the part of the time in which somebody waited for one.
    pub drives: f64,
    /// The part of the time in which a consistency point was being written, as far as it is known.
    pub point: f64,
    /// How long each of clients' operations took.
    pub clients: Vec<Nanos>,
}

/// What the scheduler makes of it, and what was done since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AutonomyReport {
    /// Blocks a second that gardening may do now.
    pub pace: f64,
    /// Use of what is scarcest, 0 to 1; `None` before anything was seen.
    pub used: Option<f64>,
    /// Clients' p99, as it was found last, and as it is without gardening at the load of now.
    pub p99: Option<Nanos>,
    /// The second of them.
    pub usual_p99: Option<Nanos>,
    /// Blocks that were moved to clean areas.
    pub moved: u64,
    /// Pointers that were put right.
    pub fixed: u64,
    /// Blocks that were written together after reading.
    pub rewritten: u64,
    /// Blocks that left the drives for objects.
    pub tiered: u64,
    /// Blocks of objects that were written to others.
    pub rewritten_in_objects: u64,
    /// Whole passes over areas, pointers, objects, compacted blocks and stripes.
    pub passes: u64,
}

/// A task that goes over everything, again and again.
#[derive(Clone, Copy, Debug)]
struct Pass {
    task: Task,
    /// After its end it rests so long at least.
    rest: Nanos,
    until: Nanos,
    /// The volume that it is at.
    volume: usize,
    /// What had been done when it began; it does not begin again before more was.
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

/// Does for a garden what its policy wishes, as far as clients do not mind.
#[derive(Clone, Debug)]
pub struct Autonomy {
    scheduler: Scheduler,
    wished: Gardening,
    passes: [Pass; 5],
    /// What is done with objects, if anything is, and how far that is.
    objects: Option<ObjectGardening>,
    object_pass: ObjectPass,
    refilled: Nanos,
    seen: Nanos,
    /// How full the log was at most since then.
    log: f64,
    /// Clients' operations since p99 was told, and when that was.
    waits: Vec<Nanos>,
    told: Nanos,
    /// How many there were until then since p99 was told before, and in what time.
    before: (usize, Nanos),
    /// Something was done that the scheduler had allowed, since p99 was told.
    gardened: bool,
    /// At the last turn it allowed something. What the engine does when it does not is a part of what clients are used to.
    was_allowed: bool,
    /// Operations that changed something, as the log counts them.
    asked: u64,
    counts: Counts,
    report: AutonomyReport,
}

impl Autonomy {
    /// One that begins now and has seen nothing yet. What is wished is done only as it says from now on.
    pub fn new(garden: &Garden, wished: Gardening, now: Nanos) -> Self {
        let passes = [
            Pass::new(Task::Cleaning, 10),
            Pass::new(Task::FixUp, 10),
            Pass::new(Task::Objects, 600),
            Pass::new(Task::Recompaction, 600),
            Pass::new(Task::Scrub, 7 * 86_400),
        ];
        let mut scheduler = Scheduler::new(CAUTION);
        scheduler.set_idle(Task::Objects, true);
        let autonomy = Self {
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
            report: AutonomyReport::default(),
        };
        garden.set_gardening(autonomy.allowed());
        // What is left is judged here, once.
        garden.set_headroom(Headroom::default());
        autonomy
    }

    /// The same, that does this with objects, too; then the garden has a store of them.
    pub fn with_objects(mut self, wished: Option<ObjectGardening>) -> Self {
        self.scheduler.set_idle(Task::Objects, wished.is_none());
        self.objects = wished;
        self
    }

    /// Takes what was measured since the last time.
    pub fn observe(&mut self, seen: Seen) {
        let span = Nanos(seen.now.0.saturating_sub(self.seen.0));
        self.seen = seen.now;
        self.waits.extend(seen.clients);
        let window = Nanos(seen.now.0.saturating_sub(self.told.0));
        let per_second = self.per_second(window);
        let is_long = window.0 >= LONGEST.0;
        let is_known = self.waits.len() >= OPERATIONS || is_long && !self.waits.is_empty();
        let p99 = is_known.then(|| p99(&mut self.waits));
        self.scheduler.observe(&Observed {
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

    /// Clients' operations a second, over the time of which p99 is told and the one before: who asks once in some seconds is not nobody.
    fn per_second(&self, window: Nanos) -> f64 {
        let (operations, span) = self.before;
        (operations + self.waits.len()) as f64 * SECOND as f64 / (span.0 + window.0).max(1) as f64
    }

    fn look_at_log(&mut self, garden: &Garden) {
        let log = &garden.shared().lock().log;
        (self.log, self.asked) = (self.log.max(log.fill()), log.last());
    }

    /// Gives the tasks a turn. Says what a scrub found.
    ///
    /// Errors: those of the tasks, but for want of space, of which they leave what they were at. Cost: the tokens that there are.
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
                    // One block that cannot be read must not end all that is done beside serving, nor a store that is away.
                    Err(error @ (Error::Damaged { .. } | Error::ColdStore { .. })) => {
                        self.leave_out(at, now, error, &mut found);
                    }
                    // Another's objects end nothing but what is done with objects.
                    Err(error @ (Error::Invalid { .. } | Error::ForeignObjects { .. })) if self.is_at_objects(at) => {
                        found.push(format!("objects are left as they are until the garden is opened again: {error}"));
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

    /// Does nothing while the caller does such work itself: the engine cleans and rewrites nothing
    /// by itself, and what the caller does is not charged to gardening.
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

    /// A step met something that cannot be read: it is told. A pass over pointers goes on behind it, others come again after their rest.
    fn leave_out(&mut self, at: usize, now: Nanos, error: Error, found: &mut Vec<String>) {
        found.push(format!("left out: {error}"));
        let pass = &mut self.passes[at];
        self.scheduler.spend(pass.task, 1);
        if pass.task == Task::Objects {
            self.object_pass = ObjectPass::default();
        }
        if pass.task != Task::FixUp {
            (pass.is_running, pass.until, pass.volume) = (false, Nanos(now.0 + pass.rest.0), 0);
        }
    }

    /// What the scheduler makes of what was seen, and what was done.
    pub fn report(&self) -> AutonomyReport {
        let (pace, used) = (self.scheduler.pace(), self.scheduler.used());
        AutonomyReport { pace, used, usual_p99: self.scheduler.usual_p99(), ..self.report }
    }

    /// Tokens that were saved are worth nothing while there is no time at all.
    fn may(&self, task: Task) -> bool {
        self.scheduler.pace() > 0.0 && self.scheduler.may(task)
    }

    /// What the engine may do by itself now.
    fn allowed(&self) -> Gardening {
        Gardening {
            cleaning: self.wished.cleaning.filter(|_| self.may(Task::Cleaning)),
            write_after_read: self.wished.write_after_read.filter(|_| self.may(Task::WriteAfterRead)),
            ..self.wished
        }
    }

    /// What was done is paid for, whether a pass or the engine by itself did it.
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

    /// Whether a pass may take a step.
    fn is_on(&mut self, at: usize, now: Nanos) -> bool {
        let may = self.may(self.passes[at].task);
        let pass = &mut self.passes[at];
        // What moves, to other places or to objects, makes pointers old, and nothing else.
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
        // Bits turn where nobody writes, too.
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

    /// A step of the pass over objects: what it cost, and whether the pass has ended.
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

/// `None` where there was no space.
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
