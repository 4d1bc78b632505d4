//! The directory in which an aggregate lies: an image for each drive, and one for the log.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use senesce_block::{BlockDevice, FileDevice, FileOptions, OverlayDevice};
use senesce_core::Bytes;

use crate::exit::usage;

const LOG: &str = "log.img";

/// The devices of an aggregate.
pub struct Devices {
    pub drives: Vec<Arc<dyn BlockDevice>>,
    pub log: Arc<dyn BlockDevice>,
}

/// Makes images that hold zeros, in a new directory.
pub fn create(place: &Path, drives: usize, drive_bytes: Bytes, log_bytes: Bytes) -> Result<Devices> {
    fs::create_dir(place).with_context(|| format!("cannot make the directory {}", place.display()))?;
    let make = |name: &str, bytes| -> Result<Arc<dyn BlockDevice>> {
        Ok(Arc::new(FileDevice::create(&place.join(name), bytes, FileOptions::default())?))
    };
    let drives = (0..drives).map(|drive| make(&format!("drive-{drive:02}.img"), drive_bytes)).collect::<Result<_>>()?;
    Ok(Devices { drives, log: make(LOG, log_bytes)? })
}

/// Opens the devices to use them.
pub fn open(place: &Path) -> Result<Devices> {
    open_as(place, |path| Ok(Arc::new(FileDevice::open(path, Bytes(0), FileOptions::default())?)))
}

/// Opens the devices to look at them: what is written stays in memory.
pub fn look(place: &Path) -> Result<Devices> {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    open_as(place, |path| Ok(Arc::new(OverlayDevice::new(FileDevice::open(path, Bytes(0), options)?))))
}

fn open_as(place: &Path, open: impl Fn(&Path) -> Result<Arc<dyn BlockDevice>>) -> Result<Devices> {
    let entries = fs::read_dir(place).with_context(|| format!("cannot list {}", place.display()))?;
    let mut drives: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", place.display()))?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("drive-")) {
            drives.push(path);
        }
    }
    drives.sort();
    let log = place.join(LOG);
    if drives.is_empty() || !log.exists() {
        let message = format!("{} holds no file system of senesce: no drive-*.img and {LOG}", place.display());
        return Err(usage(message, Some("`senesce fs mkfs garden DIRECTORY` makes one")));
    }
    let drives = drives.iter().map(|path| open(path)).collect::<Result<_>>()?;
    Ok(Devices { drives, log: open(&log)? })
}
