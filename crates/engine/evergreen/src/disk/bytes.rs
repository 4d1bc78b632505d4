//! Little-endian numbers at fixed places, and a reader for what has no fixed places.

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

/// Appends what [`Reader::sized`] reads: a length in two bytes, and the bytes. There are 65,535 at most.
pub fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() <= usize::from(u16::MAX), "keys and values are shorter");
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends what [`Reader::number`] reads.
pub fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads one value behind the other; what is cut short is damage of the field that was wanted. Bytes that it gives share the
/// memory of those it reads.
#[derive(Clone, Debug)]
pub struct Reader {
    structure: &'static str,
    rest: Bytes,
}

impl Reader {
    /// Reads the bytes of a structure from the first on.
    pub fn new(structure: &'static str, bytes: Bytes) -> Self {
        Self { structure, rest: bytes }
    }

    /// So many bytes.
    pub fn take(&mut self, field: &'static str, len: usize) -> Decoded<Bytes> {
        self.expect(field, len)?;
        Ok(self.rest.split_to(len))
    }

    /// A number of one byte.
    pub fn u8(&mut self, field: &'static str) -> Decoded<u8> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    /// A number of two bytes.
    pub fn u16(&mut self, field: &'static str) -> Decoded<u16> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// A number of four bytes.
    pub fn u32(&mut self, field: &'static str) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// A number of eight bytes.
    pub fn u64(&mut self, field: &'static str) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A number of eight bytes that may be negative.
    pub fn i64(&mut self, field: &'static str) -> Decoded<i64> {
        Ok(i64::from_le_bytes(self.array(field)?))
    }

    /// A number of as few bytes as it needs: seven bits a byte, the lowest first, the eighth says that more follow. At most `most`.
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

    /// A length in two bytes, and as many bytes.
    pub fn sized(&mut self, field: &'static str) -> Decoded<Bytes> {
        let len = usize::from(self.u16(field)?);
        self.take(field, len)
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// What a field holds cannot be.
    pub fn damage(&self, field: &'static str, found: impl ToString, expected: impl ToString) -> Damage {
        Damage::new(self.structure, field, found, expected)
    }

    /// Nothing is left.
    pub fn end(&self) -> Decoded<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.damage("length", format!("{} bytes more", self.rest.len()), "none"))
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Decoded<[u8; N]> {
        self.expect(field, N)?;
        let mut out = [0; N];
        // Not as a part of its own: that would be counted, and each number is read so.
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
