//! What keeps it young: at a checkpoint, leaves are written anew that need not be, so that little of them is dead, and so that leaves that
//! are read behind each other lie behind each other.
//!
//! A delete is a message as any other, and small: what it deletes stays in its leaf until enough waits for that leaf. If files are
//! deleted anywhere, some of all leaves would be dead then; and a leaf that is written alone lies apart from its neighbours. So leaves are
//! gone through in the order of their keys, round and round, some at each checkpoint. Those that lie scattered, or that have dead bytes where more
//! is in use than what is live explains, or for which much waits, are **gathered**: what waits for them is brought down, each is filled before the
//! next one begins, and the checkpoint places them [after each other](super::groups), and after those that were gathered before. Where little is free, it lies in pieces: then a
//! [gap](super::gap) is made for the next checkpoint.
//!
//! What that may write is earned by what comes and goes: so a disk that is only written over is not written more for it.

use super::{Core, State};
use crate::{Claim, tree::Candidate};

/// Leaves are gone through while more than this share of what is live is in use beside it. What waits in inner nodes, and the ends of units,
/// are some of it.
const DEAD_PERCENT: u64 = 10;
/// Bytes that may be written anew for each that comes or goes.
const EARNED_FOR_EACH: u64 = 3;
/// Bytes of leaves that may be written again for each seek less when they are read: a seek of a disk takes as long as reading 2 MiB, so
/// what is read eight times pays. It does not depend on the size of a node: small nodes have more seeks.
const SEEK_BYTES: u64 = 16 << 20;
/// Bytes of leaves that may be written again for each byte that waits for them. Such a byte is read beside what it replaces, and it makes inner
/// nodes large, which are read apart from leaves then.
const WAITING_WORTH: u64 = 32;
/// So many bytes of leaves are looked at for the price of one that is written.
const LOOKED_AT_FOR_ONE: u64 = 16;
/// Leaves that are looked at, for each that may be written anew.
const LOOKED_AT_FOR_EACH: u64 = 4;

/// Whether all that can be better is written again, whatever that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thorough {
    Yes,
    No,
}

/// What a round of tidying came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tidied {
    /// Bytes of leaves that the next checkpoint writes although they need not be written.
    pub(super) bytes: u64,
    /// Bytes of leaves that were candidates.
    pub(super) looked: u64,
    /// Leaves, or all that is below a node, that cannot be read and were skipped.
    pub(super) unreadable: u64,
    /// The last leaf was among them.
    pub(super) is_at_end: bool,
}

impl Core {
    /// What was claimed earns what may be written anew; not more than some checkpoints can write.
    pub(super) fn earn(&self, state: &mut State, claim: &Claim) {
        let most = EARNED_FOR_EACH * self.limits.dirty_bytes;
        state.credit =
            claim.bytes.unsigned_abs().saturating_mul(EARNED_FOR_EACH).saturating_add(state.credit).min(most);
    }

    /// Bytes that may be written anew; for less than a leaf nothing is begun.
    pub(super) fn credit(&self) -> u64 {
        let credit = self.lock().credit;
        if credit > 2 * u64::from(self.shape.node_bytes) { credit } else { 0 }
    }

    /// So many were.
    pub(super) fn spend(&self, bytes: u64) {
        let mut state = self.lock();
        state.credit = state.credit.saturating_sub(bytes);
    }

    /// Goes through leaves in the order of their keys, some that stand side by side at a time, and gathers those for which it is worth it: the
    /// next checkpoint lays them behind each other. Of about `most` bytes of leaves, as far as there is room. Returns how many bytes these
    /// are. What cannot be read is passed over: whoever asks for it is told.
    pub(super) fn tidy(&self, most: u64) -> u64 {
        let Tidied { bytes, looked, .. } = self.tidy_round(most, most.saturating_mul(LOOKED_AT_FOR_EACH), Thorough::No);
        // Looking costs, too: so who has nothing to do comes to an end.
        self.spend(looked / LOOKED_AT_FOR_ONE);
        bytes
    }

    /// The same without an account, for at most `most_looked` bytes of leaves that are candidates.
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
            // Sweeping is optional. Who needs the node that cannot be read gets the error.
            if found.is_skipped {
                self.counters.note_passed_over(1);
                unreadable += 1;
                // Trying to read it costs, too.
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

    /// How many bytes of leaves may be gathered at once, of `most`, when so many are gathered: what can lie behind each other, and be written
    /// beside all that is dirty; and whether it would be more if what is free were in fewer pieces. None if it is less than a leaf.
    fn run_bytes(&self, state: &State, gathered: u64, most: u64) -> Option<(u64, bool)> {
        let node = u64::from(self.shape.node_bytes);
        let largest = state.space.statistics().largest * u64::from(self.area.geometry().unit_bytes);
        let left = largest.saturating_sub(gathered).max(node);
        let wanted = (most - gathered).max(node);
        let mut bytes = wanted.min(left);
        // A run that is shorter finds room where all of a free piece cannot be used.
        while !self.has_spare(state, gathered + bytes + node) {
            if bytes <= node {
                return None;
            }
            bytes = (bytes / 2).max(node);
        }
        Some((bytes, left < wanted))
    }

    /// Whether leaves should be written again: a part of them is dead and more is in use than is good, or they are scattered, or enough waits
    /// for them.
    fn is_worth(&self, leaves: &[Candidate], bytes: u64, is_wasteful: bool) -> bool {
        let waiting: u64 = leaves.iter().map(|leaf| leaf.waiting as u64).sum();
        is_wasteful && leaves.iter().any(|leaf| leaf.is_ranged)
            || self.seeks(leaves).saturating_sub(1) * SEEK_BYTES + waiting * WAITING_WORTH >= bytes
    }

    /// The same, whatever that writes: one seek or one message that waits is enough, or a quarter of the leaves if they would be saved.
    fn is_worth_at_all(&self, leaves: &[Candidate], bytes: u64, filled: u64) -> bool {
        let is_too_many = bytes.div_ceil(filled.max(1)) * 4 <= leaves.len() as u64 * 3;
        is_too_many || leaves.iter().any(|leaf| leaf.waiting > 0) || self.seeks(leaves) > 1
    }

    /// Places from which leaves are read, one after the other.
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

    /// Whether more is in use than is good. If nobody claims anything, nothing is known.
    fn is_wasteful(&self, state: &State) -> bool {
        let space = state.space.statistics();
        let used = space.units.saturating_sub(space.free + state.second_units);
        let used = used * u64::from(self.area.geometry().unit_bytes);
        state.live > 0 && used > (state.live / 100).saturating_mul(100 + DEAD_PERCENT)
    }
}
