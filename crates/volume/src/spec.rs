//! The specification of a volume: its storage, its file system, its options. All of it is recorded
//! with the results.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use senesce_core::{Bytes, Rng, Seed};
use senesce_vdisk::Pace;
use serde::{Deserialize, Serialize};

/// A file system that this crate can make and mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemKind {
    /// ext4, of e2fsprogs.
    Ext4,
    /// XFS, of xfsprogs.
    Xfs,
    /// Btrfs, of btrfs-progs.
    Btrfs,
    /// F2FS, of f2fs-tools.
    F2fs,
    /// NILFS2, of nilfs-tools.
    Nilfs2,
    /// JFS, of jfsutils.
    Jfs,
    /// ReiserFS, of reiserfsprogs.
    Reiserfs,
    /// The garden, an engine of ours: a drive and its log on one device. A process serves it
    /// through FUSE.
    Garden,
    /// Evergreen, an engine of ours: on one device. A process serves it through FUSE.
    Evergreen,
}

impl FileSystemKind {
    /// All kinds.
    pub const ALL: [FileSystemKind; 9] = [
        FileSystemKind::Ext4,
        FileSystemKind::Xfs,
        FileSystemKind::Btrfs,
        FileSystemKind::F2fs,
        FileSystemKind::Nilfs2,
        FileSystemKind::Jfs,
        FileSystemKind::Reiserfs,
        FileSystemKind::Garden,
        FileSystemKind::Evergreen,
    ];

    /// Whether it is an engine of ours, which a process serves, and not the kernel.
    pub fn is_engine(self) -> bool {
        matches!(self, FileSystemKind::Garden | FileSystemKind::Evergreen)
    }

    /// The kernel's driver that mounts it.
    pub fn kernel_name(self) -> &'static str {
        if self.is_engine() { "fuse" } else { self.name() }
    }

    /// The kernel's name, and the name in plans.
    pub fn name(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "ext4",
            FileSystemKind::Xfs => "xfs",
            FileSystemKind::Btrfs => "btrfs",
            FileSystemKind::F2fs => "f2fs",
            FileSystemKind::Nilfs2 => "nilfs2",
            FileSystemKind::Jfs => "jfs",
            FileSystemKind::Reiserfs => "reiserfs",
            FileSystemKind::Garden => "garden",
            FileSystemKind::Evergreen => "evergreen",
        }
    }

    /// The program that makes it.
    pub fn mkfs_tool(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "mkfs.ext4",
            FileSystemKind::Xfs => "mkfs.xfs",
            FileSystemKind::Btrfs => "mkfs.btrfs",
            FileSystemKind::F2fs => "mkfs.f2fs",
            FileSystemKind::Nilfs2 => "mkfs.nilfs2",
            FileSystemKind::Jfs => "mkfs.jfs",
            FileSystemKind::Reiserfs => "mkfs.reiserfs",
            FileSystemKind::Garden | FileSystemKind::Evergreen => "senesce",
        }
    }

    /// The program that sets the UUID after mkfs, if mkfs cannot, and its options.
    pub(crate) fn uuid_tool(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            // `-f` makes it ask no question.
            FileSystemKind::Nilfs2 => Some(("nilfs-tune", &["-f", "-U"])),
            FileSystemKind::Jfs => Some(("jfs_tune", &["-U"])),
            _ => None,
        }
    }

    /// Whether the kernel lists its free extents. Of others, only the number of free bytes is
    /// known.
    pub fn lists_free_extents(self) -> bool {
        !matches!(self, FileSystemKind::Nilfs2 | FileSystemKind::Jfs | FileSystemKind::Reiserfs)
    }

    /// The Debian package of that program.
    pub fn debian_package(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "e2fsprogs",
            FileSystemKind::Xfs => "xfsprogs",
            FileSystemKind::Btrfs => "btrfs-progs",
            FileSystemKind::F2fs => "f2fs-tools",
            FileSystemKind::Nilfs2 => "nilfs-tools",
            FileSystemKind::Jfs => "jfsutils",
            FileSystemKind::Reiserfs => "reiserfsprogs",
            FileSystemKind::Garden | FileSystemKind::Evergreen => "senesce",
        }
    }

    /// The mount options if a plan names none.
    ///
    /// `noatime` everywhere, because reading must not write. A commit interval of 300 s, so that
    /// the layout depends on the operations and on explicit syncs, and not on the speed of the
    /// machine. Btrfs discards asynchronously by default, which punches the image at times of its
    /// own: off while aging. F2FS also does so, and cleans segments while it is idle: off, so that
    /// it cleans only when it needs space. NILFS2 is mounted without its cleaner, a daemon that
    /// works by the clock: blocks that are not used any more stay allocated. No other option
    /// changes how a file system allocates.
    ///
    /// The options of our engines are those of `senesce fs mount`, `name=value`: a consistency
    /// point (evergreen: a checkpoint) after at most 300 s, and earlier when half of the log is
    /// full or much has changed.
    pub fn default_mount_options(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "noatime,commit=300",
            FileSystemKind::Xfs => "noatime,logbsize=256k",
            FileSystemKind::Btrfs => "noatime,nodiscard,commit=300",
            FileSystemKind::F2fs => "noatime,nodiscard,background_gc=off",
            FileSystemKind::Nilfs2 => "noatime,nodiscard",
            FileSystemKind::Jfs => "noatime,nodiscard",
            FileSystemKind::Reiserfs => "noatime,commit=300",
            FileSystemKind::Garden | FileSystemKind::Evergreen => "point-every=300",
        }
    }

    /// The smallest volume that its mkfs accepts with default options (xfsprogs 6.1, btrfs-progs
    /// 6.2, e2fsprogs 1.47, f2fs-tools 1.15, nilfs-tools 2.2, jfsutils 1.1, reiserfsprogs 3.6,
    /// ours).
    pub fn minimum_size(self) -> Bytes {
        match self {
            FileSystemKind::Ext4 => Bytes(8 * Bytes::MIB),
            FileSystemKind::Xfs => Bytes(300 * Bytes::MIB),
            FileSystemKind::Btrfs => Bytes(114_294_784),
            FileSystemKind::F2fs => Bytes(52 * Bytes::MIB),
            FileSystemKind::Nilfs2 => Bytes(136 * Bytes::MIB),
            FileSystemKind::Jfs => Bytes(16 * Bytes::MIB),
            FileSystemKind::Reiserfs => Bytes(40 * Bytes::MIB),
            FileSystemKind::Garden => Bytes(16 * Bytes::MIB),
            FileSystemKind::Evergreen => Bytes(64 * Bytes::MIB),
        }
    }
}

impl fmt::Display for FileSystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FileSystemKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("{text:?} is not a file system senesce makes; it makes {}", names.join(", "))
        })
    }
}

/// The storage of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Backend {
    /// A sparse image file with a loop device. The file has a unique name and is removed with the
    /// volume.
    Image {
        /// Directory of the file; it must exist.
        dir: PathBuf,
        /// Size of the volume.
        size: Bytes,
        /// Whether the image must be in memory. Then `dir` must be on tmpfs.
        #[serde(default)]
        memory: bool,
    },
    /// The same file, served as a disk in virtual time: each request takes the time of a described
    /// device.
    Virtual {
        /// Directory of the file; it must exist.
        dir: PathBuf,
        /// Size of the volume.
        size: Bytes,
        /// Whether the file must be in memory. Then `dir` must be on tmpfs.
        #[serde(default)]
        memory: bool,
        /// The modelled device.
        device: VirtualDevice,
    },
    /// A block device that the user named as scratch.
    Device {
        /// The device.
        path: PathBuf,
        /// Size of the file system, if it does not fill the device.
        #[serde(default)]
        size: Option<Bytes>,
    },
    /// A new directory in an existing one, without mkfs and mount. Its metadata cache cannot be
    /// made cold.
    Directory {
        /// The existing directory.
        path: PathBuf,
    },
}

/// A modelled device, which this machine need not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualDevice {
    /// The name of a preset or the text of a description, as [`senesce_vdisk::find_device`] accepts
    /// it.
    pub device: String,
    /// Whether replies wait until they are due ([`Pace::RealTime`]), or only virtual time passes.
    pub pace: Pace,
}

/// The image file of a backend.
pub(crate) struct ImageSpec<'a> {
    pub dir: &'a Path,
    pub size: Bytes,
    pub memory: bool,
    /// `None` for a loop device on the file itself.
    pub device: Option<&'a VirtualDevice>,
}

impl Backend {
    /// The image of the backend. `None` for a device or a directory.
    pub(crate) fn image(&self) -> Option<ImageSpec<'_>> {
        match self {
            Backend::Image { dir, size, memory } => Some(ImageSpec { dir, size: *size, memory: *memory, device: None }),
            Backend::Virtual { dir, size, memory, device } => {
                Some(ImageSpec { dir, size: *size, memory: *memory, device: Some(device) })
            }
            Backend::Device { .. } | Backend::Directory { .. } => None,
        }
    }
}

/// A requested volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// The storage.
    pub backend: Backend,
    /// The file system. Not used for a directory.
    pub file_system: FileSystemKind,
    /// More arguments for mkfs.
    pub mkfs_options: Vec<String>,
    /// Seed of the hash that orders the names in a directory, on ext4. `None`: the UUID of the
    /// file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_seed: Option<Uuid>,
    /// All mount options, comma-separated. They replace the defaults.
    pub mount_options: String,
    /// Whether a device with a signature may be formatted. A device in use is refused in any case.
    pub force: bool,
    /// Read-ahead of the device, KiB.
    pub read_ahead_kib: u32,
    /// Whether its operations are settled ([`Settler`](crate::Settler)). A Btrfs
    /// is then mounted read-only first, and its read-ahead of files is 512 KiB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settles: bool,
}

impl VolumeSpec {
    /// Read-ahead if a plan names none, KiB: the kernel's default, which hosts often raise.
    pub const DEFAULT_READ_AHEAD_KIB: u32 = 128;

    /// A volume with all defaults.
    pub fn new(backend: Backend, file_system: FileSystemKind) -> Self {
        Self {
            backend,
            file_system,
            mkfs_options: Vec::new(),
            hash_seed: None,
            mount_options: file_system.default_mount_options().to_owned(),
            force: false,
            read_ahead_kib: Self::DEFAULT_READ_AHEAD_KIB,
            settles: false,
        }
    }
}

/// The identity of a new file system, which proves that mkfs made it. It also seeds ext4's
/// directory hash, if the volume has no [`VolumeSpec::hash_seed`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Derives a UUID (version 4 in form) from a seed. Two volumes of one machine at one time must
    /// differ, so derive a seed for each of them.
    pub fn from_seed(seed: Seed) -> Self {
        let mut bytes = [0u8; 16];
        Rng::for_purpose(seed, "volume uuid").fill(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name and place of a volume in its run.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Name in the run, such as `ext4-full`, in file names and reports: letters, digits, `-`, `_`,
    /// `.`.
    pub name: String,
    /// Identity of the new file system.
    pub uuid: Uuid,
    /// Directory for the mount point. It must exist.
    pub mount_dir: PathBuf,
    /// Space that the volume needs in the image's directory. Images are sparse, so only the caller
    /// knows it.
    pub needed: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_follows_from_its_seed() {
        let text = Uuid::from_seed(Seed(1)).to_string();
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert_eq!(text, Uuid::from_seed(Seed(1)).to_string());
        assert_ne!(text, Uuid::from_seed(Seed(2)).to_string());
    }

    #[test]
    fn names_are_parsed() {
        for kind in FileSystemKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("zfs".parse::<FileSystemKind>().is_err());
    }
}
