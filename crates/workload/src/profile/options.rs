//! Options of an aging, besides its profile.

use senesce_core::Seed;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;

/// The order of births and deaths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Fair coin tosses, one tick of time each, as published.
    Classic,
    /// Births and deaths in virtual time, `churn` births a file.
    #[default]
    Virtual,
}

/// The contents of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent {
    /// Real bytes, which do not compress and never repeat.
    #[default]
    Write,
    /// Reserved space (fallocate): no data is written, and reads transfer nothing. The layout
    /// differs from that of written files.
    Allocate,
}

/// The choice of sizes within the bins of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// The meaning that the profile states.
    #[default]
    Profile,
    /// Exactly the values. With only a few sizes, new files fit the holes exactly.
    Point,
    /// Uniform between the bounds of a bin.
    Spread,
}

/// Options of an aging, besides its profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// Used share of the capacity, above 0 and at most 0.98.
    pub fullness: f64,
    /// The order of births and deaths.
    pub schedule: Schedule,
    /// The contents of files.
    pub content: FileContent,
    /// The choice of sizes.
    pub sizes: Sizes,
    /// Births after the filling, divided by files, in the virtual schedule. The layout needs a few,
    /// the ages only one.
    pub churn: f64,
    /// The largest total variation distance from the profile at the end, for size, depth and age;
    /// above 0.
    pub accuracy: f64,
    /// The largest number of lives of the classic schedule, even if the accuracy is not reached.
    pub most_lives: u64,
    /// The end of the aging, seconds since 1970. A file's time of modification is this minus its
    /// age.
    pub ends_unix_seconds: u64,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self {
            seed: Seed(1),
            fullness: 0.8,
            schedule: Schedule::default(),
            content: FileContent::default(),
            sizes: Sizes::default(),
            churn: 4.0,
            accuracy: 0.005,
            most_lives: 2,
            // 2024-01-01, so that ages of decades are after 1970.
            ends_unix_seconds: 1_704_067_200,
        }
    }
}

impl ProfileOptions {
    /// Checks the range of every option.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |name, value: String, problem| Err(WorkloadError::Parameter { name, value, problem });
        if !(self.fullness > 0.0 && self.fullness <= 0.98) {
            let problem = "must be above 0 and at most 0.98: a file system keeps some space for itself";
            return wrong("fullness", self.fullness.to_string(), problem);
        }
        if !(1.0..=10_000.0).contains(&self.churn) {
            return wrong("churn", self.churn.to_string(), "must be between 1 and 10000 births a file");
        }
        if !(self.accuracy > 0.0 && self.accuracy < 1.0) {
            return wrong("accuracy", self.accuracy.to_string(), "must be between 0 and 1");
        }
        if self.most_lives == 0 {
            return wrong("most_lives", "0".into(), "must be at least 1");
        }
        Ok(())
    }
}
