//! What other programs move on the drive below a volume.

use senesce_core::SECTOR_BYTES;
use senesce_probe::{collect::collect_disk_bytes, score::DriveBytes};
use senesce_volume::{Volume, find_medium};

use crate::Error;

/// Counts the bytes that a volume's own device moved, and all that the disks below it moved.
pub struct DriveMeter {
    disks: Vec<String>,
}

impl DriveMeter {
    /// Finds the disks below a volume.
    pub fn of(volume: &Volume) -> Self {
        let below = volume.image().or(volume.device());
        Self { disks: below.map_or_else(Vec::new, |below| find_medium(below).disks) }
    }

    /// What was moved so far. None for a directory, whose own share is not known, and for an image in memory.
    ///
    /// Errors: the volume's device has no statistics.
    pub fn sample(&self, volume: &Volume) -> Result<Option<DriveBytes>, Error> {
        let own = volume.device_stat()?.map(|stat| (stat.read_sectors + stat.written_sectors) * SECTOR_BYTES);
        Ok(own.zip(collect_disk_bytes(&self.disks)).map(|(own, total)| DriveBytes { total, own }))
    }
}
