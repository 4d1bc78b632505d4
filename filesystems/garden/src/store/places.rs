//! A map from keys of blocks to their positions in memory.

use std::{collections::HashMap, hash::BuildHasherDefault};

use super::{
    Key,
    cache::{At, KeyHasher},
};

/// Neighbours that share an entry: their positions fill a cache line of the processor.
const TOGETHER: u64 = 16;
/// The position of neighbours that are not in memory.
const NOWHERE: At = At(u32::MAX);

/// Positions of blocks. Neighbours of a level, which are mostly used one after another, are stored
/// together. With a hash for each, every lookup would miss the processor's cache.
#[derive(Default)]
pub(super) struct Places {
    /// By the key of the first neighbour, with its index divided by [`TOGETHER`].
    entries: HashMap<Key, [At; TOGETHER as usize], BuildHasherDefault<KeyHasher>>,
    len: usize,
}

fn place(key: Key) -> (Key, usize) {
    (key.neighbour(key.index() / TOGETHER), (key.index() % TOGETHER) as usize)
}

impl Places {
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn get(&self, key: Key) -> Option<At> {
        let (entry, place) = place(key);
        self.entries.get(&entry).map(|places| places[place]).filter(|at| *at != NOWHERE)
    }

    /// Sets the position of a block that has none.
    pub fn insert(&mut self, key: Key, at: At) {
        let (entry, place) = place(key);
        let old = std::mem::replace(&mut self.entries.entry(entry).or_insert([NOWHERE; _])[place], at);
        debug_assert_eq!(old, NOWHERE, "{key:?} is in memory already");
        self.len += 1;
    }

    pub fn remove(&mut self, key: Key) -> Option<At> {
        let (entry, place) = place(key);
        let places = self.entries.get_mut(&entry)?;
        let at = std::mem::replace(&mut places[place], NOWHERE);
        if at == NOWHERE {
            return None;
        }
        if *places == [NOWHERE; _] {
            self.entries.remove(&entry);
        }
        self.len -= 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, hash_map::Entry};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_behave_like_a_map(
            changes in prop::collection::vec((0..2u32, 16..18u64, 0..2u8, 0..70u64, any::<bool>()), 0..400),
        ) {
            let (mut places, mut model) = (Places::default(), HashMap::new());
            for (number, (space, file, level, index, insert)) in (0..).zip(changes) {
                let key = Key::new(space, file, level, index);
                prop_assert_eq!(places.get(key), model.get(&key).copied());
                if !insert {
                    prop_assert_eq!(places.remove(key), model.remove(&key));
                } else if let Entry::Vacant(entry) = model.entry(key) {
                    places.insert(key, *entry.insert(At(number)));
                }
                prop_assert_eq!((places.get(key), places.len()), (model.get(&key).copied(), model.len()));
            }
            for (key, at) in model {
                prop_assert_eq!(places.remove(key), Some(at));
            }
            prop_assert!(places.entries.is_empty());
        }
    }
}
