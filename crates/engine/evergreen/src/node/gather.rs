//! Many batches that come one behind the other, as what they do together.

use bytes::Bytes;

use super::{
    Buffer,
    weight::{RANGE_BYTES, message_weight},
};
use crate::{Batch, Change, Message};

/// Gathers batches into one [`Buffer`]. Messages are brought into order many at a time, which costs less than to look for the place of each.
#[derive(Default)]
pub(crate) struct Gather {
    /// All up to the last range.
    buffer: Buffer,
    /// What came behind it, as it came.
    pending: Vec<(Bytes, Message)>,
    /// What all that came weighs.
    weight: usize,
}

/// What a message takes in memory, however small it is.
const LEAST_BYTES: usize = 128;

impl Gather {
    /// A batch comes behind all others.
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

    /// What came since the last [`take`](Self::take) takes at most, in a node or in memory; less, if some of it does away with other.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// All that was gathered: what is to be done first, in normal form; then messages, each to another key, in the order of their keys.
    /// Nothing is left.
    pub(crate) fn take(&mut self) -> (Buffer, Vec<(Bytes, Message)>) {
        self.weight = 0;
        (std::mem::take(&mut self.buffer), in_order(std::mem::take(&mut self.pending)))
    }

    fn receive_pending(&mut self) {
        self.buffer.receive_messages(in_order(std::mem::take(&mut self.pending)));
    }
}

/// Messages by their keys, one for each: what those do that came to it.
fn in_order(mut messages: Vec<(Bytes, Message)>) -> Vec<(Bytes, Message)> {
    let Some((first, _)) = messages.first().cloned() else { return messages };
    let shared = messages.iter().map(|(key, _)| key.iter().zip(&first).take_while(|(a, b)| a == b).count()).min();
    let shared = shared.unwrap_or(0);
    // Most keys differ in the first bytes that not all share; these are compared without going where the key lies.
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

/// The first bytes of a key as a number: of two of them the lower is not of the higher key.
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
        fn what_is_gathered_is_what_comes_one_by_one(
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
