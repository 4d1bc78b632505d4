//! What is asked of an aging, beside its profile.

use senesce_core::Seed;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;

/// How births and deaths follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Fair coin tosses, one tick of time each, as published.
    Classic,
    /// Births and deaths at times of virtual time, `churn` births a file.
    #[default]
    Virtual,
}

/// What files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent {
    /// Real bytes, which cannot be compressed and never repeat.
    #[default]
    Write,
    /// Reserved space (fallocate): no data moves, and reading it reads nothing. Another layout than writing gives.
    Allocate,
}

/// How sizes are drawn from the bins of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// As the profile says.
    #[default]
    Profile,
    /// Exactly the values: few distinct sizes, whose holes fit them again.
    Point,
    /// Uniformly between a bin's bounds.
    Spread,
}

/// What is asked of an aging, beside its profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileOptions {
    /// Everything random follows from it.
    pub seed: Seed,
    /// Share of the capacity that is used, above 0 and at most 0.98.
    pub fullness: f64,
    /// How births and deaths follow each other.
    pub schedule: Schedule,
    /// What files hold.
    pub content: FileContent,
    /// How sizes are drawn.
    pub sizes: Sizes,
    /// Births after the filling over files, in the virtual schedule. The layout needs a few; ages need only one.
    pub churn: f64,
    /// Total variation distance from the profile that size, depth and age may have at the end, above 0.
    pub accuracy: f64,
    /// The classic schedule ends after so many lives even if the accuracy is not reached.
    pub most_lives: u64,
    /// Seconds since 1970 that the aging ends at: a file's time of modification is this less its age.
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
    /// Whether everything is in its range.
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
