//! What things weigh: the most bytes that they take when they are encoded, without what shared prefixes save.

use crate::Message;

/// An entry of a leaf, over its key and value.
pub(crate) const ENTRY_BYTES: usize = 8;

/// A message, over its key and what it carries.
pub(crate) const MESSAGE_BYTES: usize = 12;

/// An edit, over a message; and each of its patches.
pub(crate) const EDIT_BYTES: usize = 12;
pub(crate) const PATCH_BYTES: usize = 8;

/// A range, over its two keys.
pub(crate) const RANGE_BYTES: usize = 12;

/// A message to a key.
pub(crate) fn message_weight(key: &[u8], message: &Message) -> usize {
    let edit = match message {
        Message::Edit(edit) => EDIT_BYTES + edit.patches().len() * PATCH_BYTES,
        Message::Put(_) | Message::Delete => 0,
    };
    MESSAGE_BYTES + key.len() + message.payload_bytes() + edit
}

/// An entry of a leaf.
pub(crate) fn entry_weight(key: &[u8], value: &[u8]) -> usize {
    ENTRY_BYTES + key.len() + value.len()
}
