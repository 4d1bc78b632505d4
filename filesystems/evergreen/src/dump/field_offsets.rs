//! The offsets of the fields of each structure, with the names of
//! docs/reference/evergreen-format.md. The dump reads the bytes without the codecs, so it shows
//! structures that a codec refuses.

use senesce_fsapi::dump::{Field, Form, field};

use crate::disk::u32_at;

#[rustfmt::skip] // one field a line
pub(super) const SUPERBLOCK: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("version", 8, Form::U32),
    field("unit bytes", 12, Form::U32),
    field("uuid", 16, Form::Uuid),
    field("generation", 32, Form::U64),
    field("device bytes", 40, Form::U64),
    field("log at", 48, Form::U64),
    field("log bytes", 56, Form::U64),
    field("data at", 64, Form::U64),
    field("units", 72, Form::U32),
    field("node bytes", 76, Form::U32),
    field("basement bytes", 80, Form::U32),
    field("fanout", 84, Form::U32),
    field("key order", 88, Form::Words(key_order)),
    field("map pieces", 92, Form::U32),
    field("map bytes", 96, Form::U64),
    field("map checksum", 104, Form::Hex64),
    field("root", 112, Form::U64),
    field("next node", 120, Form::U64),
    field("live bytes", 128, Form::U64),
    field("replay position", 136, Form::U64),
    field("replay sequence", 144, Form::U64),
    field("replay chain", 152, Form::Hex64),
    field("copies", 160, Form::U32),
    field("second map pieces", 164, Form::U32),
    field("node sum", 168, Form::Hex64),
    field("checksum", 4088, Form::Hex64),
];

#[rustfmt::skip]
pub(super) const MAP_CHUNK: &[Field] = &[
    field("magic", 0, Form::Hex32),
    field("chunk number", 4, Form::U32),
    field("generation", 8, Form::U64),
    field("entries", 16, Form::U32),
    field("identity", 24, Form::Uuid),
    field("checksum", 4088, Form::Hex64),
];

/// The chunk of format version 1.
#[rustfmt::skip]
pub(super) const OLD_MAP_CHUNK: &[Field] = &[
    field("magic", 0, Form::Hex32),
    field("chunk number", 4, Form::U32),
    field("generation", 8, Form::U64),
    field("entries", 16, Form::U32),
    field("checksum", 4088, Form::Hex64),
];

#[rustfmt::skip]
pub(super) const FRAME: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("position", 8, Form::U64),
    field("durable", 16, Form::U64),
    field("sequence", 24, Form::U64),
    field("records", 32, Form::U32),
    field("body bytes", 36, Form::U32),
    field("chain", 40, Form::Hex64),
    field("checksum", 48, Form::Hex64),
    field("header checksum", 56, Form::Hex64),
];

#[rustfmt::skip]
pub(super) const NODE: &[Field] = &[
    field("magic", 0, Form::Text(8)),
    field("header sum", 8, Form::Hex64),
    field("header bytes", 16, Form::U32),
    field("version", 20, Form::U8),
    field("height", 21, Form::U8),
    field("number", 24, Form::U64),
    field("generation", 32, Form::U64),
];

/// The field that follows from format version 2 on.
#[rustfmt::skip]
pub(super) const NODE_IDENTITY: &[Field] = &[
    field("identity", 40, Form::Uuid),
];

fn key_order(bytes: &[u8]) -> String {
    match u32_at(bytes, 0) {
        1 => "birth path".to_owned(),
        2 => "inode number".to_owned(),
        other => format!("not known ({other})"),
    }
}
