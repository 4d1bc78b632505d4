//! The numbers of a commit's files that are added, modified, deleted and renamed.

use senesce_core::Rng;

use super::quantiles::{ADDED_SHARE, DELETED_SHARE, Quantiles, RENAMED_SHARE};

/// The files of one commit by the kind of their change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub added: u64,
    pub modified: u64,
    pub deleted: u64,
    pub renamed: u64,
}

/// Weights (parts per thousand) of the kinds: M, A+M, M+D, A+M+D, M+R, A, D, R, A+M+D+R.
type KindWeights = [u64; 9];

/// Kinds by files touched: up to 1, 3, 9, 49, any. Documented over all sizes: M only 90.0%, A+M
/// 5.1%, M+D 1.1%, A+M+D 0.9%, M+R 0.8%, A only 0.7%. The dependence on the number of files is our
/// choice.
const KINDS: [(u64, KindWeights); 5] = [
    (1, [978, 0, 0, 0, 0, 10, 8, 4, 0]),
    (3, [917, 53, 13, 0, 6, 6, 3, 2, 0]),
    (9, [835, 98, 26, 12, 16, 7, 4, 2, 0]),
    (49, [715, 182, 35, 35, 22, 3, 0, 0, 8]),
    (u64::MAX, [380, 320, 30, 140, 50, 5, 0, 0, 75]),
];

/// Draws the kinds of the `touched` files of a commit; their sum is `touched`.
pub(super) fn draw_counts(rng: &mut Rng, touched: u64) -> Counts {
    let (_, weights) = KINDS.iter().find(|(limit, _)| touched <= *limit).expect("the last limit is u64::MAX");
    let (added, deleted, renamed) = match rng.weighted(weights) {
        0 => (false, false, false),
        1 => (true, false, false),
        2 => (false, true, false),
        3 => (true, true, false),
        4 => (false, false, true),
        5 => return Counts { added: touched, ..Counts::default() },
        6 => return Counts { deleted: touched, ..Counts::default() },
        7 => return Counts { renamed: touched, ..Counts::default() },
        _ => (true, true, true),
    };
    let mut left = touched - 1; // at least one is modified
    let mut part = |wanted: bool, share: Quantiles| -> u64 {
        if !wanted || left == 0 {
            return 0;
        }
        let count = (touched * share.sample(rng) / 1_000).clamp(1, left);
        left -= count;
        count
    };
    let renamed = part(renamed, RENAMED_SHARE);
    let deleted = part(deleted, DELETED_SHARE);
    let added = part(added, ADDED_SHARE);
    Counts { added, deleted, renamed, modified: touched - added - deleted - renamed }
}
