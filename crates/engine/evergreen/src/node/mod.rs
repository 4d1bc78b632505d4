//! Nodes: what they are in memory, and what they are in bytes. Knows nothing of the tree or of a device.

mod buffer;
mod codec;
mod gather;
mod header;
mod inner;
mod keys;
mod leaf;
mod part;
mod ranges;
mod weight;

use bytes::Bytes;

pub(crate) use crate::disk::NodeId;
pub(crate) use buffer::{Buffer, Known};
pub(crate) use codec::Encoded;
pub(crate) use gather::Gather;
pub(crate) use header::{FIRST_READ_BYTES, Header, is_whole, renew};
pub(crate) use inner::{Child, Inner};
pub(crate) use leaf::{Basement, BasementSizes, Entry, Leaf, overlay};
pub(crate) use part::{Part, Stored};
pub(crate) use ranges::Ranges;

/// A node. Copies are cheap: its parts are shared.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its keys are not before this one,
    pub(crate) lower: Bytes,
    /// and before this one, if there is an end.
    pub(crate) upper: Option<Bytes>,
    /// What it is.
    pub(crate) body: Body,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// Entries.
    Leaf(Leaf),
    /// Children.
    Inner(Inner),
}

impl Node {
    /// How many levels it is above the leaves.
    pub(crate) fn height(&self) -> u8 {
        match &self.body {
            Body::Leaf(_) => 0,
            Body::Inner(inner) => inner.height(),
        }
    }

    /// How many parts it has.
    pub(crate) fn parts(&self) -> usize {
        match &self.body {
            Body::Leaf(leaf) => leaf.parts().len(),
            Body::Inner(inner) => inner.children().len(),
        }
    }

    /// Where a part lies, if it is not in memory.
    pub(crate) fn stored(&self, number: usize) -> Option<Stored> {
        match &self.body {
            Body::Leaf(leaf) => stored(&leaf.parts()[number].body),
            Body::Inner(inner) => stored(&inner.children()[number].body),
        }
    }

    /// The most bytes that its parts take when they are encoded.
    pub(crate) fn weight(&self) -> usize {
        match &self.body {
            Body::Leaf(leaf) => leaf.weight(),
            Body::Inner(inner) => inner.weight(),
        }
    }

    /// About how many bytes of memory it takes: its header, and the parts that are here.
    pub(crate) fn memory_bytes(&self) -> usize {
        /// Of an entry or a message, over its key and value: two handles, an allocation, the map's share.
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

    /// It as a leaf, which it must be.
    pub(crate) fn leaf(&self) -> &Leaf {
        match &self.body {
            Body::Leaf(leaf) => leaf,
            Body::Inner(_) => unreachable!("a leaf is an inner node"),
        }
    }

    /// It as an inner node, which it must be.
    pub(crate) fn inner(&self) -> &Inner {
        match &self.body {
            Body::Inner(inner) => inner,
            Body::Leaf(_) => unreachable!("an inner node is a leaf"),
        }
    }

    /// The same, to change it.
    pub(crate) fn inner_mut(&mut self) -> &mut Inner {
        match &mut self.body {
            Body::Inner(inner) => inner,
            Body::Leaf(_) => unreachable!("an inner node is a leaf"),
        }
    }

    /// A part of it is that of another copy from now on.
    pub(crate) fn take_part(&mut self, number: usize, other: &Self) {
        match (&mut self.body, &other.body) {
            (Body::Leaf(leaf), Body::Leaf(other)) => leaf.parts_mut()[number] = other.parts()[number].clone(),
            (Body::Inner(inner), Body::Inner(other)) => {
                inner.children_mut()[number] = other.children()[number].clone();
            }
            _ => unreachable!("copies of a node are equal"),
        }
    }

    /// The first key behind a part: the next part's, or the node's end.
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
