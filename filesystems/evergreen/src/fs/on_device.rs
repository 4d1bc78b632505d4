//! A file system in the tree on a device.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::evergreen::{EvergreenFs, FsOptions, damaged};
use crate::{Evergreen, Limits, MakeOptions, Result};

impl EvergreenFs<Evergreen> {
    /// Makes an empty file system on a device: **all data on the device is lost.** Durable when it
    /// returns.
    ///
    /// Errors: as for [`Evergreen::make`].
    pub fn make_on(device: Arc<dyn BlockDevice>, options: &MakeOptions) -> Result<()> {
        Evergreen::make(device.clone(), options)?;
        let store = Evergreen::open(device, Limits::default())?;
        let fs = Self::format(store, FsOptions { keys: options.shape.key_order })?;
        fs.store().checkpoint()
    }

    /// Opens the file system on a device. It has the state after some call, at least that of the
    /// last sync.
    ///
    /// Errors: as for [`Evergreen::open`] and [`open`](Self::open); `Damaged` if the key order
    /// differs from that of the superblock.
    pub fn open_on(device: Arc<dyn BlockDevice>, limits: Limits) -> Result<Self> {
        let name = device.name().to_owned();
        let fs = Self::open(Evergreen::open(device, limits)?)?;
        let (recorded, found) = (fs.store().shape().key_order, fs.key_order());
        if recorded == found {
            return Ok(fs);
        }
        Err(damaged(
            name,
            format!("the file system's keys are in the order {found:?}, its superblock has {recorded:?}"),
        ))
    }
}
