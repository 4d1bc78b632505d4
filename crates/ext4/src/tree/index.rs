//! Maps inode numbers to places in a list, for ascending numbers.

/// Numbers in one word.
const WORD: u32 = 64;
/// Words that one entry of the upper level covers.
const WORDS_TOGETHER: u32 = 64;

/// A set of ascending numbers with the rank of each.
///
/// Memory: 16 bytes for each 64 adjacent numbers of which at least one is in the set, 4 bytes for
/// each 4,096 below the highest.
#[derive(Clone, Debug, Default)]
pub(super) struct RankIndex {
    words: Vec<RankWord>,
    /// For each 4,096 numbers, the number of words before theirs.
    starts: Vec<u32>,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct RankWord {
    /// The index of its 64 numbers.
    number: u32,
    /// The rank of its first number.
    rank: u32,
    bits: u64,
}

impl RankIndex {
    /// Adds a number that is greater than all others.
    pub(super) fn push(&mut self, number: u32) {
        let word = number / WORD;
        if self.words.last().is_none_or(|last| last.number != word) {
            let together = (word / WORDS_TOGETHER) as usize;
            while self.starts.len() <= together {
                self.starts.push(self.words.len() as u32);
            }
            self.words.push(RankWord { number: word, rank: self.count, bits: 0 });
        }
        if let Some(last) = self.words.last_mut() {
            last.bits |= 1 << (number % WORD);
        }
        self.count += 1;
    }

    /// The number of smaller numbers in the set. `None` if the number is not in the set.
    pub(super) fn rank(&self, number: u32) -> Option<usize> {
        let (word, bit) = (number / WORD, number % WORD);
        let together = (word / WORDS_TOGETHER) as usize;
        let from = *self.starts.get(together)? as usize;
        let to = self.starts.get(together + 1).map_or(self.words.len(), |&start| start as usize);
        let words = self.words.get(from..to)?;
        let found = words.binary_search_by_key(&word, |word| word.number).ok()?;
        let RankWord { rank, bits, .. } = words[found];
        (bits >> bit & 1 == 1).then(|| rank as usize + (bits & ((1 << bit) - 1)).count_ones() as usize)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<RankWord>() + self.starts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    proptest::proptest! {
        #[test]
        fn ranks_match_those_of_a_sorted_list(
            near in proptest::collection::btree_set(0u32..10_000, 0..300),
            far in proptest::collection::btree_set(0u32..10_000_000, 0..100),
            asked in proptest::collection::vec(0u32..12_000, 0..300),
        ) {
            let all: BTreeSet<u32> = near.union(&far).copied().collect();
            let mut index = RankIndex::default();
            all.iter().for_each(|&number| index.push(number));
            let sorted: Vec<u32> = all.into_iter().collect();
            for &number in asked.iter().chain(&sorted) {
                proptest::prop_assert_eq!(index.rank(number), sorted.binary_search(&number).ok());
            }
        }
    }
}
