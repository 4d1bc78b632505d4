//! The shape of the tree: chosen when the file system is made, and never changed.

use std::fmt;

use super::{Damage, Decoded};

/// The order of the keys of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrder {
    /// By the path at birth: objects that are read together are adjacent.
    #[default]
    BirthPath,
    /// By inode number, as in other file systems: a baseline for the effect of the order.
    InodeNumber,
}

/// The shape of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The most bytes of a node's content.
    pub node_bytes: u32,
    /// The size of a basement, the part of a leaf that can be read alone, in bytes.
    pub basement_bytes: u32,
    /// The approximate number of children of an inner node.
    pub fanout: u32,
    /// The order of keys.
    pub key_order: KeyOrder,
}

/// The most basements of full size in a node. Basements with one entry each can be more than twice
/// as many; a header holds up to 65,536.
const MOST_BASEMENTS: u32 = 4096;

impl Default for Shape {
    /// Nodes of 4 MiB, basements of 128 KiB, 16 children.
    fn default() -> Self {
        Self { node_bytes: 4 << 20, basement_bytes: 128 << 10, fanout: 16, key_order: KeyOrder::BirthPath }
    }
}

impl Shape {
    /// Checks the limits. Errors: the first wrong field.
    pub fn validate(&self) -> Decoded<()> {
        let damage = |field, found, expected: String| Err(Damage::new("superblock", field, found, expected));
        if !(512..=64 << 20).contains(&self.node_bytes) {
            return damage("node bytes", self.node_bytes, format!("512 to {}", 64 << 20));
        }
        if !(256..=self.node_bytes).contains(&self.basement_bytes) {
            return damage("basement bytes", self.basement_bytes, format!("256 to {}", self.node_bytes));
        }
        if self.node_bytes / self.basement_bytes > MOST_BASEMENTS {
            let expected =
                format!("at least {}: a node has at most {MOST_BASEMENTS}", self.node_bytes / MOST_BASEMENTS);
            return damage("basement bytes", self.basement_bytes, expected);
        }
        if !(4..=1024).contains(&self.fanout) {
            return damage("fanout", self.fanout, "4 to 1024".to_owned());
        }
        Ok(())
    }
}

impl fmt::Display for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BirthPath => "birth path",
            Self::InodeNumber => "inode number",
        })
    }
}

impl KeyOrder {
    pub(super) fn code(self) -> u32 {
        match self {
            Self::BirthPath => 1,
            Self::InodeNumber => 2,
        }
    }

    pub(super) fn from_code(code: u32) -> Decoded<Self> {
        match code {
            1 => Ok(Self::BirthPath),
            2 => Ok(Self::InodeNumber),
            _ => Err(Damage::new("superblock", "key order", code, "birth path (1) or inode number (2)")),
        }
    }
}
