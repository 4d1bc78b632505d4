//! Homes: the prefixes of the keys of an object.

use super::{
    MOST_INO,
    number::{put_number, take_number},
};
use crate::disk::KeyOrder;

/// The longest prefix of a name in a home, in bytes.
pub const BIRTH_NAME_BYTES: usize = 16;

/// A home that would be longer starts a zone: a prefix with the inode's number only.
pub const MAX_HOME_BYTES: usize = 1024;

/// The first byte of a home.
const ROOT: u8 = 1;
const ZONE: u8 = 2;
const NUMBER: u8 = 3;

/// The escape of name bytes up to this value. Lower bytes separate the parts of a key.
const ESCAPE: u8 = 3;

fn take_ino(bytes: &[u8]) -> Option<(u64, &[u8])> {
    take_number(bytes).filter(|(ino, _)| *ino <= MOST_INO)
}

/// The home of an object. It is unique, and survives renames.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home(Vec<u8>);

impl Home {
    /// The home of the root directory.
    pub fn root() -> Self {
        Self(vec![ROOT])
    }

    /// The home of an inode that is created in this directory with this name.
    pub fn child(&self, layout: KeyOrder, name: &[u8], ino: u64) -> Self {
        if layout == KeyOrder::InodeNumber {
            return Self::begin(NUMBER, ino);
        }
        let mut home = self.0.clone();
        for &byte in name.iter().take(BIRTH_NAME_BYTES) {
            if byte <= ESCAPE {
                home.push(ESCAPE);
            }
            home.push(byte);
        }
        home.push(0);
        put_number(&mut home, ino);
        if home.len() > MAX_HOME_BYTES { Self::begin(ZONE, ino) } else { Self(home) }
    }

    fn begin(first: u8, ino: u64) -> Self {
        let mut home = vec![first];
        put_number(&mut home, ino);
        Self(home)
    }

    /// Decodes a home. Errors: a text with the rule that is violated.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        match Self::take(bytes) {
            Ok((home, [])) => Ok(home),
            Ok((_, rest)) => Err(format!("{} bytes after a home", rest.len())),
            Err(problem) => Err(problem),
        }
    }

    /// Splits a key after its home. Returns the home and the rest of the key.
    pub(super) fn take(bytes: &[u8]) -> Result<(Self, &[u8]), String> {
        let (first, mut rest) = bytes.split_first().ok_or("no home")?;
        match *first {
            ROOT => {}
            ZONE | NUMBER => rest = take_ino(rest).ok_or("a zone without a number that inodes have")?.1,
            other => return Err(format!("a home that begins with {other}")),
        }
        while rest.first().is_some_and(|&byte| byte >= ESCAPE) {
            let mut bytes = 0;
            while let Some((&byte, behind)) = rest.split_first().filter(|(byte, _)| **byte > 0) {
                rest = match (byte, behind) {
                    (ESCAPE, [1..=ESCAPE, behind @ ..]) => behind,
                    (ESCAPE, _) => return Err("an escape before what needs none".to_owned()),
                    (..ESCAPE, _) => return Err("a byte of a name that is not escaped".to_owned()),
                    (_, behind) => behind,
                };
                bytes += 1;
            }
            let number = rest.strip_prefix(&[0]).and_then(take_ino);
            rest = number.ok_or("a name of a home without a number that inodes have")?.1;
            if bytes > BIRTH_NAME_BYTES {
                return Err(format!("a name of {bytes} bytes in a home; at most {BIRTH_NAME_BYTES}"));
            }
        }
        let home = &bytes[..bytes.len() - rest.len()];
        if home.len() > MAX_HOME_BYTES {
            return Err(format!("a home of {} bytes; at most {MAX_HOME_BYTES}", home.len()));
        }
        Ok((Self(home.to_vec()), rest))
    }

    /// The inode's number, which is the end of the home.
    pub fn ino(&self) -> u64 {
        self.births().last().map_or(1, |(_, ino)| *ino)
    }

    /// The path at birth. Names are cut, and directories above a zone are missing.
    pub fn path(&self) -> Vec<u8> {
        let names = self.births().into_iter().map(|(name, ino)| match name.is_empty() {
            true => format!("#{ino}").into_bytes(),
            false => name,
        });
        names.collect::<Vec<_>>().join(&b'/')
    }

    /// The names and numbers of the home.
    fn births(&self) -> Vec<(Vec<u8>, u64)> {
        let (mut births, mut rest) = (Vec::new(), &self.0[1..]);
        if self.0[0] != ROOT {
            let (ino, behind) = take_number(rest).unwrap_or((0, &[]));
            (births, rest) = (vec![(Vec::new(), ino)], behind);
        }
        while !rest.is_empty() {
            let mut name = Vec::new();
            while let Some((&byte, behind)) = rest.split_first().filter(|(byte, _)| **byte > 0) {
                let escaped = behind.split_first().filter(|_| byte == ESCAPE);
                name.push(escaped.map_or(byte, |(byte, _)| *byte));
                rest = escaped.map_or(behind, |(_, behind)| behind);
            }
            let (ino, behind) = rest.split_first().and_then(|(_, number)| take_number(number)).unwrap_or((0, &[]));
            births.push((name, ino));
            rest = behind;
        }
        births
    }

    /// The encoded home.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The length in bytes; never 0.
    pub fn byte_count(&self) -> usize {
        self.0.len()
    }
}
