//! Prepares a process to serve a disk: nothing that frees memory may wait for it.

use std::{fs, num::NonZeroU64};

use rustix::mm::MlockAllFlags;

use super::cgroup;

/// Prepares this process and the threads it will start; call it first. Each step is tried, and its
/// result is recorded. If a step fails, the disk is less safe under memory pressure, but not wrong.
///
/// - It leaves memory-limited control groups.
/// - The out-of-memory killer never chooses it.
/// - Its allocations never wait for I/O, and its own writes are not throttled because of others
///   (`PR_SET_IO_FLUSHER`, made for FUSE servers and user-space disks, Linux 5.6).
/// - Touched memory stays in memory.
/// - Sleeps end within a microsecond of their time.
pub(crate) fn harden() -> Vec<String> {
    let mut notes = cgroup::leave_limited_groups();
    let mut note = |what: &str, outcome: Result<(), String>| {
        notes.push(match outcome {
            Ok(()) => what.to_owned(),
            Err(error) => format!("NOT {what}: {error}"),
        });
    };
    let text = |errno: rustix::io::Errno| errno.to_string();
    note("oom_score_adj -1000", fs::write("/proc/self/oom_score_adj", "-1000").map_err(|error| error.to_string()));
    note("io flusher", rustix::process::configure_io_flusher_behavior(true).map_err(text));
    let lock = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    note("memory locked", rustix::mm::mlockall(lock).map_err(text));
    note("timer slack 1 us", rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000)).map_err(text));
    notes
}
