//! The one error of the room, and what damage is.

use std::{fmt, io};

/// A structure of the file system, as messages name it.
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
    /// An inode, with the extents, names or data inside it.
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

/// Whose structure is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The file system's as a whole.
    FileSystem,
    /// The block group with this number.
    Group(u32),
    /// The inode with this number.
    Inode(u32),
}

/// What is wrong with a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The checksum written there is not that of the contents.
    Checksum {
        /// As written.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// The contents contradict themselves or the file system's size.
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

/// A damaged structure and the block it lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The block of the file system, counted from the start of the device.
    pub block: u64,
    /// What lies there.
    pub structure: Structure,
    /// Whose it is.
    pub owner: Owner,
    /// What is wrong with it.
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

/// Why a file system could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device's length could not be found out.
    #[error("cannot find out how long the device is")]
    Length {
        /// The system's answer.
        source: io::Error,
    },
    /// The device did not give bytes that lie within the file system.
    #[error("cannot read block {block}: {length_bytes} bytes from byte {offset_bytes} on")]
    Read {
        /// The first block asked for.
        block: u64,
        /// Its position on the device.
        offset_bytes: u64,
        /// How much was asked for.
        length_bytes: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no ext2, ext3 or ext4 file system.
    #[error("block 0 or 1: no ext4 file system: the magic number at byte 1080 is {found:#06x}, not 0xef53")]
    NotExt4 {
        /// What stands there.
        found: u16,
    },
    /// The device is shorter than the file system says it is.
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
        /// The first block that is not whole.
        first_missing_block: u64,
    },
    /// The file system uses features that change its format and that this version does not know.
    #[error("the file system uses what this version cannot read: {features}")]
    UnknownFeatures {
        /// Their names, or numbers where they have none.
        features: String,
    },
    /// A structure contradicts itself, and the device is not being written, or the structure is needed.
    #[error("{0}")]
    Damaged(Damage),
    /// The tree needs more memory than it was allowed.
    #[error("the tree needs more than the {limit_bytes} bytes of memory it was allowed, at inode {inode}; allow more")]
    MemoryLimit {
        /// What was allowed.
        limit_bytes: u64,
        /// How far the reading had come.
        inode: u32,
    },
    /// Whoever was shown the records wanted no more.
    #[error("the reading was stopped at inode {inode}")]
    Stopped {
        /// How far it had come.
        inode: u32,
    },
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}
