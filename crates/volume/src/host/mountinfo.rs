//! Parses `/proc/self/mountinfo`, as proc(5) describes it.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use senesce_core::unescape_field;

use super::DeviceNumber;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Number of the file system. For Btrfs it is virtual, and not the device's.
    pub device: DeviceNumber,
    /// The mounted part: `/` for all, otherwise a directory or a subvolume.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// The kernel's name of the file system.
    pub file_system: String,
    /// The source, as the mounting program named it.
    pub source: PathBuf,
    /// Options of the mount and of the file system, as the kernel reports them, separated by
    /// commas.
    pub options: String,
}

/// Parses mounts. Skips lines that do not have the documented form.
pub fn parse_mountinfo(text: &[u8]) -> Vec<MountEntry> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    // A variable number of optional fields, then a single dash.
    let dash = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let text = |at: usize| Some(std::str::from_utf8(fields.get(at)?).ok()?.to_owned());
    let (major, minor) = std::str::from_utf8(fields[2]).ok()?.split_once(':')?;
    Some(MountEntry {
        device: DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? },
        root: unescape(fields[3]),
        point: unescape(fields[4]),
        file_system: text(dash + 1)?,
        source: unescape(fields.get(dash + 2)?),
        options: format!("{},{}", text(5)?, text(dash + 3)?),
    })
}

/// Decodes a path in a field of a list of the kernel.
pub(super) fn unescape(field: &[u8]) -> PathBuf {
    OsString::from_vec(unescape_field(field)).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn optional_fields_and_escapes_are_parsed() {
        let text = b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext4 /dev/loop1 rw,errors=continue\n\
                     37 35 0:46 / /b rw - btrfs /dev/loop2 rw\n\
                     torn 1 2";
        let mounts = parse_mountinfo(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].point, Path::new("/mnt 2"));
        assert_eq!((mounts[0].root.as_path(), mounts[1].root.as_path()), (Path::new("/mnt1"), Path::new("/")));
        assert_eq!(mounts[0].device, DeviceNumber { major: 98, minor: 0 });
        assert_eq!(mounts[0].options, "rw,noatime,rw,errors=continue");
        assert_eq!(mounts[1].source, Path::new("/dev/loop2"));
        assert_eq!(mounts[1].file_system, "btrfs");
    }
}
