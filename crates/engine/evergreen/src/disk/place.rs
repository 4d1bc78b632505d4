//! Where something lies in the area of units.

use std::{fmt, ops::Deref};

/// Pieces of one node at most: what an entry of the map of nodes has room for. So many are needed only where hardly anything is free,
/// and it in small pieces; then a node must not be refused a place though there is enough for it.
pub const MAX_PIECES: usize = 500;

/// Pieces that most nodes have at most.
pub const FEW_PIECES: usize = 4;

/// The number of a node. It never changes, is never used twice, and is never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Extents(Box<[Extent]>);

impl Extents {
    /// These; `None` if there are too many.
    pub fn new(pieces: &[Extent]) -> Option<Self> {
        (pieces.len() <= MAX_PIECES).then(|| Self(pieces.into()))
    }

    /// How many units they are together.
    pub fn units(&self) -> u64 {
        self.iter().map(|extent| u64::from(extent.count)).sum()
    }
}

impl Deref for Extents {
    type Target = [Extent];

    fn deref(&self) -> &[Extent] {
        &self.0
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

/// Where a node is, and how it is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its units.
    pub extents: Extents,
    /// The units of its second copy, which has the same bytes. None of a node that has one copy.
    pub second: Extents,
    /// Its length in bytes; the units may have more.
    pub bytes: u32,
    /// The checksum of its header, which holds those of its partitions.
    pub header_sum: u64,
}

impl Place {
    /// The extents of all its copies.
    pub fn all(&self) -> impl Iterator<Item = Extent> + '_ {
        self.extents.iter().chain(self.second.iter()).copied()
    }

    /// Each copy as a place of its own, the first one first.
    pub fn copies(&self) -> impl Iterator<Item = Self> + '_ {
        let copies = [&self.extents, &self.second].into_iter().filter(|extents| !extents.is_empty());
        copies.map(|extents| Self { extents: extents.clone(), second: Extents::default(), ..*self })
    }

    /// The second copy as a place of its own, if there is one.
    pub fn second_copy(&self) -> Option<Self> {
        self.copies().nth(1)
    }
}
