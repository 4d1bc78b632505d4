//! Runs of blocks of a file, and extents in bytes made of them.

use senesce_core::Extent;

/// What the bytes of an extent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtentState {
    /// Data in blocks of its own.
    Written,
    /// Blocks set aside and never written: they read as zeros, without reading the device.
    Unwritten,
    /// Data inside the inode: no block of its own. The position is that of the inode's data area; what does not fit
    /// there lies elsewhere in the same inode.
    Inline,
}

/// An extent of a file, and what its bytes are. What lies between extents is a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappedExtent {
    /// Offset in the file, position on the device and length, bytes.
    pub extent: Extent,
    /// What the bytes are.
    pub state: ExtentState,
}

/// Blocks of a file that lie behind each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) blocks: u64,
    pub(crate) unwritten: bool,
}

impl Run {
    /// Whether `next` goes on in the file and on the device where this one ends, in the same state.
    pub(crate) fn continues_into(&self, next: &Run) -> bool {
        self.logical + self.blocks == next.logical
            && self.physical + self.blocks == next.physical
            && self.unwritten == next.unwritten
    }
}

/// Brings runs into the file's order and makes one of those that continue each other.
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

/// The same in bytes, in the same memory.
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
    fn only_neighbours_in_file_and_device_and_of_one_state_merge() {
        let runs = vec![run(8, 18, 2, false), run(0, 10, 4, false), run(4, 14, 4, false), run(10, 20, 1, true)];
        assert_eq!(compute_merged(runs), [run(0, 10, 10, false), run(10, 20, 1, true)]);
        let apart = vec![run(0, 10, 4, false), run(5, 14, 4, false), run(9, 30, 1, false)];
        assert_eq!(compute_merged(apart.clone()), apart);
    }
}
