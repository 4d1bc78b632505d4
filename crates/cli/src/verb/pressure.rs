//! Pauses of work at idle priority, while other programs wait for I/O.

use std::{fs, time::Duration};

/// How long a pause is. This program does no I/O during a pause, so only others wait.
const PAUSE: Duration = Duration::from_millis(50);
/// The share of a pause in which some program waited for I/O that makes it a busy one, percent.
const PRESSURE_PERCENT: u64 = 10;

/// Waits for a pause. Returns whether hardly any program waited for I/O meanwhile; also true if the
/// kernel does not report it.
pub(super) fn is_quiet_for_a_pause() -> bool {
    let before = io_wait_micros();
    std::thread::sleep(PAUSE);
    let waited = io_wait_micros().zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
    waited * 100 < PAUSE.as_micros() as u64 * PRESSURE_PERCENT
}

/// Microseconds so far in which some program waited for I/O; none if the kernel does not report it.
fn io_wait_micros() -> Option<u64> {
    let text = fs::read_to_string("/proc/pressure/io").ok()?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
}
