//! System calls of the cuts: allocate, collapse, clone, punch.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, CWD, FallocateFlags, RenameFlags, access, copy_file_range, fallocate, renameat_with},
    io::Errno,
};
use senesce_probe::{collect::collect_extents, map::RawExtent};
use senesce_volume::{Custodian, Resource, ResourceId};

use crate::{Error, Result};

/// A supported file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

/// Returns the file system of a path, and its block, at least 4 KiB: the unit of all figures.
pub(crate) fn collect_kind(path: &Path) -> Result<(Kind, u64)> {
    let info = rustix::fs::statfs(path).map_err(Error::sys("stat the file system of", path))?;
    let kind = match info.f_type as u64 & 0xFFFF_FFFF {
        0xEF53 => Kind::Ext4,
        0x5846_5342 => Kind::Xfs,
        0x9123_683E => Kind::Btrfs,
        other => {
            return Err(Error::NotSupported {
                path: path.to_owned(),
                file_system: format!("the file system (magic {other:#x})"),
                problem: "is none of ext4, XFS and Btrfs",
            });
        }
    };
    Ok((kind, (info.f_bsize as u64).max(4096)))
}

/// Errors: this process cannot create files in the directory.
pub(crate) fn check_writable(dir: &Path) -> Result<()> {
    access(dir, Access::WRITE_OK | Access::EXEC_OK).map_err(Error::sys("create files in", dir))
}

/// A directory for temporary files. Their names contain the custodian's token, so that `clean`
/// finds files that a killed process left.
pub(crate) struct Workplace<'a> {
    custodian: &'a Custodian,
    id: ResourceId,
    dir: PathBuf,
}

impl<'a> Workplace<'a> {
    pub fn open(custodian: &'a Custodian, dir: &Path) -> Result<Self> {
        let dir = fs::canonicalize(dir).map_err(Error::io("look up", dir))?;
        let (id, ()) = custodian.acquire(Resource::Files { dir: dir.clone() }, |_| Ok(()))?;
        Ok(Self { custodian, id, dir })
    }

    /// Opens the directory of a file.
    pub fn of(custodian: &'a Custodian, path: &Path) -> Result<Self> {
        Self::open(custodian, path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates a temporary file in the directory, named after `of`. The umask applies to `mode`.
    pub fn create(&self, of: &OsStr, what: &str, mode: u32) -> Result<Scratch> {
        // A name has at most 255 bytes; a person recognizes the file by the start of its name.
        let of = of.to_string_lossy();
        let of: String = of.chars().take(40).collect();
        let path = self.dir.join(format!(".{of}.{}.senesce-{what}", self.custodian.token()));
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(&path);
        let file = opened.map_err(Error::io("create", &path))?;
        Ok(Scratch { path, file, is_kept: false })
    }
}

impl Drop for Workplace<'_> {
    fn drop(&mut self) {
        // A failed removal stays in the journal; the custodian tries again, and later `clean` does.
        let _ = self.custodian.release(self.id);
    }
}

/// A temporary file that can be renamed to its final name. Otherwise it is removed on drop.
pub(crate) struct Scratch {
    pub path: PathBuf,
    pub file: File,
    is_kept: bool,
}

impl Scratch {
    /// Renames the file to `to`.
    pub fn rename(mut self, to: &Path) -> Result<()> {
        fs::rename(&self.path, to).map_err(Error::io("rename", &self.path))?;
        self.is_kept = true;
        Ok(())
    }

    /// Renames the file to `to` if that does not exist. Returns whether it did; otherwise the file
    /// is removed.
    pub fn rename_new(mut self, to: &Path) -> Result<bool> {
        match renameat_with(CWD, &self.path, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => self.is_kept = true,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::sys("rename", &self.path)(error)),
        }
        Ok(self.is_kept)
    }

    pub fn allocate(&self, start: u64, length: u64) -> rustix::io::Result<()> {
        fallocate(self.file.as_fd(), FallocateFlags::empty(), start, length)
    }

    pub fn collapse(&self, start: u64, length: u64) -> rustix::io::Result<()> {
        fallocate(self.file.as_fd(), FallocateFlags::COLLAPSE_RANGE, start, length)
    }

    pub fn punch(&self, start: u64, length: u64) -> rustix::io::Result<()> {
        fallocate(self.file.as_fd(), FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, length)
    }

    pub fn extents(&self) -> Result<Vec<RawExtent>> {
        Ok(collect_extents(&self.file, &self.path)?)
    }

    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::io("sync", &self.path))
    }

    pub fn set_len(&self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(Error::io("set the size of", &self.path))
    }

    /// Copies a range of `from` to `to_start`. File systems that can share blocks do so; the caller
    /// must check.
    pub fn clone_range(&self, from: &Scratch, from_start: u64, to_start: u64, length: u64) -> Result<()> {
        let (mut from_at, mut to_at, mut left) = (from_start, to_start, length);
        while left > 0 {
            let part = left.min(1 << 30) as usize;
            match copy_file_range(&from.file, Some(&mut from_at), &self.file, Some(&mut to_at), part) {
                Ok(0) => return Err(Error::io("clone all of", &from.path)(std::io::ErrorKind::UnexpectedEof.into())),
                Ok(some) => left -= some as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::sys("clone", &from.path)(error)),
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Lengths of the extents that are not adjacent on the device, in file order, in blocks.
pub(crate) fn compute_run_blocks(extents: &[RawExtent], block_bytes: u64) -> Vec<u64> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for raw in extents {
        let extent = raw.extent;
        match runs.last_mut() {
            Some((end, length)) if *end == extent.physical => {
                *end += extent.length;
                *length += extent.length;
            }
            _ => runs.push((extent.physical + extent.length, extent.length)),
        }
    }
    runs.into_iter().map(|(_, length)| length / block_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rename_new_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = |name: &str| {
            let path = dir.path().join(name);
            fs::write(&path, name).unwrap();
            Scratch { file: File::open(&path).unwrap(), path, is_kept: false }
        };
        let to = dir.path().join("to");
        assert!(scratch("first").rename_new(&to).unwrap());
        assert!(!scratch("second").rename_new(&to).unwrap());
        assert_eq!(fs::read_to_string(&to).unwrap(), "first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the other is gone");
    }
}
