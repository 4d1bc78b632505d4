//! One cold and verified grep test of a volume, and its rows.

use std::path::Path;

use senesce_core::SECTOR_BYTES;
use senesce_probe::{
    collect::{
        GrepFigures, GrepOptions, Order, collect_gnu_grep, collect_grep, collect_thread_read_bytes, compute_pattern,
    },
    score::{Load, LoadSample},
};
use senesce_store::{CellKey, GrepRow, LoadRow, ModelledRow};
use senesce_volume::{ColdReport, Volume};

use super::{
    super::{state::ArmContext, virtual_time::VirtualTime},
    trace::{Recorder, Traced},
};
use crate::{
    Error,
    drive_meter::DriveMeter,
    observer::Event,
    plan::{ScanOrder, Scanner},
};

/// The rows of one grep test.
pub(super) struct GrepRows {
    pub(super) grep: GrepRow,
    pub(super) load: LoadRow,
    /// Only for a disk in virtual time.
    pub(super) modelled: Option<ModelledRow>,
}

/// Runs one grep test. Records its wall time, the machine's load during it, and the modelled time
/// of a disk in virtual time.
pub(super) fn grep_rows(
    context: &mut ArmContext<'_>,
    key: &CellKey,
    volume: &mut Volume,
    repetition: u64,
) -> Result<GrepRows, Error> {
    let Scanned { cold, scanner, order, figures, device, virtual_time, load, .. } =
        scan_cold(context, volume, IsTraced::No)?;
    let modelled = virtual_time.map(|time| time.row(key.clone(), figures.allocated_bytes));
    // The figure of a disk in virtual time is modelled, so load does not change it.
    let is_paced = modelled.is_none() || context.plan.volumes.real_time;
    if figures.is_cpu_bound() && is_paced {
        let share = figures.cpu_share().unwrap_or_default() * 100.0;
        context.observer.on_event(&Event::Warning {
            arm: key.arm.clone(),
            message: format!(
                "the grep test of the {} volume at {} pulls used the CPU for {share:.0}% of its time: the CPU, not the \
                 device, set the pace",
                key.role.name(),
                key.pulls
            ),
        });
    }
    let row = GrepRow {
        key: key.clone(),
        repetition,
        scanner: scanner.to_owned(),
        order: order.to_owned(),
        cache: cold.description,
        wall_seconds: figures.wall.as_secs_f64(),
        allocated_bytes: figures.allocated_bytes,
        seconds_per_gib: figures.seconds_per_gib().unwrap_or(f64::NAN),
        read_bytes: figures.read_bytes,
        files: figures.files,
        user_seconds: figures.user_seconds,
        system_seconds: figures.system_seconds,
        device_read_bytes: device.as_ref().map(|device| device.bytes),
        device_read_requests: device.as_ref().map(|device| device.requests),
        cpu_bound: figures.is_cpu_bound() && is_paced,
        // The caller measures it after the volumes, if there is one.
        fuse_floor_seconds: f64::NAN,
    };
    let load = load_row(key, repetition, &load, is_paced);
    Ok(GrepRows { grep: row, load, modelled })
}

/// The row of table `load`. A test whose figure is not its wall time is never disturbed.
fn load_row(key: &CellKey, repetition: u64, load: &Load, is_paced: bool) -> LoadRow {
    LoadRow {
        key: key.clone(),
        repetition,
        disturbance: if is_paced { load.describe_disturbances() } else { String::new() },
        load_average: load.load_average,
        cpu_pressure_seconds: load.cpu_pressure_seconds,
        io_pressure_seconds: load.io_pressure_seconds,
        memory_pressure_seconds: load.memory_pressure_seconds,
        steal_seconds: load.steal_seconds,
        own_user_seconds: load.own_user_seconds,
        other_user_seconds: load.other_user_seconds,
        kernel_seconds: load.kernel_seconds,
        processors: load.processors,
        own_drive_bytes: load.own_drive_bytes,
        other_drive_bytes: load.other_drive_bytes,
    }
}

/// A cold grep test.
pub(super) struct Scanned {
    cold: ColdReport,
    scanner: &'static str,
    order: &'static str,
    pub(super) figures: GrepFigures,
    /// `None` for a directory.
    device: Option<DeviceReads>,
    /// Bytes that other programs read from a disk in virtual time during the test. 0 if that is not
    /// known.
    foreign_bytes: u64,
    /// Only for a disk in virtual time.
    virtual_time: Option<VirtualTime>,
    /// The load of the machine during the scan.
    load: Load,
    /// If the caller requested it.
    pub(super) trace: Option<Traced>,
}

/// Whether the block requests of a grep test are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IsTraced {
    Yes,
    No,
}

/// The reads of a block device.
struct DeviceReads {
    bytes: u64,
    requests: u64,
}

/// Runs the grep test after a cold remount. The device must confirm it: it must have read about as
/// many bytes as the test.
///
/// A process in another mount namespace (a browser, a container) may hold a copy of the mount for a
/// moment. Then the file system stays warm after the unmount, and only the device's count shows it.
/// So the test is repeated up to five times.
///
/// Another program may read a disk in virtual time during the test: mkfs.btrfs searches all devices
/// for its UUID. Then the test is repeated up to three times.
pub(super) fn scan_cold(context: &ArmContext<'_>, volume: &mut Volume, is_traced: IsTraced) -> Result<Scanned, Error> {
    const TRIES: u32 = 5;
    const PAUSES_PER_SECOND: u32 = 20;
    const MOST_RESCANS: u32 = 3;
    let mut device_bytes = 0;
    let mut rescans = 0;
    let mut attempt = 0;
    while attempt < TRIES {
        for _ in 0..attempt * PAUSES_PER_SECOND {
            context.world.check_signal()?;
            std::thread::sleep(std::time::Duration::from_secs(1) / PAUSES_PER_SECOND);
        }
        context.world.check_signal()?;
        let scanned = scan_once(context, volume, is_traced)?;
        device_bytes = scanned.device.as_ref().map_or(0, |device| device.bytes);
        // The head of a modelled disk follows every reader.
        if scanned.foreign_bytes > 0 && rescans < MOST_RESCANS {
            rescans += 1;
            continue;
        }
        attempt += 1;
        // A tenth, because a file system may compress. A cold one reads more than it delivers.
        // Holes are not read.
        let expected_bytes = scanned.figures.read_bytes.min(scanned.figures.allocated_bytes);
        if !scanned.cold.is_cold || device_bytes >= expected_bytes / 10 {
            return Ok(scanned);
        }
    }
    Err(Error::Unverified {
        what: "the cold cache".into(),
        problem: format!("{TRIES} times the grep test read its files, but the device read only {device_bytes} bytes"),
    })
}

fn scan_once(context: &ArmContext<'_>, volume: &mut Volume, is_traced: IsTraced) -> Result<Scanned, Error> {
    let cold = volume.remount_cold()?;
    let recorder = match is_traced {
        IsTraced::Yes => Some(Recorder::start(context, volume)?),
        IsTraced::No => None,
    };
    let before = volume.device_stat()?;
    let (time_before, own_before) = (volume.disk_time()?, collect_thread_read_bytes());
    let drive = DriveMeter::of(volume);
    // Around the samples, not the test's wall time: the sizes for GNU grep are collected after it.
    let (began, load_before) = (context.world.clock.now(), sample_load(context, volume, &drive)?);
    let (scanner, order, figures) = scan(context, volume.root())?;
    let own_bytes = collect_thread_read_bytes() - own_before;
    let load_after = sample_load(context, volume, &drive)?;
    let load = Load::between(&load_before, &load_after, context.world.clock.now().since(began).as_secs_f64());
    let trace = recorder.map(|recorder| recorder.stop(volume)).transpose()?;
    let after = volume.device_stat()?;
    let time_after = volume.disk_time()?;
    verify_grep(&figures)?;
    let device = before.zip(after).map(|(before, after)| DeviceReads {
        bytes: (after.read_sectors - before.read_sectors) * SECTOR_BYTES,
        requests: after.reads - before.reads,
    });
    let virtual_time =
        time_before.zip(time_after).map(|(before, after)| VirtualTime::between(&before, &after)).transpose()?;
    // GNU grep reads in another process, and some kernels do not count.
    let foreign_bytes = match (&virtual_time, &device) {
        (Some(_), Some(device)) if scanner == "senesce" && own_bytes > 0 => device.bytes.saturating_sub(own_bytes),
        _ => 0,
    };
    Ok(Scanned { cold, scanner, order, figures, device, foreign_bytes, virtual_time, load, trace })
}

/// Samples the load of the machine, and of the drive below the volume.
fn sample_load(context: &ArmContext<'_>, volume: &Volume, drive: &DriveMeter) -> Result<LoadSample, Error> {
    Ok(LoadSample { drive: drive.sample(volume)?, ..context.world.load.sample() })
}

/// Runs the grep test of the tree below `root` as the plan requests it. Returns the scanner, its
/// order, and its figures.
pub(super) fn scan(context: &ArmContext<'_>, root: &Path) -> Result<(&'static str, &'static str, GrepFigures), Error> {
    let pattern = compute_pattern(context.plan.seed);
    let (clock, stop) = (&*context.world.clock, context.world.stop());
    Ok(match context.plan.measure.scanner {
        Scanner::Senesce => {
            let (order, name) = match context.plan.measure.order {
                ScanOrder::Readdir => (Order::Readdir, "readdir"),
                ScanOrder::Sorted => (Order::Sorted, "sorted"),
                ScanOrder::Inode => (Order::Inode, "inode"),
            };
            ("senesce", name, collect_grep(root, &GrepOptions { order, pattern }, clock, &stop)?)
        }
        Scanner::Grep => ("grep", "readdir", collect_gnu_grep(root, &pattern, clock, &stop)?),
    })
}

/// Refuses a scan that left files out, or that took no time because the clock went backwards.
pub(super) fn verify_grep(figures: &GrepFigures) -> Result<(), Error> {
    let unverified = |problem: String| Err(Error::Unverified { what: "the grep test".into(), problem });
    if let Some(first) = figures.errors.first() {
        let (count, path) = (figures.errors_count, first.path.display());
        return unverified(format!("{count} file(s) could not be read, the first: {path}: {}", first.message));
    }
    if figures.wall.0 == 0 {
        return unverified("it took no time; did the clock go backwards?".into());
    }
    Ok(())
}
