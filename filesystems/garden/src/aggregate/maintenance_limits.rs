//! The scheduler of gardening: it limits tasks by the free resources and by the latency of clients.
//!
//! Each task has a bucket of tokens; a token is a block. Buckets are filled at a pace that falls
//! with the use of the scarcest resource. The most urgent task is filled first, and its surplus
//! goes to the next. If the clients' p99 exceeds its baseline without gardening at that load, the
//! pace is halved. It recovers in small steps. The scheduler has no side effects: the caller
//! measures and passes the time.

use std::collections::BTreeMap;

use senesce_core::Nanos;

/// The tasks, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Frees space when there is none, regardless of the latency of clients.
    Space,
    /// Cleans areas.
    Cleaning,
    /// Fixes pointers of files that are read often.
    FixUp,
    /// Rewrites blocks that were read in order and are apart.
    WriteAfterRead,
    /// Moves cold blocks to objects, and rewrites sparse objects.
    Objects,
    /// Merges compacted blocks that are mostly empty.
    Recompaction,
    /// Checks every block.
    Scrub,
}

impl Task {
    /// All tasks, the most urgent first.
    pub const ALL: [Self; 7] = [
        Self::Space,
        Self::Cleaning,
        Self::FixUp,
        Self::WriteAfterRead,
        Self::Objects,
        Self::Recompaction,
        Self::Scrub,
    ];
}

/// Measurements of one span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerSample {
    /// The span.
    pub span: Nanos,
    /// Client operations per second.
    pub per_second: f64,
    /// The share of busy processors, 0 to 1.
    pub processors: f64,
    /// The share of busy drives, 0 to 1.
    pub drives: f64,
    /// The fill level of the log when its halves were swapped, 0 to 1.
    pub log: f64,
    /// The share of the time in which a consistency point was being written.
    pub point: f64,
    /// The p99 of client operations, if it is known.
    pub p99: Option<Nanos>,
    /// Whether gardening did something in the span.
    pub gardened: bool,
}

/// The limits of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulerLimits {
    /// Blocks per second on an idle system, at most.
    pub most_per_second: f64,
    /// Tokens of a bucket, at most: the longest burst in blocks.
    pub burst: f64,
    /// The use of resources above which nothing is allowed.
    pub ceiling: f64,
    /// The factor by which p99 may exceed its baseline.
    pub tolerance: f64,
    /// Time constants of averages. The first two smooth the use of resources, the third the
    /// baseline of p99.
    pub averages: [Nanos; 3],
}

impl Default for SchedulerLimits {
    /// A quarter of 20 processors at 33 us a block; averages over 1 s, 10 s and 5 min.
    fn default() -> Self {
        Self {
            most_per_second: 150_000.0,
            burst: 20_000.0,
            ceiling: 0.6,
            tolerance: 1.05,
            averages: [Nanos(1_000_000_000), Nanos(10_000_000_000), Nanos(300_000_000_000)],
        }
    }
}

/// The lowest brake. It is not zero, because only further gardening shows that clients are no
/// longer affected.
const LEAST_PACE: f64 = 1.0 / 64.0;
/// The brake at the start, and the factors by which it recovers and falls.
const FIRST_PACE: f64 = 0.125;
const FASTER: f64 = 1.25;
const SLOWER: f64 = 0.5;

/// Decides how many blocks each task may process.
#[derive(Clone, Debug)]
pub struct Scheduler {
    limits: SchedulerLimits,
    /// Averages of use; `None` before the first measurement.
    use_over: Option<[f64; 2]>,
    /// p99 without gardening in ns, by load (the exponent of its power of two).
    baseline: BTreeMap<i32, f64>,
    /// `None` while clients send no operations.
    load: Option<i32>,
    /// The part of the pace that client latency allows.
    brake: f64,
    /// May be negative, because a task may exceed its tokens: an area is cleaned as a whole.
    tokens: [f64; Task::ALL.len()],
    /// Tasks that no worker runs; they receive no tokens.
    idle: [bool; Task::ALL.len()],
}

impl Scheduler {
    /// A scheduler without measurements. It allows only to free space.
    pub fn new(limits: SchedulerLimits) -> Self {
        let tokens = [0.0; Task::ALL.len()];
        Self {
            limits,
            use_over: None,
            baseline: BTreeMap::new(),
            load: Some(0),
            brake: FIRST_PACE,
            tokens,
            idle: [false; Task::ALL.len()],
        }
    }

    /// Sets whether no worker runs a task. Initially all tasks have one.
    pub fn set_idle(&mut self, task: Task, idle: bool) {
        self.idle[task as usize] = idle;
    }

    /// Takes the measurements since the previous call.
    pub fn observe(&mut self, observed: &SchedulerSample) {
        let used = observed.processors.max(observed.drives).max(observed.log).max(observed.point);
        let spans = self.limits.averages;
        self.use_over = Some(match self.use_over {
            None => [used; 2],
            Some([short, long]) => {
                [approach(short, used, observed.span, spans[0]), approach(long, used, observed.span, spans[1])]
            }
        });
        self.load = (observed.per_second > 0.0).then(|| observed.per_second.max(1.0).log2().floor() as i32);
        let (Some(load), Some(p99)) = (self.load, observed.p99.map(|p99| p99.0 as f64)) else { return };
        if !observed.gardened {
            let known = self.baseline.entry(load).or_insert(p99);
            *known = approach(*known, p99, observed.span, spans[2]);
        } else if self.baseline.get(&load).is_some_and(|usual| p99 > self.limits.tolerance * usual) {
            self.brake = (self.brake * SLOWER).max(LEAST_PACE);
        } else {
            self.brake = (self.brake * FASTER).min(1.0);
        }
    }

    /// Blocks per second that are allowed now. Zero if use is above the ceiling, or if p99 without
    /// gardening is unknown at this load. Without client operations no baseline is needed.
    pub fn pace(&self) -> f64 {
        let Some(used) = self.used() else { return 0.0 };
        if self.load.is_some_and(|load| !self.baseline.contains_key(&load)) {
            return 0.0;
        }
        let left = (self.limits.ceiling - used).max(0.0) / self.limits.ceiling;
        self.limits.most_per_second * left * self.brake
    }

    /// The p99 without gardening at the current load, if it is known.
    pub fn usual_p99(&self) -> Option<Nanos> {
        Some(Nanos(*self.baseline.get(&self.load?)? as u64))
    }

    /// The use of the scarcest resource, 0 to 1: the larger of the averages over the first two
    /// spans. `None` before the first measurement.
    pub fn used(&self) -> Option<f64> {
        self.use_over.map(|[short, long]| short.max(long))
    }

    /// Fills the buckets for a span of time.
    pub fn refill(&mut self, span: Nanos) {
        let mut new = self.pace() * span.0 as f64 / 1e9;
        for (tokens, task) in self.tokens.iter_mut().zip(Task::ALL) {
            // A bucket may exceed its limit after a hand-over. The surplus stays.
            let room = (self.limits.burst - *tokens).max(0.0);
            if task == Task::Space {
                *tokens += room;
                continue;
            }
            if self.idle[task as usize] {
                continue;
            }
            let part = room.min(new);
            *tokens += part;
            new -= part;
        }
    }

    /// Whether a task may do something.
    pub fn may(&self, task: Task) -> bool {
        self.tokens[task as usize] > 0.0
    }

    /// Moves tokens to another task: a moved block is finished only when its pointer is fixed.
    pub fn hand_over(&mut self, from: Task, to: Task, blocks: u64) {
        self.spend(from, blocks);
        self.tokens[to as usize] += blocks as f64;
    }

    /// Charges blocks to a task. They may exceed its tokens; then it waits longer.
    pub fn spend(&mut self, task: Task, blocks: u64) {
        self.tokens[task as usize] -= blocks as f64;
    }
}

/// Moves an average towards `value` after `span`. Avoids an exponential, which libraries round
/// differently.
fn approach(average: f64, value: f64, span: Nanos, over: Nanos) -> f64 {
    let part = span.0 as f64 / (span.0 as f64 + over.0 as f64).max(1.0);
    average + (value - average) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn observed(used: f64, p99: u64, gardened: bool) -> SchedulerSample {
        SchedulerSample {
            span: Nanos(3600 * SECOND.0),
            per_second: 1000.0,
            processors: used,
            drives: used / 2.0,
            log: 0.0,
            point: 0.0,
            p99: Some(Nanos(p99)),
            gardened,
        }
    }

    #[test]
    fn nothing_is_allowed_without_a_baseline() {
        let mut scheduler = Scheduler::new(SchedulerLimits::default());
        scheduler.refill(SECOND);
        assert!(!scheduler.may(Task::Cleaning) && scheduler.may(Task::Space));
        scheduler.observe(&SchedulerSample { p99: None, ..observed(0.1, 0, false) });
        assert_eq!(scheduler.pace(), 0.0);
        scheduler.observe(&observed(0.1, 1000, false));
        assert!(scheduler.pace() > 0.0);
        // Another load needs another baseline. Without clients none is needed.
        scheduler.observe(&SchedulerSample { per_second: 64_000.0, p99: None, ..observed(0.1, 0, false) });
        assert_eq!((scheduler.pace(), scheduler.usual_p99()), (0.0, None));
        scheduler.observe(&SchedulerSample { per_second: 0.0, p99: None, ..observed(0.1, 0, false) });
        assert!(scheduler.pace() > 0.0);
    }

    #[test]
    fn pace_falls_with_use_and_stops_at_ceiling() {
        let pace = |used: f64| {
            let mut scheduler = Scheduler::new(SchedulerLimits::default());
            scheduler.observe(&observed(used, 1000, false));
            scheduler.pace()
        };
        assert!(pace(0.1) > 1.5 * pace(0.3) && pace(0.3) > 0.0);
        assert_eq!((pace(0.6), pace(0.9)), (0.0, 0.0));
        // The scarcest resource counts.
        for scarce in [
            SchedulerSample { drives: 0.7, ..observed(0.1, 1, false) },
            SchedulerSample { log: 0.7, ..observed(0.1, 1, false) },
        ] {
            let mut scheduler = Scheduler::new(SchedulerLimits::default());
            scheduler.observe(&scarce);
            assert_eq!(scheduler.pace(), 0.0);
        }
        // A peak of one second counts at once, and fades only after several seconds.
        let mut scheduler = Scheduler::new(SchedulerLimits::default());
        scheduler.observe(&observed(0.1, 1000, false));
        let calm = scheduler.pace();
        scheduler.observe(&SchedulerSample { span: SECOND, ..observed(0.9, 1000, false) });
        let peak = scheduler.pace();
        scheduler.observe(&SchedulerSample { span: SECOND, ..observed(0.1, 1000, false) });
        assert!(peak < 0.4 * calm && scheduler.pace() > peak && scheduler.pace() < calm);
    }

    #[test]
    fn pace_halves_when_clients_slow_and_recovers_later() {
        let mut scheduler = Scheduler::new(SchedulerLimits::default());
        scheduler.observe(&observed(0.1, 1000, false));
        let first = scheduler.pace();
        scheduler.observe(&observed(0.1, 1060, true));
        assert_eq!(scheduler.pace(), first / 2.0);
        for _ in 0..40 {
            scheduler.observe(&observed(0.1, 1040, true));
        }
        assert_eq!(scheduler.pace(), first / FIRST_PACE);
        for _ in 0..40 {
            scheduler.observe(&observed(0.1, 2000, true));
        }
        assert_eq!(scheduler.pace(), first / FIRST_PACE * LEAST_PACE, "the pace never reaches zero");
    }

    #[test]
    fn urgent_buckets_fill_first_and_debts_count() {
        let limits =
            SchedulerLimits { most_per_second: 960.0, burst: 100.0, ceiling: 1.0, ..SchedulerLimits::default() };
        let mut scheduler = Scheduler::new(limits);
        scheduler.observe(&observed(0.0, 1000, false));
        // 120 tokens per second.
        scheduler.refill(SECOND);
        let tokens = |scheduler: &Scheduler| scheduler.tokens.map(|tokens| tokens as i64);
        assert_eq!(tokens(&scheduler), [100, 100, 20, 0, 0, 0, 0]);
        scheduler.spend(Task::Cleaning, 190);
        assert!(!scheduler.may(Task::Cleaning) && scheduler.may(Task::FixUp));
        scheduler.refill(SECOND);
        assert_eq!(tokens(&scheduler), [100, 30, 20, 0, 0, 0, 0]);
        scheduler.hand_over(Task::Cleaning, Task::FixUp, 30);
        assert_eq!(tokens(&scheduler), [100, 0, 50, 0, 0, 0, 0]);
        (0..20).for_each(|_| scheduler.refill(SECOND));
        assert_eq!(tokens(&scheduler), [100; 7]);
        // An idle task receives no tokens.
        scheduler.spend(Task::Objects, 100);
        scheduler.spend(Task::Scrub, 100);
        scheduler.set_idle(Task::Objects, true);
        scheduler.refill(SECOND);
        assert_eq!(tokens(&scheduler), [100, 100, 100, 100, 0, 100, 100]);
        scheduler.set_idle(Task::Objects, false);
        scheduler.refill(SECOND);
        assert_eq!(tokens(&scheduler), [100; 7]);
        // Tokens that were handed over exceed the limit, and other tasks do not receive them.
        scheduler.hand_over(Task::Cleaning, Task::FixUp, 50);
        scheduler.spend(Task::Scrub, 100);
        scheduler.refill(Nanos(SECOND.0 / 2));
        assert_eq!(tokens(&scheduler), [100, 100, 150, 100, 100, 100, 10]);
    }
}
