//! Lists the free space of a mounted file system by GETFSMAP.

use std::path::Path;

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use super::{
    extents::BTRFS_MAGIC,
    f2fs::{self, F2FS_MAGIC},
    ioctl::FsmapQuery,
};
use crate::{Error, map::FreeExtent};

/// Returns the free extents of the ext4, XFS or F2FS file system mounted at `mountpoint`, in the
/// order of the device, with adjacent ones merged.
///
/// The file system is synced first, so that freed blocks of an uncommitted transaction count as
/// free. Space that ext4 reserves in memory for writers counts as used. A freshly mounted volume
/// has no such space, so the result equals that of `e2freefrag`. The XFS result equals that of
/// `xfs_spaceman -c freesp`. A realtime device's space is left out.
/// Those of F2FS come from the bitmaps of its segments: a block without valid data is free.
///
/// Errors: Btrfs and other file systems are not supported; the caller lacks the right (root is
/// needed). Cost: about 0.2 microseconds a record, also for used space.
pub fn collect_free_extents(mountpoint: &Path) -> Result<Vec<FreeExtent>, Error> {
    let file = std::fs::File::open(mountpoint).map_err(|source| Error::system("open", mountpoint, source))?;
    rustix::fs::syncfs(&file).map_err(|source| Error::system("sync", mountpoint, source))?;
    collect_free_extents_as_it_is(mountpoint)
}

/// The same without a sync: causes no write. Recently freed blocks may still count as used.
pub fn collect_free_extents_as_it_is(mountpoint: &Path) -> Result<Vec<FreeExtent>, Error> {
    let fd = rustix::fs::openat(CWD, mountpoint, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|source| Error::system("open", mountpoint, source))?;
    let magic = rustix::fs::fstatfs(&fd).map_err(|source| Error::system("statfs", mountpoint, source))?.f_type;
    let magic = magic as u64 & 0xFFFF_FFFF;
    let not_supported =
        |hint| Error::NotSupported { measure: "the list of free extents", path: mountpoint.into(), magic, hint };
    if magic == BTRFS_MAGIC {
        return Err(not_supported("Btrfs has free space per block group, in a logical address space"));
    }
    if magic == F2FS_MAGIC {
        let device = rustix::fs::fstat(&fd).map_err(|source| Error::system("look up", mountpoint, source))?.st_dev;
        return f2fs::collect(mountpoint, device);
    }
    let mut query = FsmapQuery::new();
    let mut free: Vec<FreeExtent> = Vec::new();
    let mut device = None;
    let mut last_seen = None;
    loop {
        let records = match query.next(&fd) {
            Ok(records) => records,
            Err(Errno::NOTTY | Errno::OPNOTSUPP) => {
                return Err(not_supported("only ext4, XFS and F2FS report it"));
            }
            Err(source) => return Err(Error::system("read the space map of", mountpoint, source)),
        };
        let Some(last) = records.last() else { return Ok(free) };
        let position = (last.device, last.physical, last.length);
        if last_seen.replace(position) == Some(position) {
            let problem = format!("it repeats the record at byte {} without end", last.physical);
            return Err(Error::Malformed { call: "GETFSMAP", path: mountpoint.into(), problem });
        }
        let done = last.flags & FsmapQuery::LAST != 0;
        for record in records {
            // The data device comes first. An external log and a realtime device have address
            // spaces of their own.
            if *device.get_or_insert(record.device) != record.device {
                continue;
            }
            let is_free = record.flags & FsmapQuery::SPECIAL_OWNER != 0 && record.owner == FsmapQuery::OWNER_FREE;
            if !is_free || record.length == 0 {
                continue;
            }
            match free.last_mut() {
                Some(before) if before.start_bytes + before.length_bytes == record.physical => {
                    before.length_bytes += record.length;
                }
                _ => free.push(FreeExtent { start_bytes: record.physical, length_bytes: record.length }),
            }
        }
        if done {
            return Ok(free);
        }
    }
}
