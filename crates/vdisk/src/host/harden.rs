//! Making a process fit to serve a disk: nothing that frees memory may wait for it.

use std::{fs, num::NonZeroU64};

use rustix::mm::MlockAllFlags;

use super::cgroup;

/// Prepares this process and the threads it will start; to be called first. Each step is tried and its outcome said:
/// whatever a machine refuses makes the disk less safe under memory pressure, not wrong.
///
/// - out of memory-limited control groups;
/// - never chosen by the out-of-memory killer;
/// - allocations never wait for I/O, and its own writes are not throttled for those of others (`PR_SET_IO_FLUSHER`,
///   made for FUSE servers and user-space disks, Linux 5.6);
/// - touched memory stays in memory;
/// - sleeps end within a microsecond of what was asked.
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
