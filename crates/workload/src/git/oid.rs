//! Names of git objects.

use std::{fmt, str::FromStr};

/// The name of a git object: its SHA-1, 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub [u8; 20]);

impl Oid {
    /// The name that stands for "nothing" in reflogs: 20 zero bytes.
    pub const NULL: Oid = Oid([0; 20]);

    /// The first 8 bytes, which identify an object within one repository (see `Seen` for the risk).
    pub(crate) fn short(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(first)
    }
}

impl fmt::Display for Oid {
    /// Forty hexadecimal digits, lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 40];
        for (at, byte) in self.0.iter().enumerate() {
            text[2 * at] = DIGITS[usize::from(byte >> 4)];
            text[2 * at + 1] = DIGITS[usize::from(byte & 15)];
        }
        f.pad(std::str::from_utf8(&text).expect("hexadecimal digits are ASCII"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not the name of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an object name of 40 hexadecimal digits")]
pub struct ParseOidError {
    /// The rejected text.
    pub text: String,
}

impl FromStr for Oid {
    type Err = ParseOidError;

    fn from_str(text: &str) -> Result<Self, ParseOidError> {
        let error = || ParseOidError { text: text.to_owned() };
        let digits = text.as_bytes();
        if digits.len() != 40 {
            return Err(error());
        }
        let mut oid = [0; 20];
        for (byte, pair) in oid.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |d: u8| char::from(d).to_digit(16).ok_or_else(error);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Oid(oid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_names_survive_as_text() {
        let text = "0123456789abcdef0123456789abcdefdeadbeef";
        assert_eq!(text.parse::<Oid>().unwrap().to_string(), text);
        for bad in ["", "0123", "g123456789abcdef0123456789abcdefdeadbeef", "é123456789abcdef0123456789abcdefdeadbee"]
        {
            assert!(bad.parse::<Oid>().is_err(), "{bad}");
        }
    }
}
