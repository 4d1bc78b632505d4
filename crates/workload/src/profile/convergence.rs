//! What an aging has reached, beside what was asked.

use serde::{Deserialize, Serialize};

use super::distribution::Deviation;

/// What ended an aging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Every distribution and the fullness are as near as was asked.
    Accuracy,
    /// So few files cannot be nearer: their numbers are whole.
    WholeFiles,
    /// The file system had no space before the fullness was reached, or while it was held.
    NoSpace,
    /// The classic schedule has run as many lives as it may.
    MostLives,
    /// The virtual schedule is at its end, and something is further off than was asked.
    EndOfSchedule,
}

/// What an aging has reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// Files that exist.
    pub files: u64,
    /// Files made since the filling, over files.
    pub turnovers: f64,
    /// Files made and removed, the filling included.
    pub operations: u64,
    /// Share of the capacity that was asked.
    pub fullness_asked: f64,
    /// Share of the capacity that is used, as last told.
    pub fullness: f64,
    /// Distance that was asked of each distribution.
    pub accuracy: f64,
    /// Sizes.
    pub size: Deviation,
    /// Depths.
    pub depth: Deviation,
    /// Ages.
    pub age: Deviation,
    /// Distance that so many whole files cannot go below, the largest over the three.
    pub whole_files: f64,
    /// Times that the file system had no space.
    pub no_space: u64,
    /// Sizes of the profile that this volume is too small for.
    pub sizes_left_out: u64,
    /// What ended it; none while it goes on.
    pub ended_by: Option<Bound>,
}

impl Convergence {
    /// Whether everything is as near as was asked.
    pub fn is_reached(&self) -> bool {
        let near = |deviation: &Deviation| deviation.total_variation <= self.accuracy;
        near(&self.size)
            && near(&self.depth)
            && near(&self.age)
            && (self.fullness - self.fullness_asked).abs() <= self.accuracy
    }
}
