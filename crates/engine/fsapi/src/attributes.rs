//! What a file system says of an inode and of itself.

use crate::Caller;

/// The number of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u64);

impl Ino {
    /// The root directory of every file system.
    pub const ROOT: Ino = Ino(1);
}

/// A time of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Since 1970; before it, negative.
    pub seconds: i64,
    /// Behind the second, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the seven kinds of POSIX
pub enum FileKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
}

impl FileKind {
    /// What the type's bits of a mode given to `mknod` say, no bits for a file; nothing for directories and symbolic links,
    /// which are made otherwise.
    pub fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & 0o170_000 {
            0 | 0o100_000 => Self::File,
            0o010_000 => Self::Fifo,
            0o020_000 => Self::CharDevice,
            0o060_000 => Self::BlockDevice,
            0o140_000 => Self::Socket,
            _ => return None,
        })
    }
}

/// All that `stat` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number. Numbers of removed inodes may come again, with another generation.
    pub ino: Ino,
    /// Tells apart inodes that had the same number one after the other.
    pub generation: u64,
    /// What it is. It never changes.
    pub kind: FileKind,
    /// The low 12 bits of the mode.
    pub permissions: u32,
    /// How many names it has; a directory has 2 and one for each directory in it.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Length in bytes; of a symbolic link, that of its target; of a directory, what the engine likes.
    pub size: u64,
    /// Bytes of the device that it takes, all in all or without its metadata, as the engine likes. Programs see it in
    /// units of 512.
    pub allocated: u64,
    /// The device's number (as Linux encodes it), 0 for all but devices.
    pub device: u32,
    /// When it was read last: set by hand, and at birth. Reading does not change it.
    pub accessed: Timestamp,
    /// When its content changed last.
    pub modified: Timestamp,
    /// When its content or its attributes changed last.
    pub changed: Timestamp,
}

/// An inode to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// What it is to be; a symbolic link is made by `symlink`.
    pub kind: FileKind,
    /// The low 12 bits of the mode, after the umask.
    pub permissions: u32,
    /// The device's number (as Linux encodes it); 0 for all but devices.
    pub device: u32,
}

impl NewNode {
    /// A regular file.
    pub fn file(permissions: u32) -> Self {
        Self { kind: FileKind::File, permissions, device: 0 }
    }

    /// A directory.
    pub fn directory(permissions: u32) -> Self {
        Self { kind: FileKind::Directory, permissions, device: 0 }
    }

    /// Owner, group and permissions that it gets in the directory `parent`: a directory with the set-group-id bit gives
    /// its group to all that is made in it, and the bit to directories.
    pub fn ownership(&self, caller: &Caller, parent: &Attributes) -> (u32, u32, u32) {
        let inherits = parent.permissions & 0o2000 != 0;
        let gid = if inherits { parent.gid } else { caller.gid };
        let bit = if inherits && self.kind == FileKind::Directory { 0o2000 } else { 0 };
        (caller.uid, gid, (self.permissions & 0o7777) | bit)
    }
}

/// What of an inode is to change; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// The low 12 bits of the mode.
    pub permissions: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The length in bytes, of regular files only: what is cut off is gone, what is added reads as zeros.
    pub size: Option<u64>,
    /// The time of access.
    pub accessed: Option<Timestamp>,
    /// The time of modification; wins over what a new size would set.
    pub modified: Option<Timestamp>,
    /// The time of change; wins over the caller's. For adapters whose kernel keeps times itself.
    pub changed: Option<Timestamp>,
}

/// What a file system holds and has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// The unit of the three figures that follow, in bytes.
    pub block_bytes: u32,
    /// Blocks that files could fill on an empty file system.
    pub blocks: u64,
    /// Blocks that are free.
    pub free: u64,
    /// Blocks that users without privileges may still fill; at most `free`.
    pub available: u64,
    /// Inodes that there can be.
    pub inodes: u64,
    /// Inodes that can still be made.
    pub free_inodes: u64,
}
