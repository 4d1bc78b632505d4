//! Keys of contents. A key describes the bytes of a planned write in words that a source with the
//! same history understands.

use std::{fmt, str::FromStr};

use super::Oid;

/// The identity of a pack. Numbers are positions in the list of commits, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackKey {
    /// Everything reachable from the commits `0..=n`: the initial clone, and a full repack.
    All(usize),
    /// The objects that a fetch of commit `n` adds to a repository with the commits `0..n`.
    Fetch(usize),
    /// The objects that commits `0..=until` reach and commits `0..=after` do not: an incremental
    /// repack of loose objects.
    Since {
        /// The last commit that an earlier pack covers.
        after: usize,
        /// The last commit that this pack covers.
        until: usize,
    },
}

/// The identity of the bytes of a [`Content::Derived`](senesce_oplog::Content::Derived).
///
/// As text: `blob <hex>`, `loose <hex>`, `index <n>`, `pack all <n>`, `pack fetch <n>`,
/// `pack since <m> <n>`, and the same three with `packidx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentKey {
    /// The bytes of a blob.
    Blob(Oid),
    /// A loose object file: header and body, deflated.
    Loose(Oid),
    /// The index file of commit number `n`.
    Index(usize),
    /// A pack file.
    Pack(PackKey),
    /// The index of a pack file.
    PackIdx(PackKey),
}

impl fmt::Display for PackKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(n) => write!(f, "all {n}"),
            Self::Fetch(n) => write!(f, "fetch {n}"),
            Self::Since { after, until } => write!(f, "since {after} {until}"),
        }
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blob(oid) => write!(f, "blob {oid}"),
            Self::Loose(oid) => write!(f, "loose {oid}"),
            Self::Index(n) => write!(f, "index {n}"),
            Self::Pack(pack) => write!(f, "pack {pack}"),
            Self::PackIdx(pack) => write!(f, "packidx {pack}"),
        }
    }
}

/// A text that is not a key of git content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no content of a git history")]
pub struct ParseKeyError {
    /// The rejected text.
    pub text: String,
}

impl FromStr for ContentKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let error = || ParseKeyError { text: text.to_owned() };
        let words: Vec<&str> = text.split(' ').collect();
        let oid = |word: &str| word.parse::<Oid>().map_err(|_| error());
        let number = |word: &str| word.parse::<usize>().map_err(|_| error());
        let pack = |words: &[&str]| match *words {
            ["all", n] => Ok(PackKey::All(number(n)?)),
            ["fetch", n] => Ok(PackKey::Fetch(number(n)?)),
            ["since", after, until] => Ok(PackKey::Since { after: number(after)?, until: number(until)? }),
            _ => Err(error()),
        };
        match words.as_slice() {
            ["blob", hex] => Ok(Self::Blob(oid(hex)?)),
            ["loose", hex] => Ok(Self::Loose(oid(hex)?)),
            ["index", n] => Ok(Self::Index(number(n)?)),
            ["pack", rest @ ..] => Ok(Self::Pack(pack(rest)?)),
            ["packidx", rest @ ..] => Ok(Self::PackIdx(pack(rest)?)),
            _ => Err(error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_as_text() {
        let oid = Oid([0xab; 20]);
        for key in [
            ContentKey::Blob(oid),
            ContentKey::Loose(oid),
            ContentKey::Index(17),
            ContentKey::Pack(PackKey::All(0)),
            ContentKey::PackIdx(PackKey::Fetch(3)),
            ContentKey::Pack(PackKey::Since { after: 3, until: 9 }),
        ] {
            assert_eq!(key.to_string().parse::<ContentKey>().unwrap(), key);
        }
        for bad in ["", "blob", "blob x", "index -1", "pack all", "pack since 1", "pack all 1 2"] {
            assert!(bad.parse::<ContentKey>().is_err(), "{bad}");
        }
    }
}
