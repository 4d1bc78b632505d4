//! Buffers: the messages that wait in an inner node for one of its children.
//!
//! **Normal form**: a set of deleted ranges, which act first, then at most one message for each
//! key. So a buffer is a function from the contents of a subtree to contents, and needs no sequence
//! numbers. A new range removes the messages that it covers. A new message merges with the waiting
//! message of its key. A key in a range has a `Put` or no message, because the range deletes the
//! values below.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    Ranges,
    key_ranges::below,
    weight::{RANGE_BYTES, message_weight},
};
use crate::{Batch, Change, Message};

/// The buffer of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer {
    ranges: Ranges,
    messages: BTreeMap<Bytes, Message>,
    /// The most bytes that the encoded buffer takes.
    weight: usize,
}

/// What a buffer states about a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known<'a> {
    /// The value or its absence, whatever the nodes below hold.
    All(Option<&'a Bytes>),
    /// A change of the value in the nodes below.
    Part(&'a Message),
    /// Nothing: the nodes below have the value.
    Nothing,
}

impl Buffer {
    /// Whether the buffer has no ranges and no messages.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.messages.is_empty()
    }

    /// The most bytes that the encoded buffer takes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// The number of ranges and messages.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len() + self.messages.len()
    }

    /// The ranges, which act first.
    pub(crate) fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The messages, in the order of their keys.
    pub(crate) fn messages(&self) -> &BTreeMap<Bytes, Message> {
        &self.messages
    }

    /// The messages without the ranges.
    pub(super) fn into_messages(self) -> BTreeMap<Bytes, Message> {
        self.messages
    }

    /// Adds a message.
    pub(crate) fn send(&mut self, key: Bytes, message: Message) {
        let message = match self.messages.get(&key) {
            Some(waiting) => {
                self.weight -= message_weight(&key, waiting);
                message.after(waiting)
            }
            None if self.ranges.has(&key) => message.after(&Message::Delete),
            None => message,
        };
        if message == Message::Delete && self.ranges.has(&key) {
            self.messages.remove(&key);
            return;
        }
        self.weight += message_weight(&key, &message);
        self.messages.insert(key, message);
    }

    /// Adds a deleted range. An empty range has no effect.
    pub(crate) fn delete_range(&mut self, from: Bytes, to: Bytes) {
        if from >= to {
            return;
        }
        let Self { messages, weight, .. } = self;
        for (key, message) in messages.extract_if(from.clone()..to.clone(), |_, _| true) {
            *weight -= message_weight(&key, &message);
        }
        *weight = weight.strict_add_signed(self.ranges.insert(from, to, RANGE_BYTES));
    }

    /// Adds the ranges and messages of a newer buffer.
    pub(crate) fn receive(&mut self, newer: Buffer) {
        if self.is_empty() {
            *self = newer;
            return;
        }
        for (from, to) in newer.ranges.iter() {
            self.delete_range(from.clone(), to.clone());
        }
        self.receive_messages(newer.messages.into_iter().collect());
    }

    /// Adds newer messages, each to another key, in the order of their keys.
    pub(crate) fn receive_messages(&mut self, newer: Vec<(Bytes, Message)>) {
        // Below this share of new keys, a lookup for each one costs less than a merge.
        const FEW: usize = 8;
        if newer.len() * FEW < self.messages.len() {
            for (key, message) in newer {
                self.send(key, message);
            }
            return;
        }
        let mut all = Vec::with_capacity(self.messages.len() + newer.len());
        let mut older = std::mem::take(&mut self.messages).into_iter().peekable();
        for (key, message) in newer {
            all.extend(std::iter::from_fn(|| older.next_if(|(before, _)| *before < key)));
            let is_covered = self.ranges.has(&key);
            let message = match older.next_if(|(other, _)| *other == key) {
                Some((_, waiting)) => {
                    self.weight -= message_weight(&key, &waiting);
                    message.after(&waiting)
                }
                None if is_covered => message.after(&Message::Delete),
                None => message,
            };
            if message != Message::Delete || !is_covered {
                self.weight += message_weight(&key, &message);
                all.push((key, message));
            }
        }
        all.extend(older);
        self.messages = all.into_iter().collect();
    }

    /// What the buffer states about a key.
    pub(crate) fn get(&self, key: &[u8]) -> Known<'_> {
        match self.messages.get(key) {
            Some(Message::Put(value)) => Known::All(Some(value)),
            Some(Message::Delete) => Known::All(None),
            Some(edit) => Known::Part(edit),
            None if self.ranges.has(key) => Known::All(None),
            None => Known::Nothing,
        }
    }

    /// Whether the buffer changes a key from `from` up to `to`.
    pub(crate) fn touches(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        self.messages_within(from, to).next().is_some() || self.ranges.touch(from, to)
    }

    /// The messages to keys from `from` up to `to`, which is not before `from`.
    pub(crate) fn messages_within(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> std::collections::btree_map::Range<'_, Bytes, Message> {
        self.messages.range::<[u8], _>((std::ops::Bound::Included(from), below(to)))
    }

    /// The part of the buffer for keys from `from` up to `to`.
    pub(crate) fn within(&self, from: &Bytes, to: Option<&Bytes>) -> Buffer {
        let mut part = Buffer::default();
        for (from, to) in self.ranges.within(from, to) {
            part.delete_range(from.clone(), to.clone());
        }
        for (key, message) in self.messages_within(from, to.map(|to| &to[..])) {
            part.put_message(key.clone(), message.clone());
        }
        part
    }

    /// Removes the ranges, and applies messages to missing values. Use it if no values exist below.
    pub(crate) fn without_ranges(self) -> Buffer {
        let mut all = Buffer::default();
        for (key, message) in self.messages {
            match message.after(&Message::Delete) {
                Message::Delete => {}
                whole => all.put_message(key, whole),
            }
        }
        all
    }

    /// Inserts a message as it is. The buffer must have no message for the key, and stay in normal
    /// form.
    pub(super) fn put_message(&mut self, key: Bytes, message: Message) {
        self.weight += message_weight(&key, &message);
        self.messages.insert(key, message);
    }

    /// Describes a violation of the normal form, or a wrong weight.
    pub(crate) fn fault(&self) -> Option<String> {
        let mut weight = 0;
        let mut end: Option<&Bytes> = None;
        for (from, to) in self.ranges.iter() {
            if from >= to || end.is_some_and(|end| end >= from) {
                return Some(format!("a range from {from:?} to {to:?} that is empty or touches the one before"));
            }
            end = Some(to);
            weight += from.len() + to.len() + RANGE_BYTES;
        }
        for (key, message) in &self.messages {
            if self.ranges.has(key) && !matches!(message, Message::Put(_)) {
                return Some(format!("a message to {key:?}, which a range covers, is not a put"));
            }
            weight += message_weight(key, message);
        }
        (weight != self.weight).then(|| format!("a weight of {weight} bytes; {} are recorded", self.weight))
    }
}

impl From<Batch> for Buffer {
    /// The effect of a batch, in normal form.
    fn from(batch: Batch) -> Self {
        let mut buffer = Self::default();
        for change in batch.into_changes() {
            match change {
                Change::One { key, message } => buffer.send(key, message),
                Change::DeleteRange { from, to } => buffer.delete_range(from, to),
            }
        }
        buffer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Values = BTreeMap<Bytes, Bytes>;

    fn key() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(0u8..4, 1..3).prop_map(Bytes::from)
    }

    fn value() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(1u8.., 0..6).prop_map(Bytes::from)
    }

    fn change() -> impl Strategy<Value = Change> {
        let one =
            |message: BoxedStrategy<Message>| (key(), message).prop_map(|(key, message)| Change::One { key, message });
        prop_oneof![
            one(value().prop_map(Message::put).boxed()),
            one(Just(Message::Delete).boxed()),
            one((0u32..6).prop_map(Message::cut).boxed()),
            one((0u32..6, value()).prop_map(|(offset, bytes)| Message::patch(offset, bytes)).boxed()),
            (key(), key())
                .prop_map(|(from, to)| Change::DeleteRange { from: from.clone().min(to.clone()), to: from.max(to) }),
        ]
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        proptest::collection::vec(change(), 0..24)
    }

    fn values() -> impl Strategy<Value = Values> {
        proptest::collection::btree_map(
            key(),
            value().prop_filter("no value is empty", |value| !value.is_empty()),
            0..12,
        )
    }

    /// Applies the changes one by one.
    fn done(changes: &[Change], mut values: Values) -> Values {
        for change in changes {
            match change {
                Change::One { key, message } => match message.apply(values.get(key)) {
                    Some(value) => drop(values.insert(key.clone(), value)),
                    None => drop(values.remove(key)),
                },
                Change::DeleteRange { from, to } => values.retain(|key, _| key < from || key >= to),
            }
        }
        values
    }

    /// Applies the buffer: its ranges, then its messages.
    fn flushed(buffer: &Buffer, mut values: Values) -> Values {
        values.retain(|key, _| !buffer.ranges().has(key));
        for (key, message) in buffer.messages() {
            match message.apply(values.get(key)) {
                Some(value) => drop(values.insert(key.clone(), value)),
                None => drop(values.remove(key)),
            }
        }
        values
    }

    fn buffer(changes: &[Change]) -> Buffer {
        Buffer::from(Batch::from(changes.to_vec()))
    }

    proptest! {
        #[test]
        fn a_buffer_equals_its_changes(changes in changes(), values in values()) {
            let buffer = buffer(&changes);
            prop_assert_eq!(buffer.fault(), None);
            prop_assert_eq!(flushed(&buffer, values.clone()), done(&changes, values));
        }

        #[test]
        fn receiving_a_buffer_composes_both(first in changes(), second in changes(), values in values()) {
            let mut both = buffer(&first);
            both.receive(buffer(&second));
            prop_assert_eq!(both.fault(), None);
            prop_assert_eq!(flushed(&both, values.clone()), done(&second, done(&first, values)));
        }

        #[test]
        fn get_agrees_with_a_flush(changes in changes(), values in values(), key in key()) {
            let buffer = buffer(&changes);
            let want = done(&changes, values.clone()).get(&key).cloned();
            let got = match buffer.get(&key) {
                Known::All(value) => value.cloned(),
                Known::Part(message) => message.apply(values.get(&key)),
                Known::Nothing => values.get(&key).cloned(),
            };
            prop_assert_eq!(got, want);
        }

        #[test]
        fn parts_together_equal_the_buffer(changes in changes(), values in values(), at in key()) {
            let all = buffer(&changes);
            let (left, right) = (all.within(&Bytes::new(), Some(&at)), all.within(&at, None));
            prop_assert_eq!((left.fault(), right.fault()), (None, None));
            prop_assert_eq!(all.touches(b"", Some(&at)), !left.is_empty());
            prop_assert_eq!(all.touches(&at, None), !right.is_empty());
            prop_assert_eq!(flushed(&right, flushed(&left, values.clone())), flushed(&all, values));
            let mut again = left;
            again.receive(right);
            prop_assert_eq!(again, all);
        }

        #[test]
        fn ranges_have_no_effect_above_nothing(changes in changes()) {
            let all = buffer(&changes);
            let rest = all.clone().without_ranges();
            prop_assert_eq!(rest.fault(), None);
            prop_assert_eq!(flushed(&rest, Values::new()), flushed(&all, Values::new()));
        }
    }
}
