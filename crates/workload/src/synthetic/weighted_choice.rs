//! Weighted choice among items whose weights change: a binary indexed tree.

use senesce_core::Rng;

/// Weights by index. Choice and change cost the logarithm of their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    /// `sums[i]` is the sum of the weights of the `lowest bit of i` items that end at item `i`
    /// (from 1).
    sums: Vec<u64>,
    values: Vec<u64>,
}

impl Weights {
    /// Appends an item.
    pub fn push(&mut self, weight: u64) {
        if self.sums.is_empty() {
            self.sums.push(0);
        }
        self.values.push(weight);
        let at = self.values.len();
        let first = at - (at & at.wrapping_neg());
        self.sums.push(self.prefix(at - 1) - self.prefix(first) + weight);
    }

    pub fn set(&mut self, index: usize, weight: u64) {
        let old = std::mem::replace(&mut self.values[index], weight);
        let mut at = index + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at] - old + weight;
            at += at & at.wrapping_neg();
        }
    }

    pub fn get(&self, index: usize) -> u64 {
        self.values[index]
    }

    fn prefix(&self, mut at: usize) -> u64 {
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum
    }

    /// Draws an index in proportion to the weights. Their sum must be positive.
    pub fn sample(&self, rng: &mut Rng) -> usize {
        self.find(rng.below(self.prefix(self.values.len())))
    }

    /// The first index at which the running sum of the weights exceeds `left`.
    fn find(&self, mut left: u64) -> usize {
        let mut at = 0;
        let mut step = self.values.len().next_power_of_two();
        while step > 0 {
            if at + step < self.sums.len() && self.sums[at + step] <= left {
                at += step;
                left -= self.sums[at];
            }
            step /= 2;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn tree_and_scan_find_the_same_index(
            first in proptest::collection::vec(0u64..50, 1..40),
            changes in proptest::collection::vec((0usize..40, 0u64..50), 0..40)
        ) {
            let (mut weights, mut model) = (Weights::default(), first.clone());
            first.iter().for_each(|&w| weights.push(w));
            for (index, weight) in changes {
                let index = index % model.len();
                weights.set(index, weight);
                model[index] = weight;
            }
            for left in 0..model.iter().sum() {
                let mut sum = 0;
                let want = model.iter().position(|&w| { sum += w; sum > left }).unwrap();
                proptest::prop_assert_eq!(weights.find(left), want);
            }
        }
    }
}
