//! Mount options: flags of the kernel, and options that the file system reads.

use rustix::mount::MountFlags;

use crate::{Error, Result};

/// Mount options, split as mount(2) needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Flags of every mount.
    pub flags: MountFlags,
    /// The options of the file system itself, comma-separated.
    pub data: String,
}

/// Options with which the kernel opens another device (ext4, XFS, Btrfs), and options with which
/// mount attaches a file.
const NAMES_ANOTHER: &[&str] =
    &["device", "encryption", "journal_dev", "journal_path", "logdev", "offset", "rtdev", "sizelimit"];

/// Splits a comma-separated list of mount options.
///
/// Setuid bits and device nodes have no effect unless `suid` or `dev` is listed: the files of a
/// volume may come from a stranger's image or log.
///
/// Errors: options that do not make a new mount of this volume (`bind`, `remount`, `loop`, …), or
/// that open another device.
pub fn parse_mount_options(text: &str) -> Result<MountOptions> {
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mut data = Vec::new();
    for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        match option {
            "defaults" | "rw" | "exec" | "async" => {}
            "suid" => flags -= MountFlags::NOSUID,
            "dev" => flags -= MountFlags::NODEV,
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
            _ if NAMES_ANOTHER.contains(&option.split('=').next().unwrap_or(option)) => {
                let problem = "names another device or file, which was not checked";
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
    fn flags_and_data_are_split() {
        let options = parse_mount_options("noatime, commit=300,,nodev,logbsize=256k").unwrap();
        assert_eq!(options.flags, MountFlags::NOATIME | MountFlags::NOSUID | MountFlags::NODEV);
        assert_eq!(options.data, "commit=300,logbsize=256k");
    }

    #[test]
    fn setuid_and_devices_need_their_options() {
        let flags = |text: &str| parse_mount_options(text).unwrap().flags;
        assert_eq!(flags(""), MountFlags::NOSUID | MountFlags::NODEV);
        assert_eq!(flags("suid"), MountFlags::NODEV);
        assert_eq!(flags("suid,dev,ro"), MountFlags::RDONLY);
        assert_eq!(flags("dev,nodev"), MountFlags::NOSUID | MountFlags::NODEV);
    }

    #[test]
    fn options_of_another_kind_of_mount_are_refused() {
        let others = ["device=/dev/loop9", "logdev=/dev/loop9", "rtdev=/dev/loop9", "journal_path=/dev/loop9"];
        for option in ["remount", "journal_dev=0x801"].into_iter().chain(others) {
            let options = format!("noatime,{option}");
            assert!(matches!(parse_mount_options(&options), Err(Error::MountOption { .. })), "{option}");
        }
    }
}
