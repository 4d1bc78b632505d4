//! Decides whether the moves are worth their cost. Pure.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use senesce_inspect::MoveCost;
use serde::Serialize;

use crate::{
    Strategy,
    place::{Piece, measure_pieces},
    plan::{Left, LeftWhy, Plan},
};

/// The schema of [`Advice`] as JSON.
pub const DEFRAG_SCHEMA: &str = "senesce-defrag/1";

/// The moves are not worth it if they save less than this share of the time.
const LEAST_SHARE: f64 = 0.2;
/// Nor if they save less than this, seconds for the whole tree.
const LEAST_SECONDS: f64 = 1.0;
/// Nor if more than this number of reads of the whole tree would save the time that the moves take.
const MOST_READS: f64 = 100.0;

/// The gain and the cost of moving files.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// The name of the schema and its version.
    pub schema: &'static str,
    /// Files to move, whole or in part: those for which there is better free space.
    pub files: u64,
    /// Bytes to move, which are also written.
    pub moved_bytes: u64,
    /// Bytes that all files have on the device.
    pub live_bytes: u64,
    /// Free space that the moves need at any time, bytes.
    pub space_bytes: u64,
    /// Bytes of the plan for which there is no free space, or none that is better.
    pub unplaced_bytes: u64,
    /// Pieces in which the files with a new place are read now.
    pub pieces_now: u64,
    /// Pieces in which the files with a new place would be read after the moves.
    pub pieces_after: u64,
    /// The part of each strategy, in the order of gain per byte on the first device.
    pub strategies: Vec<Share>,
    /// Files that stay, by reason.
    pub left: BTreeMap<LeftWhy, Left>,
    /// The gain on each device. The first ones stand for the device of the tree.
    pub gains: Vec<Gain>,
    /// Whether the moves are worth it on the device of the tree.
    pub worth: Worth,
}

/// The part of a plan that one strategy moves, if there is free space for it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    /// The strategy.
    pub strategy: Strategy,
    /// Files that move, whole or in part.
    pub files: u64,
    /// Bytes that move, and so are written.
    pub moved_bytes: u64,
    /// Pieces in which the moved files are read now.
    pub pieces_now: u64,
    /// Pieces in which the moved files would be read after the moves.
    pub pieces_after: u64,
    /// The cost of a cold read of the tree on each device, if only this strategy moved files.
    pub costs: Vec<MoveCost>,
}

impl Share {
    /// Returns the part that a strategy moves, if the batches of the plan have these places. `None`
    /// if it moves nothing. The costs are not known yet.
    pub fn of(strategy: Strategy, plan: &Plan, places: &[Option<Vec<Piece>>]) -> Option<Self> {
        let mut share = Self { strategy, files: 0, moved_bytes: 0, pieces_now: 0, pieces_after: 0, costs: Vec::new() };
        let mut files = BTreeSet::new();
        for (batch, pieces) in plan.batches.iter().zip(places) {
            let Some(pieces) = pieces.as_ref().filter(|_| batch.strategy == strategy) else { continue };
            files.extend(batch.parts.iter().map(|part| part.entry));
            share.moved_bytes += batch.bytes();
            share.pieces_now += batch.pieces;
            share.pieces_after += measure_pieces(batch, pieces);
        }
        share.files = files.len() as u64;
        (share.moved_bytes > 0).then_some(share)
    }

    /// Seconds that each moved byte saves in a read on the first device.
    fn worth(&self) -> f64 {
        self.costs.first().map_or(0.0, |cost| (cost.now_seconds - cost.after_seconds) / self.moved_bytes as f64)
    }
}

/// Whether moves are worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Worth {
    /// They are worth it.
    Yes,
    /// They are not worth it.
    No,
    /// The device is not known, and its candidates disagree.
    Undecided,
    /// No file would move.
    NothingToMove,
}

/// The gain on one device. All times are modelled.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gain {
    /// The cost of a cold read of the tree, now and after the moves.
    #[serde(flatten)]
    pub cost: MoveCost,
    /// Seconds of the moves: each content is read at its old place and written at its new one.
    pub move_seconds: f64,
    /// Reads of the whole tree that save as much time as the moves need. `None` if nothing is
    /// saved.
    pub reads_to_pay_back: Option<f64>,
    /// Whether the moves are worth it on this device.
    pub is_worth: bool,
}

impl Gain {
    /// Computes the gain from the cost and the share of the live bytes that moves.
    fn of(cost: MoveCost, moved_share: f64) -> Self {
        let saved = cost.now_seconds - cost.after_seconds;
        let move_seconds = (cost.now_seconds + cost.after_seconds) * moved_share;
        let reads_to_pay_back = (saved > 0.0).then(|| move_seconds / saved);
        let is_worth = saved >= LEAST_SECONDS
            && saved >= LEAST_SHARE * cost.now_seconds
            && reads_to_pay_back.is_some_and(|reads| reads <= MOST_READS);
        Self { cost, move_seconds, reads_to_pay_back, is_worth }
    }
}

/// Judges a plan.
///
/// `strategies` are the parts of each strategy. `costs` are the modelled costs of all moves
/// together. The first `devices` of them stand for the device of the tree.
pub fn compute_advice(plan: &Plan, mut strategies: Vec<Share>, costs: Vec<MoveCost>, devices: usize) -> Advice {
    strategies.sort_by(|a, b| b.worth().total_cmp(&a.worth()));
    let sum = |number: fn(&Share) -> u64| strategies.iter().map(number).sum::<u64>();
    let placed_bytes = sum(|share| share.moved_bytes);
    let share = placed_bytes as f64 / plan.live_bytes.max(1) as f64;
    let gains: Vec<Gain> = costs.into_iter().map(|cost| Gain::of(cost, share)).collect();
    let own = &gains[..devices.min(gains.len())];
    let worth = if plan.batches.is_empty() && !plan.left.contains_key(&LeftWhy::OverBudget) {
        Worth::NothingToMove
    } else if own.iter().all(|gain| gain.is_worth) {
        Worth::Yes
    } else if own.iter().any(|gain| gain.is_worth) {
        Worth::Undecided
    } else {
        Worth::No
    };
    Advice {
        schema: DEFRAG_SCHEMA,
        files: sum(|share| share.files),
        moved_bytes: placed_bytes,
        live_bytes: plan.live_bytes,
        space_bytes: plan.space_bytes(),
        unplaced_bytes: plan.bytes() - placed_bytes,
        pieces_now: sum(|share| share.pieces_now),
        pieces_after: sum(|share| share.pieces_after),
        strategies,
        left: plan.left.clone(),
        gains,
        worth,
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::Extent;

    use super::*;
    use crate::plan::{Batch, Part};

    fn advice(costs: &[(f64, f64)], devices: usize) -> Advice {
        let part = Part { entry: 0, logical: 0, length: 100 };
        let batch = Batch { parts: vec![part], pieces: 9, runs: 1, strategy: Strategy::Order };
        let plan = Plan { batches: vec![batch], live_bytes: 200, ..Plan::default() };
        let piece = Piece { entry: 0, extent: Extent { logical: 0, physical: 0, length: 100 } };
        let share = Share::of(Strategy::Order, &plan, &[Some(vec![piece])]).unwrap();
        assert_eq!((share.files, share.moved_bytes, share.pieces_now, share.pieces_after), (1, 100, 9, 1));
        let cost = |&(now_seconds, after_seconds): &(f64, f64)| MoveCost {
            device: "model: x".to_owned(),
            now_seconds,
            after_seconds,
            metadata_seconds: None,
        };
        compute_advice(&plan, vec![share], costs.iter().map(cost).collect(), devices)
    }

    #[test]
    fn moves_are_worth_a_second_and_a_fifth() {
        assert_eq!(advice(&[(33.1, 1.1)], 1).worth, Worth::Yes);
        assert_eq!(advice(&[(0.9, 0.1)], 1).worth, Worth::No, "less than a second");
        assert_eq!(advice(&[(100.0, 90.0)], 1).worth, Worth::No, "a tenth");
        assert_eq!(advice(&[(10.0, 12.0)], 1).gains[0].reads_to_pay_back, None);
        // Half of the live bytes are read and written once.
        assert_eq!(advice(&[(30.0, 10.0)], 1).gains[0].reads_to_pay_back, Some(1.0));
    }

    #[test]
    fn candidates_of_an_unknown_device_must_agree() {
        assert_eq!(advice(&[(33.0, 1.0), (0.5, 0.4)], 2).worth, Worth::Undecided);
        assert_eq!(advice(&[(33.0, 1.0), (0.5, 0.4)], 1).worth, Worth::Yes);
        let nothing = compute_advice(&Plan::default(), Vec::new(), Vec::new(), 1);
        assert_eq!(nothing.worth, Worth::NothingToMove);
    }

    #[test]
    fn the_strategy_that_saves_most_per_byte_is_first() {
        let share = |strategy, moved_bytes, after_seconds| Share {
            strategy,
            files: 1,
            moved_bytes,
            pieces_now: 9,
            pieces_after: 1,
            costs: vec![MoveCost {
                device: "model: x".to_owned(),
                now_seconds: 100.0,
                after_seconds,
                metadata_seconds: None,
            }],
        };
        let part = Part { entry: 0, logical: 0, length: 1000 };
        let batch = Batch { parts: vec![part], ..Batch::default() };
        let plan = Plan { batches: vec![batch], ..Plan::default() };
        let first = |shares| compute_advice(&plan, shares, Vec::new(), 1).strategies[0].strategy;
        let order = share(Strategy::Order, 100, 20.0);
        assert_eq!(first(vec![order.clone(), share(Strategy::Pieces, 10, 91.0)]), Strategy::Pieces);
        assert_eq!(first(vec![order, share(Strategy::Pieces, 10, 93.0)]), Strategy::Order);
    }
}
