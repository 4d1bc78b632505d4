//! The machine's clock: the one adapter that reads it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use senesce_core::{Clock, Nanos};
use senesce_fsapi::Timestamp;

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time of day, for files.
    pub fn unix_time() -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}
