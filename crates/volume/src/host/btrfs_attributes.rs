//! Settings of a mounted Btrfs below `/sys/fs/btrfs`.

use std::{fs, io, os::fd::AsFd, path::Path};

use super::settle_calls::btrfs_id;
use crate::Uuid;

/// Sets the read-ahead of files. The kernel forgets it at the unmount.
pub(crate) fn set_read_ahead(root: impl AsFd, kib: u32) -> io::Result<()> {
    let directory = Path::new("/sys/fs/btrfs").join(Uuid(btrfs_id(root)?).to_string());
    fs::write(directory.join("bdi/read_ahead_kb"), kib.to_string())
}
