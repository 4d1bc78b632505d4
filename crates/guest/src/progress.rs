//! The progress of the processes of a guest, for the watchdog.
//!
//! A guest that waits for a disk of the host sends nothing, because its one processor waits.

use std::{collections::BTreeSet, fs, time::Duration};

use rustix::process::Pid;

/// A silent guest that uses less than this part of a processor does nothing but keep its clock.
const IDLE_PERCENT: u128 = 2;

/// The sums over a process and its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Processor time.
    busy: Duration,
    /// Bytes that were read from or written to block devices.
    bytes: u64,
    /// Whether a process is in uninterruptible sleep, as in a long fsync.
    is_waiting: bool,
}

impl Progress {
    /// Reads the progress of `root` and its descendants. Processes that cannot be read count as
    /// idle. Cost: reads a file of each process of the machine.
    pub(crate) fn of(root: Pid) -> Self {
        let stats = read_stats();
        let mut found = BTreeSet::from([root.as_raw_nonzero().get()]);
        // A parent may have a larger number than its child.
        loop {
            let before = found.len();
            found.extend(
                stats.iter().filter(|stat| found.contains(&stat.parent)).map(|stat| stat.pid).collect::<Vec<_>>(),
            );
            if found.len() == before {
                break;
            }
        }
        let mut sum = Self::default();
        for stat in stats.iter().filter(|stat| found.contains(&stat.pid)) {
            sum.busy += stat.busy;
            sum.bytes = sum.bytes.saturating_add(bytes_of(stat.pid));
            sum.is_waiting |= stat.state == 'D';
        }
        sum
    }

    #[cfg(test)]
    pub(crate) fn waiting() -> Self {
        Self { is_waiting: true, ..Self::default() }
    }

    /// Whether the guest has worked since `earlier`, `elapsed` ago.
    pub(crate) fn is_life(&self, earlier: &Self, elapsed: Duration) -> bool {
        let busy = self.busy.saturating_sub(earlier.busy);
        let is_busy = busy.as_nanos() * 100 > elapsed.as_nanos() * IDLE_PERCENT;
        // The sum lacks the bytes of processes that exited since, so it may be smaller.
        self.is_waiting || is_busy || self.bytes > earlier.bytes
    }
}

struct Stat {
    pid: i32,
    parent: i32,
    state: char,
    busy: Duration,
}

fn read_stats() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Fields are counted after the name of the program, which may hold anything.
fn parse(pid: i32, text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let busy = ticks(11)?.saturating_add(ticks(12)?);
    let tick =
        Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second()).ok().filter(|&n| n > 0)?;
    let busy = tick.saturating_mul(u32::try_from(busy).unwrap_or(u32::MAX));
    Some(Stat { pid, parent: fields.get(1)?.parse().ok()?, state: fields.first()?.chars().next()?, busy })
}

fn bytes_of(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let value =
        |key: &str| -> Option<u64> { text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()) };
    value("read_bytes:").unwrap_or(0).saturating_add(value("write_bytes:").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command},
    };

    use super::*;

    /// A child with a process group of its own, which is killed at the end.
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let group = Pid::from_child(&self.0);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_computing_grandchild_is_progress() {
        let script = "sh -c 'while :; do :; done' & wait";
        let child = Killed(Command::new("sh").args(["-c", script]).process_group(0).spawn().unwrap());
        let pid = Pid::from_child(&child.0);
        let before = Progress::of(pid);
        while Progress::of(pid).busy < before.busy + Duration::from_millis(50) {
            std::thread::yield_now();
        }
        assert!(Progress::of(pid).is_life(&before, Duration::from_secs(1)));
    }

    #[test]
    fn life_is_work_bytes_or_a_wait_for_the_disk() {
        let second = Duration::from_secs(1);
        let idle = Progress { busy: second, bytes: 9, is_waiting: false };
        let clock_only = Progress { busy: second + Duration::from_millis(10), ..idle };
        assert!(!idle.is_life(&idle, second) && !clock_only.is_life(&idle, second));
        for alive in [
            Progress { busy: second + Duration::from_millis(30), ..idle },
            Progress { bytes: 10, ..idle },
            Progress { is_waiting: true, ..idle },
        ] {
            assert!(alive.is_life(&idle, second), "{alive:?}");
        }
    }

    #[test]
    fn names_with_brackets_are_parsed() {
        let text = "7 (a) b) D 3 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 9 0 0";
        let stat = parse(7, text).unwrap();
        assert_eq!((stat.parent, stat.state), (3, 'D'));
        assert!(stat.busy > Duration::ZERO && parse(7, "7 (a) R").is_none());
    }
}
