//! `senesce fs sync`: makes everything durable that was written to a live mount.
//!
//! FUSE passes neither `sync` nor `syncfs` on to a server of type `fuse`: the kernel only starts to
//! write back its dirty pages, and does not wait for them. So this waits for the pages of every
//! open or mapped file, and then syncs a directory of the mount, which both engines take for a sync
//! of everything.

use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use senesce_core::Printable;
use senesce_volume::{DeviceNumber, ENGINE_SOURCE, MountEntry, list_mounts};

use crate::{args::FsSyncArgs, exit::usage};

/// The file type in a mode, and that of a regular file: inode(7).
const TYPE: u16 = 0o170_000;
const REGULAR: u16 = 0o100_000;

/// Syncs mounts, one after the other.
pub fn sync(args: &FsSyncArgs, quiet: bool) -> Result<()> {
    for point in &args.points {
        sync_one(point, &|mount| mount.source.to_string_lossy().starts_with(ENGINE_SOURCE))?;
        if !quiet {
            eprintln!("{}: all earlier writes are durable", Printable::new(point));
        }
    }
    Ok(())
}

/// Makes everything durable that programs wrote to the mount that holds `point`.
///
/// Errors: that mount is another one than is wanted.
pub fn sync_one(point: &Path, is_wanted: &dyn Fn(&MountEntry) -> bool) -> Result<()> {
    let shown = Printable::new(point);
    let place = File::open(point).with_context(|| format!("cannot open {shown}"))?;
    let device = DeviceNumber::of(place.metadata().with_context(|| format!("cannot stat {shown}"))?.dev());
    let is_ours = |mount: &MountEntry| mount.device == device && mount.file_system == "fuse" && is_wanted(mount);
    if !list_mounts()?.iter().any(|seen| is_ours(&seen.mount)) {
        return Err(usage(
            format!("{shown} is not on a mount of senesce, or another mount covers it"),
            Some("`sync --file-system PATH` syncs other file systems"),
        ));
    }
    rustix::fs::syncfs(&place).with_context(|| format!("cannot write back the pages of {shown}"))?;
    for path in open_files(device) {
        // A file that was closed meanwhile has handed its pages over, and one that is still mapped
        // was found in another place.
        if let Some(file) = open_of(device, &path) {
            file.sync_data().with_context(|| format!("cannot sync an open file of {shown} ({})", path.display()))?;
        }
    }
    place.sync_all().with_context(|| format!("cannot sync {shown}"))
}

/// Opens a regular file of a device. `None`: the descriptor is closed, or belongs to another file.
fn open_of(device: DeviceNumber, path: &Path) -> Option<File> {
    // It may have become a pipe, which must not be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|found| found.is_file() && DeviceNumber::of(found.dev()) == device).then_some(file)
}

/// A path to each regular file of a device that a process has open or mapped, as far as this
/// process may see.
fn open_files(device: DeviceNumber) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for process in entries(Path::new("/proc")) {
        for list in ["fd", "map_files"] {
            for path in entries(&process.join(list)) {
                // Processes and files come and go while this reads, and files of other users are
                // hidden. The call asks no server, which may never answer, for its attributes.
                let wanted = StatxFlags::TYPE | StatxFlags::INO;
                let Ok(stat) = rustix::fs::statx(CWD, &path, AtFlags::STATX_DONT_SYNC, wanted) else { continue };
                let is_there = (stat.stx_dev_major, stat.stx_dev_minor) == (device.major, device.minor);
                if is_there && stat.stx_mode & TYPE == REGULAR && seen.insert(stat.stx_ino) {
                    found.push(path);
                }
            }
        }
    }
    found
}

/// The entries of a directory; none if it is gone, or hidden from this process.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = |directory| -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    read(directory).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn descriptor_that_became_another_file_is_passed_over() {
        let file = tempfile::tempfile().unwrap();
        let at = |file: &dyn AsRawFd| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let device = |file: &File| DeviceNumber::of(file.metadata().unwrap().dev());
        assert!(open_of(device(&file), &at(&file)).is_some());
        let other = File::open("/proc/self/status").unwrap();
        assert!(open_of(device(&other), &at(&file)).is_none(), "a file of another device");
        let (reader, writer) = std::io::pipe().unwrap();
        for end in [&reader as &dyn AsRawFd, &writer] {
            assert!(open_of(device(&file), &at(end)).is_none(), "a pipe");
        }
    }
}
