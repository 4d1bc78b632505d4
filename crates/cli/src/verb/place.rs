//! The place that `--on` names.

use std::{os::unix::fs::FileTypeExt, path::Path};

use anyhow::Result;

use crate::exit::usage;

/// The hint for a place that cannot be used.
const PLACES: &str =
    "name an existing directory, a block device, image:SIZE (with --fs), garden:DIRECTORY or evergreen:FILE";

/// Checks a place that is no directory: `image:SIZE`, or a block device.
///
/// Errors: it does not exist; it is a file.
pub fn check_place(on: &str) -> Result<()> {
    if on.starts_with("image:") {
        return Ok(());
    }
    match Path::new(on).metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(usage(format!("--on: {on} does not exist"), Some(PLACES)))
        }
        Ok(found) if !found.file_type().is_block_device() => {
            Err(usage(format!("--on: {on} is neither a directory nor a block device"), Some(PLACES)))
        }
        _ => Ok(()),
    }
}
