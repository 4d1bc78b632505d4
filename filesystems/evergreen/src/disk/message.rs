//! The encoding of messages in the log and in the buffers of nodes.

use bytes::Bytes;

use super::{Decoded, Reader, push_sized};
use crate::{Edit, MAX_VALUE_BYTES, Message};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const EDIT: u8 = 3;

/// Appends a message: a byte with its kind, then its payload.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Put(value) => {
            out.push(PUT);
            push_sized(out, value);
        }
        Message::Delete => out.push(DELETE),
        Message::Edit(edit) => {
            out.push(EDIT);
            out.extend_from_slice(&edit.cut().to_le_bytes());
            out.extend_from_slice(&edit.least().to_le_bytes());
            out.extend_from_slice(&(edit.patches().len() as u16).to_le_bytes());
            for (offset, bytes) in edit.patches() {
                out.extend_from_slice(&offset.to_le_bytes());
                push_sized(out, bytes);
            }
        }
    }
}

/// The number of bytes that [`encode_message`] appends.
pub fn message_bytes(message: &Message) -> usize {
    match message {
        Message::Put(value) => 1 + 2 + value.len(),
        Message::Delete => 1,
        Message::Edit(edit) => {
            let patches = edit.patches().iter().map(|(_, bytes)| 4 + 2 + bytes.len());
            1 + 4 + 4 + 2 + patches.sum::<usize>()
        }
    }
}

/// Decodes a message. Its bytes share the memory of the reader. Errors: an unknown kind, an empty
/// value, patches out of order.
pub fn decode_message(reader: &mut Reader) -> Decoded<Message> {
    match reader.u8("message")? {
        PUT => {
            let value = reader.sized("value")?;
            if value.is_empty() {
                return Err(reader.damage("value", "empty", "some bytes"));
            }
            Ok(Message::Put(value))
        }
        DELETE => Ok(Message::Delete),
        EDIT => {
            let (cut, least) = (reader.u32("cut")?, reader.u32("least")?);
            // A damaged length must not allocate more than the largest value.
            if least as usize > MAX_VALUE_BYTES {
                return Err(reader.damage("least", least, format!("at most {MAX_VALUE_BYTES}")));
            }
            let count = reader.u16("patches")?;
            let patch = |reader: &mut Reader| Ok((reader.u32("patch")?, reader.sized("patch")?));
            let patches = (0..count).map(|_| patch(reader)).collect::<Decoded<Vec<(u32, Bytes)>>>()?;
            let edit = Edit::from_parts(cut, least, patches);
            edit.map(Message::Edit).map_err(|what| reader.damage("patches", what, "patches in order"))
        }
        other => Err(reader.damage("message", other, "put (1), delete (2) or edit (3)")),
    }
}
