//! The system calls: allocate, take blocks out, clone, punch.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FallocateFlags, RenameFlags, copy_file_range, fallocate, renameat_with},
    io::Errno,
};
use senesce_probe::{collect::collect_extents, map::RawExtent};
use senesce_volume::{Custodian, Resource, ResourceId};

use crate::{Error, Result};

/// A file system that files can be cut on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

/// The file system of a path, and its block: at least 4 KiB, the unit of all figures.
pub(crate) fn collect_kind(path: &Path) -> Result<(Kind, u64)> {
    let info = rustix::fs::statfs(path).map_err(Error::sys("look at the file system of", path))?;
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

/// A directory in which files are made, each under a name that tells whose it is; what a kill leaves of them is known by it.
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

    /// The directory that a file is in.
    pub fn of(custodian: &'a Custodian, path: &Path) -> Result<Self> {
        Self::open(custodian, path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes a new file there, for `of`. `mode`: what the user's mask leaves of it.
    pub fn create(&self, of: &OsStr, what: &str, mode: u32) -> Result<Scratch> {
        // Names have 255 bytes; who looks for the file sees at least the beginning of it.
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
        // What fails stays in the journal; the custodian tries again, and then `clean`.
        let _ = self.custodian.release(self.id);
    }
}

/// A file that may become another one; removed unless it did.
pub(crate) struct Scratch {
    pub path: PathBuf,
    pub file: File,
    is_kept: bool,
}

impl Scratch {
    /// It becomes `to`.
    pub fn rename(mut self, to: &Path) -> Result<()> {
        fs::rename(&self.path, to).map_err(Error::io("rename", &self.path))?;
        self.is_kept = true;
        Ok(())
    }

    /// It becomes `to`, which is not there. Gives whether it did; else what is there stays and this goes.
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

    /// Has a range of `from` at `to_start`, too: file systems that can share blocks do. Who asks must look.
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

/// Lengths of the extents that lie apart on the device, in file order, in blocks.
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
    fn a_new_name_replaces_nothing() {
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
