//! What keeps it young: at a checkpoint, leaves are written anew that need not be, so that little of them is dead, and so that leaves that
//! are read behind each other lie behind each other.
//!
//! A delete is a message as any other, and small: what it deletes stays in its leaf until enough waits for that leaf. If files are
//! deleted anywhere, some of all leaves would be dead then; and a leaf that is written alone lies apart from its neighbours. So:
//! - if more is in use than what is live explains, leaves are gone through in the order of their keys, some at each checkpoint, and what waits for
//!   them is brought down if ranges are among it;
//! - [`place`](super::place) lays what is dirty of a family (a parent and its leaves) behind each other, and moves the rest of it there too
//!   where that saves seeks enough.
//!
//! What that may write is earned by what comes and goes: so a disk that is only written over is not written more for it.

use super::{Core, State};
use crate::Claim;

/// Leaves are gone through while more than this share of what is live is in use beside it. What waits in inner nodes, and the ends of units,
/// are some of it.
const DEAD_PERCENT: u64 = 10;
/// Bytes that may be written anew for each that comes or goes.
const EARNED_FOR_EACH: u64 = 3;
/// Leaves that are looked at, for each that may be written anew.
const LOOKED_AT_FOR_EACH: u64 = 4;

impl Core {
    /// What was claimed earns what may be written anew; not more than some checkpoints can write.
    pub(super) fn earn(&self, state: &mut State, claim: &Claim) {
        let most = EARNED_FOR_EACH * self.limits.dirty_bytes;
        state.credit = (state.credit + claim.bytes.unsigned_abs() * EARNED_FOR_EACH).min(most);
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

    /// Brings down what waits for leaves, if much is dead, as far as there is room, until about `most` bytes more are dirty by that. Returns
    /// how many are; what others do meanwhile is not counted, but for what comes during a step. What cannot be read is passed over: whoever asks for it is told.
    pub(super) fn tidy(&self, most: u64) -> u64 {
        let mut tidied = 0;
        for _ in 0..most / u64::from(self.shape.node_bytes) * LOOKED_AT_FOR_EACH {
            let mut tree = self.tree();
            let is_worth = || {
                let state = self.lock();
                self.is_wasteful(&state) && self.has_spare(&state, 0)
            };
            if tidied >= most as i64 || !is_worth() {
                break;
            }
            let before = self.dirty_bytes();
            let is_more = tree.tidy().unwrap_or_else(|_| {
                self.counters.note_passed_over(1);
                false
            });
            // Less than before, where leaves became one.
            tidied += self.dirty_bytes() as i64 - before as i64;
            if !is_more {
                break;
            }
            drop(tree);
            self.trim();
        }
        tidied.max(0) as u64
    }

    /// Whether more is in use than is good. If nobody claims anything, nothing is known.
    fn is_wasteful(&self, state: &State) -> bool {
        let space = state.space.statistics();
        let used = (space.units - space.free) * u64::from(self.area.geometry().unit_bytes);
        state.live > 0 && used > state.live / 100 * (100 + DEAD_PERCENT)
    }
}
