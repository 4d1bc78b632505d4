//! The machine's clock: the one adapter that reads it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

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

/// Seconds since 1970 as people and programs read them: `2026-11-23 06:40:12 UTC`.
pub fn tell_utc(unix_seconds: i64) -> String {
    let (days, second) = (unix_seconds.div_euclid(86_400), unix_seconds.rem_euclid(86_400));
    // Years begin in March here, so that a day more in February is their last one; 719,468 days
    // before 1970 year 0 began.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + 400 * era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
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
    let is_digit = |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    if text.len() != 10 || !text.bytes().enumerate().all(is_digit) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    // Years begin in March, as in `tell_utc`.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    // A day that its month does not have is printed as another one.
    Some(days * 86_400).filter(|seconds| *seconds >= 0 && tell_utc_day(*seconds) == text)
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
            "2027-01-0á",
        ] {
            assert_eq!(parse_utc_day(bad), None, "{bad}");
        }
    }
}
