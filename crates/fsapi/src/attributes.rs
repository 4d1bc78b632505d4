//! Attributes of inodes, and of a file system.

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
    /// Seconds since 1970; negative before it.
    pub seconds: i64,
    /// Nanoseconds of the second, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// The kind of a file.
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
    /// The kind in a mode for `mknod`; no bits mean a file. `None` for directories and symbolic
    /// links, which have their own calls.
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

/// The attributes that `stat` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The number. Numbers of removed inodes may be reused with another generation.
    pub ino: Ino,
    /// Distinguishes inodes that had the same number at different times.
    pub generation: u64,
    /// The kind, which never changes.
    pub kind: FileKind,
    /// The low 12 bits of the mode.
    pub permissions: u32,
    /// The number of names; a directory has 2, and one for each directory in it.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The length in bytes; of a symbolic link, that of its target; of a directory, a value of the
    /// engine.
    pub size: u64,
    /// The bytes on the device, with or without metadata, as the engine defines it. Programs see
    /// units of 512 bytes.
    pub allocated: u64,
    /// The device number in the encoding of Linux; 0 for other kinds.
    pub device: u32,
    /// The time of the last access: set at birth and by calls. Reads do not change it.
    pub accessed: Timestamp,
    /// The time of the last change of the contents.
    pub modified: Timestamp,
    /// The time of the last change of contents or attributes.
    pub changed: Timestamp,
}

/// A new inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewNode {
    /// The kind; symbolic links are made by `symlink`.
    pub kind: FileKind,
    /// The low 12 bits of the mode, after the umask.
    pub permissions: u32,
    /// The device number in the encoding of Linux; 0 for other kinds.
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

    /// Owner, group and permissions of the inode in the directory `parent`. A directory with the
    /// set-group-id bit passes its group to all new inodes, and the bit to directories.
    pub fn ownership(&self, caller: &Caller, parent: &Attributes) -> (u32, u32, u32) {
        let inherits = parent.permissions & 0o2000 != 0;
        let gid = if inherits { parent.gid } else { caller.gid };
        let bit = if inherits && self.kind == FileKind::Directory { 0o2000 } else { 0 };
        (caller.uid, gid, (self.permissions & 0o7777) | bit)
    }
}

/// A change of attributes; `None` keeps a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// The low 12 bits of the mode.
    pub permissions: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The length in bytes, of regular files only. Bytes after a smaller length are lost; added
    /// bytes are zero.
    pub size: Option<u64>,
    /// The time of access.
    pub accessed: Option<Timestamp>,
    /// The time of modification; it overrides the one of a new size.
    pub modified: Option<Timestamp>,
    /// The time of change; it overrides the caller's. For adapters whose kernel keeps times itself.
    pub changed: Option<Timestamp>,
}

/// The size of a file system and its free space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// The unit of the next three fields, in bytes.
    pub block_bytes: u32,
    /// The blocks that files can use on an empty file system.
    pub blocks: u64,
    /// The free blocks.
    pub free: u64,
    /// The blocks that unprivileged users may still use; at most `free`.
    pub available: u64,
    /// The most inodes.
    pub inodes: u64,
    /// The inodes that can still be made.
    pub free_inodes: u64,
}
