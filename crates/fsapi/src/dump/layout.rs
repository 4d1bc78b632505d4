//! Descriptions of fields: their offsets and forms. A dump reads the bytes without the codecs of an
//! engine, so it shows structures that a codec refuses.

use super::{Dump, DumpValue, text};

/// The form of a field; numbers are little-endian.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A number of one byte.
    U8,
    /// A number of two bytes.
    U16,
    /// A number of four bytes.
    U32,
    /// A number of eight bytes.
    U64,
    /// Seconds since 1970 (64 bits), with nanoseconds (32 bits) at the given offset.
    Time(usize),
    /// Permissions (16 bits), in octal digits.
    Octal,
    /// A checksum or magic number of 32 bits, as `0x0123abcd`.
    Hex32,
    /// The same as `0123abcdh`.
    Digits32,
    /// A checksum of 64 bits in the notation of [`sum_text`].
    Hex64,
    /// 16 bytes, in five groups of digits.
    Uuid,
    /// A text of this length, without the zeros at its end.
    Text(usize),
    /// A text that the engine makes from the bytes of the field.
    Words(fn(&[u8]) -> String),
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in the document of the format.
    pub word: &'static str,
    /// The offset in the structure.
    pub at: usize,
    /// The form of the bytes.
    pub form: Form,
}

/// A field, for constant tables.
pub const fn field(word: &'static str, at: usize, form: Form) -> Field {
    Field { word, at, form }
}

/// Adds all fields of a structure to a dump. `bytes` must have all of them.
pub fn read_fields(dump: &mut Dump, bytes: &[u8], fields: &[Field]) {
    dump.fields.extend(fields.iter().map(|field| (field.word, read(bytes, field))));
}

fn read(bytes: &[u8], &Field { at, form, .. }: &Field) -> DumpValue {
    match form {
        Form::U8 => u64::from(bytes[at]).into(),
        Form::U16 => u64::from(u16::from_le_bytes(array(bytes, at))).into(),
        Form::U32 => u64::from(u32_at(bytes, at)).into(),
        Form::U64 => u64_at(bytes, at).into(),
        Form::Time(nanoseconds) => format!("{}.{:09}", u64_at(bytes, at) as i64, u32_at(bytes, nanoseconds)).into(),
        Form::Octal => format!("{:04o}", u16::from_le_bytes(array(bytes, at))).into(),
        Form::Hex32 => format!("{:#010x}", u32_at(bytes, at)).into(),
        Form::Digits32 => format!("{:08x}h", u32_at(bytes, at)).into(),
        Form::Hex64 => sum_text(u64_at(bytes, at)).into(),
        Form::Uuid => uuid_text(&bytes[at..at + 16]).into(),
        Form::Text(len) => {
            let all = &bytes[at..at + len];
            text(&all[..all.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]).into()
        }
        Form::Words(words) => words(&bytes[at..]).into(),
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|byte| bytes[at + byte])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// A checksum of 64 bits as text.
pub fn sum_text(sum: u64) -> String {
    format!("{sum:#018x}")
}

fn uuid_text(uuid: &[u8]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_from_its_bytes() {
        let mut bytes: Vec<u8> = (0..32).collect();
        bytes.extend_from_slice(b"ab\0c\0\0");
        let words = |bytes: &[u8]| format!("{} and more", bytes[0]);
        for (at, form, want) in [
            (7, Form::U8, "7"),
            (2, Form::U16, "770"),
            (1, Form::U32, "67305985"),
            (0, Form::U64, "506097522914230528"),
            (0, Form::Time(8), "506097522914230528.185207048"),
            (1, Form::Octal, "1001"),
            (4, Form::Hex32, "0x07060504"),
            (4, Form::Digits32, "07060504h"),
            (0, Form::Hex64, "0x0706050403020100"),
            (0, Form::Uuid, "00010203-0405-0607-0809-0a0b0c0d0e0f"),
            (32, Form::Text(6), "ab\\x00c"),
            (9, Form::Words(words), "9 and more"),
        ] {
            let mut dump = Dump::new("a structure");
            read_fields(&mut dump, &bytes, &[field("it", at, form)]);
            assert_eq!(dump.fields[0].1.to_string(), want, "{form:?} at {at}");
        }
    }
}
