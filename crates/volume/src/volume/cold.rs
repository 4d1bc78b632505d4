//! Cold caches: no page of the volume or of its image is in memory.

use std::path::Path;

use super::lifecycle::{Place, Volume};
use crate::{Backend, Error, Result, check_interrupted};

/// The way in which a volume was made cold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdReport {
    /// The method, such as `remount+direct-io`.
    pub description: String,
    /// Pages of the image (or of the file of a virtual disk) left in the host's page cache. `None`
    /// for other backends and for images in memory, and if the kernel cannot count them.
    pub image_pages_left: Option<u64>,
    /// Pages of the device left in its buffer cache, right before the mount.
    pub device_pages_left: Option<u64>,
    /// Whether both the volume's metadata and its data are cold.
    pub is_cold: bool,
}

impl Volume {
    /// Makes the volume cold: writes it back, unmounts it, drops the caches of the device and the
    /// image, and mounts it.
    ///
    /// An image in memory has no device cache to drop, so only the file system's caches are cold. A
    /// directory cannot be unmounted: the pages of its files are dropped, and its metadata stays
    /// cached.
    ///
    /// Errors: as [`unmount`](Volume::unmount) and [`mount`](Volume::mount); [`Error::Unverified`]
    /// if pages stay. Cost: waits up to 10 s for each cache.
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
                // Direct I/O leaves none, but other readers of the image may have left some.
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
                // The disk's own file should have no cached pages, because both sides open it for
                // direct I/O. This checks it. The server's cached image costs no virtual time, and
                // stays.
                let image_pages_left = self.drop_until_gone(&disk)?;
                // The disk's model has a cache, which would serve every later read of a small
                // volume.
                server.lock().drop_device_cache()?;
                self.mount()?;
                // A mount reads the journal. The address of the journal's head differs between two
                // runs, and so does the position of the platter. Later reads must not depend on it.
                server.lock().drop_device_cache()?;
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

    /// Drops pages until none is left. Some are in per-processor lists for a moment and cannot be
    /// dropped. On a busy disk, written pages stay until their write-back is complete.
    fn drop_until_gone(&self, path: &Path) -> Result<Option<u64>> {
        const TRIES: u32 = 200;
        let mut left = self.host().drop_page_cache(path)?;
        for _ in 0..TRIES {
            if left.is_none_or(|pages| pages == 0) {
                return Ok(left);
            }
            check_interrupted("making a volume cold")?;
            self.host().pause(std::time::Duration::from_millis(50));
            left = self.host().drop_page_cache(path)?;
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
            volume.host().drop_page_cache(&entry.path())?;
        }
    }
    Ok(())
}
