//! Values that a publication prints, as plans and results have them.

use schemars::JsonSchema;
use senesce_core::verdict::Claim;
use serde::{Deserialize, Serialize};

use crate::Role;

/// The circumstance with the published values of a plan, as JSON. Its devices have the names of the
/// results.
pub const PUBLISHED: &str = "published";

/// The two volumes of a ratio. Their costs are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PublishedRatio {
    /// The nearly full volume over the roomy one.
    #[serde(rename = "full/empty")]
    FullOverEmpty,
    /// The nearly full volume over the fresh copy.
    #[serde(rename = "full/unaged")]
    FullOverUnaged,
    /// The roomy volume over the fresh copy.
    #[serde(rename = "empty/unaged")]
    EmptyOverUnaged,
}

impl PublishedRatio {
    /// The two volumes: that of the numerator, then that of the denominator.
    pub fn roles(self) -> [Role; 2] {
        match self {
            Self::FullOverEmpty => [Role::Full, Role::Empty],
            Self::FullOverUnaged => [Role::Full, Role::Unaged],
            Self::EmptyOverUnaged => [Role::Empty, Role::Unaged],
        }
    }
}

/// The cost that a ratio divides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PublishedCost {
    /// A cold read of the whole tree.
    #[default]
    Read,
    /// The operations of a step, with the writes that they cause.
    Step,
}

/// A value that a publication prints. The report shows the value of the run beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The place in the publication: `figure 1a`.
    pub place: String,
    /// The two volumes whose costs are divided.
    pub ratio: PublishedRatio,
    /// The cost of both volumes: of a cold read, or of a step.
    #[serde(default)]
    pub cost: PublishedCost,
    /// The device model closest to the device of the publication, named as in `measure.devices`.
    /// Figures of other devices are not compared.
    pub device: String,
    /// The file systems, by kind. All if the list is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_systems: Vec<String>,
    /// The printed number. 1 means no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The lower end of a printed range. It needs `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// The upper end of a printed range. Without `from`, it is a bound: "up to".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
}

impl Published {
    /// The claim. `None` unless the keys state exactly one number, range or bound.
    pub fn claim(&self) -> Option<Claim> {
        let claim = match (self.value, self.from, self.to) {
            (Some(value), None, None) => Claim::Number(value),
            (None, Some(low), Some(high)) if low < high => Claim::Between(low, high),
            (None, None, Some(most)) => Claim::AtMost(most),
            _ => return None,
        };
        let is_ratio = |value: f64| value.is_finite() && value > 0.0;
        [self.value, self.from, self.to].into_iter().flatten().all(is_ratio).then_some(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_give_exactly_one_claim() {
        let claim = |value, from, to| {
            let published = Published {
                place: "figure 1".into(),
                ratio: PublishedRatio::FullOverEmpty,
                cost: PublishedCost::Read,
                device: "hdd-7200".into(),
                file_systems: Vec::new(),
                value,
                from,
                to,
            };
            published.claim()
        };
        assert_eq!(claim(Some(7.0), None, None), Some(Claim::Number(7.0)));
        assert_eq!(claim(None, Some(1.5), Some(4.0)), Some(Claim::Between(1.5, 4.0)));
        assert_eq!(claim(None, None, Some(22.0)), Some(Claim::AtMost(22.0)));
        for (value, from, to) in [
            (None, None, None),
            (None, Some(1.5), None),
            (Some(2.0), None, Some(3.0)),
            (None, Some(4.0), Some(1.5)),
            (Some(0.0), None, None),
            (Some(f64::NAN), None, None),
            (None, None, Some(f64::INFINITY)),
        ] {
            assert_eq!(claim(value, from, to), None, "{value:?} {from:?} {to:?}");
        }
    }
}
