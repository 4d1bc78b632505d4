//! When gardening may do how much: by what processors and drives have left, and by whether clients feel it.
//!
//! Each task has a bucket of tokens, a block each. Buckets are filled at a pace that falls with the use of the scarcest part of the
//! system, the most urgent task first; what it does not need goes to the next. When clients' p99 is above what it is at that load
//! without gardening, the pace is halved, and it comes back in small steps. Pure: whoever runs it observes, and tells the time.

use std::collections::BTreeMap;

use senesce_core::Nanos;

/// What there is to do, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Making room where there is none; it does not ask whether anybody feels it.
    Space,
    /// Cleaning areas.
    Cleaning,
    /// Putting right pointers of files that are read often.
    FixUp,
    /// Writing together again what was read in order.
    WriteAfterRead,
    /// Cold blocks that leave the drives, and objects that are mostly empty.
    Objects,
    /// Compacted blocks that are mostly empty.
    Recompaction,
    /// Looking at every block.
    Scrub,
}

impl Task {
    /// All, the most urgent first.
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

/// What the system was like for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// For how long.
    pub span: Nanos,
    /// Clients' operations a second.
    pub per_second: f64,
    /// Busy processors, of all: 0 to 1.
    pub processors: f64,
    /// Busy drives, of all.
    pub drives: f64,
    /// How full the log was when it was switched, of a half.
    pub log: f64,
    /// The part of the time in which a consistency point was being written.
    pub point: f64,
    /// Clients' p99, if it is known.
    pub p99: Option<Nanos>,
    /// Whether gardening did something meanwhile.
    pub gardened: bool,
}

/// How careful it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// Blocks a second at most, on a system that does nothing else.
    pub most_per_second: f64,
    /// Tokens that a bucket holds at most: what may be done at once.
    pub burst: f64,
    /// Use above which nothing is done.
    pub ceiling: f64,
    /// By what p99 may be above its baseline.
    pub tolerance: f64,
    /// Averages over these spans: the first two say what is left, the third what p99 is without gardening.
    pub averages: [Nanos; 3],
}

impl Default for Caution {
    /// A quarter of 20 processors at 33 us a block; averages of 1 s, 10 s and 5 min.
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

/// The slowest pace: it never stops trying for good, or it would not hear that clients do not mind any more.
const LEAST_PACE: f64 = 1.0 / 64.0;
/// The pace at the beginning, and what it comes back by where clients do not feel it.
const FIRST_PACE: f64 = 0.125;
const FASTER: f64 = 1.25;
const SLOWER: f64 = 0.5;

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    caution: Caution,
    /// Averages of use; none before anything was observed.
    use_over: Option<[f64; 2]>,
    /// p99 without gardening in ns, by load: its power of two.
    baseline: BTreeMap<i32, f64>,
    /// None while nobody asks for anything.
    load: Option<i32>,
    /// Of the pace that use allows.
    brake: f64,
    /// May be below zero: an area is cleaned whole.
    tokens: [f64; Task::ALL.len()],
    /// Nobody does it: it takes nothing from the others.
    idle: [bool; Task::ALL.len()],
}

impl Scheduler {
    /// One that has seen nothing yet, and allows nothing but to make room.
    pub fn new(caution: Caution) -> Self {
        let tokens = [0.0; Task::ALL.len()];
        Self {
            caution,
            use_over: None,
            baseline: BTreeMap::new(),
            load: Some(0),
            brake: FIRST_PACE,
            tokens,
            idle: [false; Task::ALL.len()],
        }
    }

    /// Whether there is nobody who does a task. In the beginning all are done.
    pub fn set_idle(&mut self, task: Task, idle: bool) {
        self.idle[task as usize] = idle;
    }

    /// What the system was like since the last time.
    pub fn observe(&mut self, observed: &Observed) {
        let used = observed.processors.max(observed.drives).max(observed.log).max(observed.point);
        let spans = self.caution.averages;
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
        } else if self.baseline.get(&load).is_some_and(|usual| p99 > self.caution.tolerance * usual) {
            self.brake = (self.brake * SLOWER).max(LEAST_PACE);
        } else {
            self.brake = (self.brake * FASTER).min(1.0);
        }
    }

    /// Blocks a second that are allowed now. None, where use is above the ceiling, and where p99 without gardening is not known at this
    /// load; where nobody asks for anything, nobody can feel it.
    pub fn pace(&self) -> f64 {
        let Some(used) = self.used() else { return 0.0 };
        if self.load.is_some_and(|load| !self.baseline.contains_key(&load)) {
            return 0.0;
        }
        let left = (self.caution.ceiling - used).max(0.0) / self.caution.ceiling;
        self.caution.most_per_second * left * self.brake
    }

    /// Clients' p99 without gardening at the load of now, if it is known.
    pub fn usual_p99(&self) -> Option<Nanos> {
        Some(Nanos(*self.baseline.get(&self.load?)? as u64))
    }

    /// Use of what is scarcest, 0 to 1: the greater of the averages of a second and of ten; `None` before anything was observed.
    pub fn used(&self) -> Option<f64> {
        self.use_over.map(|[short, long]| short.max(long))
    }

    /// So much time has gone by: buckets are filled.
    pub fn refill(&mut self, span: Nanos) {
        let mut new = self.pace() * span.0 as f64 / 1e9;
        for (tokens, task) in self.tokens.iter_mut().zip(Task::ALL) {
            // A bucket may hold more than it takes: what another task handed over. That is not taken back.
            let room = (self.caution.burst - *tokens).max(0.0);
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

    /// Of what one task has, so much is another's: a block that was moved is done when its pointer is right.
    pub fn hand_over(&mut self, from: Task, to: Task, blocks: u64) {
        self.spend(from, blocks);
        self.tokens[to as usize] += blocks as f64;
    }

    /// It did so many blocks. They may be more than it had tokens for; it waits the longer.
    pub fn spend(&mut self, task: Task, blocks: u64) {
        self.tokens[task as usize] -= blocks as f64;
    }
}

/// An average over a span, after so long at a value. Without an exponential, which libraries round differently.
fn approach(average: f64, value: f64, span: Nanos, over: Nanos) -> f64 {
    let part = span.0 as f64 / (span.0 as f64 + over.0 as f64).max(1.0);
    average + (value - average) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn observed(used: f64, p99: u64, gardened: bool) -> Observed {
        Observed {
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
    fn nothing_is_done_before_it_is_known_what_clients_are_used_to() {
        let mut scheduler = Scheduler::new(Caution::default());
        scheduler.refill(SECOND);
        assert!(!scheduler.may(Task::Cleaning) && scheduler.may(Task::Space));
        scheduler.observe(&Observed { p99: None, ..observed(0.1, 0, false) });
        assert_eq!(scheduler.pace(), 0.0);
        scheduler.observe(&observed(0.1, 1000, false));
        assert!(scheduler.pace() > 0.0);
        // Another load, another baseline; and where nobody is, none is needed.
        scheduler.observe(&Observed { per_second: 64_000.0, p99: None, ..observed(0.1, 0, false) });
        assert_eq!((scheduler.pace(), scheduler.usual_p99()), (0.0, None));
        scheduler.observe(&Observed { per_second: 0.0, p99: None, ..observed(0.1, 0, false) });
        assert!(scheduler.pace() > 0.0);
    }

    #[test]
    fn the_pace_falls_with_use_and_stops_at_the_ceiling() {
        let pace = |used: f64| {
            let mut scheduler = Scheduler::new(Caution::default());
            scheduler.observe(&observed(used, 1000, false));
            scheduler.pace()
        };
        assert!(pace(0.1) > 1.5 * pace(0.3) && pace(0.3) > 0.0);
        assert_eq!((pace(0.6), pace(0.9)), (0.0, 0.0));
        // Whatever is scarcest counts.
        for scarce in
            [Observed { drives: 0.7, ..observed(0.1, 1, false) }, Observed { log: 0.7, ..observed(0.1, 1, false) }]
        {
            let mut scheduler = Scheduler::new(Caution::default());
            scheduler.observe(&scarce);
            assert_eq!(scheduler.pace(), 0.0);
        }
        // A peak of a second is seen at once, and is over for good only after some.
        let mut scheduler = Scheduler::new(Caution::default());
        scheduler.observe(&observed(0.1, 1000, false));
        let calm = scheduler.pace();
        scheduler.observe(&Observed { span: SECOND, ..observed(0.9, 1000, false) });
        let peak = scheduler.pace();
        scheduler.observe(&Observed { span: SECOND, ..observed(0.1, 1000, false) });
        assert!(peak < 0.4 * calm && scheduler.pace() > peak && scheduler.pace() < calm);
    }

    #[test]
    fn clients_who_feel_it_slow_it_down_and_those_who_do_not_let_it_come_back() {
        let mut scheduler = Scheduler::new(Caution::default());
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
        assert_eq!(scheduler.pace(), first / FIRST_PACE * LEAST_PACE, "it goes on trying");
    }

    #[test]
    fn the_most_urgent_bucket_is_filled_first_and_a_debt_is_paid_before() {
        let caution = Caution { most_per_second: 960.0, burst: 100.0, ceiling: 1.0, ..Caution::default() };
        let mut scheduler = Scheduler::new(caution);
        scheduler.observe(&observed(0.0, 1000, false));
        // 120 a second.
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
        // What nobody does takes nothing.
        scheduler.spend(Task::Objects, 100);
        scheduler.spend(Task::Scrub, 100);
        scheduler.set_idle(Task::Objects, true);
        scheduler.refill(SECOND);
        assert_eq!(tokens(&scheduler), [100, 100, 100, 100, 0, 100, 100]);
        scheduler.set_idle(Task::Objects, false);
        scheduler.refill(SECOND);
        assert_eq!(tokens(&scheduler), [100; 7]);
        // What was handed over lies above the brim, and is nobody else's.
        scheduler.hand_over(Task::Cleaning, Task::FixUp, 50);
        scheduler.spend(Task::Scrub, 100);
        scheduler.refill(Nanos(SECOND.0 / 2));
        assert_eq!(tokens(&scheduler), [100, 100, 150, 100, 100, 100, 10]);
    }
}
