//! Nodes in memory and their encoding. The module does not know the tree or a device.

mod buffer;
mod codec;
mod header;
mod inner;
mod key_prefixes;
mod key_ranges;
mod leaf;
mod merge_batches;
mod part;
mod weight;

use bytes::Bytes;

pub(crate) use crate::disk::NodeId;
pub(crate) use buffer::{Buffer, Known};
pub(crate) use codec::Encoded;
pub(crate) use header::{FIRST_READ_BYTES, Header, is_whole, renew};
pub(crate) use inner::{Child, Inner};
pub(crate) use key_ranges::Ranges;
pub(crate) use leaf::{Basement, BasementSizes, Entry, Leaf, overlay};
pub(crate) use merge_batches::Gather;
pub(crate) use part::{Part, Stored};

/// A node. Clones are cheap, because they share the parts.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The lower bound of the keys, inclusive.
    pub(crate) lower: Bytes,
    /// The upper bound, exclusive; `None` for the last node of a level.
    pub(crate) upper: Option<Bytes>,
    /// The content.
    pub(crate) body: Body,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Entries.
    Leaf(Leaf),
    /// Children.
    Inner(Inner),
}

impl Node {
    /// The number of levels above the leaves.
    pub(crate) fn height(&self) -> u8 {
        match &self.body {
            Body::Leaf(_) => 0,
            Body::Inner(inner) => inner.height(),
        }
    }

    /// The number of parts.
    pub(crate) fn parts(&self) -> usize {
        match &self.body {
            Body::Leaf(leaf) => leaf.parts().len(),
            Body::Inner(inner) => inner.children().len(),
        }
    }

    /// The place of a part in the node, if the part is not in memory.
    pub(crate) fn stored(&self, number: usize) -> Option<Stored> {
        match &self.body {
            Body::Leaf(leaf) => stored(&leaf.parts()[number].body),
            Body::Inner(inner) => stored(&inner.children()[number].body),
        }
    }

    /// The most bytes that the encoded parts take.
    pub(crate) fn weight(&self) -> usize {
        match &self.body {
            Body::Leaf(leaf) => leaf.weight(),
            Body::Inner(inner) => inner.weight(),
        }
    }

    /// The approximate memory of the header and of the loaded parts, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        /// Overhead of an entry or a message: two handles, an allocation, and a share of the map.
        const EACH: usize = 96;
        const PART: usize = 128;
        let parts: usize = match &self.body {
            Body::Leaf(leaf) => leaf
                .parts()
                .iter()
                .filter(|part| part.body.is_here())
                .map(|part| part.weight + part.body.here().entries().len() * EACH)
                .sum(),
            Body::Inner(inner) => inner
                .children()
                .iter()
                .filter(|child| child.body.is_here())
                .map(|child| child.weight + child.body.here().len() * EACH)
                .sum(),
        };
        self.lower.len() + self.parts() * PART + parts
    }

    /// The leaf; panics for an inner node.
    pub(crate) fn leaf(&self) -> &Leaf {
        match &self.body {
            Body::Leaf(leaf) => leaf,
            Body::Inner(_) => unreachable!("a leaf is an inner node"),
        }
    }

    /// The inner node; panics for a leaf.
    pub(crate) fn inner(&self) -> &Inner {
        match &self.body {
            Body::Inner(inner) => inner,
            Body::Leaf(_) => unreachable!("an inner node is a leaf"),
        }
    }

    /// Like [`inner`](Self::inner), but mutable.
    pub(crate) fn inner_mut(&mut self) -> &mut Inner {
        match &mut self.body {
            Body::Inner(inner) => inner,
            Body::Leaf(_) => unreachable!("an inner node is a leaf"),
        }
    }

    /// Replaces a part by that of another copy of the same node.
    pub(crate) fn take_part(&mut self, number: usize, other: &Self) {
        match (&mut self.body, &other.body) {
            (Body::Leaf(leaf), Body::Leaf(other)) => leaf.parts_mut()[number] = other.parts()[number].clone(),
            (Body::Inner(inner), Body::Inner(other)) => {
                inner.children_mut()[number] = other.children()[number].clone();
            }
            _ => unreachable!("copies of a node are equal"),
        }
    }

    /// The first key after a part: the first one of the next part, or the node's upper bound.
    pub(crate) fn end(&self, number: usize) -> Option<&Bytes> {
        let next = match &self.body {
            Body::Leaf(leaf) => leaf.parts().get(number + 1).map(|part| &part.first),
            Body::Inner(inner) => inner.end(number),
        };
        next.or(self.upper.as_ref())
    }
}

fn stored<T>(part: &Part<T>) -> Option<Stored> {
    match part {
        Part::Away(stored) => Some(*stored),
        Part::Here(_) => None,
    }
}
