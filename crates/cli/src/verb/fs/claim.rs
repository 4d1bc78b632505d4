//! Files and block devices that a garden is to be made on: nothing that is in use, and nothing that holds something unless
//! that was said.

use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use senesce_block::{BlockDevice, FileDevice, FileOptions};
use senesce_core::Bytes;
use senesce_volume::{
    Error as VolumeError, Host, LinuxHost, SCAN_BYTES, check_device, check_interrupted, find_signatures,
};

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
            return Err(usage(message, Some("each drive and the log need a file or device of their own")));
        }
        seen.push((real, path));
    }
    Ok(())
}

/// Whether something may be written over: a file that is not there yet is no more than a name.
///
/// Errors: in use (never forced); it holds something, unless `force`; neither a file nor a block device.
pub fn check(path: &Path, force: bool) -> Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let host = LinuxHost::default();
    if found.file_type().is_block_device() {
        return Ok(check_device(&host, path, force)?);
    }
    if !found.file_type().is_file() {
        return Err(usage(format!("{} is neither a file nor a block device", path.display()), None));
    }
    let id = senesce_volume::FileId { device: found.dev(), inode: found.ino() };
    let loops: Vec<String> = host.loops_backed_by(id)?.iter().map(|node| node.display().to_string()).collect();
    if !loops.is_empty() {
        let by = format!("the loop device {}", loops.join(", "));
        return Err(VolumeError::DeviceInUse { device: path.to_owned(), by }.into());
    }
    if force {
        return Ok(());
    }
    match find_content(path).with_context(|| format!("cannot read {}", path.display()))? {
        Some(found) => Err(VolumeError::HasSignature { device: path.to_owned(), found }.into()),
        None => Ok(()),
    }
}

/// What a file's beginning and end hold, in words; nothing if they are zeros.
fn find_content(path: &Path) -> std::io::Result<Option<String>> {
    let mut file = fs::File::open(path)?;
    let mut read = |from| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(from)?;
        file.by_ref().take(SCAN_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let start = read(SeekFrom::Start(0))?;
    let end = read(SeekFrom::Start(fs::metadata(path)?.len().saturating_sub(SCAN_BYTES as u64)))?;
    let marks: Vec<&str> = find_signatures(&start, &end).iter().map(|signature| signature.holds).collect();
    let holds = start.iter().chain(&end).any(|&byte| byte != 0);
    Ok(match marks.is_empty() {
        false => Some(marks.join(", ")),
        true => holds.then(|| "something".to_owned()),
    })
}

/// A file or device that was opened to become a part of a garden. Nothing was written yet.
pub struct Claim {
    device: FileDevice,
    /// What of it is to become zeros, bytes; none of what was made just now.
    zeroed: Bytes,
}

/// Opens what is there, or makes it with `made` bytes.
///
/// Errors: shorter than `least`, in use.
pub fn open(path: &Path, made: Bytes, least: Bytes, zeroed: Bytes) -> Result<Claim> {
    Ok(match path.exists() {
        true => Claim { device: FileDevice::open(path, least, FileOptions::default())?, zeroed },
        false => Claim { device: FileDevice::create(path, made, FileOptions::default())?, zeroed: Bytes(0) },
    })
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
