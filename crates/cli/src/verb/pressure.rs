//! Pauses of work at idle priority, while other programs wait for I/O.

use std::{fs, time::Duration};

/// The length of a pause. This program does no I/O in a pause, so only others can wait for I/O.
const PAUSE: Duration = Duration::from_millis(50);
/// A pause is busy if some program waited for I/O in at least this share of it, percent.
const PRESSURE_PERCENT: u64 = 10;

/// Pauses. Returns whether the pause was not busy, or true if the kernel does not report waits.
pub(super) fn is_quiet_for_a_pause() -> bool {
    let before = io_wait_micros();
    std::thread::sleep(PAUSE);
    let waited = io_wait_micros().zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
    waited * 100 < PAUSE.as_micros() as u64 * PRESSURE_PERCENT
}

/// Microseconds since boot in which some program waited for I/O. `None`: the kernel does not report
/// them.
fn io_wait_micros() -> Option<u64> {
    let text = fs::read_to_string("/proc/pressure/io").ok()?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
}
