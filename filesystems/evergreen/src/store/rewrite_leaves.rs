//! Tidying at checkpoints: rewrites some clean leaves, so that they have little dead data, and so
//! that neighbours are adjacent.
//!
//! A deletion is a small message: the deleted data stays in its leaf until the leaf is flushed. So
//! deletions of scattered files leave dead data in many leaves. A leaf that is written alone is not
//! adjacent to its neighbours. Therefore each checkpoint visits some leaves, in the order of their
//! keys, in rounds. It **gathers** leaves that are scattered, that have many waiting messages, or
//! that have dead data while too much space is in use. It flushes their messages, and fills each
//! leaf before the next one. Then it writes them [adjacently](super::node_groups), after the leaves
//! gathered before. If the free space is in small pieces, the checkpoint also makes a
//! [gap](super::adjacent_space) for the next one.
//!
//! Claims and removals earn the credit for these writes. So a store that is only overwritten writes
//! no more because of it.

use super::{Core, State};
use crate::{Claim, tree::Candidate};

/// Leaves with dead data are rewritten if the space in use exceeds the live bytes by this
/// percentage. Messages in inner nodes and the unused ends of units are a part of the excess.
const DEAD_PERCENT: u64 = 10;
/// The bytes that may be rewritten for each byte that is claimed or removed.
const EARNED_FOR_EACH: u64 = 3;
/// The bytes of leaves that may be rewritten to save one seek of a later read. A seek of a disk
/// takes as long as a read of 2 MiB, so the write pays off after eight reads. It does not depend on
/// the node size: smaller nodes have more seeks.
const SEEK_BYTES: u64 = 16 << 20;
/// The bytes of leaves that may be rewritten for each byte of waiting messages. Reads load such a
/// byte in addition to the data that it replaces. It also enlarges inner nodes, which are not
/// adjacent to leaves.
const WAITING_WORTH: u64 = 32;
/// The bytes of leaves to visit that cost as much credit as one written byte.
const LOOKED_AT_FOR_ONE: u64 = 16;
/// The bytes of leaves to visit, for each byte that may be rewritten.
const LOOKED_AT_FOR_EACH: u64 = 4;

/// Whether every improvable leaf is rewritten, without a limit of the written bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thorough {
    Yes,
    No,
}

/// The outcome of a round of tidying.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tidied {
    /// The bytes of leaves that the next checkpoint rewrites for a better layout.
    pub(super) bytes: u64,
    /// The bytes of visited leaves.
    pub(super) looked: u64,
    /// The skipped leaves and subtrees that cannot be read.
    pub(super) unreadable: u64,
    /// Whether the last leaf was among them.
    pub(super) is_at_end: bool,
}

impl Core {
    /// Adds the credit of a claim; its limit is what some checkpoints can write.
    pub(super) fn earn(&self, state: &mut State, claim: &Claim) {
        let most = EARNED_FOR_EACH * self.limits.dirty_bytes;
        state.credit =
            claim.bytes.unsigned_abs().saturating_mul(EARNED_FOR_EACH).saturating_add(state.credit).min(most);
    }

    /// The bytes that may be rewritten; 0 if they are less than two nodes.
    pub(super) fn credit(&self) -> u64 {
        let credit = self.lock().credit;
        if credit > 2 * u64::from(self.shape.node_bytes) { credit } else { 0 }
    }

    /// Subtracts written bytes from the credit.
    pub(super) fn spend(&self, bytes: u64) {
        let mut state = self.lock();
        state.credit = state.credit.saturating_sub(bytes);
    }

    /// Visits leaves in the order of their keys, and gathers those that are worth it, up to about
    /// `most` bytes and as far as there is space. The next checkpoint writes them to adjacent
    /// places. Returns their bytes. It skips unreadable nodes; a caller that reads one receives the
    /// error.
    pub(super) fn tidy(&self, most: u64) -> u64 {
        let Tidied { bytes, looked, .. } = self.tidy_round(most, most.saturating_mul(LOOKED_AT_FOR_EACH), Thorough::No);
        // Visits cost credit, too, so that an idle store stops tidying.
        self.spend(looked / LOOKED_AT_FOR_ONE);
        bytes
    }

    /// Like [`tidy`](Self::tidy) without credit, for at most `most_looked` bytes of visited leaves.
    pub(super) fn tidy_round(&self, most: u64, most_looked: u64, thorough: Thorough) -> Tidied {
        let least = u64::from(self.shape.node_bytes) / 4;
        let most = most.min(self.limits.dirty_bytes);
        let (mut gathered, mut looked, mut unreadable, mut is_at_end) = (0, 0, 0, false);
        while gathered < most && looked < most_looked {
            let mut tree = self.tree();
            let ((run_bytes, is_cut), is_wasteful) = {
                let state = self.lock();
                let Some(run) = self.run_bytes(&state, gathered, most) else { break };
                (run, self.is_wasteful(&state))
            };
            let filled = tree.filled_bytes() as u64;
            let found = tree.gather(run_bytes as usize, &mut |leaves| {
                let bytes = leaves.iter().map(|leaf| leaf.bytes as u64).sum::<u64>();
                looked += bytes.max(least);
                match thorough {
                    Thorough::Yes => self.is_worth_at_all(leaves, bytes, filled),
                    Thorough::No => self.is_worth(leaves, bytes, is_wasteful),
                }
            });
            drop(tree);
            self.trim();
            // Tidying is optional. A caller that needs the unreadable node receives the error.
            if found.is_skipped {
                self.counters.note_passed_over(1);
                unreadable += 1;
                // The failed read counts as a visit.
                looked += least;
            }
            if !found.leaves.is_empty() {
                gathered += found.bytes as u64;
                let mut state = self.lock();
                state.is_gap_wanted |= is_cut;
                state.gathered.push(found.leaves);
            }
            if found.is_last {
                is_at_end = true;
                break;
            }
        }
        Tidied { bytes: gathered, looked, unreadable, is_at_end }
    }

    /// The bytes of leaves to gather at once, of `most`, after `gathered` bytes. They must fit the
    /// largest free extent, and the free space beside all dirty nodes. Also returns whether a
    /// larger free extent would allow more. Returns `None` if less than a leaf fits.
    fn run_bytes(&self, state: &State, gathered: u64, most: u64) -> Option<(u64, bool)> {
        let node = u64::from(self.shape.node_bytes);
        let largest = state.space.statistics().largest * u64::from(self.area.geometry().unit_bytes);
        let left = largest.saturating_sub(gathered).max(node);
        let wanted = (most - gathered).max(node);
        let mut bytes = wanted.min(left);
        // A shorter run may fit where a long one does not.
        while !self.has_spare(state, gathered + bytes + node) {
            if bytes <= node {
                return None;
            }
            bytes = (bytes / 2).max(node);
        }
        Some((bytes, left < wanted))
    }

    /// Whether leaves should be rewritten: they have dead data and too much space is in use, or
    /// they are scattered, or enough messages wait for them.
    fn is_worth(&self, leaves: &[Candidate], bytes: u64, is_wasteful: bool) -> bool {
        let waiting: u64 = leaves.iter().map(|leaf| leaf.waiting as u64).sum();
        is_wasteful && leaves.iter().any(|leaf| leaf.is_ranged)
            || self.seeks(leaves).saturating_sub(1) * SEEK_BYTES + waiting * WAITING_WORTH >= bytes
    }

    /// Like [`is_worth`](Self::is_worth), without a limit of the written bytes. One seek or one
    /// message suffices, or the saving of a quarter of the leaves.
    fn is_worth_at_all(&self, leaves: &[Candidate], bytes: u64, filled: u64) -> bool {
        let is_too_many = bytes.div_ceil(filled.max(1)) * 4 <= leaves.len() as u64 * 3;
        is_too_many || leaves.iter().any(|leaf| leaf.waiting > 0) || self.seeks(leaves) > 1
    }

    /// The number of places from which the leaves are read in order.
    fn seeks(&self, leaves: &[Candidate]) -> u64 {
        let view = self.shared.lock();
        let map = view.cache.map();
        let (mut seeks, mut end) = (0, None);
        for leaf in leaves {
            for extent in map.get(leaf.id).iter().flat_map(|place| place.extents.iter()) {
                seeks += u64::from(end != Some(extent.first));
                end = Some(extent.end());
            }
        }
        seeks
    }

    /// Whether too much space is in use. If the callers make no claims, it is unknown.
    fn is_wasteful(&self, state: &State) -> bool {
        let space = state.space.statistics();
        let used = space.units.saturating_sub(space.free + state.second_units);
        let used = used * u64::from(self.area.geometry().unit_bytes);
        state.live > 0 && used > (state.live / 100).saturating_mul(100 + DEAD_PERCENT)
    }
}
