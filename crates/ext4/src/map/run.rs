//! Runs of blocks of a file, and extents in bytes made of them.

use senesce_core::Extent;

/// The state of an extent's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtentState {
    /// Data in blocks of its own.
    Written,
    /// Blocks that are reserved and were never written. They read as zeros, without a read of the
    /// device.
    Unwritten,
    /// Data inside the inode, without a block of its own. The position is that of the inode's data
    /// area. Data that does not fit there is elsewhere in the same inode.
    Inline,
}

/// An extent of a file, and its state. Ranges between extents are holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappedExtent {
    /// Offset in the file, position on the device and length, bytes.
    pub extent: Extent,
    /// What the bytes are.
    pub state: ExtentState,
}

/// Adjacent blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) blocks: u64,
    pub(crate) unwritten: bool,
}

impl Run {
    /// Whether `next` directly follows in the file and on the device, in the same state.
    pub(crate) fn continues_into(&self, next: &Run) -> bool {
        self.logical + self.blocks == next.logical
            && self.physical + self.blocks == next.physical
            && self.unwritten == next.unwritten
    }
}

/// Sorts runs in the order of the file and merges those that continue each other.
pub(crate) fn compute_merged(mut runs: Vec<Run>) -> Vec<Run> {
    if !runs.is_sorted_by_key(|run| run.logical) {
        runs.sort_unstable_by_key(|run| run.logical);
    }
    runs.dedup_by(|next, before| {
        let continues = before.continues_into(next);
        if continues {
            before.blocks += next.blocks;
        }
        continues
    });
    runs
}

/// Converts runs to bytes, in the same memory.
pub(crate) fn compute_extents(runs: Vec<Run>, block_bytes: u64) -> Vec<MappedExtent> {
    runs.into_iter()
        .map(|run| MappedExtent {
            extent: Extent {
                logical: run.logical * block_bytes,
                physical: run.physical * block_bytes,
                length: run.blocks * block_bytes,
            },
            state: if run.unwritten { ExtentState::Unwritten } else { ExtentState::Written },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(logical: u64, physical: u64, blocks: u64, unwritten: bool) -> Run {
        Run { logical, physical, blocks, unwritten }
    }

    #[test]
    fn only_adjacent_runs_of_one_state_merge() {
        let runs = vec![run(8, 18, 2, false), run(0, 10, 4, false), run(4, 14, 4, false), run(10, 20, 1, true)];
        assert_eq!(compute_merged(runs), [run(0, 10, 10, false), run(10, 20, 1, true)]);
        let apart = vec![run(0, 10, 4, false), run(5, 14, 4, false), run(9, 30, 1, false)];
        assert_eq!(compute_merged(apart.clone()), apart);
    }
}
