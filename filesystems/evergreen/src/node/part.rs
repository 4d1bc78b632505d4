//! Parts of nodes: in memory, or on the device only.

use std::sync::Arc;

/// A part of a node: a leaf's basement, or the buffer for a child.
#[derive(Clone, Debug)]
pub(crate) enum Part<T> {
    /// On the device only.
    Away(Stored),
    /// In memory. A holder of the [`Arc`] has a snapshot: a change copies a part that others hold.
    Here(Arc<T>),
}

/// The place of a part in its node, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The offset from the start of the node, in bytes.
    pub(crate) at: usize,
    /// The length, in bytes.
    pub(crate) bytes: usize,
    /// The xxh3 of the bytes.
    pub(crate) sum: u64,
}

impl<T> Part<T> {
    /// Whether it is in memory.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// The part, which must be in memory.
    pub(crate) fn here(&self) -> &Arc<T> {
        match self {
            Self::Here(body) => body,
            Self::Away(_) => unreachable!("a part of a node is used that was not read"),
        }
    }

    /// Like [`here`](Self::here), but mutable.
    pub(crate) fn here_mut(&mut self) -> &mut Arc<T> {
        match self {
            Self::Here(body) => body,
            Self::Away(_) => unreachable!("a part of a node is changed that was not read"),
        }
    }
}
