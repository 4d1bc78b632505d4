//! What the kernel reports and lets change of a mounted Btrfs below `/sys/fs/btrfs`.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::FileExt},
    path::PathBuf,
};

use super::settle_calls::btrfs_id;
use crate::Uuid;

/// The directory of the file system of `root`.
fn directory(root: impl AsFd) -> io::Result<PathBuf> {
    Ok(PathBuf::from("/sys/fs/btrfs").join(Uuid(btrfs_id(root)?).to_string()))
}

/// Sets the read-ahead of files. The kernel forgets it at the unmount.
pub(crate) fn set_read_ahead(root: impl AsFd, kib: u32) -> io::Result<()> {
    fs::write(directory(root)?.join("bdi/read_ahead_kb"), kib.to_string())
}

/// The space for metadata.
#[derive(Debug)]
pub(crate) struct MetadataSpace {
    total: File,
    /// Used, or reserved for postponed work.
    taken: [File; 5],
}

impl MetadataSpace {
    /// `None` if metadata and data share their space.
    pub(crate) fn open(root: impl AsFd) -> io::Result<Option<Self>> {
        let directory = directory(root)?.join("allocation/metadata");
        let file = |name: &str| File::open(directory.join(name));
        let total = match file("total_bytes") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            total => total?,
        };
        let taken = [
            file("bytes_used")?,
            file("bytes_reserved")?,
            file("bytes_pinned")?,
            file("bytes_readonly")?,
            file("bytes_may_use")?,
        ];
        Ok(Some(Self { total, taken }))
    }

    /// Bytes that are neither used nor reserved.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let mut free = read(&self.total)?;
        for file in &self.taken {
            free = free.saturating_sub(read(file)?);
        }
        Ok(free)
    }
}

fn read(file: &File) -> io::Result<u64> {
    let mut text = [0; 24];
    let length = file.read_at(&mut text, 0)?;
    let number = str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
