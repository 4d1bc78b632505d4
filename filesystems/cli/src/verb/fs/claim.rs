//! Files and block devices that an engine is made on, or that hold one. One in use is refused; one
//! that is not empty needs `--force`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use senesce_block::{BlockDevice, FileDevice, FileOptions, MemoryDevice, OverlayDevice};
use senesce_cli::check_new;
use senesce_core::Bytes;
use senesce_garden::Garden;
use senesce_service::MOST_CHANGES;
use senesce_volume::{Purpose, SCAN_BYTES, check_interrupted};

use crate::{exit::usage, progress::Stretch};

/// Bytes that are zeroed by one request.
const ZEROS: usize = 1 << 20;

/// Errors: one of them is named twice.
pub fn check_distinct(paths: &[&Path]) -> Result<()> {
    let mut seen: Vec<(PathBuf, &Path)> = Vec::new();
    for &path in paths {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == real) {
            let message = format!("{} and {} are the same", other.display(), path.display());
            return Err(usage(message, Some("name another file or device for each drive and for the log")));
        }
        seen.push((real, path));
    }
    Ok(())
}

/// A file or device that may be overwritten and that no other process can use, or the path of a new
/// file.
pub struct Held {
    path: PathBuf,
    claim: Option<senesce_volume::Claim>,
}

/// Opens, claims and checks the file or device at a path. Later writes go through the same
/// descriptor.
///
/// Errors: it is in use, even with `force`; it is not empty, unless `force`; it is neither a file
/// nor a block device.
pub fn hold(path: &Path, force: bool) -> Result<Held> {
    let claim = match path.exists() {
        true => Some(senesce_volume::Claim::open(path, Purpose::Write)?),
        false => None,
    };
    match &claim {
        Some(claim) => claim.check_content(force).map_err(|error| of_content(path, error))?,
        None => check_new(path)?,
    }
    Ok(Held { path: path.to_owned(), claim })
}

/// A file with content is an output that exists already, and so a wrong use. A device with content
/// is a matter of the machine. Other errors stay as they are.
fn of_content(path: &Path, error: senesce_volume::Error) -> anyhow::Error {
    match error {
        senesce_volume::Error::HasSignature { .. } if path.is_file() => {
            let hint = error.hint();
            usage(error.to_string(), hint.as_deref())
        }
        error => error.into(),
    }
}

/// Opens an existing file system for writing. Errors: as [`hold`], but its contents are no error.
pub fn open_existing(path: &Path) -> Result<FileDevice> {
    if !path.exists() {
        return Err(usage(format!("cannot open {}: there is no such file or device", path.display()), None));
    }
    let claim = senesce_volume::Claim::open(path, Purpose::Write)?;
    Ok(FileDevice::from_file(claim.into_file(), path, Bytes(0), FileOptions::default())?)
}

/// Refuses a file or device that may become a log and holds something else. Errors: as [`hold`].
pub fn check_log(path: &Path, force: bool) -> Result<()> {
    let claim = senesce_volume::Claim::open(path, Purpose::Write)?;
    let error = match claim.check_content(force) {
        Ok(()) => return Ok(()),
        Err(error @ senesce_volume::Error::HasSignature { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::from_file(claim.into_file(), path, Bytes(0), options)?);
    // The engine knows its own log, and refuses that of another garden.
    if Garden::is_log(&device) { Ok(()) } else { Err(of_content(path, error)) }
}

/// A file or device that was opened to become a part of a garden. Nothing was written yet.
pub struct Claim {
    device: FileDevice,
    /// What of it is to become zeros, bytes; none of what was made just now.
    zeroed: Bytes,
}

impl Held {
    /// A copy whose changes stay in memory, up to 256 MiB. If the file does not exist, the copy has
    /// `made` bytes.
    ///
    /// Errors: shorter than `made`.
    pub fn in_memory(self, made: Bytes) -> Result<Arc<dyn BlockDevice>> {
        let Self { path, claim } = self;
        let options = FileOptions { read_only: true, ..FileOptions::default() };
        let below: Arc<dyn BlockDevice> = match claim {
            Some(claim) => Arc::new(FileDevice::from_file(claim.into_file(), &path, made, options)?),
            None => Arc::new(MemoryDevice::new(path.display().to_string(), made)),
        };
        Ok(Arc::new(OverlayDevice::within(below, MOST_CHANGES)))
    }

    /// Creates the file with `made` bytes if it does not exist.
    ///
    /// Errors: shorter than `least`.
    pub fn open(self, made: Bytes, least: Bytes, zeroed: Bytes) -> Result<Claim> {
        let Self { path, claim } = self;
        let options = FileOptions::default();
        Ok(match claim {
            Some(claim) => Claim { device: FileDevice::from_file(claim.into_file(), &path, least, options)?, zeroed },
            None => Claim { device: FileDevice::create(&path, made, options)?, zeroed: Bytes(0) },
        })
    }
}

impl Claim {
    /// How many bytes are to become zeros.
    pub fn to_zero(&self) -> u64 {
        self.zeroed.0
    }

    /// Fills the beginning with zeros, and the end, where other file systems have marks.
    ///
    /// Errors: a signal, the device's. Cost: writes it once.
    pub fn wipe(self, bar: &mut Stretch) -> Result<Arc<dyn BlockDevice>> {
        let size = self.device.size().0;
        if self.zeroed.0 > 0 {
            let tail = size.saturating_sub(SCAN_BYTES as u64).max(self.zeroed.0);
            for (from, to) in [(0, self.zeroed.0.min(size)), (tail, size)] {
                zero(&self.device, from, to, bar)?;
            }
            self.device.flush()?;
        }
        Ok(Arc::new(self.device))
    }
}

fn zero(device: &FileDevice, from: u64, to: u64, bar: &mut Stretch) -> Result<()> {
    let zeros = vec![0; ZEROS];
    let mut at = from;
    while at < to {
        check_interrupted("writing zeros")?;
        let bytes = (to - at).min(ZEROS as u64);
        device.write_at(at, &zeros[..bytes as usize])?;
        at += bytes;
        bar.add(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use senesce_experiment::ErrorKind;

    use super::*;
    use crate::exit::classify;

    #[test]
    fn only_content_of_a_file_is_a_wrong_use() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        fs::write(&file, "letter").unwrap();
        let content =
            |device: &Path| senesce_volume::Error::HasSignature { device: device.into(), found: "data".into() };
        let found = of_content(&file, content(&file));
        assert_eq!(classify(&found).0, ErrorKind::Usage);
        assert!(found.to_string().contains("it was not touched"), "{found}");
        // No file: as for a block device.
        assert_eq!(classify(&of_content(dir.path(), content(dir.path()))).0, ErrorKind::Environment);
        // An error that is not about content keeps its kind and its cause.
        let read = || senesce_volume::Error::Io {
            operation: "read",
            path: file.clone(),
            source: io::ErrorKind::PermissionDenied.into(),
        };
        let kept = of_content(&file, read());
        let expected = anyhow::Error::from(read());
        assert_eq!((classify(&kept), kept.chain().count()), (classify(&expected), 2));
        let held = check_log(&file, false).unwrap_err();
        assert_eq!(classify(&held).0, ErrorKind::Usage);
        assert_eq!(fs::read(&file).unwrap(), b"letter");
    }
}
