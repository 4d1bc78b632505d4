//! The worth of cleaning stripes, computed from the bitmap alone.
//!
//! Cleaning a stripe moves its blocks in use, so that it can be written whole. That costs one move
//! for each. It saves the additional costs of a partial write: reads for parity, and requests that
//! end at a block in use. A free stripe needs no cleaning. Cleaning a nearly full one saves
//! nothing.

use std::ops::Add;

/// The cost of cleaning, and its savings at the next write, in blocks and requests of drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worth {
    /// Blocks that would be moved.
    pub moved: u64,
    /// Blocks that would not be read for parity.
    pub reads_saved: u64,
    /// Requests that would be saved, because chains continue through the stripe.
    pub chains_saved: u64,
}

impl Worth {
    /// Whether the savings pay for the moves, at a price of `percent` hundredths of a request for
    /// each.
    pub fn is_worth(self, percent: u64) -> bool {
        self.moved > 0 && 100 * (self.reads_saved + self.chains_saved) >= percent * self.moved
    }
}

impl Add for Worth {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            moved: self.moved + other.moved,
            reads_saved: self.reads_saved + other.reads_saved,
            chains_saved: self.chains_saved + other.chains_saved,
        }
    }
}

/// The worth of each of several adjacent stripes, such as those of an allocation area. `used` has
/// for each stripe the data drives with a block in use, as bits. `parity` is whether the group has
/// parity. No side effects; linear in stripes.
///
/// Reads for parity: a stripe of n drives with u blocks in use is written with min(u, n - u + 1)
/// reads. It needs none if u is 0 or n; in the latter case nothing is written. Chains: on each
/// drive, cleaning joins the free blocks before and after a run of blocks in use, if there are
/// both. These savings count for the first stripe of the run.
pub(crate) fn compute_worth(used: &[u64], data_drives: u32, parity: bool) -> Vec<Worth> {
    let mut worth: Vec<Worth> = Vec::new();
    for &stripe in used {
        let in_use = u64::from(stripe.count_ones());
        let free = u64::from(data_drives).saturating_sub(in_use);
        let reads_saved = if parity && free > 0 { in_use.min(free + 1) } else { 0 };
        worth.push(Worth { moved: in_use, reads_saved, chains_saved: 0 });
    }
    for drive in 0..data_drives {
        // The first stripe of a run of blocks in use, after a free block.
        let (mut run, mut free_before) = (None, false);
        for (at, stripe) in used.iter().enumerate() {
            match stripe >> drive & 1 == 1 {
                true if free_before && run.is_none() => run = Some(at),
                true => {}
                false => {
                    if let Some(first) = run.take() {
                        worth[first].chains_saved += 1;
                    }
                    free_before = true;
                }
            }
        }
    }
    worth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(moved: u64, reads_saved: u64, chains_saved: u64) -> Worth {
        Worth { moved, reads_saved, chains_saved }
    }

    #[test]
    fn worth_depends_on_blocks_in_use() {
        // One stripe of 20 drives alone: no chain crosses it.
        let alone = |in_use: u32| compute_worth(&[(1 << in_use) - 1], 20, true)[0];
        for (in_use, expected) in
            [(0, (0, 0)), (1, (1, 1)), (10, (10, 10)), (11, (11, 10)), (19, (19, 2)), (20, (20, 0))]
        {
            assert_eq!(alone(in_use), worth(expected.0, expected.1, 0), "{in_use} in use");
        }
        let is_worth = |in_use| alone(in_use).is_worth(50);
        let worthy: Vec<u32> = (0..=20).filter(|&in_use| is_worth(in_use)).collect();
        assert_eq!(worthy, (1..=14).collect::<Vec<_>>());
        assert_eq!(compute_worth(&[0b11], 4, false)[0], worth(2, 0, 0));
    }

    #[test]
    fn run_of_used_blocks_breaks_a_chain_once() {
        // Drive 0: free, used, used, free, used. Drive 1: used, free, free, free, used. Drive 2:
        // free except the middle one.
        let stripes = [0b010, 0b001, 0b101, 0b000, 0b011];
        let chains: Vec<u64> = compute_worth(&stripes, 3, true).iter().map(|worth| worth.chains_saved).collect();
        assert_eq!(chains, [0, 1, 1, 0, 0]);
    }

    /// The requests that write all free blocks of stripes, and the blocks read for it.
    fn cost(used: &[u64], drives: u32) -> (u64, u64) {
        let reads = used.iter().map(|stripe| {
            let (written, n) = (u64::from(drives - stripe.count_ones()), u64::from(drives));
            if written == 0 || written == n { 0 } else { (n - written).min(written + 1) }
        });
        let is_free = |at: usize, drive: u32| used[at] >> drive & 1 == 0;
        let begins = |at: usize, drive: u32| is_free(at, drive) && (at == 0 || !is_free(at - 1, drive));
        let chains = (0..drives).map(|drive| (0..used.len()).filter(|&at| begins(at, drive)).count() as u64);
        (reads.sum(), chains.sum())
    }

    proptest::proptest! {
        #[test]
        fn predicted_savings_match_the_cost_of_writing(used in proptest::collection::vec(0..1u64 << 5, 1..20)) {
            let all = compute_worth(&used, 5, true).into_iter().fold(Worth::default(), Worth::add);
            let ((reads, chains), (reads_after, chains_after)) = (cost(&used, 5), cost(&vec![0; used.len()], 5));
            proptest::prop_assert_eq!(all.moved, used.iter().map(|stripe| u64::from(stripe.count_ones())).sum::<u64>());
            proptest::prop_assert_eq!(all.reads_saved, reads - reads_after);
            // A drive that is used at both ends, or completely, starts a chain after cleaning that
            // it did not have before, or had elsewhere.
            let whole = (0..5).filter(|drive| used.iter().all(|stripe| stripe >> drive & 1 == 1)).count() as u64;
            proptest::prop_assert_eq!(all.chains_saved, chains + whole - chains_after);
        }
    }
}
