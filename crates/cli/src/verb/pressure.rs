//! Pauses of work at idle priority, while other programs wait for I/O.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use senesce_inspect::find_btrfs_devices;

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

/// The paths of the kernel's counts of requests in flight, one for each device of a file system.
/// Empty if the devices are not known.
pub(super) struct InFlight(Vec<PathBuf>);

impl InFlight {
    /// Finds the devices of the file system at `path`.
    pub fn of(path: &Path) -> Self {
        let own = fs::metadata(path).ok().map(|meta| {
            let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
            PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
        });
        // The device number of a Btrfs does not name a block device.
        let devices = find_btrfs_devices(path).into_iter();
        let devices = devices.filter_map(|device| Some(Path::new("/sys/class/block").join(device.file_name()?)));
        let counts = own.into_iter().chain(devices).map(|device| device.join("inflight"));
        Self(counts.filter(|path| path.exists()).collect())
    }

    /// Whether a device has requests in flight.
    pub fn has_requests(&self) -> bool {
        let is_busy = |path: &PathBuf| {
            fs::read_to_string(path).is_ok_and(|text| text.split_whitespace().any(|count| count != "0"))
        };
        self.0.iter().any(is_busy)
    }
}

/// Microseconds since boot in which some program waited for I/O. `None`: the kernel does not report
/// them.
fn io_wait_micros() -> Option<u64> {
    let text = fs::read_to_string("/proc/pressure/io").ok()?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
}
