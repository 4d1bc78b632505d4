//! Starts, sizes and times the calls that hold locks of a file.
//!
//! Other programs wait while such a call runs. Its time depends on the kernel, the device and the
//! load. So the time of each call decides the size of the next one.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use senesce_core::Clock;
use serde::Serialize;

/// The longest range of one call, bytes.
const MOST_BYTES: u64 = 2 << 20;
/// The shortest range of one call of a longer range, bytes. See [`super::Mover::least_step_bytes`].
pub(super) const LEAST_BYTES: u64 = 64 << 10;
/// The range of the first call, bytes.
const FIRST_BYTES: u64 = 256 << 10;
/// A call should take at most this time. It is a fifth of the aim of 50 ms, because a call
/// sometimes also waits for the journal.
const MOST_MICROS: u64 = 10_000;

/// Longer times count as this one: an hour.
const MOST_TIMED_MICROS: u64 = 3_600_000_000;

/// The times of the calls that held locks of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StepFigures {
    /// The number of calls.
    pub calls: u64,
    /// The median time of a call, seconds.
    pub median_seconds: f64,
    /// 99% of the calls took at most this time, seconds.
    pub p99_seconds: f64,
    /// The longest time of a call, seconds.
    pub longest_seconds: f64,
}

/// Starts and times the calls of all batches.
pub struct Steps<'a> {
    pace: &'a mut dyn FnMut(u64) -> bool,
    clock: &'a dyn Clock,
    is_stopped: bool,
    least_bytes: u64,
    next_bytes: u64,
    micros: Histogram<u64>,
}

impl<'a> Steps<'a> {
    /// `pace` is called before each step with its bytes, and returns `false` to stop. `clock` times
    /// the calls; if it stands still, the sizes of calls depend on nothing but the plan.
    pub fn new(pace: &'a mut dyn FnMut(u64) -> bool, clock: &'a dyn Clock) -> Self {
        let micros = Histogram::new_with_bounds(1, MOST_TIMED_MICROS, 2).expect("the bounds are valid");
        Self { pace, clock, is_stopped: false, least_bytes: LEAST_BYTES, next_bytes: FIRST_BYTES, micros }
    }

    /// The same with another shortest range of one call, bytes.
    pub fn with_least_bytes(self, least_bytes: u64) -> Self {
        Self { least_bytes, next_bytes: self.next_bytes.max(least_bytes), ..self }
    }

    /// Asks the pace whether a step of `bytes` may run. The pace can wait. After `false`, no step
    /// may run.
    pub fn may_start(&mut self, bytes: u64) -> bool {
        self.is_stopped |= !(self.pace)(bytes);
        !self.is_stopped
    }

    /// Whether a step was not allowed to run.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the size of the next call, if `left` bytes of a range are left.
    pub fn next_bytes(&self, left: u64) -> u64 {
        left.min(self.next_bytes)
    }

    /// Runs and times a call that holds locks while it moves `bytes`. Adapts the size of the next
    /// one.
    pub fn time<T>(&mut self, bytes: u64, call: impl FnOnce() -> T) -> T {
        let start = self.clock.now();
        let result = call();
        let micros = self.clock.now().0.saturating_sub(start.0) / 1000;
        self.micros.saturating_record(micros);
        // Half the size would not shorten the call of a small file, so its time changes nothing.
        if micros > MOST_MICROS && 2 * bytes > self.next_bytes {
            self.next_bytes = (self.next_bytes / 2).max(self.least_bytes);
        } else if micros <= MOST_MICROS / 2 && bytes >= self.next_bytes {
            self.next_bytes = (self.next_bytes * 2).min(MOST_BYTES);
        }
        result
    }

    /// The times of all calls so far.
    pub fn figures(&self) -> StepFigures {
        let seconds = |micros: u64| micros as f64 / 1e6;
        StepFigures {
            calls: self.micros.len(),
            median_seconds: seconds(self.micros.value_at_quantile(0.5)),
            p99_seconds: seconds(self.micros.value_at_quantile(0.99)),
            longest_seconds: seconds(self.micros.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::{ManualClock, Nanos};

    use super::*;

    /// Runs calls of the largest allowed size. Each takes this time for each MiB and for itself.
    fn run(calls: usize, micros_per_mib: u64, micros_per_call: u64) -> (Vec<u64>, StepFigures) {
        let (clock, mut pace) = (ManualClock::default(), |_: u64| true);
        let mut steps = Steps::new(&mut pace, &clock);
        let mut sizes = Vec::new();
        for _ in 0..calls {
            let bytes = steps.next_bytes(1 << 30);
            let micros = bytes * micros_per_mib / (1 << 20) + micros_per_call;
            steps.time(bytes, || clock.set(Nanos(clock.now().0 + micros * 1000)));
            sizes.push(bytes);
        }
        (sizes, steps.figures())
    }

    #[test]
    fn slow_calls_become_short_and_fast_ones_long() {
        let (fast, figures) = run(10, 1000, 0);
        assert_eq!((fast[0], fast[9]), (FIRST_BYTES, MOST_BYTES));
        assert_eq!((figures.calls, figures.longest_seconds.round()), (10, 0.0));
        // 13 ms for a MiB: 512 KiB take 6.5 ms, and a MiB would take longer than 10 ms.
        let (usual, figures) = run(10, 13_000, 0);
        assert_eq!(usual[1..], [512 << 10; 9]);
        assert!((0.0064..0.0067).contains(&figures.longest_seconds), "{figures:?}");
        let (slow, _) = run(10, 13_000, 30_000);
        assert_eq!(slow[2..], [LEAST_BYTES; 8]);
        // A clock that stands still.
        assert_eq!(run(9, 0, 0), run(9, 0, 0));
    }

    #[test]
    fn slow_calls_of_small_files_change_no_size() {
        let (clock, mut pace) = (ManualClock::default(), |_: u64| true);
        let mut steps = Steps::new(&mut pace, &clock).with_least_bytes(1 << 20);
        assert_eq!(steps.next_bytes(1 << 30), 1 << 20);
        let mut run = |bytes: u64, millis: u64| {
            steps.time(bytes, || clock.set(Nanos(clock.now().0 + millis * 1_000_000)));
            steps.next_bytes(1 << 30)
        };
        assert_eq!(run(1 << 20, 1), 2 << 20);
        assert_eq!(run(8 << 10, 100), 2 << 20, "a small file");
        assert_eq!(run(1536 << 10, 100), 1 << 20);
        assert_eq!(run(1 << 20, 100), 1 << 20, "the least size");
    }

    #[test]
    fn no_step_runs_after_a_refusal() {
        let clock = ManualClock::default();
        let mut pace = |bytes: u64| bytes != 2;
        let mut steps = Steps::new(&mut pace, &clock);
        assert_eq!([1, 2, 1].map(|bytes| steps.may_start(bytes)), [true, false, false]);
        assert!(steps.is_stopped());
    }
}
