//! Mount options: those the kernel takes as flags, and those the file system reads.

use rustix::mount::MountFlags;

use crate::{Error, Result};

/// Mount options, parted as mount(2) wants them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Flags of every mount.
    pub flags: MountFlags,
    /// What the file system itself reads, comma-separated.
    pub data: String,
}

/// Parts a comma-separated list of mount options.
///
/// Errors: options that would not mount this volume afresh (`bind`, `remount`, `loop`, …).
pub fn parse_mount_options(text: &str) -> Result<MountOptions> {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        match option {
            "defaults" | "rw" | "suid" | "dev" | "exec" | "async" => {}
            "ro" => flags |= MountFlags::RDONLY,
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "strictatime" => flags |= MountFlags::STRICTATIME,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "nosuid" => flags |= MountFlags::NOSUID,
            "nodev" => flags |= MountFlags::NODEV,
            "noexec" => flags |= MountFlags::NOEXEC,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "bind" | "rbind" | "remount" | "move" | "loop" => {
                let problem = "is not for a fresh mount of a volume";
                return Err(Error::MountOption { option: option.to_owned(), problem });
            }
            _ if option.contains('\0') => {
                return Err(Error::MountOption { option: option.to_owned(), problem: "contains a NUL byte" });
            }
            _ => data.push(option),
        }
    }
    Ok(MountOptions { flags, data: data.join(",") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_data_are_parted() {
        let options = parse_mount_options("noatime, commit=300,,nodev,logbsize=256k").unwrap();
        assert_eq!(options.flags, MountFlags::NOATIME | MountFlags::NODEV);
        assert_eq!(options.data, "commit=300,logbsize=256k");
    }

    #[test]
    fn options_of_another_kind_of_mount_are_refused() {
        assert!(matches!(parse_mount_options("noatime,remount"), Err(Error::MountOption { .. })));
    }
}
