//! Volumes that a verb made, as files that stay.

use std::path::{Path, PathBuf};

use anyhow::Result;
use senesce_core::Printable;
use senesce_volume::{Error, Existing, Host, LinuxHost, Volume};

use crate::clock::SystemClock;

/// Discards the free blocks of a mounted volume: an image must not keep the contents of deleted
/// files. Returns whether it did; the tool can be missing.
pub fn trim(volume: &Volume) -> Result<bool> {
    let host = LinuxHost::default();
    Ok(match host.find_tool("fstrim") {
        Some(fstrim) => host.run_tool(&fstrim, &[volume.root().to_string_lossy().into_owned()])?.success,
        None => false,
    })
}

/// Unmounts a volume, and keeps its image as a file. Returns the file: its name can differ if
/// another program made a file of that name.
pub fn keep_image(volume: &mut Volume, path: &Path) -> Result<PathBuf> {
    // Without fstrim the image is larger, and correct.
    let _is_trimmed = trim(volume)?;
    volume.unmount()?;
    write_image(volume, path)
}

/// Keeps the image of an unmounted volume, as [`keep_image`] does.
pub fn write_image(volume: &Volume, path: &Path) -> Result<PathBuf> {
    let made = volume.snapshot_to(path, Existing::Keep, &SystemClock::start())?.path;
    if made.file_name() == path.file_name() {
        return Ok(path.to_owned());
    }
    let (taken, made_as) = (Printable::new(path), Printable::new(&made));
    eprintln!("senesce: warning: another program made {taken}, so the image is {made_as}");
    Ok(made)
}

/// The error of a volume, with the place and the directory that the user named. `scratch` is a
/// temporary directory below `dir`.
pub fn name_place(error: Error, scratch: &Path, (on, dir): (&str, &Path)) -> Error {
    match error {
        Error::NoRoom { place, size, own, held } if place == scratch => {
            Error::NoRoom { place: on.into(), size, own, held }
        }
        Error::NotEnoughSpace { dir: full, available, needed } if full == scratch => {
            Error::NotEnoughSpace { dir: dir.to_owned(), available, needed }
        }
        other => other,
    }
}
