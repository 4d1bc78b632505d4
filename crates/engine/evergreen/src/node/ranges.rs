//! Ranges of keys that have no value any more: disjoint, not even touching, in order.

use std::{
    collections::BTreeMap,
    ops::Bound::{self, Excluded, Included, Unbounded},
};

use bytes::Bytes;

/// A set of keys as ranges, each from its first key to the first behind. Invariant: between two of them lies a key, so that equal
/// sets are equal and the set is as small as it can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<Bytes, Bytes>);

impl Ranges {
    /// No ranges.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.0.iter()
    }

    /// Adds a range that is not empty; those that it touches become one with it. Returns by how much the sum of the keys' lengths
    /// and `each` bytes for each range grows.
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

    /// Whether a key is in one of them.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.0.range::<[u8], _>((Unbounded, Included(key))).next_back().is_some_and(|(_, behind)| &behind[..] > key)
    }

    /// Whether all keys from `from` up to `to` are in one of them; no `to` is no end, and no range reaches there.
    pub(crate) fn cover(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        let Some(to) = to else { return false };
        self.0.range::<[u8], _>((Unbounded, Included(from))).next_back().is_some_and(|(_, behind)| &behind[..] >= to)
    }

    /// Whether one of them has a key from `from` up to `to`.
    pub(crate) fn touch(&self, from: &[u8], to: Option<&[u8]>) -> bool {
        self.has(from) || self.0.range::<[u8], _>((Included(from), below(to))).next().is_some()
    }

    /// The parts of them from `from` up to `to`.
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
