//! Operations of sequences.

use crate::{AllocateHow, FileKind, RenameHow, SetXattrHow};

/// One operation; paths are from the root. Printed (`{:?}`), it can be put back into a test.
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
        how: RenameHow,
    },
    /// Bytes grown from `seed`.
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
        how: AllocateHow,
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
    /// Permissions, owner and times, drawn from `seed`; some of them.
    SetAttributes {
        at: Place,
        seed: u64,
    },
    SetXattr {
        at: Place,
        name: String,
        len: u64,
        seed: u64,
        how: SetXattrHow,
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
    /// Holds the inode at a path in a slot; what was in the slot is released.
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

/// An inode to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The one at a path.
    Path(String),
    /// The one that is held in a slot, with a name or without.
    Slot(usize),
}
