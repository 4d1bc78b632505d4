//! What keeps it young: at a checkpoint, leaves are written anew that need not be, so that little of them is dead, and so that leaves that
//! are read behind each other lie behind each other.
//!
//! A delete is a message as any other, and small: what it deletes stays in its leaf until enough waits for that leaf. If files are
//! deleted anywhere, some of all leaves would be dead then; and a leaf that is written alone lies apart from its neighbours. So leaves are
//! gone through in the order of their keys, round and round, some at each checkpoint. Those that lie scattered, or that have dead bytes where more
//! is in use than what is live explains, are **gathered**: what waits for them is brought down, small ones become one, and the checkpoint lays
//! them [behind each other](super::groups), and behind those that were gathered before. Where little is free, it lies in pieces: then a
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
/// So many nodes may be written anew for each seek less when they are read.
const SEEK_NODES: u64 = 4;
/// So many bytes of leaves are looked at for the price of one that is written.
const LOOKED_AT_FOR_ONE: u64 = 16;
/// Leaves that are looked at, for each that may be written anew.
const LOOKED_AT_FOR_EACH: u64 = 4;

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
        let least = u64::from(self.shape.node_bytes) / 4;
        let most = most.min(self.limits.dirty_bytes);
        let (mut gathered, mut looked) = (0, 0);
        while gathered < most && looked < most * LOOKED_AT_FOR_EACH {
            let mut tree = self.tree();
            let ((run_bytes, is_cut), is_wasteful) = {
                let state = self.lock();
                let Some(run) = self.run_bytes(&state, gathered, most) else { break };
                (run, self.is_wasteful(&state))
            };
            let found = tree.gather(run_bytes as usize, &mut |leaves| {
                let bytes = leaves.iter().map(|leaf| leaf.bytes as u64).sum::<u64>();
                looked += bytes.max(least);
                self.is_worth(leaves, bytes, is_wasteful)
            });
            drop(tree);
            self.trim();
            let Ok(found) = found else {
                self.counters.note_passed_over(1);
                break;
            };
            if !found.leaves.is_empty() {
                gathered += found.bytes as u64;
                let mut state = self.lock();
                state.is_gap_wanted |= is_cut;
                state.gathered.push(found.leaves);
            }
            if found.is_last {
                break;
            }
        }
        // Looking costs, too: so who has nothing to do comes to an end.
        self.spend(looked / LOOKED_AT_FOR_ONE);
        gathered
    }

    /// How many bytes of leaves may be gathered at once, of `most`, when so many are gathered: what can lie behind each other, and be written
    /// beside all that is dirty; and whether it would be more if what is free were in fewer pieces. None if it is less than a leaf.
    fn run_bytes(&self, state: &State, gathered: u64, most: u64) -> Option<(u64, bool)> {
        let node = u64::from(self.shape.node_bytes);
        let largest = state.space.statistics().largest * u64::from(self.area.geometry().unit_bytes);
        let left = largest.saturating_sub(gathered).max(node);
        let wanted = (most - gathered).max(node);
        let bytes = wanted.min(left);
        self.has_spare(state, gathered + bytes + node).then_some((bytes, left < wanted))
    }

    /// Whether leaves should be written anew: some of them is dead and more is in use than is good, or they lie scattered.
    fn is_worth(&self, leaves: &[Candidate], bytes: u64, is_wasteful: bool) -> bool {
        if is_wasteful && leaves.iter().any(|leaf| leaf.is_ranged) {
            return true;
        }
        let view = self.shared.lock();
        let map = view.cache.map();
        let (mut seeks, mut end) = (0u64, None);
        for leaf in leaves {
            for extent in map.get(leaf.id).iter().flat_map(|place| place.extents.iter()) {
                seeks += u64::from(end != Some(extent.first));
                end = Some(extent.end());
            }
        }
        seeks.saturating_sub(1) * SEEK_NODES * u64::from(self.shape.node_bytes) >= bytes
    }

    /// Whether more is in use than is good. If nobody claims anything, nothing is known.
    fn is_wasteful(&self, state: &State) -> bool {
        let space = state.space.statistics();
        let used = (space.units - space.free) * u64::from(self.area.geometry().unit_bytes);
        state.live > 0 && used > (state.live / 100).saturating_mul(100 + DEAD_PERCENT)
    }
}
