//! The keys of changed blocks, in the order in which they get places.

use std::collections::BTreeMap;

use super::Key;

/// Neighbours that share an entry.
const TOGETHER: u64 = 64;

/// An ordered set of keys. Neighbours of a level mostly change together, so they are bits of one
/// word.
#[derive(Default)]
pub(super) struct KeySet {
    /// By the key of the first neighbour, with its index divided by [`TOGETHER`].
    words: BTreeMap<Key, u64>,
    len: usize,
}

fn place(key: Key) -> (Key, u64) {
    (key.neighbour(key.index() / TOGETHER), 1 << (key.index() % TOGETHER))
}

impl KeySet {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn contains(&self, key: Key) -> bool {
        let (word, bit) = place(key);
        self.words.get(&word).is_some_and(|bits| bits & bit != 0)
    }

    pub fn insert(&mut self, key: Key) {
        let (word, bit) = place(key);
        let bits = self.words.entry(word).or_default();
        self.len += usize::from(*bits & bit == 0);
        *bits |= bit;
    }

    /// Removes a key. Returns whether the set had it.
    pub fn remove(&mut self, key: Key) -> bool {
        let (word, bit) = place(key);
        let Some(bits) = self.words.get_mut(&word).filter(|bits| **bits & bit != 0) else { return false };
        *bits ^= bit;
        if *bits == 0 {
            self.words.remove(&word);
        }
        self.len -= 1;
        true
    }

    /// The first key.
    pub fn first(&self) -> Option<Key> {
        self.words.first_key_value().and_then(|(word, bits)| keys(*word, *bits).next())
    }

    /// The keys from `first` to `last`, both included, in order.
    pub fn range(&self, first: Key, last: Key) -> impl Iterator<Item = Key> + '_ {
        let words = self.words.range(place(first).0..=place(last).0);
        words.flat_map(|(word, bits)| keys(*word, *bits)).filter(move |key| (first..=last).contains(key))
    }
}

/// The keys of the bits of an entry.
fn keys(word: Key, mut bits: u64) -> impl Iterator<Item = Key> {
    std::iter::from_fn(move || {
        let bit = u64::from(bits.trailing_zeros());
        bits &= bits.checked_sub(1)?;
        Some(word.neighbour(word.index() * TOGETHER + bit))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::store::AGGREGATE;

    fn key() -> impl Strategy<Value = Key> {
        let space = prop_oneof![Just(0), Just(1), Just(AGGREGATE)];
        let index = prop_oneof![3 => 0..200u64, 1 => (0..200u64).prop_map(|behind| (1 << 48) - 1 - behind)];
        (space, 1..18u64, 0..2u8, index).prop_map(|(space, file, level, index)| Key::new(space, file, level, index))
    }

    proptest! {
        #[test]
        fn keys_behave_like_an_ordered_set(
            changes in prop::collection::vec((key(), any::<bool>()), 0..300),
            first in key(),
            last in key(),
        ) {
            let (mut set, mut model) = (KeySet::default(), BTreeSet::new());
            for (key, insert) in changes {
                if insert {
                    set.insert(key);
                    model.insert(key);
                } else {
                    prop_assert_eq!(set.remove(key), model.remove(&key));
                }
                prop_assert_eq!(set.contains(key), insert);
                prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(set.first(), model.first().copied());
            }
            let (first, last) = (first.min(last), first.max(last));
            let want: Vec<Key> = model.range(first..=last).copied().collect();
            prop_assert_eq!(set.range(first, last).collect::<Vec<_>>(), want);
            while let Some(key) = set.first() {
                prop_assert!(set.remove(key));
                prop_assert_eq!(model.pop_first(), Some(key));
            }
            prop_assert!(model.is_empty());
        }
    }
}
