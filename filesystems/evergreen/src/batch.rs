//! Batches: changes that are applied together or not at all.

use bytes::Bytes;

use crate::{Claim, Message};

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A message to one key.
    One {
        /// The key.
        key: Bytes,
        /// The message.
        message: Message,
    },
    /// Deletes the values of all keys of a range.
    DeleteRange {
        /// The first key.
        from: Bytes,
        /// The first key after the range.
        to: Bytes,
    },
}

/// Changes that are applied in order, all or none, and the space that they claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<Change>,
    /// The growth of the live bytes.
    pub claim: Claim,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// The changes, in their order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes without the claim, in order.
    pub(crate) fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// Whether the batch has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Sends a message to a key.
    pub fn send(&mut self, key: impl Into<Bytes>, message: Message) {
        self.changes.push(Change::One { key: key.into(), message });
    }

    /// Sets the value of a key; an empty value deletes it.
    pub fn put(&mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.send(key, Message::put(value.into()));
    }

    /// Deletes the value of a key.
    pub fn delete(&mut self, key: impl Into<Bytes>) {
        self.send(key, Message::Delete);
    }

    /// Deletes the values of all keys of a range. An empty range has no effect.
    pub fn delete_range(&mut self, from: impl Into<Bytes>, to: impl Into<Bytes>) {
        let (from, to) = (from.into(), to.into());
        if from < to {
            self.changes.push(Change::DeleteRange { from, to });
        }
    }
}

impl From<Vec<Change>> for Batch {
    /// A batch without a claim, as it is read from a log.
    fn from(changes: Vec<Change>) -> Self {
        Self { changes, claim: Claim::default() }
    }
}
