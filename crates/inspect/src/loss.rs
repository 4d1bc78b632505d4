//! The loss against a fresh copy, and its parts.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cost::LayoutCosts;

/// A loss below this share of a fresh copy's time has no shares: its parts can be larger than the
/// loss.
const LEAST_LOSS: f64 = 0.02;

/// Seconds by which a cold read takes longer than in a fresh copy, in total and by cause. A part
/// that is a gain is negative, so that the parts add up to the total.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LossSeconds {
    /// The found layout − a fresh copy.
    pub total: f64,
    /// The found layout − every file in one piece where it starts now: the time that joining the
    /// pieces saves. Zero if no file is in pieces.
    pub within_files: f64,
    /// Contents with every file in one piece − contents in a fresh copy: the cost of the order of
    /// whole files.
    pub between_files: f64,
    /// Metadata with every file in one piece − metadata in a fresh copy. `None` if metadata could
    /// not be read.
    pub metadata: Option<f64>,
}

impl LossSeconds {
    /// The loss of a read that took `seconds`, of which `metadata` went to metadata, if metadata
    /// was read.
    pub(crate) fn of(seconds: LayoutCosts<f64>, metadata: Option<LayoutCosts<f64>>) -> Self {
        let of_metadata = metadata.unwrap_or_default();
        let metadata_loss = of_metadata.defragmented - of_metadata.fresh_copy;
        let total_between = seconds.defragmented - seconds.fresh_copy;
        Self {
            total: seconds.as_it_lies - seconds.fresh_copy,
            within_files: seconds.as_it_lies - seconds.defragmented,
            between_files: total_between - metadata_loss,
            metadata: metadata.map(|_| metadata_loss),
        }
    }

    /// A part as a share of the total. `None` if the total is no loss, or below 2% of `fresh_copy`
    /// seconds.
    pub(crate) fn share(&self, part: f64, fresh_copy: f64) -> Option<f64> {
        (self.total > 0.0 && self.total >= LEAST_LOSS * fresh_copy).then(|| part / self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(as_it_lies: f64, defragmented: f64, fresh_copy: f64) -> LayoutCosts<f64> {
        LayoutCosts { as_it_lies, defragmented, best_order: fresh_copy, fresh_copy }
    }

    #[test]
    fn parts_are_signed_and_sum_to_the_loss() {
        // Metadata is nearer in the aged tree than in the copy; joining files makes it nearer
        // still.
        let loss = LossSeconds::of(costs(20.0, 15.0, 10.0), Some(costs(4.0, 3.0, 6.0)));
        let expected = LossSeconds { total: 10.0, within_files: 5.0, between_files: 8.0, metadata: Some(-3.0) };
        assert_eq!(loss, expected);
        assert_eq!(loss.share(loss.between_files, 10.0), Some(0.8));
        assert_eq!(loss.share(-3.0, 10.0), Some(-0.3));
    }

    #[test]
    fn a_loss_below_two_percent_has_no_shares() {
        let small = LossSeconds::of(costs(10.1, 10.05, 10.0), None);
        assert_eq!((small.metadata, small.share(small.within_files, 10.0)), (None, None));
        let gain = LossSeconds::of(costs(9.0, 9.0, 10.0), None);
        assert_eq!(gain.share(gain.between_files, 10.0), None);
    }
}
