//! Changes that are done together or not at all.

use bytes::Bytes;

use crate::{Claim, Message};

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A message to one key.
    One {
        /// The key.
        key: Bytes,
        /// What becomes of its value.
        message: Message,
    },
    /// All keys from the first to the second, itself not among them, have no value any more.
    DeleteRange {
        /// The first key.
        from: Bytes,
        /// The first key behind.
        to: Bytes,
    },
}

/// Changes that take effect in their order, all or none, and what they claim of the space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<Change>,
    /// How much more (or less) is live afterwards.
    pub claim: Claim,
}

impl Batch {
    /// Nothing to do.
    pub fn new() -> Self {
        Self::default()
    }

    /// The changes, in their order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes alone, in their order.
    pub(crate) fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Sends a message to a key.
    pub fn send(&mut self, key: impl Into<Bytes>, message: Message) {
        self.changes.push(Change::One { key: key.into(), message });
    }

    /// Gives a key a value; none if it is empty.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.send(key, Message::put(value.into()));
    }

    /// Takes a key's value away.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.send(key, Message::Delete);
    }

    /// Takes the values of all keys of a range away; an empty range is nothing.
    pub fn delete_range(&mut self, from: impl Into<Bytes>, to: impl Into<Bytes>) {
        let (from, to) = (from.into(), to.into());
        if from < to {
            self.changes.push(Change::DeleteRange { from, to });
        }
    }
}

impl From<Vec<Change>> for Batch {
    /// Changes without a claim, as they are read from a log.
    fn from(changes: Vec<Change>) -> Self {
        Self { changes, claim: Claim::default() }
    }
}
