//! Messages: changes of a value that wait in buffers, and their composition.
//!
//! A value is a byte string, and **an empty value is no value**. A deletion sets an empty value; an
//! edit of a missing value edits zero bytes. So each message is a function from values to values,
//! and [`Message::after`] is their composition, which is associative.

use bytes::Bytes;

/// A message to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Sets the value. Never empty: see [`Message::put`].
    Put(Bytes),
    /// Deletes the value.
    Delete,
    /// Changes some bytes of the value.
    Edit(Edit),
}

/// A change of a value that the writer need not know: cut it, then extend it, then overwrite parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// A longer value is cut to this length. `u32::MAX`: it is not cut.
    cut: u32,
    /// A shorter value is extended with zeros to this length. No patch exceeds it.
    least: u32,
    /// Offsets and bytes to overwrite: ascending, not adjacent, not empty.
    patches: Vec<(u32, Bytes)>,
}

impl Message {
    /// Sets a value, or deletes it if `value` is empty.
    pub fn put(value: Bytes) -> Self {
        if value.is_empty() { Self::Delete } else { Self::Put(value) }
    }

    /// Overwrites bytes of the value at `offset`, and fills a gap before it with zeros. No effect
    /// if `bytes` is empty.
    pub fn patch(offset: u32, bytes: Bytes) -> Self {
        let least = if bytes.is_empty() { 0 } else { offset + bytes.len() as u32 };
        let patches = if bytes.is_empty() { Vec::new() } else { vec![(offset, bytes)] };
        Self::Edit(Edit { cut: u32::MAX, least, patches })
    }

    /// Cuts the value to `bytes` if it is longer.
    pub fn cut(bytes: u32) -> Self {
        Self::Edit(Edit { cut: bytes, least: 0, patches: Vec::new() })
    }

    /// Returns the value after the message. `value` is the one before; `None` and empty are the
    /// same. Never returns an empty value.
    pub fn apply(&self, value: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Self::Put(value) => Some(value.clone()),
            Self::Delete => None,
            Self::Edit(edit) => {
                if edit.is_nothing() {
                    return value.filter(|value| !value.is_empty()).cloned();
                }
                let new = edit.apply(value.map_or(&[], |value| &value[..]));
                (!new.is_empty()).then(|| Bytes::from(new))
            }
        }
    }

    /// Returns one message with the effect of `older` followed by `self`.
    pub fn after(self, older: &Message) -> Message {
        match (self, older) {
            (Self::Edit(new), Self::Put(old)) => Self::put(Bytes::from(new.apply(old))),
            (Self::Edit(new), Self::Delete) => Self::put(Bytes::from(new.apply(&[]))),
            (Self::Edit(new), Self::Edit(old)) => Self::Edit(new.after(old)),
            (whole, _) => whole,
        }
    }

    /// Whether the result does not depend on the old value.
    pub fn is_whole(&self) -> bool {
        !matches!(self, Self::Edit(_))
    }

    /// The number of value bytes in the message.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Put(value) => value.len(),
            Self::Delete => 0,
            Self::Edit(edit) => edit.patches.iter().map(|(_, bytes)| bytes.len()).sum(),
        }
    }
}

impl Edit {
    /// An edit from its decoded parts. Errors: a text with the rule that is violated.
    pub fn from_parts(cut: u32, least: u32, patches: Vec<(u32, Bytes)>) -> Result<Self, String> {
        let mut end = 0;
        for (offset, bytes) in &patches {
            let behind = u64::from(*offset) + bytes.len() as u64;
            if u64::from(*offset) < end || bytes.is_empty() || behind > u64::from(least) {
                return Err(format!(
                    "a patch of {} bytes at {offset}; expected at {end} or later, within {least} bytes",
                    bytes.len()
                ));
            }
            end = behind;
        }
        Ok(Self { cut, least, patches })
    }

    /// The length that a longer value is cut to; `u32::MAX` if it is not cut.
    pub fn cut(&self) -> u32 {
        self.cut
    }

    /// The least length of the result, if the old value is not longer.
    pub fn least(&self) -> u32 {
        self.least
    }

    /// Offsets and bytes to overwrite: ascending, not adjacent, not empty.
    pub fn patches(&self) -> &[(u32, Bytes)] {
        &self.patches
    }

    fn is_nothing(&self) -> bool {
        self.cut == u32::MAX && self.least == 0
    }

    fn apply(&self, old: &[u8]) -> Vec<u8> {
        let kept = old.len().min(self.cut as usize);
        let mut new = Vec::with_capacity(kept.max(self.least as usize));
        new.extend_from_slice(&old[..kept]);
        new.resize(kept.max(self.least as usize), 0);
        for (offset, bytes) in &self.patches {
            new[*offset as usize..*offset as usize + bytes.len()].copy_from_slice(bytes);
        }
        new
    }

    fn after(self, old: &Edit) -> Edit {
        let mut patches = Vec::with_capacity(old.patches.len() + self.patches.len());
        for (offset, bytes) in &old.patches {
            let end = *offset + bytes.len() as u32;
            keep_uncovered(*offset, end.min(self.cut), *offset, bytes, &self.patches, &mut patches);
        }
        patches.extend(self.patches);
        patches.sort_by_key(|(offset, _)| *offset);
        Edit { cut: old.cut.min(self.cut), least: old.least.min(self.cut).max(self.least), patches: joined(patches) }
    }
}

/// Keeps the parts of an older patch, from `from` to `to`, that no newer patch covers.
fn keep_uncovered(from: u32, to: u32, start: u32, bytes: &Bytes, newer: &[(u32, Bytes)], kept: &mut Vec<(u32, Bytes)>) {
    let mut from = from;
    let mut keep = |from: u32, to: u32| {
        if from < to {
            kept.push((from, bytes.slice((from - start) as usize..(to - start) as usize)));
        }
    };
    for (offset, over) in newer {
        keep(from, to.min(*offset));
        from = from.max(*offset + over.len() as u32);
    }
    keep(from, to);
}

/// Joins adjacent patches, so that equal edits compare as equal.
fn joined(patches: Vec<(u32, Bytes)>) -> Vec<(u32, Bytes)> {
    let mut all: Vec<(u32, Bytes)> = Vec::with_capacity(patches.len());
    let mut run: Vec<Bytes> = Vec::new();
    let mut end = 0;
    for (offset, bytes) in patches {
        if all.is_empty() || offset != end {
            close(&mut all, &mut run);
            all.push((offset, Bytes::new()));
        }
        end = offset + bytes.len() as u32;
        run.push(bytes);
    }
    close(&mut all, &mut run);
    all
}

fn close(all: &mut [(u32, Bytes)], run: &mut Vec<Bytes>) {
    if let Some((_, bytes)) = all.last_mut() {
        *bytes = if run.len() == 1 { run.remove(0) } else { Bytes::from(run.concat()) };
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(1u8.., 0..12).prop_map(Bytes::from)
    }

    fn message() -> impl Strategy<Value = Message> {
        prop_oneof![
            2 => value().prop_map(Message::put),
            1 => Just(Message::Delete),
            2 => (0u32..14).prop_map(Message::cut),
            6 => (0u32..12, value()).prop_map(|(offset, bytes)| Message::patch(offset, bytes)),
        ]
    }

    proptest! {
        #[test]
        fn composition_equals_both_messages_in_turn(first in message(), second in message(), old in value()) {
            let one_by_one = second.apply(first.apply(Some(&old)).as_ref());
            prop_assert_eq!(second.after(&first).apply(Some(&old)), one_by_one);
        }

        #[test]
        fn composition_is_associative(first in message(), second in message(), third in message()) {
            let left = third.clone().after(&second).after(&first);
            let right = third.after(&second.after(&first));
            prop_assert_eq!(left, right);
        }

        #[test]
        fn edits_are_rebuilt_from_their_parts(first in message(), second in message()) {
            if let Message::Edit(edit) = second.after(&first) {
                let again = Edit::from_parts(edit.cut(), edit.least(), edit.patches().to_vec()).unwrap();
                prop_assert_eq!(again, edit);
            }
        }
    }

    #[test]
    fn missing_and_empty_values_are_equal() {
        assert_eq!(Message::cut(0).apply(Some(&Bytes::from_static(b"abc"))), None);
        assert_eq!(Message::patch(2, Bytes::from_static(b"x")).apply(None), Some(Bytes::from_static(b"\0\0x")));
        assert_eq!(Message::put(Bytes::new()), Message::Delete);
        assert!(Edit::from_parts(u32::MAX, 3, vec![(2, Bytes::from_static(b"xy"))]).is_err());
    }
}
