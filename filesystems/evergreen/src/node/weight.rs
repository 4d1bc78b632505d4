//! Weights: the most bytes that encoded items take, without the saving of shared prefixes.

use crate::Message;

/// The overhead of an entry of a leaf, without key and value.
pub(crate) const ENTRY_BYTES: usize = 8;

/// The overhead of a message, without key and payload.
pub(crate) const MESSAGE_BYTES: usize = 12;

/// The overhead of an edit in a message, and of each of its patches.
pub(crate) const EDIT_BYTES: usize = 12;
pub(crate) const PATCH_BYTES: usize = 8;

/// The overhead of a range, without its two keys.
pub(crate) const RANGE_BYTES: usize = 12;

/// The weight of a message.
pub(crate) fn message_weight(key: &[u8], message: &Message) -> usize {
    let edit = match message {
        Message::Edit(edit) => EDIT_BYTES + edit.patches().len() * PATCH_BYTES,
        Message::Put(_) | Message::Delete => 0,
    };
    MESSAGE_BYTES + key.len() + message.payload_bytes() + edit
}

/// The weight of an entry of a leaf.
pub(crate) fn entry_weight(key: &[u8], value: &[u8]) -> usize {
    ENTRY_BYTES + key.len() + value.len()
}
