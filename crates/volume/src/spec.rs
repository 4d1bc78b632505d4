//! What a volume shall be: where it lies, its file system, its options. All of it is recorded with
//! the results.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use senesce_core::{Bytes, Rng, Seed};
use senesce_vdisk::Pace;
use serde::{Deserialize, Serialize};

/// A file system this room can make and mount.
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
    /// The garden, an engine of our own: a drive and its log on one device, served through FUSE by
    /// a process of its own.
    Garden,
    /// Evergreen, the other one: on one device, served in the same way.
    Evergreen,
}

impl FileSystemKind {
    /// All of them.
    pub const ALL: [FileSystemKind; 6] = [
        FileSystemKind::Ext4,
        FileSystemKind::Xfs,
        FileSystemKind::Btrfs,
        FileSystemKind::F2fs,
        FileSystemKind::Garden,
        FileSystemKind::Evergreen,
    ];

    /// Whether it is an engine of our own, which a process serves, and not the kernel.
    pub fn is_engine(self) -> bool {
        matches!(self, FileSystemKind::Garden | FileSystemKind::Evergreen)
    }

    /// What the kernel must know to mount it.
    pub fn kernel_name(self) -> &'static str {
        if self.is_engine() { "fuse" } else { self.name() }
    }

    /// The kernel's name, also the one in plans.
    pub fn name(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "ext4",
            FileSystemKind::Xfs => "xfs",
            FileSystemKind::Btrfs => "btrfs",
            FileSystemKind::F2fs => "f2fs",
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
            FileSystemKind::Garden | FileSystemKind::Evergreen => "senesce",
        }
    }

    /// The Debian package of that program.
    pub fn debian_package(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "e2fsprogs",
            FileSystemKind::Xfs => "xfsprogs",
            FileSystemKind::Btrfs => "btrfs-progs",
            FileSystemKind::F2fs => "f2fs-tools",
            FileSystemKind::Garden | FileSystemKind::Evergreen => "senesce",
        }
    }

    /// The mount options used when a plan names none.
    ///
    /// `noatime` everywhere: reading must not write. A commit interval of 300 s, so that the layout depends on the
    /// operations and on explicit syncs rather than on how fast the machine is. Btrfs discards
    /// asynchronously by default, which punches the image at moments of its own: not while aging.
    /// F2FS does that too, and it cleans segments while it is idle: off, so that it cleans only
    /// when it needs space. Nothing else here changes how a file system allocates. Those of engines
    /// of our own are options of `senesce fs mount`, `name=value`: a consistency point (evergreen:
    /// a checkpoint) after 300 s at the latest, else when half of the log is full or much changed.
    pub fn default_mount_options(self) -> &'static str {
        match self {
            FileSystemKind::Ext4 => "noatime,commit=300",
            FileSystemKind::Xfs => "noatime,logbsize=256k",
            FileSystemKind::Btrfs => "noatime,nodiscard,commit=300",
            FileSystemKind::F2fs => "noatime,nodiscard,background_gc=off",
            FileSystemKind::Garden | FileSystemKind::Evergreen => "point-every=300",
        }
    }

    /// The smallest volume its mkfs takes with default options (xfsprogs 6.1, btrfs-progs 6.2,
    /// e2fsprogs 1.47, f2fs-tools 1.15, ours).
    pub fn minimum_size(self) -> Bytes {
        match self {
            FileSystemKind::Ext4 => Bytes(8 * Bytes::MIB),
            FileSystemKind::Xfs => Bytes(300 * Bytes::MIB),
            FileSystemKind::Btrfs => Bytes(114_294_784),
            FileSystemKind::F2fs => Bytes(52 * Bytes::MIB),
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
            format!(
                "{text:?} is not a file system senesce makes; it makes ext4, xfs, btrfs, f2fs, garden and evergreen"
            )
        })
    }
}

/// Where a volume lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Backend {
    /// A sparse image file behind a loop device. The file gets a unique name and goes with the
    /// volume.
    Image {
        /// Directory of the file; it must exist.
        dir: PathBuf,
        /// Size of the volume.
        size: Bytes,
        /// Whether the image shall be in memory; `dir` must then be on tmpfs.
        #[serde(default)]
        memory: bool,
    },
    /// The same file, served as a disk in virtual time: each request takes what a described device
    /// would have taken.
    Virtual {
        /// Directory of the file; it must exist.
        dir: PathBuf,
        /// Size of the volume.
        size: Bytes,
        /// Whether the file shall be in memory; `dir` must then be on tmpfs.
        #[serde(default)]
        memory: bool,
        /// The device that is modelled.
        device: VirtualDevice,
    },
    /// A block device the user named as scratch.
    Device {
        /// The device.
        path: PathBuf,
        /// Size of the file system if it shall not fill the device.
        #[serde(default)]
        size: Option<Bytes>,
    },
    /// A new directory inside an existing one; no mkfs, no mount, and no really cold cache.
    Directory {
        /// The existing directory.
        path: PathBuf,
    },
}

/// A device that this machine need not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualDevice {
    /// A preset's name or the whole text of a description, as [`senesce_vdisk::find_device`] takes
    /// it.
    pub device: String,
    /// Whether answers are held back until they are due ([`Pace::RealTime`]), or only virtual time
    /// passes.
    pub pace: Pace,
}

/// An image file as its volume asks for it, behind whatever device.
pub(crate) struct ImageSpec<'a> {
    pub dir: &'a Path,
    pub size: Bytes,
    pub memory: bool,
    /// None for a loop device on the file itself.
    pub device: Option<&'a VirtualDevice>,
}

impl Backend {
    /// The image that the backend has; none for a device or a directory.
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

/// A volume as a plan asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Where it lies.
    pub backend: Backend,
    /// Its file system; without meaning for a directory, where nothing is made or mounted.
    pub file_system: FileSystemKind,
    /// More arguments for mkfs.
    pub mkfs_options: Vec<String>,
    /// All mount options, comma-separated: these replace the defaults.
    pub mount_options: String,
    /// Whether a device with a signature may be formatted. A device in use is refused all the same.
    pub force: bool,
    /// Read-ahead of the device, KiB.
    pub read_ahead_kib: u32,
}

impl VolumeSpec {
    /// Read-ahead when a plan names none, KiB: the kernel's own default, which hosts often raise.
    pub const DEFAULT_READ_AHEAD_KIB: u32 = 128;

    /// A volume with all defaults.
    pub fn new(backend: Backend, file_system: FileSystemKind) -> Self {
        Self {
            backend,
            file_system,
            mkfs_options: Vec::new(),
            mount_options: file_system.default_mount_options().to_owned(),
            force: false,
            read_ahead_kib: Self::DEFAULT_READ_AHEAD_KIB,
        }
    }
}

/// The identity a new file system gets, by which its making is verified. It also seeds ext4's
/// directory hash, on which its readdir order depends.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// A UUID (version 4 in form) that follows from a seed. Two volumes of one machine at one time
    /// must differ: derive the seed for each of them.
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

/// Which volume of a run this is, and what the run gives it.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Name in the run, such as `ext4-full`: letters, digits, `-`, `_`, `.`; in file names and
    /// reports.
    pub name: String,
    /// Identity of the file system to be made.
    pub uuid: Uuid,
    /// Directory for the mount point; it must exist.
    pub mount_dir: PathBuf,
    /// Space the volume will need in the image's directory. Images are sparse, so the caller knows
    /// best.
    pub needed: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_follows_from_its_seed_and_looks_like_one() {
        let text = Uuid::from_seed(Seed(1)).to_string();
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert_eq!(text, Uuid::from_seed(Seed(1)).to_string());
        assert_ne!(text, Uuid::from_seed(Seed(2)).to_string());
    }

    #[test]
    fn names_are_read_back() {
        for kind in FileSystemKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("zfs".parse::<FileSystemKind>().is_err());
    }
}
