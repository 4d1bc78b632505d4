//! Places in the area of units.

use std::{fmt, ops::Deref};

/// The most pieces of a node: an entry of the map has space for them. A node needs this number only
/// if the free space is small and scattered. The limit then avoids a false `NoSpace`.
pub const MAX_PIECES: usize = 500;

/// The most pieces of most nodes.
pub const FEW_PIECES: usize = 4;

/// The number of a node. It never changes, is never reused, and is never 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Adjacent units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The first unit.
    pub first: u32,
    /// The number of units.
    pub count: u32,
}

impl Extent {
    /// The first unit after the extent.
    pub fn end(&self) -> u32 {
        self.first + self.count
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.first, self.count)
    }
}

/// Up to [`MAX_PIECES`] extents, in the order of the bytes that they hold.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Extents(Box<[Extent]>);

impl Extents {
    /// A list of extents; `None` if there are too many.
    pub fn new(pieces: &[Extent]) -> Option<Self> {
        (pieces.len() <= MAX_PIECES).then(|| Self(pieces.into()))
    }

    /// The number of units.
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

/// The place of a node, and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The extents of the first copy.
    pub extents: Extents,
    /// The extents of the second copy, which has the same bytes; empty if there is one copy.
    pub second: Extents,
    /// The length of the node in bytes; the units may hold more.
    pub bytes: u32,
    /// The checksum of the header, which has the checksums of the parts.
    pub header_sum: u64,
}

impl Place {
    /// The extents of all copies.
    pub fn all(&self) -> impl Iterator<Item = Extent> + '_ {
        self.extents.iter().chain(self.second.iter()).copied()
    }

    /// Each copy as a place with one copy, the first copy first.
    pub fn copies(&self) -> impl Iterator<Item = Self> + '_ {
        let copies = [&self.extents, &self.second].into_iter().filter(|extents| !extents.is_empty());
        copies.map(|extents| Self { extents: extents.clone(), second: Extents::default(), ..*self })
    }

    /// The second copy as a place with one copy, if there is one.
    pub fn second_copy(&self) -> Option<Self> {
        self.copies().nth(1)
    }
}
