//! `senesce fs` of an evergreen: on one file or device.

mod check_stat;
mod defrag;
mod dump;
mod mkfs;
mod mount;
mod repair;
mod survey;
mod tree_picture;

use std::{
    ffi::OsStr,
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use senesce_block::{BlockDevice, FileDevice, FileOptions, OverlayDevice};
use senesce_core::Bytes;
use senesce_evergreen::{Evergreen, EvergreenFs, Limits, disk::is_evergreen};
use senesce_exec::EngineTarget;

pub(super) use check_stat::{check, print_checked, print_stat, stat};
pub(super) use defrag::{defrag, print_defragmented};
pub(super) use dump::dump;
pub(super) use mkfs::mkfs;
pub(super) use mount::{Chores, limits, mount, tell_torn};
pub use repair::EvergreenRepairDocument;
pub(super) use repair::repair;
pub(super) use survey::collect_told;
pub use tree_picture::{TreeDocument, draw_tree, outline_tree};

use super::claim;
use crate::{args::FsPlaceArgs, clock::SystemClock, exit::usage};

/// The file or device of an evergreen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place(PathBuf);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// An evergreen that is open.
pub(super) struct Opened {
    pub store: Arc<Evergreen>,
    pub fs: Arc<EvergreenFs<Arc<Evergreen>>>,
}

impl Place {
    /// The one that a command names with `evergreen:`, or whose superblock is there. `None`: it
    /// is something else.
    pub fn find(args: &FsPlaceArgs) -> Option<Self> {
        Self::find_at(args.place.as_deref()?)
    }

    /// The same at a path.
    pub fn find_at(path: &Path) -> Option<Self> {
        if let Some(place) = Self::named(path) {
            return Some(place);
        }
        let options = FileOptions { read_only: true, ..FileOptions::default() };
        let device = path.metadata().ok().filter(|found| !found.is_dir()).and_then(|_| {
            // Who has it open is no matter as long as nothing is believed but what it is.
            // If it cannot be opened, what opens it next says why.
            FileDevice::open(path, Bytes(0), options).ok()
        })?;
        is_evergreen(&device).then(|| Self(path.to_owned()))
    }

    /// The text after `evergreen:`.
    pub fn named(path: &Path) -> Option<Self> {
        let rest = path.as_os_str().as_bytes().strip_prefix(b"evergreen:")?;
        Some(Self(PathBuf::from(OsStr::from_bytes(rest))))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the device to use it. No other program may have it open.
    pub fn open(&self) -> Result<Arc<dyn BlockDevice>> {
        Ok(Arc::new(claim::open_existing(&self.0)?))
    }

    /// Opens the device to look at it: what is written stays in memory. Others may look, too.
    pub fn look(&self) -> Result<Arc<dyn BlockDevice>> {
        let options = FileOptions { read_only: true, ..FileOptions::default() };
        Ok(Arc::new(OverlayDevice::new(FileDevice::open(&self.0, Bytes(0), options)?)))
    }

    /// Opens the file system on the device, with the operations of the log.
    pub fn evergreen(&self, device: Arc<dyn BlockDevice>, limits: Limits) -> Result<Opened> {
        let cannot = || format!("cannot open {self}");
        let store = Arc::new(Evergreen::open(device, limits).with_context(cannot)?);
        let fs = Arc::new(EvergreenFs::open(store.clone()).with_context(cannot)?);
        Ok(Opened { store, fs })
    }
}

/// Opens the evergreen at a path and hands it out to be driven in this process; afterwards
/// everything is in a checkpoint.
///
/// Errors: no evergreen, or one that holds something already.
pub fn with_evergreen<T>(path: &Path, act: impl FnOnce(&EngineTarget) -> Result<T>) -> Result<T> {
    let place = Place(path.to_owned());
    let Opened { store, fs } = place.evergreen(place.open()?, Limits::default())?;
    let target = EngineTarget::new(fs, Arc::new(SystemClock::start()));
    if !target.is_empty().with_context(|| format!("cannot list {place}"))? {
        return Err(usage(format!("{place} is not empty"), Some("`senesce fs mkfs evergreen` makes a new one")));
    }
    let done = act(&target)?;
    store.checkpoint().with_context(|| format!("cannot close {place}"))?;
    Ok(done)
}
