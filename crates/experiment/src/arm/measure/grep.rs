//! One grep test of a volume: cold, verified, and its rows.

use std::path::Path;

use senesce_probe::collect::{GrepFigures, GrepOptions, Order, collect_gnu_grep, collect_grep, compute_pattern};
use senesce_store::{CellKey, GrepRow, ModelledRow};
use senesce_volume::{ColdReport, Volume};

use super::{
    super::{check_signal, state::ArmContext, virtual_time::VirtualTime},
    trace::{Recorder, Traced},
};
use crate::{
    Error,
    observer::Event,
    plan::{ScanOrder, Scanner},
};

/// Bytes of a sector in the block layer's statistics.
const SECTOR_BYTES: u64 = 512;

/// A grep test's wall time; and, of a disk in virtual time, its modelled time.
pub(super) fn grep_rows(
    context: &mut ArmContext<'_>,
    key: &CellKey,
    volume: &mut Volume,
    repetition: u64,
) -> Result<(GrepRow, Option<ModelledRow>), Error> {
    let Scanned { cold, scanner, order, figures, device, virtual_time, .. } = scan_cold(context, volume, IsTraced::No)?;
    let modelled = virtual_time.map(|time| time.row(key.clone(), figures.allocated_bytes));
    // On a disk in virtual time nothing waits for the device, and its figure is the other one.
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
        // Measured behind the volumes, if there is one.
        fuse_floor_seconds: f64::NAN,
    };
    Ok((row, modelled))
}

/// A grep test that was cold.
pub(super) struct Scanned {
    cold: ColdReport,
    scanner: &'static str,
    order: &'static str,
    pub(super) figures: GrepFigures,
    /// None in a directory.
    device: Option<DeviceReads>,
    /// Only of a disk in virtual time.
    virtual_time: Option<VirtualTime>,
    /// If it was asked for.
    pub(super) trace: Option<Traced>,
}

/// Whether the block requests of a grep test are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IsTraced {
    Yes,
    No,
}

/// What a block device was asked to read.
struct DeviceReads {
    bytes: u64,
    requests: u64,
}

/// The grep test after a cold remount, which the device has to confirm: it must have been asked for what was read.
///
/// A process in another mount namespace (a browser, a container) may hold a copy of the mount for a moment; the file
/// system then outlives its unmounting, warm, and nothing but the device's own count shows it. So it is tried again.
pub(super) fn scan_cold(context: &ArmContext<'_>, volume: &mut Volume, is_traced: IsTraced) -> Result<Scanned, Error> {
    const TRIES: u32 = 5;
    let mut device_bytes = 0;
    for attempt in 0..TRIES {
        check_signal()?;
        if attempt > 0 {
            std::thread::sleep(std::time::Duration::from_secs(u64::from(attempt)));
        }
        let scanned = scan_once(context, volume, is_traced)?;
        device_bytes = scanned.device.as_ref().map_or(0, |device| device.bytes);
        // A tenth, because a file system may compress; a cold one asks for more than it delivers. Holes are not asked for.
        let asked_for = scanned.figures.read_bytes.min(scanned.figures.allocated_bytes);
        if !scanned.cold.is_cold || device_bytes >= asked_for / 10 {
            return Ok(scanned);
        }
    }
    Err(Error::Unverified {
        what: "the cold cache".into(),
        problem: format!(
            "{TRIES} times the grep test read its files, but the device was asked for {device_bytes} bytes only"
        ),
    })
}

fn scan_once(context: &ArmContext<'_>, volume: &mut Volume, is_traced: IsTraced) -> Result<Scanned, Error> {
    let cold = volume.remount_cold()?;
    let recorder = match is_traced {
        IsTraced::Yes => Some(Recorder::start(context, volume)?),
        IsTraced::No => None,
    };
    let before = volume.device_stat()?;
    let time_before = volume.disk_time()?;
    let (scanner, order, figures) = scan(context, volume.root())?;
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
    Ok(Scanned { cold, scanner, order, figures, device, virtual_time, trace })
}

/// The grep test of the tree below `root` as the plan asks for it: the scanner, its order, its figures.
pub(super) fn scan(context: &ArmContext<'_>, root: &Path) -> Result<(&'static str, &'static str, GrepFigures), Error> {
    let pattern = compute_pattern(context.plan.seed);
    let clock = &*context.world.clock;
    Ok(match context.plan.measure.scanner {
        Scanner::Senesce => {
            let (order, name) = match context.plan.measure.order {
                ScanOrder::Readdir => (Order::Readdir, "readdir"),
                ScanOrder::Sorted => (Order::Sorted, "sorted"),
                ScanOrder::Inode => (Order::Inode, "inode"),
            };
            ("senesce", name, collect_grep(root, &GrepOptions { order, pattern }, clock)?)
        }
        Scanner::Grep => ("grep", "readdir", collect_gnu_grep(root, &pattern, clock)?),
    })
}

/// A scan that left files out, or took no time because the clock went backwards, measures nothing.
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
