//! Operations of sequences.

use crate::{FallocateMode, FileKind, RenameMode, SetXattrMode};

/// An operation; paths start at the root. Its `{:?}` output can be pasted into a test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are named after the trait's arguments
pub enum Operation {
    MakeNode {
        path: String,
        kind: FileKind,
        permissions: u32,
    },
    Symlink {
        path: String,
        target: String,
    },
    ReadLink {
        path: String,
    },
    Link {
        existing: String,
        path: String,
    },
    Unlink {
        path: String,
    },
    Rmdir {
        path: String,
    },
    Rename {
        from: String,
        to: String,
        how: RenameMode,
    },
    /// Bytes are made from `seed`.
    Write {
        at: Place,
        offset: u64,
        len: u64,
        seed: u64,
    },
    Read {
        at: Place,
        offset: u64,
        len: u64,
    },
    Truncate {
        at: Place,
        size: u64,
    },
    Allocate {
        at: Place,
        how: FallocateMode,
        offset: u64,
        len: u64,
    },
    CloneRange {
        from: Place,
        from_offset: u64,
        to: Place,
        to_offset: u64,
        len: u64,
    },
    /// Random permissions, owner and times from `seed`; some of them.
    SetAttributes {
        at: Place,
        seed: u64,
    },
    SetXattr {
        at: Place,
        name: String,
        len: u64,
        seed: u64,
        how: SetXattrMode,
    },
    GetXattr {
        at: Place,
        name: String,
    },
    RemoveXattr {
        at: Place,
        name: String,
    },
    List {
        path: String,
    },
    Stat {
        at: Place,
    },
    /// Holds the inode at a path in a slot; an inode in the slot is released.
    Hold {
        slot: usize,
        path: String,
    },
    Release {
        slot: usize,
    },
    Sync {
        at: Place,
    },
    SyncAll,
    Reopen,
}

/// The inode of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The inode at a path.
    Path(String),
    /// The inode in a slot, with or without a name.
    Slot(usize),
}
