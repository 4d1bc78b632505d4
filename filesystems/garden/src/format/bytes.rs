//! Little-endian numbers at fixed offsets, and a [`Reader`] for fields of variable offset.

use super::{Damage, Decoded};

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Reads values one after another. A value that is cut short is damage of the `structure`.
pub(crate) struct Reader<'a> {
    structure: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(structure: &'static str, bytes: &'a [u8]) -> Self {
        Self { structure, rest: bytes }
    }

    pub fn take(&mut self, field: &'static str, len: usize) -> Decoded<&'a [u8]> {
        if self.rest.len() < len {
            let expected = format!("{len} bytes");
            return Err(Damage::new(self.structure, field, format!("{} bytes", self.rest.len()), expected));
        }
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(taken)
    }

    pub fn u8(&mut self, field: &'static str) -> Decoded<u8> {
        Ok(self.take(field, 1)?[0])
    }

    pub fn u32(&mut self, field: &'static str) -> Decoded<u32> {
        Ok(u32_at(self.take(field, 4)?, 0))
    }

    pub fn u64(&mut self, field: &'static str) -> Decoded<u64> {
        Ok(u64_at(self.take(field, 8)?, 0))
    }

    /// Reads a u32 length, then that number of bytes.
    pub fn sized(&mut self, field: &'static str) -> Decoded<&'a [u8]> {
        let len = self.u32(field)? as usize;
        self.take(field, len)
    }

    pub fn end(&self) -> Decoded<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Damage::new(self.structure, "length", format!("{} bytes more", self.rest.len()), "none"))
    }
}

/// Appends bytes in the form that [`Reader::sized`] reads.
pub(crate) fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
