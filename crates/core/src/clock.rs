//! Time enters through a trait, so that only adapters know the machine's clock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Nanos;

/// A source of time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed point; may stand still, and on a bad host go backwards.
    fn now(&self) -> Nanos;
    /// Seconds since 1970-01-01 UTC, for records; never used in computations.
    fn unix_seconds(&self) -> u64;
}

/// A clock that moves when it is told to, for tests.
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
