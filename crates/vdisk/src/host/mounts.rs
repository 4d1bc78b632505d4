//! FUSE mounts in the machine's list of mounts, found without access to them: access to a dead one
//! could hang.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, path::PathBuf};

use rustix::{io::Errno, mount::UnmountFlags};
use senesce_core::unescape_field;

use crate::{Error, Result};

/// A FUSE mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FuseMount {
    /// Its mount point.
    pub point: PathBuf,
    /// The name that its server gave it.
    pub source: String,
    /// Number of its connection to the server: the minor number of its device.
    pub connection: u32,
}

/// The FUSE mounts in the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)), in its order.
fn parse_fuse_mounts(text: &[u8]) -> Vec<FuseMount> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<FuseMount> {
    // 36 35 0:52 / /mnt/point rw,noatime shared:1 - fuse source rw,user_id=0
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let kind = fields.get(dash + 1)?;
    if *kind != b"fuse" && !kind.starts_with(b"fuse.") {
        return None;
    }
    let (_, minor) = std::str::from_utf8(fields.get(2)?).ok()?.split_once(':')?;
    Some(FuseMount {
        point: PathBuf::from(OsString::from_vec(unescape_field(fields.get(4)?))),
        source: String::from_utf8_lossy(&unescape_field(fields.get(dash + 2)?)).into_owned(),
        connection: minor.parse().ok()?,
    })
}

/// The topmost FUSE mount with this source; `None` if there is none.
pub(crate) fn find_fuse_mount(source: &str) -> Result<Option<FuseMount>> {
    let path = "/proc/self/mountinfo";
    let text = fs::read(path).map_err(Error::std("read", path))?;
    Ok(parse_fuse_mounts(&text).into_iter().rev().find(|mount| mount.source == source))
}

/// Unmounts the topmost FUSE mount with this source. `Ok(false)` if it is in use.
pub(crate) fn unmount(source: &str, lazily: bool) -> Result<bool> {
    let Some(mount) = find_fuse_mount(source)? else { return Ok(true) };
    let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    // Symlinks are not followed: the list of mounts has real paths.
    match rustix::mount::unmount(&mount.point, flags | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(true),
        Err(Errno::BUSY) => Ok(false),
        // Another process unmounted it first.
        Err(Errno::INVAL) if find_fuse_mount(source)?.is_none() => Ok(true),
        Err(errno) => Err(Error::io("unmount", mount.point)(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuse_mounts_are_found_among_others() {
        let text = b"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
            90 22 0:52 / /mnt/a\\040b rw,nosuid,nodev shared:7 - fuse senesce-vdisk:x rw,user_id=0,group_id=0\n\
            91 22 0:53 / /mnt/c rw - fuse.sshfs host: rw\n\
            92 22 0:54 / /sys/fs/fuse/connections rw - fusectl none rw\n\
            torn";
        let found = parse_fuse_mounts(text);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            FuseMount { point: "/mnt/a b".into(), source: "senesce-vdisk:x".to_owned(), connection: 52 }
        );
        assert_eq!(found[1].connection, 53);
    }
}
