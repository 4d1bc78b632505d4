//! The number of copies of the metadata nodes.

use super::{Damage, Decoded};

/// Copies of inner nodes and of the map of nodes. Leaves have one copy, superblocks always two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// One copy: a damaged block of an inner node hides all nodes below it until a repair.
    One,
    /// Two copies, far apart on the device: a damaged block of one copy is read from the other.
    #[default]
    Two,
}

impl Copies {
    /// The number of copies.
    pub fn count(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    pub(super) fn code(self) -> u32 {
        self.count() as u32
    }

    pub(super) fn from_code(code: u32) -> Decoded<Self> {
        match code {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            _ => Err(Damage::new("superblock", "copies", code, "1 or 2")),
        }
    }
}
