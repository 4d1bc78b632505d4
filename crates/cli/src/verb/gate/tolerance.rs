//! Tolerances: the allowed difference of an exact figure from its baseline.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verb::compare::FigurePattern;

/// The tolerance of the figures that a rule matches.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tolerance {
    /// The file system. `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file_system: Option<String>,
    /// A regular expression for names of figures, without regard to case.
    #[serde(deserialize_with = "read_pattern")]
    figure: String,
    /// The allowed change, percent.
    #[serde(deserialize_with = "read_percent")]
    percent: f64,
}

/// Two runs of one plan place some blocks differently, because the kernel works in the background
/// at its own pace. These tolerances are above the differences of such runs, except for free
/// extents, which are not judged by default (docs/results/gate.md).
const DEFAULTS: [(Option<&str>, &str, f64); 5] = [
    (Some("btrfs"), "requests$", 1.5),
    (None, "requests$", 0.5),
    (None, "^(layout score|extents per file)$", 0.5),
    (None, "^free extents$", 30.0),
    (None, ".", 40.0),
];

/// The tolerances of a baseline that has none of its own.
pub(super) fn default_tolerances() -> Vec<Tolerance> {
    let of = |&(file_system, figure, percent): &(Option<&str>, &str, f64)| Tolerance {
        file_system: file_system.map(str::to_owned),
        figure: figure.to_owned(),
        percent,
    };
    DEFAULTS.iter().map(of).collect()
}

/// One tolerance for all figures.
pub(super) fn equal_tolerance(percent: f64) -> Vec<Tolerance> {
    vec![Tolerance { file_system: None, figure: ".".to_owned(), percent }]
}

/// The percentage of the first rule that matches, or 0 if none does.
pub(super) fn find_tolerance(rules: &[Tolerance], file_system: &str, figure: &str) -> f64 {
    let matches = |rule: &&Tolerance| {
        let is_file_system = rule.file_system.as_ref().is_none_or(|name| name == file_system);
        let pattern = rule.figure.parse::<FigurePattern>();
        is_file_system && pattern.is_ok_and(|pattern| pattern.is_match(figure))
    };
    rules.iter().find(matches).map_or(0.0, |rule| rule.percent)
}

fn read_pattern<'de, D: serde::Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let text = String::deserialize(input)?;
    match text.parse::<FigurePattern>() {
        Ok(_) => Ok(text),
        Err(problem) => Err(serde::de::Error::custom(format!("the pattern {text:?} of a tolerance: {problem}"))),
    }
}

fn read_percent<'de, D: serde::Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    let percent = f64::deserialize(input)?;
    match (0.0..=1000.0).contains(&percent) {
        true => Ok(percent),
        false => Err(serde::de::Error::custom(format!("the tolerance {percent} is not from 0 to 1000 percent"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_rule_decides() {
        let defaults = default_tolerances();
        let of = |figure: &str| find_tolerance(&defaults, "ext4", figure);
        assert_eq!(of("model: HDD 7.2K (extents) requests"), 0.5);
        assert_eq!(find_tolerance(&defaults, "btrfs", "traced read requests"), 1.5);
        assert_eq!(of("model: HDD 7.2K (extents) s/GiB"), 40.0);
        assert_eq!((of("layout score"), of("free extents")), (0.5, 30.0));
        let text = r#"[{"file_system":"btrfs","figure":"REQUESTS","percent":3},{"figure":"requests","percent":0}]"#;
        let rules: Vec<Tolerance> = serde_json::from_str(text).unwrap();
        assert_eq!(find_tolerance(&rules, "btrfs", "x requests"), 3.0);
        assert_eq!(find_tolerance(&rules, "xfs", "x requests"), 0.0);
        assert_eq!(find_tolerance(&rules, "xfs", "other"), 0.0, "a figure without a rule is compared exactly");
        assert!(serde_json::from_str::<Tolerance>(r#"{"figure":"x","percent":-1}"#).is_err());
    }
}
