//! What other programs move on the drive below a volume.

use senesce_core::SECTOR_BYTES;
use senesce_probe::{collect::collect_disk_bytes, score::DriveBytes};
use senesce_volume::{Volume, find_medium};

use crate::Error;

/// Counts the bytes that a volume's own device moved, and all bytes that the disk or array below it moved.
pub struct DriveMeter {
    counters: Vec<String>,
}

impl DriveMeter {
    /// Finds the disk or array below a volume.
    pub fn of(volume: &Volume) -> Self {
        let below = volume.image().or(volume.device());
        Self { counters: below.map_or_else(Vec::new, |below| find_medium(below).counters) }
    }

    /// What was moved so far. None for a directory, whose own share is not known, and for an image in memory.
    ///
    /// Errors: the volume's device has no statistics.
    pub fn sample(&self, volume: &Volume) -> Result<Option<DriveBytes>, Error> {
        let own = volume.device_stat()?.map(|stat| (stat.read_sectors + stat.written_sectors) * SECTOR_BYTES);
        Ok(own.zip(collect_disk_bytes(&self.counters)).map(|(own, total)| DriveBytes { total, own }))
    }
}
