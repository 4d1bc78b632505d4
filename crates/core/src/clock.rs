//! The clock as a trait, so that only adapters use the clock of the machine.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Nanos;

/// A source of time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since a fixed point. The value may stand still, and on a bad host go backwards.
    fn now(&self) -> Nanos;
    /// Seconds since 1970-01-01 UTC, for records; never used in computations.
    fn unix_seconds(&self) -> u64;
}

/// A clock for tests, which moves only when it is set.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Sets the time, forwards or backwards.
    pub fn set(&self, now: Nanos) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(Ordering::SeqCst))
    }

    fn unix_seconds(&self) -> u64 {
        self.now().0 / 1_000_000_000
    }
}
