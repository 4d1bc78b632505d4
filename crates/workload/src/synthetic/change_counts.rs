//! The numbers of a commit's files that are added, modified, deleted and renamed.

use schemars::JsonSchema;
use senesce_core::Rng;
use serde::{Deserialize, Serialize};

use super::{HistoryModel, quantiles::Quantiles};

/// The files of one commit by the kind of their change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub added: u64,
    pub modified: u64,
    pub deleted: u64,
    pub renamed: u64,
}

/// The kinds of changes of commits that touch up to some number of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindWeights {
    /// The largest number of files; any number if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u64>,
    /// Weights of the combinations M, A+M, M+D, A+M+D, M+R, A, D, R, A+M+D+R, A+D, A+R, D+R, A+D+R,
    /// M+D+R and A+M+R, relative to each other. A is added, M modified, D deleted, R renamed.
    pub weights: [u64; 15],
}

/// The combinations of kinds in the order of [`KindWeights::weights`]: added, modified, deleted,
/// renamed.
pub(super) const COMBINATIONS: [[bool; 4]; 15] = {
    const N: bool = false;
    const Y: bool = true;
    [
        [N, Y, N, N],
        [Y, Y, N, N],
        [N, Y, Y, N],
        [Y, Y, Y, N],
        [N, Y, N, Y],
        [Y, N, N, N],
        [N, N, Y, N],
        [N, N, N, Y],
        [Y, Y, Y, Y],
        [Y, N, Y, N],
        [Y, N, N, Y],
        [N, N, Y, Y],
        [Y, N, Y, Y],
        [N, Y, Y, Y],
        [Y, Y, N, Y],
    ]
};

/// The numbers of files at which the rows of a model end. Larger numbers belong to the last row.
pub(super) const ROW_ENDS: [u64; 4] = [1, 3, 9, 49];

/// The kinds of Linux. Documented over all sizes: M only 90.0%, A+M 5.1%, M+D 1.1%, A+M+D 0.9%,
/// M+R 0.8%, A only 0.7%. The dependence on the number of files is our choice.
pub(super) const LINUX_KINDS: [KindWeights; 5] = [
    linux(Some(ROW_ENDS[0]), [978, 0, 0, 0, 0, 10, 8, 4, 0]),
    linux(Some(ROW_ENDS[1]), [917, 53, 13, 0, 6, 6, 3, 2, 0]),
    linux(Some(ROW_ENDS[2]), [835, 98, 26, 12, 16, 7, 4, 2, 0]),
    linux(Some(ROW_ENDS[3]), [715, 182, 35, 35, 22, 3, 0, 0, 8]),
    linux(None, [380, 320, 30, 140, 50, 5, 0, 0, 75]),
];

const fn linux(up_to: Option<u64>, known: [u64; 9]) -> KindWeights {
    let [m, am, md, amd, mr, a, d, r, all] = known;
    KindWeights { up_to, weights: [m, am, md, amd, mr, a, d, r, all, 0, 0, 0, 0, 0, 0] }
}

/// Draws the kinds of the `touched` files of a commit; their sum is `touched`.
pub(super) fn draw_counts(rng: &mut Rng, model: &HistoryModel, touched: u64) -> Counts {
    let row = model.kinds.iter().find(|row| row.up_to.is_none_or(|limit| touched <= limit));
    let row = row.expect("the last row has no limit");
    let [has_added, has_modified, has_deleted, has_renamed] = COMBINATIONS[rng.weighted(&row.weights)];
    // A kind that is the only one, or the last one, takes what the others leave.
    let mut left = touched - u64::from(has_modified); // at least one is modified
    let mut part = |wanted: bool, is_rest: bool, share: &Quantiles| -> u64 {
        if !wanted || left == 0 {
            return 0;
        }
        let count = if is_rest { left } else { (touched * share.sample(rng) / 1_000).clamp(1, left) };
        left -= count;
        count
    };
    let shares = &model.shares;
    let renamed = part(has_renamed, !has_modified && !has_deleted && !has_added, &shares.renamed);
    let deleted = part(has_deleted, !has_modified && !has_added, &shares.deleted);
    let added = part(has_added, !has_modified, &shares.added);
    Counts { added, deleted, renamed, modified: touched - added - deleted - renamed }
}
