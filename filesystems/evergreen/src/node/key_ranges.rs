//! Sets of keys as ranges: disjoint, not adjacent, in order.

use std::{
    collections::BTreeMap,
    ops::Bound::{self, Excluded, Included, Unbounded},
};

use bytes::Bytes;

/// A set of keys as ranges, from the first key up to the second, exclusive. Invariant: ranges do
/// not touch. So equal sets compare as equal, and the set is as small as possible.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<Bytes, Bytes>);

impl Ranges {
    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.0.iter()
    }

    /// Adds a range that is not empty, and joins it with the ranges that it touches. Returns the
    /// growth of the encoded size: key lengths, and `each` bytes for each range.
    pub(crate) fn insert(&mut self, from: Bytes, to: Bytes, each: usize) -> isize {
        debug_assert!(from < to);
        let (mut first, mut end) = (from, to);
        let mut grown = 0;
        if let Some((start, behind)) = self.0.range::<[u8], _>((Unbounded, Included(&first[..]))).next_back()
            && *behind >= first
        {
            first = start.clone();
        }
        let touched: Vec<(Bytes, Bytes)> =
            self.0.extract_if((Included(first.clone()), Included(end.clone())), |_, _| true).collect();
        for (start, behind) in touched {
            grown -= (start.len() + behind.len() + each) as isize;
            end = end.max(behind);
        }
        grown += (first.len() + end.len() + each) as isize;
        self.0.insert(first, end);
        grown
    }

    /// Whether the set has a key.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.0.range::<[u8], _>((Unbounded, Included(key))).next_back().is_some_and(|(_, behind)| &behind[..] > key)
    }

    /// Whether one range has all keys from `from` up to `to`. `None` has no end, and no range
    /// covers it.
    pub(crate) fn cover(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let Some(to) = to else { return false };
        self.0.range::<[u8], _>((Unbounded, Included(from))).next_back().is_some_and(|(_, behind)| &behind[..] >= to)
    }

    /// Whether the set has a key from `from` up to `to`.
    pub(crate) fn touch(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        self.has(from) || self.0.range::<[u8], _>((Included(from), below(to))).next().is_some()
    }

    /// The parts of the ranges from `from` up to `to`.
    pub(crate) fn within<'a>(
        &'a self,
        from: &'a Bytes,
        to: Option<&'a Bytes>,
    ) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> {
        let before = self.0.range::<[u8], _>((Unbounded, Excluded(&from[..]))).next_back();
        let inside = self.0.range::<[u8], _>((Included(&from[..]), below(to.map(|to| &to[..]))));
        before.into_iter().chain(inside).filter_map(move |(start, behind)| {
            let (first, end) = (start.max(from), to.map_or(behind, |to| behind.min(to)));
            (first < end).then_some((first, end))
        })
    }
}

/// The bound of keys before `to`.
pub(crate) fn below(to: Option<&[u8]>) -> Bound<&[u8]> {
    to.map_or(Unbounded, Excluded)
}
