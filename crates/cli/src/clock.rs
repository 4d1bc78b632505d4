//! The machine's clock: the one adapter that reads it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::{
    SignedDuration,
    civil::{Date, DateTime, Time},
};
use senesce_core::{Clock, Nanos};
use senesce_fsapi::Timestamp;

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Time zero is now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time of day, for files.
    pub fn unix_time() -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
    }
}

/// 1970-01-01, 00:00.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Seconds since 1970 as people and programs read them: `2026-11-23 06:40:12 UTC`. A time after the
/// year 9999 is shown as the end of that year.
pub fn tell_utc(unix_seconds: i64) -> String {
    EPOCH.saturating_add(SignedDuration::from_secs(unix_seconds)).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The day (UTC) of a time in seconds since 1970: `2026-11-23`.
pub fn tell_utc_day(unix_seconds: i64) -> String {
    let mut text = tell_utc(unix_seconds);
    text.truncate(text.find(' ').unwrap_or(text.len()));
    text
}

/// The start of a day (UTC) such as `2026-11-23`, seconds since 1970. `None` for another text, and
/// for days that no calendar from 1970 to 9999 has.
pub fn parse_utc_day(text: &str) -> Option<i64> {
    let day: Date = text.parse().ok()?;
    let seconds = day.to_datetime(Time::midnight()).duration_since(EPOCH).as_secs();
    // The library also reads other forms of a date.
    Some(seconds).filter(|seconds| *seconds >= 0 && tell_utc_day(*seconds) == text)
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_utc_day, tell_utc, tell_utc_day};

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, told) in [
            (-1, "1969-12-31 23:59:59 UTC"),
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59:59 UTC"),
            (4_102_444_800, "2100-01-01 00:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(tell_utc(seconds), told);
        }
    }

    #[test]
    fn printed_days_are_read() {
        for day in 0..200_000 {
            let seconds = day * 86_400;
            assert_eq!(parse_utc_day(&tell_utc_day(seconds + 86_399)), Some(seconds));
        }
        for bad in [
            "2027-02-29",
            "2027-13-01",
            "2027-00-10",
            "2027-01-00",
            "1969-12-31",
            "2027/01/01",
            "27-01-01",
            "20270101",
            "2027-01-01T00:00:00",
            "2027-01-0á",
        ] {
            assert_eq!(parse_utc_day(bad), None, "{bad}");
        }
    }
}
