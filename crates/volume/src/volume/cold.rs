//! Cold caches: nothing of the volume in memory, neither its own pages nor its image's.

use std::path::Path;

use super::lifecycle::{Place, Volume};
use crate::{Backend, Error, Result, check_interrupted};

/// How a volume was made cold, for the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdReport {
    /// Such as `remount+direct-io`.
    pub description: String,
    /// Pages of the image (of a virtual disk: of its file) left in the host's page cache; none if it has no such pages, or the kernel cannot count
    /// them.
    pub image_pages_left: Option<u64>,
    /// Pages of the device left in its buffer cache, just before mounting.
    pub device_pages_left: Option<u64>,
    /// Whether both the volume's metadata and its data are cold.
    pub is_cold: bool,
}

impl Volume {
    /// Makes the volume cold: written back, unmounted, dropped from the device's and the image's caches, mounted.
    ///
    /// An image in memory has no device whose cache could be cold: the file system's own caches are. A directory
    /// cannot be unmounted: its files' pages are dropped, its metadata stays.
    ///
    /// Errors: as [`unmount`](Volume::unmount) and [`mount`](Volume::mount); [`Error::Unverified`] if pages stay.
    pub fn remount_cold(&mut self) -> Result<ColdReport> {
        let in_memory = matches!(self.spec.backend, Backend::Image { memory: true, .. });
        match self.place.clone() {
            Place::Directory => {
                self.sync()?;
                drop_tree(self, &self.root)?;
                Ok(ColdReport {
                    description: "fadvise (data only; metadata stays cached)".to_owned(),
                    image_pages_left: None,
                    device_pages_left: None,
                    is_cold: false,
                })
            }
            Place::Image { path, device, .. } => {
                self.unmount()?;
                let device_pages_left = self.drop_until_gone(&device.path)?;
                // With direct I/O there should be none, but whoever copied or read the image left some.
                let image_pages_left = if in_memory { None } else { self.drop_until_gone(&path)? };
                self.mount()?;
                let description = match (in_memory, device.direct_io) {
                    (true, _) => "remount (image in memory)",
                    (false, true) => "remount+direct-io",
                    (false, false) => "remount+fadvise(image)",
                };
                Ok(ColdReport {
                    description: description.to_owned(),
                    image_pages_left,
                    device_pages_left,
                    is_cold: true,
                })
            }
            Place::Disk { disk, device, server, .. } => {
                self.unmount()?;
                let device_pages_left = self.drop_until_gone(&device.path)?;
                // Of the disk's own file none can be cached: it is opened for direct I/O on both sides, and this shows
                // it. What the server's image has in memory costs no virtual time, and is left there.
                let image_pages_left = self.drop_until_gone(&disk)?;
                // A disk has a memory of its own, in which a small volume would be read again and again.
                server.lock().cool()?;
                self.mount()?;
                Ok(ColdReport {
                    description: "remount+direct-io (disk in virtual time)".to_owned(),
                    image_pages_left,
                    device_pages_left,
                    is_cold: true,
                })
            }
            Place::Device { path } => {
                self.unmount()?;
                let device_pages_left = self.drop_until_gone(&path)?;
                self.mount()?;
                Ok(ColdReport {
                    description: "remount".to_owned(),
                    image_pages_left: None,
                    device_pages_left,
                    is_cold: true,
                })
            }
        }
    }

    /// Drops pages until none is left: some wait for a moment in per-processor lists where they cannot be dropped, and
    /// on a busy disk written pages stay until their writing is over.
    fn drop_until_gone(&self, path: &Path) -> Result<Option<u64>> {
        const TRIES: u32 = 200;
        let mut left = self.host().drop_cached_pages(path)?;
        for _ in 0..TRIES {
            if left.is_none_or(|pages| pages == 0) {
                return Ok(left);
            }
            check_interrupted("making a volume cold")?;
            self.host().pause(std::time::Duration::from_millis(50));
            left = self.host().drop_cached_pages(path)?;
        }
        match left {
            Some(pages) if pages > 0 => {
                let detail = format!("{pages} pages stay in the cache");
                Err(Error::Unverified { operation: "making cold", path: path.to_owned(), detail })
            }
            _ => Ok(left),
        }
    }
}

/// Drops the pages of all files below `dir`.
fn drop_tree(volume: &Volume, dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).map_err(Error::std("list", dir))? {
        check_interrupted("the cooling of a directory")?;
        let entry = entry.map_err(Error::std("list", dir))?;
        let kind = entry.file_type().map_err(Error::std("look up", entry.path()))?;
        if kind.is_dir() {
            drop_tree(volume, &entry.path())?;
        } else if kind.is_file() {
            volume.host().drop_cached_pages(&entry.path())?;
        }
    }
    Ok(())
}
