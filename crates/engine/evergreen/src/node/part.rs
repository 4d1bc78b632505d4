//! What of a node is in memory, and what is not.

use std::sync::Arc;

/// A part of a node: a leaf's basement, or the buffer for a child.
#[derive(Clone, Debug)]
pub(crate) enum Part<T> {
    /// On the device only.
    Away(Stored),
    /// In memory. Whoever has the [`Arc`] has it as it is now: a change makes a copy if anyone else has it.
    Here(Arc<T>),
}

/// Where a part lies within its node, and what its bytes add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its first byte, from the node's.
    pub(crate) at: usize,
    /// How many bytes.
    pub(crate) bytes: usize,
    /// Their xxh3.
    pub(crate) sum: u64,
}

impl<T> Part<T> {
    /// Whether it is in memory.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// What is in memory; it must be.
    pub(crate) fn here(&self) -> &Arc<T> {
        match self {
            Self::Here(body) => body,
            Self::Away(_) => unreachable!("a part of a node is used that was not read"),
        }
    }

    /// The same, to change it.
    pub(crate) fn here_mut(&mut self) -> &mut Arc<T> {
        match self {
            Self::Here(body) => body,
            Self::Away(_) => unreachable!("a part of a node is changed that was not read"),
        }
    }
}
