//! Counts the bytes that other programs move on the drive below a volume.

use senesce_core::SECTOR_BYTES;
use senesce_probe::{collect::collect_disk_bytes, score::DriveBytes};
use senesce_volume::{Volume, find_medium};

use crate::Error;

/// Counts the bytes of a volume's device, and all bytes of the disk or array below it.
pub struct DriveMeter {
    counters: Vec<String>,
}

impl DriveMeter {
    /// Finds the disk or array below a volume.
    pub fn of(volume: &Volume) -> Self {
        let below = volume.image().or(volume.device());
        Self { counters: below.map_or_else(Vec::new, |below| find_medium(below).counters) }
    }

    /// Returns the bytes moved so far. `None` for a directory, which has no device, and for an
    /// image in memory.
    ///
    /// Errors: the volume's device has no statistics.
    pub fn sample(&self, volume: &Volume) -> Result<Option<DriveBytes>, Error> {
        let own = volume.device_stat()?.map(|stat| (stat.read_sectors + stat.written_sectors) * SECTOR_BYTES);
        Ok(own.zip(collect_disk_bytes(&self.counters)).map(|(own, total)| DriveBytes { total, own }))
    }
}
