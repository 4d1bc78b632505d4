//! Where something lies in the area of units.

use std::{fmt, ops::Deref};

/// Pieces of one node at most.
pub const MAX_PIECES: usize = 4;

/// The number of a node. It never changes, is never used twice, and is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Units that lie one behind the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The first of them.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Extent {
    /// The first unit behind it.
    pub fn end(&self) -> u32 {
        self.first + self.count
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.first, self.count)
    }
}

/// Up to [`MAX_PIECES`] extents, in the order of the bytes that lie in them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Extents {
    pieces: [Extent; MAX_PIECES],
    len: u8,
}

impl Extents {
    /// These; `None` if there are too many.
    pub fn new(pieces: &[Extent]) -> Option<Self> {
        let mut all = Self { len: pieces.len() as u8, ..Self::default() };
        all.pieces.get_mut(..pieces.len())?.copy_from_slice(pieces);
        Some(all)
    }

    /// How many units they are together.
    pub fn units(&self) -> u64 {
        self.iter().map(|extent| u64::from(extent.count)).sum()
    }
}

impl Deref for Extents {
    type Target = [Extent];

    fn deref(&self) -> &[Extent] {
        &self.pieces[..usize::from(self.len)]
    }
}

impl fmt::Debug for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, extent) in self.iter().enumerate() {
            write!(f, "{}{extent}", if index > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// Where a node lies, and how it is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its units.
    pub extents: Extents,
    /// Its length in bytes; the units may have more.
    pub bytes: u32,
    /// The checksum of its header, which holds those of its partitions.
    pub header_sum: u64,
}
