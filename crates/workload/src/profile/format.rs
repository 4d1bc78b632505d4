//! The file format of aging profiles: TOML, one table for each distribution.
//!
//! ```toml
//! format = "aging-profile/1"
//! name = "tiny"
//! [size]
//! values = [4096, 65536]
//! weights = [3, 1]
//! [depth]
//! values = [1, 2]
//! weights = [1, 1]
//! subdirs = [2, 4]
//! [age]
//! upper = [24, 720]
//! weights = [1, 9]
//! ```
//!
//! Weights are integers and exact. Fractions are optional, for readers, and checked against the
//! weights. If a profile has no weights, they are computed from its fractions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format version that this program reads and writes.
pub const PROFILE_FORMAT: &str = "aging-profile/1";

/// The files of a surveyed file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgingProfile {
    /// Version of the format: `aging-profile/1`.
    pub format: String,
    /// Short name.
    pub name: String,
    /// The surveyed system, for readers.
    #[serde(default)]
    pub description: String,
    /// Oddities of the source, for readers.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Used share of the capacity, 0 to 1, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fullness: Option<f64>,
    /// The source of the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ProfileSource>,
    /// Derived figures, for readers only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub summary: BTreeMap<String, f64>,
    /// Sizes of files.
    pub size: SizeDistribution,
    /// Depths of files.
    pub depth: DepthDistribution,
    /// Ages of files.
    pub age: AgeDistribution,
    /// Extents of files, if they were counted. They are not a target of aging, only for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<ExtentDistribution>,
}

/// The source of a profile's numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSource {
    /// The study, or the captured system.
    pub study: String,
    /// The confidence in the attribution: high, medium or low.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub attribution_confidence: String,
    /// The publication that the numbers come from, if it is not the study itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub via: String,
}

/// The meaning of a value of the size distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SizeMeaning {
    /// Every file of the bin has exactly this size.
    #[default]
    #[serde(rename = "point")]
    Point,
    /// Files of the bin are larger than the previous value, and at most this large.
    #[serde(rename = "upper bound")]
    UpperBound,
}

/// Sizes of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeDistribution {
    /// `bytes`.
    #[serde(default = "bytes")]
    pub unit: String,
    /// The meaning of a value.
    #[serde(default)]
    pub meaning: SizeMeaning,
    /// Sizes in bytes, rising.
    pub values: Vec<u64>,
    /// Files of each bin.
    #[serde(default)]
    pub weights: Vec<i64>,
    /// The weights as shares of all files.
    #[serde(default)]
    pub fractions: Vec<f64>,
}

/// Depths of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepthDistribution {
    /// Path components below the mount point; 0 is the root itself.
    #[serde(default = "components")]
    pub unit: String,
    /// Depths, rising.
    pub values: Vec<u64>,
    /// Files of each depth.
    #[serde(default)]
    pub weights: Vec<i64>,
    /// The weights as shares of all files.
    #[serde(default)]
    pub fractions: Vec<f64>,
    /// Directories at each of these depths; 0 counts as 1.
    #[serde(default)]
    pub subdirs: Vec<u64>,
}

/// Ages of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgeDistribution {
    /// `seconds`, `minutes`, `hours`, `days`, or `unknown` (hours are assumed; only relative ages
    /// matter).
    #[serde(default = "hours")]
    pub unit: String,
    /// Whether the source states the unit.
    #[serde(default)]
    pub unit_stated_in_source: bool,
    /// The reason for the unit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit_note: String,
    /// `upper bound`: a bin holds ages above the previous value and up to this one.
    #[serde(default = "upper_bound")]
    pub meaning: String,
    /// Upper bounds, rising; the last is the age of the file system.
    pub upper: Vec<f64>,
    /// The bounds as shares of the file system's age; computed if left out.
    #[serde(default)]
    pub upper_relative: Vec<f64>,
    /// Files of each bin.
    #[serde(default)]
    pub weights: Vec<i64>,
    /// The weights as shares of all files.
    #[serde(default)]
    pub fractions: Vec<f64>,
}

/// Numbers of extents of files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtentDistribution {
    /// Upper bounds of the numbers of extents, rising.
    pub values: Vec<u64>,
    /// Files of each bin.
    pub weights: Vec<i64>,
    /// Extents of all files, divided by the files that have data.
    pub mean: f64,
}

fn bytes() -> String {
    "bytes".into()
}

fn components() -> String {
    "path components below the mount point (0 = in the root)".into()
}

fn hours() -> String {
    "hours".into()
}

fn upper_bound() -> String {
    "upper bound".into()
}

impl AgingProfile {
    /// The profile as TOML.
    pub fn render(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Weights of the sizes; not negative after a check.
    pub fn size_weights(&self) -> Vec<u64> {
        whole(&self.size.weights)
    }

    /// Weights of the depths.
    pub fn depth_weights(&self) -> Vec<u64> {
        whole(&self.depth.weights)
    }

    /// Weights of the ages.
    pub fn age_weights(&self) -> Vec<u64> {
        whole(&self.age.weights)
    }

    /// Age of the file system, seconds; an unknown unit counts as hours.
    pub fn life_seconds(&self) -> u64 {
        let unit = match self.age.unit.as_str() {
            "seconds" => 1.0,
            "minutes" => 60.0,
            "days" => 86_400.0,
            _ => 3600.0,
        };
        self.age.upper.last().map_or(0, |last| (last * unit) as u64)
    }
}

fn whole(weights: &[i64]) -> Vec<u64> {
    weights.iter().map(|&weight| weight.max(0) as u64).collect()
}
