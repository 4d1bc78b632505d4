//! Gathers successive batches into one effect.

use bytes::Bytes;

use super::{
    Buffer,
    weight::{RANGE_BYTES, message_weight},
};
use crate::{Batch, Change, Message};

/// Gathers batches into one [`Buffer`]. It sorts many messages at a time, which costs less than an
/// insertion of each.
#[derive(Default)]
pub(crate) struct Gather {
    /// The effect of all changes up to the last range.
    buffer: Buffer,
    /// The messages after it, in the order of arrival.
    pending: Vec<(Bytes, Message)>,
    /// The weight of all changes.
    weight: usize,
}

/// The least memory that a message takes, in bytes.
const LEAST_BYTES: usize = 128;

impl Gather {
    /// Adds a batch after all others.
    pub(crate) fn add(&mut self, batch: Batch) {
        for change in batch.into_changes() {
            match change {
                Change::One { key, message } => {
                    self.weight += message_weight(&key, &message).max(LEAST_BYTES);
                    self.pending.push((key, message));
                }
                Change::DeleteRange { from, to } => {
                    self.weight += RANGE_BYTES + from.len() + to.len();
                    self.receive_pending();
                    self.buffer.delete_range(from, to);
                }
            }
        }
    }

    /// The most bytes that the changes since the last [`take`](Self::take) use in a node or in
    /// memory. It counts messages that later ones replace.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Takes all that was gathered: first a buffer in normal form, then messages to apply after it,
    /// one for each key, in order.
    pub(crate) fn take(&mut self) -> (Buffer, Vec<(Bytes, Message)>) {
        self.weight = 0;
        (std::mem::take(&mut self.buffer), in_order(std::mem::take(&mut self.pending)))
    }

    fn receive_pending(&mut self) {
        self.buffer.receive_messages(in_order(std::mem::take(&mut self.pending)));
    }
}

/// Sorts messages by key, and merges those of the same key.
fn in_order(mut messages: Vec<(Bytes, Message)>) -> Vec<(Bytes, Message)> {
    let Some((first, _)) = messages.first().cloned() else { return messages };
    let shared = messages.iter().map(|(key, _)| key.iter().zip(&first).take_while(|(a, b)| a == b).count()).min();
    let shared = shared.unwrap_or(0);
    // Most keys differ in the first 8 bytes after the shared prefix. Comparing these as numbers
    // avoids a cache miss for each key.
    let mut order: Vec<(u64, usize)> =
        messages.iter().enumerate().map(|(number, (key, _))| (first_bytes(&key[shared..]), number)).collect();
    let key = |number: usize| &messages[number].0[shared..];
    order.sort_unstable_by(|&(a_first, a), &(b_first, b)| {
        a_first.cmp(&b_first).then_with(|| key(a).cmp(key(b))).then(a.cmp(&b))
    });
    let mut all: Vec<(Bytes, Message)> = Vec::with_capacity(order.len());
    for (_, number) in order {
        let (key, message) = std::mem::replace(&mut messages[number], (Bytes::new(), Message::Delete));
        match all.last_mut().filter(|(last, _)| *last == key) {
            Some((_, waiting)) => *waiting = message.after(waiting),
            None => all.push((key, message)),
        }
    }
    all
}

/// The first 8 bytes of a key as a number with the same order.
fn first_bytes(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = key.len().min(8);
    bytes[..count].copy_from_slice(&key[..count]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Bytes> {
        (prop::bool::ANY, proptest::collection::vec(prop_oneof![Just(0u8), Just(7)], 0..14))
            .prop_map(|(is_long, rest)| Bytes::from([if is_long { &b"shared"[..] } else { b"s" }, &rest].concat()))
    }

    fn change() -> impl Strategy<Value = Change> {
        let value = || proptest::collection::vec(1u8.., 0..6).prop_map(Bytes::from);
        let message = prop_oneof![
            value().prop_map(Message::put),
            Just(Message::Delete),
            (0u32..6).prop_map(Message::cut),
            (0u32..6, value()).prop_map(|(offset, bytes)| Message::patch(offset, bytes)),
        ];
        prop_oneof![
            9 => (key(), message).prop_map(|(key, message)| Change::One { key, message }),
            1 => (key(), key()).prop_map(|(from, to)| Change::DeleteRange { from: from.clone().min(to.clone()), to: from.max(to) }),
        ]
    }

    fn take(gather: &mut Gather, into: &mut Buffer) {
        let (first, messages) = gather.take();
        into.receive(first);
        into.receive_messages(messages);
    }

    proptest! {
        #[test]
        fn gathered_batches_equal_single_ones(
            batches in prop::collection::vec(prop::collection::vec(change(), 0..40), 0..6),
            takes in prop::collection::vec(any::<bool>(), 6),
        ) {
            let (mut gather, mut gathered, mut want) = (Gather::default(), Buffer::default(), Buffer::default());
            for (changes, is_taken) in batches.into_iter().zip(takes) {
                for change in changes.clone() {
                    match change {
                        Change::One { key, message } => want.send(key, message),
                        Change::DeleteRange { from, to } => want.delete_range(from, to),
                    }
                }
                gather.add(Batch::from(changes));
                if is_taken {
                    take(&mut gather, &mut gathered);
                }
            }
            take(&mut gather, &mut gathered);
            prop_assert_eq!(gathered.fault(), None);
            prop_assert_eq!(gathered, want);
            prop_assert_eq!((gather.take(), gather.weight()), ((Buffer::default(), Vec::new()), 0));
        }
    }
}
