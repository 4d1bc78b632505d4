//! Reads the load of the machine from `/proc` and `/sys`. If the kernel lacks a file, its figures
//! are missing.

use std::{collections::BTreeMap, fs};

use senesce_core::SECTOR_BYTES;

use super::rusage::collect_process_times;
use crate::score::{LoadSample, ProcessorTimes};

/// Samples the load that the kernel reports now. Cost: reads five small files, and one for each
/// process of the machine.
pub fn collect_load() -> LoadSample {
    let pressure = |what: &str| parse_pressure(&fs::read_to_string(format!("/proc/pressure/{what}")).ok()?);
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    LoadSample {
        load_average: fs::read_to_string("/proc/loadavg").ok().as_deref().and_then(parse_load_average),
        cpu_pressure_seconds: pressure("cpu"),
        io_pressure_seconds: pressure("io"),
        memory_pressure_seconds: pressure("memory"),
        processors: fs::read_to_string("/proc/stat").ok().and_then(|text| parse_processors(&text, ticks_per_second)),
        own_user_seconds: collect_process_times().user_seconds + collect_descendants_ticks() as f64 / ticks_per_second,
        drive: None,
    }
}

/// Bytes that these disks (the kernel's names, such as `sda`) read and wrote so far, together. None
/// for no disk, or if one of them has no statistics.
pub fn collect_disk_bytes(disks: &[String]) -> Option<u64> {
    let bytes = |disk: &String| parse_disk(&fs::read_to_string(format!("/sys/block/{disk}/stat")).ok()?);
    (!disks.is_empty()).then(|| disks.iter().map(bytes).sum())?
}

/// Of `/sys/block/DISK/stat`: sectors read are its third number, sectors written its seventh.
fn parse_disk(text: &str) -> Option<u64> {
    let numbers: Vec<u64> = text.split_whitespace().map_while(|number| number.parse().ok()).collect();
    Some((numbers.get(2)? + numbers.get(6)?) * SECTOR_BYTES)
}

/// The first number of `/proc/loadavg`.
fn parse_load_average(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|average: &f64| average.is_finite())
}

/// Seconds of a line such as `some avg10=12.34 avg60=… total=123`, whose total is in microseconds.
fn parse_pressure(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total: u64 = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()?;
    Some(total as f64 / 1e6)
}

/// Times of a line such as `cpu user nice system idle iowait irq softirq steal …`, in ticks.
fn parse_processors(text: &str, ticks_per_second: f64) -> Option<ProcessorTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks[..] else { return None };
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let seconds = |ticks: u64| ticks as f64 / ticks_per_second;
    Some(ProcessorTimes {
        count: text.lines().filter(is_processor).count() as u64,
        user_seconds: seconds(user + nice),
        kernel_seconds: seconds(system + irq + softirq),
        steal_seconds: seconds(steal),
    })
}

/// The fields of a process that are used here.
struct Process {
    parent: u32,
    /// Time in user mode, of the process and of its children that exited, in ticks.
    user_ticks: u64,
}

/// Time in user mode of all running descendants of this process, such as servers of disks and of
/// file systems. Children that exited are in the accounting of this process.
fn collect_descendants_ticks() -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // If a process exits during the loop, its file is gone.
    let read = |id: u32| parse_process(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?);
    let processes = ids.filter_map(|id| Some((id, read(id)?))).collect();
    sum_descendants(std::process::id(), &processes)
}

fn sum_descendants(root: u32, processes: &BTreeMap<u32, Process>) -> u64 {
    let is_descendant = |id: u32| {
        // A cycle is possible, because ids may be reused while the files are read. No chain is
        // longer than the number of processes.
        let chain = std::iter::successors(Some(id), |id| processes.get(id).map(|process| process.parent));
        chain.skip(1).take(processes.len()).any(|id| id == root)
    };
    let descendants = processes.iter().filter(|(id, _)| is_descendant(**id));
    descendants.map(|(_, process)| process.user_ticks).sum()
}

/// Parses `/proc/PID/stat`. The name, in parentheses, may hold any bytes.
fn parse_process(text: &str) -> Option<Process> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first field here is field 3 of proc_pid_stat(5).
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Process { parent: u32::try_from(field(4)?).ok()?, user_ticks: field(14)? + field(16)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_are_parsed_broken_ones_are_none() {
        assert_eq!(parse_load_average("2.57 2.00 1.10 3/107 20625\n"), Some(2.57));
        assert_eq!(parse_load_average("nan"), None);
        let pressure = "some avg10=1.00 avg60=1.00 avg300=0.50 total=1500000\nfull avg10=90.00 total=7\n";
        assert_eq!(parse_pressure(pressure), Some(1.5));
        assert_eq!(parse_pressure("full avg10=90.00 total=7\n"), None);
        let stat = "cpu  1000 20 300 40 50 60 70 80 90 0\ncpu0 1 2\ncpu1 1 2\nintr 5\ncpufreq 1\n";
        let times = parse_processors(stat, 100.0).unwrap();
        assert_eq!((times.count, times.user_seconds, times.kernel_seconds, times.steal_seconds), (2, 10.2, 4.3, 0.8));
        assert_eq!(parse_processors("cpu  1 2 3\n", 100.0), None);
    }

    #[test]
    fn reads_and_writes_of_disks_are_summed() {
        assert_eq!(parse_disk(" 10 1 300 5 20 2 40 6 0 7 8 0 0 0 0 9 9\n"), Some(340 * 512));
        assert_eq!(parse_disk("10 1 300 5 20 2\n"), None);
        assert_eq!(collect_disk_bytes(&[]), None);
        assert_eq!(collect_disk_bytes(&["no such disk".to_owned()]), None);
    }

    #[test]
    fn descendants_are_summed_and_others_are_not() {
        let stat = |name: &str, parent| format!("7 ({name}) S {parent} 1 1 0 -1 0 1 2 3 4 30 5 40 6 20 0 1 0 99 1 1");
        let process = |parent| parse_process(&stat("a) b (", parent)).unwrap();
        assert_eq!((process(3).parent, process(3).user_ticks), (3, 70));
        assert!(parse_process("7 (cut").is_none());
        // 10 is this process, 11 its child, 12 its grandchild. 13 is unrelated. 14 and 15 are
        // parents of each other.
        let parents = [(10, 1), (11, 10), (12, 11), (13, 1), (14, 15), (15, 14)];
        let processes: BTreeMap<u32, Process> = parents.map(|(id, parent)| (id, process(parent))).into();
        assert_eq!(sum_descendants(10, &processes), 140);
    }

    #[test]
    fn this_machine_reports_processors_and_own_time() {
        let before = collect_load();
        let mut number = 1u64;
        while collect_process_times().user_seconds < before.own_user_seconds + 0.05 {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        let after = collect_load();
        assert!(after.processors.is_some_and(|times| times.count > 0 && times.user_seconds > 0.0));
        assert!(after.own_user_seconds >= before.own_user_seconds + 0.05);
    }
}
