//! Disturbance: decides whether other work on the machine disturbed a measurement.
//!
//! The judgement counts only load that the measuring program cannot have caused. Its own threads,
//! its disk and file system servers, and the kernel threads that work for it must not disturb its
//! own measurement:
//! - Other processes: time in user mode of the whole machine, less that of the own processes.
//!   Kernel threads have no time in user mode. Time in the kernel is left out, because the kernel
//!   does not report for which process it works.
//! - Waiting for a processor (pressure stall information, `some`): a task waits only while all
//!   processors are busy. The own processes and the whole kernel can keep N processors busy for at
//!   most their time divided by N. Only what exceeds this counts.
//! - Steal: time in which the hypervisor ran another machine while this one had work.
//! - Waiting for memory: it slows the measurement, whichever process caused it.
//! - The drive: bytes that it moved, less those that the measured volume's own device requested. A
//!   volume in an image moves the same bytes on the drive below it, unless they stay in memory.
//!
//! Two figures are recorded and not judged: the load average, a mean over a minute that includes
//! the own threads, and the waiting for drives, which the test itself causes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kernel's report on the whole machine, as sums since it started. Figures that it does not
/// report are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadSample {
    /// Mean number of tasks that ran, waited to run, or waited for a drive in the last minute.
    pub load_average: Option<f64>,
    /// Time in which some task waited for a processor, seconds.
    pub cpu_pressure_seconds: Option<f64>,
    /// Time in which some task waited for a drive, seconds.
    pub io_pressure_seconds: Option<f64>,
    /// Time in which some task waited for memory, seconds.
    pub memory_pressure_seconds: Option<f64>,
    /// Time of all processors.
    pub processors: Option<ProcessorTimes>,
    /// Time in user mode of this process and all its descendants, seconds.
    pub own_user_seconds: f64,
    /// Bytes that the drives below the measured volume moved; none if that is not measured.
    pub drive: Option<DriveBytes>,
}

/// Bytes read and written on the way to the measured volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveBytes {
    /// By the drives, for all programs.
    pub total: u64,
    /// By the volume's own device.
    pub own: u64,
}

/// Time of all processors together, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessorTimes {
    /// Processors that are online.
    pub count: u64,
    /// In user mode, of all processes.
    pub user_seconds: f64,
    /// In the kernel, interrupts included.
    pub kernel_seconds: f64,
    /// The hypervisor ran another machine while a processor had work.
    pub steal_seconds: f64,
}

/// The load of the machine during one measurement. Unknown figures are NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How long it took, seconds.
    pub wall_seconds: f64,
    /// Load average of the last minute, at the end.
    pub load_average: f64,
    /// Time in which some task waited for a processor, seconds.
    pub cpu_pressure_seconds: f64,
    /// Time in which some task waited for a drive, seconds.
    pub io_pressure_seconds: f64,
    /// Time in which some task waited for memory, seconds.
    pub memory_pressure_seconds: f64,
    /// Steal time of all processors, seconds.
    pub steal_seconds: f64,
    /// Time in user mode of this process and all its descendants, seconds.
    pub own_user_seconds: f64,
    /// Time in user mode of all other processes, seconds.
    pub other_user_seconds: f64,
    /// Time of all processors in the kernel, for any process, seconds.
    pub kernel_seconds: f64,
    /// Processors that are online; 0 if that is not known.
    pub processors: u64,
    /// Bytes that the volume's own device moved.
    pub own_drive_bytes: f64,
    /// Bytes that the drives below it moved for others.
    pub other_drive_bytes: f64,
}

/// Other processes may use up to this share of the time of all processors.
pub const OTHERS_LIMIT: f64 = 0.20;
/// Tasks may wait for a processor for up to this share of the time, beyond the waiting that the own
/// work explains.
pub const CPU_WAIT_LIMIT: f64 = 0.10;
/// The hypervisor may take up to this share of the time of one processor.
pub const STEAL_LIMIT: f64 = 0.05;
/// Tasks may wait for memory for up to this share of the time.
pub const MEMORY_WAIT_LIMIT: f64 = 0.05;
/// Others may move up to this share of the test's own bytes on its drive.
pub const DRIVE_LIMIT: f64 = 0.10;
/// Fewer bytes are no disturbance at any share: some program always writes its log.
pub const LEAST_DRIVE_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
/// A shorter time is no disturbance at any share: the kernel counts in steps of up to 10 ms for
/// each processor.
pub const LEAST_SECONDS: f64 = 0.05;

/// One way in which a measurement was disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// The cause.
    pub cause: Cause,
    /// Its time as a share of the time of the measurement, for other processes of all processors;
    /// for the drive, the bytes of others as a share of the test's own.
    pub share: f64,
}

/// The cause of a disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Other processes ran.
    OtherProcesses,
    /// Tasks waited for a processor.
    CpuWait,
    /// The hypervisor ran another machine.
    Steal,
    /// Tasks waited for memory.
    MemoryWait,
    /// Other programs read from the drive or wrote to it.
    DriveUse,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let percent = self.share * 100.0;
        match self.cause {
            Cause::OtherProcesses => write!(f, "other processes used {percent:.0}% of all processors"),
            Cause::CpuWait => write!(f, "other work made tasks wait for a processor {percent:.0}% of the time"),
            Cause::Steal => write!(f, "the hypervisor took {percent:.0}% of a processor"),
            Cause::MemoryWait => write!(f, "tasks waited for memory {percent:.0}% of the time"),
            Cause::DriveUse => write!(f, "other programs moved {percent:.0}% of the test's own bytes on its drive"),
        }
    }
}

impl Load {
    /// The load between two samples that are `wall_seconds` apart.
    pub fn between(before: &LoadSample, after: &LoadSample, wall_seconds: f64) -> Self {
        let since = |before: Option<f64>, after: Option<f64>| {
            before.zip(after).map_or(f64::NAN, |(before, after)| (after - before).max(0.0))
        };
        let times = |figure: fn(&ProcessorTimes) -> f64| {
            since(before.processors.as_ref().map(figure), after.processors.as_ref().map(figure))
        };
        let own_user_seconds = (after.own_user_seconds - before.own_user_seconds).max(0.0);
        let user_seconds = times(|times| times.user_seconds);
        let moved = |bytes: fn(&DriveBytes) -> u64| {
            let of = |sample: &LoadSample| sample.drive.as_ref().map(|drive| bytes(drive) as f64);
            since(of(before), of(after))
        };
        let (drive_bytes, own_drive_bytes) = (moved(|drive| drive.total), moved(|drive| drive.own));
        Self {
            wall_seconds,
            load_average: after.load_average.unwrap_or(f64::NAN),
            cpu_pressure_seconds: since(before.cpu_pressure_seconds, after.cpu_pressure_seconds),
            io_pressure_seconds: since(before.io_pressure_seconds, after.io_pressure_seconds),
            memory_pressure_seconds: since(before.memory_pressure_seconds, after.memory_pressure_seconds),
            steal_seconds: times(|times| times.steal_seconds),
            own_user_seconds,
            // `max` would turn an unknown time (NaN) into zero.
            other_user_seconds: if user_seconds < own_user_seconds { 0.0 } else { user_seconds - own_user_seconds },
            kernel_seconds: times(|times| times.kernel_seconds),
            processors: after.processors.map_or(0, |times| times.count),
            own_drive_bytes,
            // If memory serves some requests, the drive moves fewer bytes. Others then moved at
            // least zero, not a negative number.
            other_drive_bytes: if drive_bytes < own_drive_bytes { 0.0 } else { drive_bytes - own_drive_bytes },
        }
    }

    /// The disturbances beyond the limits. An unknown figure is no disturbance.
    pub fn disturbances(&self) -> Vec<Disturbance> {
        let (wall, processors) = (self.wall_seconds, self.processors as f64);
        let explained = (self.own_user_seconds + self.kernel_seconds) / processors;
        let waited = if explained.is_nan() { f64::NAN } else { self.cpu_pressure_seconds - explained };
        let drive = (Cause::DriveUse, self.other_drive_bytes, self.own_drive_bytes, DRIVE_LIMIT);
        [
            (Cause::OtherProcesses, self.other_user_seconds, wall * processors, OTHERS_LIMIT),
            (Cause::CpuWait, waited, wall, CPU_WAIT_LIMIT),
            (Cause::Steal, self.steal_seconds, wall, STEAL_LIMIT),
            (Cause::MemoryWait, self.memory_pressure_seconds, wall, MEMORY_WAIT_LIMIT),
        ]
        .into_iter()
        .filter(|(_, seconds, ..)| *seconds >= LEAST_SECONDS)
        .chain((self.other_drive_bytes >= LEAST_DRIVE_BYTES).then_some(drive))
        .filter(|(_, amount, of, limit)| *amount > of * limit)
        .map(|(cause, amount, of, _)| Disturbance { cause, share: amount / of })
        .collect()
    }

    /// The disturbances in words, for records; empty if there were none.
    pub fn describe_disturbances(&self) -> String {
        self.disturbances().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds on four processors, in which only the own process ran.
    const QUIET: Load = Load {
        wall_seconds: 10.0,
        load_average: 1.0,
        cpu_pressure_seconds: 0.1,
        io_pressure_seconds: 9.5,
        memory_pressure_seconds: 0.0,
        steal_seconds: 0.0,
        own_user_seconds: 3.0,
        other_user_seconds: 0.3,
        kernel_seconds: 5.0,
        processors: 4,
        own_drive_bytes: 1e9,
        other_drive_bytes: 1e6,
    };

    fn causes(load: Load) -> Vec<Cause> {
        load.disturbances().into_iter().map(|found| found.cause).collect()
    }

    #[test]
    fn each_cause_counts_beyond_its_limit_only() {
        assert_eq!(causes(QUIET), []);
        for (load, cause) in [
            (Load { other_user_seconds: 8.1, ..QUIET }, Cause::OtherProcesses),
            (Load { cpu_pressure_seconds: 3.1, ..QUIET }, Cause::CpuWait),
            (Load { steal_seconds: 0.51, ..QUIET }, Cause::Steal),
            (Load { memory_pressure_seconds: 0.51, ..QUIET }, Cause::MemoryWait),
            (Load { other_drive_bytes: 1.01e8, ..QUIET }, Cause::DriveUse),
        ] {
            assert_eq!(causes(load), [cause]);
        }
        for load in [
            Load { other_user_seconds: 7.9, ..QUIET },
            Load { cpu_pressure_seconds: 2.9, ..QUIET },
            Load { steal_seconds: 0.49, ..QUIET },
            Load { memory_pressure_seconds: 0.49, ..QUIET },
            Load { other_drive_bytes: 0.99e8, ..QUIET },
            // A journal that is written during a small test.
            Load { own_drive_bytes: 1e6, other_drive_bytes: 4e6, ..QUIET },
        ] {
            assert_eq!(causes(load), [], "{load:?}");
        }
    }

    #[test]
    fn own_work_on_all_processors_disturbs_nothing() {
        // Its threads and servers use all four processors, and some task waits all the time.
        let load = Load { own_user_seconds: 25.0, kernel_seconds: 15.0, cpu_pressure_seconds: 10.0, ..QUIET };
        assert_eq!(causes(load), []);
        // With half of the own work, the same waiting is caused by others.
        let load = Load { own_user_seconds: 15.0, kernel_seconds: 5.0, ..load };
        assert_eq!(causes(load), [Cause::CpuWait]);
    }

    #[test]
    fn drive_waits_and_load_average_are_not_judged() {
        assert_eq!(causes(Load { io_pressure_seconds: 10.0, load_average: 99.0, ..QUIET }), []);
    }

    #[test]
    fn steps_of_kernel_accounting_disturb_nothing() {
        // 20 ms of a test of 30 ms: two steps of 10 ms.
        let load = Load { wall_seconds: 0.03, steal_seconds: 0.02, other_user_seconds: 0.04, ..QUIET };
        assert_eq!(causes(Load { cpu_pressure_seconds: 0.01, own_user_seconds: 0.0, kernel_seconds: 0.0, ..load }), []);
    }

    #[test]
    fn unknown_figures_disturb_nothing() {
        let nothing = LoadSample::default();
        let load = Load::between(&nothing, &nothing, 1.0);
        assert!(load.own_drive_bytes.is_nan() && load.other_drive_bytes.is_nan());
        assert!(load.steal_seconds.is_nan() && load.other_user_seconds.is_nan() && load.cpu_pressure_seconds.is_nan());
        assert_eq!(causes(load), []);
        // Pressure alone is no disturbance, because the part that the own work explains is unknown.
        let pressed = LoadSample { cpu_pressure_seconds: Some(0.0), ..nothing };
        let later = LoadSample { cpu_pressure_seconds: Some(1.0), ..nothing };
        assert_eq!(causes(Load::between(&pressed, &later, 1.0)), []);
    }

    #[test]
    fn bytes_beyond_own_requests_belong_to_others() {
        let sample = |total, own| LoadSample { drive: Some(DriveBytes { total, own }), ..LoadSample::default() };
        let load = Load::between(&sample(1 << 30, 1 << 20), &sample(1 << 31, 513 << 20), 1.0);
        assert_eq!((load.own_drive_bytes, load.other_drive_bytes), (f64::from(512 << 20), f64::from(512 << 20)));
        assert_eq!(load.describe_disturbances(), "other programs moved 100% of the test's own bytes on its drive");
        // The image is in memory: its drive moves less than was requested of it.
        let load = Load::between(&sample(0, 0), &sample(5, 1 << 30), 1.0);
        assert_eq!((load.other_drive_bytes, causes(load)), (0.0, vec![]));
        // One sample without the drive.
        assert!(Load::between(&LoadSample::default(), &sample(5, 1), 1.0).other_drive_bytes.is_nan());
    }

    #[test]
    fn samples_are_subtracted_and_never_negative() {
        let sample = |user, own| LoadSample {
            load_average: Some(2.5),
            io_pressure_seconds: Some(user),
            processors: Some(ProcessorTimes { count: 2, user_seconds: user, ..ProcessorTimes::default() }),
            own_user_seconds: own,
            ..LoadSample::default()
        };
        let load = Load::between(&sample(100.0, 10.0), &sample(104.0, 11.0), 4.0);
        assert_eq!((load.other_user_seconds, load.own_user_seconds, load.io_pressure_seconds), (3.0, 1.0, 4.0));
        assert_eq!((load.load_average, load.processors), (2.5, 2));
        let back = Load::between(&sample(104.0, 10.0), &sample(100.0, 11.0), 4.0);
        assert_eq!((back.other_user_seconds, back.io_pressure_seconds), (0.0, 0.0));
        assert_eq!(load.describe_disturbances(), "other processes used 38% of all processors");
        assert_eq!(QUIET.describe_disturbances(), "");
        let two = Load { steal_seconds: 1.0, memory_pressure_seconds: 2.0, ..QUIET };
        assert_eq!(
            two.describe_disturbances(),
            "the hypervisor took 10% of a processor; tasks waited for memory 20% of the time"
        );
    }
}
