//! Little-endian numbers at fixed offsets, and a reader for structures without fixed offsets.

use bytes::{Buf, Bytes};

use super::{Damage, Decoded};

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(crate) fn put_at(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Appends a length in two bytes, and the bytes, for [`Reader::sized`]. At most 65,535 bytes.
pub fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() <= usize::from(u16::MAX), "keys and values are shorter");
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a number for [`Reader::number`].
pub fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads values in sequence. Missing bytes are damage of the requested field. Returned bytes share
/// the memory of the input.
#[derive(Clone, Debug)]
pub struct Reader {
    structure: &'static str,
    rest: Bytes,
}

impl Reader {
    /// A reader of the bytes of a structure.
    pub fn new(structure: &'static str, bytes: Bytes) -> Self {
        Self { structure, rest: bytes }
    }

    /// Reads `len` bytes.
    pub fn take(&mut self, field: &'static str, len: usize) -> Decoded<Bytes> {
        self.expect(field, len)?;
        Ok(self.rest.split_to(len))
    }

    /// Reads a number of one byte.
    pub fn u8(&mut self, field: &'static str) -> Decoded<u8> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    /// Reads a number of two bytes.
    pub fn u16(&mut self, field: &'static str) -> Decoded<u16> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Reads a number of four bytes.
    pub fn u32(&mut self, field: &'static str) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Reads a number of eight bytes.
    pub fn u64(&mut self, field: &'static str) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// Reads a signed number of eight bytes.
    pub fn i64(&mut self, field: &'static str) -> Decoded<i64> {
        Ok(i64::from_le_bytes(self.array(field)?))
    }

    /// Reads a number of variable length, at most `most`. Each byte has seven bits, the lowest
    /// first; the eighth bit is set if more follow.
    pub fn number(&mut self, field: &'static str, most: u64) -> Decoded<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8(field)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                if number > most {
                    return Err(self.damage(field, number, format!("at most {most}")));
                }
                return Ok(number);
            }
        }
        Err(self.damage(field, "a number without an end", format!("at most {most}")))
    }

    /// Reads a length in two bytes, and that many bytes.
    pub fn sized(&mut self, field: &'static str) -> Decoded<Bytes> {
        let len = usize::from(self.u16(field)?);
        self.take(field, len)
    }

    /// The number of bytes left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Damage of a field with an invalid value.
    pub fn damage(&self, field: &'static str, found: impl ToString, expected: impl ToString) -> Damage {
        Damage::new(self.structure, field, found, expected)
    }

    /// Fails if bytes are left.
    pub fn end(&self) -> Decoded<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.damage("length", format!("{} more bytes", self.rest.len()), "none"))
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Decoded<[u8; N]> {
        self.expect(field, N)?;
        let mut out = [0; N];
        // Not `split_to`: it would count references for every number.
        self.rest.copy_to_slice(&mut out);
        Ok(out)
    }

    fn expect(&self, field: &'static str, len: usize) -> Decoded<()> {
        if self.rest.len() >= len {
            return Ok(());
        }
        Err(self.damage(field, format!("{} bytes", self.rest.len()), format!("{len} bytes")))
    }
}
