//! The error type of the crate, and damage.

use std::{fmt, io};

/// A structure of the file system, as named in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Structure {
    /// The superblock.
    Superblock,
    /// The table of group descriptors.
    GroupDescriptor,
    /// A group's bitmap of blocks (of clusters, with bigalloc).
    BlockBitmap,
    /// A group's bitmap of inodes.
    InodeBitmap,
    /// A group's table of inodes, as a whole.
    InodeTable,
    /// An inode, with the extents, names or data in it.
    Inode,
    /// A block of an extent tree.
    ExtentBlock,
    /// A block of addresses of the older block map.
    IndirectBlock,
    /// A block of a directory.
    DirectoryBlock,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superblock => "superblock",
            Self::GroupDescriptor => "group descriptors",
            Self::BlockBitmap => "block bitmap",
            Self::InodeBitmap => "inode bitmap",
            Self::InodeTable => "inode table",
            Self::Inode => "inode",
            Self::ExtentBlock => "extent tree block",
            Self::IndirectBlock => "indirect block",
            Self::DirectoryBlock => "directory block",
        })
    }
}

/// The owner of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The file system as a whole.
    FileSystem,
    /// The block group with this number.
    Group(u32),
    /// The inode with this number.
    Inode(u32),
}

/// The fault of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The stored checksum is not that of the contents.
    Checksum {
        /// The stored checksum.
        stored: u32,
        /// The computed checksum.
        computed: u32,
    },
    /// The contents are inconsistent, or contradict the size of the file system.
    Malformed(String),
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Malformed(text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self::Malformed(text.to_owned())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { stored, computed } => {
                write!(f, "its checksum is {stored:#x}, that of its contents {computed:#x}")
            }
            Self::Malformed(text) => f.write_str(text),
        }
    }
}

/// A damaged structure and its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The block, counted from the start of the device.
    pub block: u64,
    /// The structure.
    pub structure: Structure,
    /// The owner of the structure.
    pub owner: Owner,
    /// The fault.
    pub problem: Problem,
}

impl Damage {
    pub(crate) fn of_inode(block: u64, structure: Structure, inode: u32, problem: impl Into<Problem>) -> Self {
        Self { block, structure, owner: Owner::Inode(inode), problem: problem.into() }
    }

    pub(crate) fn of_group(block: u64, structure: Structure, group: u32, problem: impl Into<Problem>) -> Self {
        Self { block, structure, owner: Owner::Group(group), problem: problem.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} ({}", self.block, self.structure)?;
        match (self.owner, self.structure) {
            (Owner::FileSystem, _) => {}
            (Owner::Group(group), _) => write!(f, " of group {group}")?,
            (Owner::Inode(inode), Structure::Inode) => write!(f, " {inode}")?,
            (Owner::Inode(inode), _) => write!(f, " of inode {inode}")?,
        }
        write!(f, "): {}", self.problem)
    }
}

/// The reason why a file system could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The length of the device cannot be read.
    #[error("cannot read the length of the device")]
    Length {
        /// The error of the system.
        source: io::Error,
    },
    /// The device returned an error for bytes of the file system.
    #[error("cannot read block {block}: {length_bytes} bytes from byte {offset_bytes} on")]
    Read {
        /// The first requested block.
        block: u64,
        /// Its position on the device.
        offset_bytes: u64,
        /// The requested length.
        length_bytes: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// There is no ext2, ext3 or ext4 file system.
    #[error("block 0 or 1: no ext4 file system: the magic number at byte 1080 is {found:#06x}, not 0xef53")]
    NotExt4 {
        /// The number at the place of the magic number.
        found: u16,
    },
    /// The device is shorter than the file system.
    #[error(
        "the file system has {blocks} blocks ({needed_bytes} bytes), the device only {device_bytes} bytes: \
         from block {first_missing_block} on it is cut off"
    )]
    DeviceTooShort {
        /// Blocks of the file system.
        blocks: u64,
        /// Its length.
        needed_bytes: u64,
        /// The device's length.
        device_bytes: u64,
        /// The first incomplete block.
        first_missing_block: u64,
    },
    /// The file system uses features that change its format and that this version does not support.
    #[error("the file system uses features that this version cannot read: {features}")]
    UnknownFeatures {
        /// Their names, or numbers if they have no names.
        features: String,
    },
    /// A structure is damaged, and the device is not being written, or the structure is necessary.
    #[error("{0}")]
    Damaged(Damage),
    /// The tree needs more memory than the limit.
    #[error("the tree needs more than the limit of {limit_bytes} bytes of memory, at inode {inode}; raise the limit")]
    MemoryLimit {
        /// The limit.
        limit_bytes: u64,
        /// The inode at which the limit was exceeded.
        inode: u32,
    },
    /// The visitor of the records stopped the scan.
    #[error("the scan was stopped at inode {inode}")]
    Stopped {
        /// The inode at which it stopped.
        inode: u32,
    },
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}
