//! How near a figure is to the one that a publication prints.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tolerance of [`Verdict::Met`], as a part of the published number.
pub const TOLERANCE: f64 = 0.4;

/// The statement of a publication about a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// A number.
    Number(f64),
    /// A range, from its lower to its upper end.
    Between(f64, f64),
    /// A bound that the publication states as one ("a fraction of a core", "within a month").
    AtMost(f64),
    /// An increase without a number.
    Rises,
    /// A decrease without a number.
    Falls,
}

impl Claim {
    /// The number, if the claim has one. A range has none.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::AtMost(number) => Some(number),
            Self::Between(..) | Self::Rises | Self::Falls => None,
        }
    }

    /// The side of a figure that the claim is on. `None`: the claim is that figure, or a range with
    /// it.
    pub fn side(self, figure: f64) -> Option<Side> {
        let (low, high) = match self {
            Self::Between(low, high) => (low, high),
            Self::Number(number) | Self::AtMost(number) => (number, number),
            Self::Rises => (f64::INFINITY, f64::INFINITY),
            Self::Falls => (f64::NEG_INFINITY, f64::NEG_INFINITY),
        };
        match () {
            () if low > figure => Some(Side::Above(low)),
            () if high < figure => Some(Side::Below(high)),
            () => None,
        }
    }

    /// The agreement of `ours` with the claim.
    ///
    /// `before`: the published figure and ours before the change; `None` if the figure is of a
    /// single state, which has no direction. A ratio of two states has `(1.0, 1.0)`.
    pub fn judge(self, ours: f64, before: Option<(f64, f64)>) -> Verdict {
        let is_met = match self {
            Self::Number(number) => (ours / number - 1.0).abs() <= TOLERANCE,
            Self::Between(low, high) => (low * (1.0 - TOLERANCE)..=high * (1.0 + TOLERANCE)).contains(&ours),
            Self::AtMost(most) => ours <= most,
            Self::Rises | Self::Falls => false,
        };
        let has_direction = |published: f64, before: f64| match self.side(published) {
            Some(Side::Above(_)) => ours > before,
            Some(Side::Below(_)) => ours < before,
            None => false,
        };
        match is_met {
            true => Verdict::Met,
            false if before.is_some_and(|(published, before)| has_direction(published, before)) => {
                Verdict::DirectionOnly
            }
            false => Verdict::NotMet,
        }
    }
}

/// The side of a figure that a claim is on, with the end of the claim that is nearest to the
/// figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    /// Larger.
    Above(f64),
    /// Smaller.
    Below(f64),
}

/// The agreement of a figure with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within 40 % of the published number or range, or within the published bound.
    Met,
    /// The change has the published sign, but the number differs by more, or there is none.
    DirectionOnly,
    /// Neither the number nor the direction agrees.
    NotMet,
    /// The published figure is of another quantity, or ours has no meaning.
    NotComparable,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Self; 4] = [Self::Met, Self::DirectionOnly, Self::NotMet, Self::NotComparable];

    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Met => "met within 40%",
            Self::DirectionOnly => "direction only",
            Self::NotMet => "not met",
            Self::NotComparable => "not comparable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATIO: Option<(f64, f64)> = Some((1.0, 1.0));

    #[test]
    fn claims_are_on_a_side_of_a_figure() {
        for (claim, figure, side) in [
            (Claim::Number(2.0), 1.0, Some(Side::Above(2.0))),
            (Claim::Number(1.0), 1.0, None),
            (Claim::AtMost(0.5), 1.0, Some(Side::Below(0.5))),
            (Claim::Between(1.5, 4.0), 1.0, Some(Side::Above(1.5))),
            (Claim::Between(1.5, 4.0), 5.0, Some(Side::Below(4.0))),
            (Claim::Between(1.5, 4.0), 2.0, None),
            (Claim::Rises, 7.0, Some(Side::Above(f64::INFINITY))),
            (Claim::Falls, 0.0, Some(Side::Below(f64::NEG_INFINITY))),
        ] {
            assert_eq!(claim.side(figure), side, "{claim:?} {figure}");
        }
    }

    #[test]
    fn forty_percent_either_way_meet_a_number() {
        for (ours, verdict) in [
            (6.0, Verdict::Met),
            (14.0, Verdict::Met),
            (5.9, Verdict::NotMet),
            (14.1, Verdict::NotMet),
            (f64::NAN, Verdict::NotMet),
            (f64::INFINITY, Verdict::NotMet),
        ] {
            assert_eq!(Claim::Number(10.0).judge(ours, None), verdict, "{ours}");
        }
    }

    #[test]
    fn forty_percent_beyond_either_end_meet_a_range() {
        for (ours, verdict) in [
            (0.9, Verdict::Met),
            (2.0, Verdict::Met),
            (5.6, Verdict::Met),
            (5.7, Verdict::DirectionOnly),
            (0.89, Verdict::NotMet),
            (f64::NAN, Verdict::NotMet),
        ] {
            assert_eq!(Claim::Between(1.5, 4.0).judge(ours, RATIO), verdict, "{ours}");
        }
        assert_eq!(Claim::Between(0.5, 4.0).judge(9.0, RATIO), Verdict::NotMet, "both sides of 1 have no direction");
    }

    #[test]
    fn distant_numbers_are_judged_by_direction() {
        for (ours, verdict) in [
            (40.0, Verdict::Met),
            (9.0, Verdict::DirectionOnly),
            (80.0, Verdict::DirectionOnly),
            (4.0, Verdict::NotMet),
            (5.0, Verdict::NotMet),
        ] {
            assert_eq!(Claim::Number(40.0).judge(ours, Some((2.0, 5.0))), verdict, "{ours}");
        }
    }

    #[test]
    fn bounds_and_directions_have_verdicts() {
        let bound = |ours| Claim::AtMost(1.0).judge(ours, None);
        assert_eq!((bound(1.0), bound(1.1)), (Verdict::Met, Verdict::NotMet));
        for (claim, ours, verdict) in [
            (Claim::Rises, 1.2, Verdict::DirectionOnly),
            (Claim::Rises, 0.9, Verdict::NotMet),
            (Claim::Falls, 0.9, Verdict::DirectionOnly),
            (Claim::Falls, 1.0, Verdict::NotMet),
            (Claim::Rises, f64::NAN, Verdict::NotMet),
        ] {
            assert_eq!(claim.judge(ours, RATIO), verdict, "{claim:?} {ours}");
        }
    }
}
