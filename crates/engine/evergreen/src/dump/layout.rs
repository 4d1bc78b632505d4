//! Where each field of a structure lies, under the word of docs/evergreen-format.md. Read here from the bytes, not by the
//! codecs: of a structure that a codec refuses, everything is shown all the same.

use senesce_fsapi::dump::{Dump, DumpValue, text};

use crate::disk::{u32_at, u64_at};

/// How a field's bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    U8,
    U32,
    U64,
    /// A checksum.
    Hex64,
    Hex32,
    Uuid,
    /// Letters, up to the zeros behind them.
    Text(usize),
    /// The order of keys.
    KeyOrder,
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub word: &'static str,
    pub at: usize,
    pub form: Form,
}

const fn field(word: &'static str, at: usize, form: Form) -> Field {
    Field { word, at, form }
}

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
    field("key order", 88, Form::KeyOrder),
    field("map pieces", 92, Form::U32),
    field("map bytes", 96, Form::U64),
    field("map checksum", 104, Form::Hex64),
    field("root", 112, Form::U64),
    field("next node", 120, Form::U64),
    field("live bytes", 128, Form::U64),
    field("replay position", 136, Form::U64),
    field("replay sequence", 144, Form::U64),
    field("replay chain", 152, Form::Hex64),
    field("checksum", 4088, Form::Hex64),
];

#[rustfmt::skip]
pub(super) const MAP_CHUNK: &[Field] = &[
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

/// Adds all fields of a structure to a dump.
pub(super) fn read_fields(dump: &mut Dump, bytes: &[u8], fields: &[Field]) {
    for Field { word, at, form } in fields {
        dump.field(word, read(bytes, *at, *form));
    }
}

fn read(bytes: &[u8], at: usize, form: Form) -> DumpValue {
    match form {
        Form::U8 => u64::from(bytes[at]).into(),
        Form::U32 => u64::from(u32_at(bytes, at)).into(),
        Form::U64 => u64_at(bytes, at).into(),
        Form::Hex64 => sum_text(u64_at(bytes, at)).into(),
        Form::Hex32 => format!("{:#010x}", u32_at(bytes, at)).into(),
        Form::Uuid => uuid_text(&bytes[at..at + 16]).into(),
        Form::Text(len) => {
            let bytes = &bytes[at..at + len];
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            text(&bytes[..end]).into()
        }
        Form::KeyOrder => match u32_at(bytes, at) {
            1 => "birth path".into(),
            2 => "inode number".into(),
            other => format!("not known ({other})").into(),
        },
    }
}

/// A checksum in digits.
pub(super) fn sum_text(sum: u64) -> String {
    format!("{sum:#018x}")
}

fn uuid_text(uuid: &[u8]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
