//! The state that an aging has reached, besides the requested one.

use serde::{Deserialize, Serialize};

use super::distribution::Deviation;

/// The reason why an aging ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Every distribution and the fullness are within the requested accuracy.
    Accuracy,
    /// The number of files is too small for a better match: files are whole.
    WholeFiles,
    /// The file system had no space before the fullness was reached, or while it was held.
    NoSpace,
    /// The classic schedule ran its largest number of lives.
    MostLives,
    /// The virtual schedule is exhausted, and something is outside the requested accuracy.
    EndOfSchedule,
}

impl Bound {
    /// Its spelling in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::WholeFiles => "whole-files",
            Self::NoSpace => "no-space",
            Self::MostLives => "most-lives",
            Self::EndOfSchedule => "end-of-schedule",
        }
    }
}

/// The state that an aging has reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// Existing files.
    pub files: u64,
    /// Files created since the filling, divided by existing files.
    pub turnovers: f64,
    /// Files created and removed, including the filling.
    pub operations: u64,
    /// The requested used share of the capacity.
    pub fullness_asked: f64,
    /// The used share of the capacity, as last reported.
    pub fullness: f64,
    /// The requested distance of each distribution.
    pub accuracy: f64,
    /// Sizes.
    pub size: Deviation,
    /// Depths.
    pub depth: Deviation,
    /// Ages.
    pub age: Deviation,
    /// The smallest distance that this number of whole files allows, the largest over the three
    /// distributions.
    pub whole_files: f64,
    /// Number of times that the file system had no space.
    pub no_space: u64,
    /// Sizes of the profile that are too large for this volume.
    pub sizes_left_out: u64,
    /// The reason why it ended; none while it runs.
    pub ended_by: Option<Bound>,
}

impl Convergence {
    /// Names and figures, for records.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let share = |value: f64| format!("{value:.5}");
        vec![
            ("files", self.files.to_string()),
            ("turnovers", format!("{:.2}", self.turnovers)),
            ("operations", self.operations.to_string()),
            ("fullness", share(self.fullness)),
            ("fullness_asked", share(self.fullness_asked)),
            ("accuracy", self.accuracy.to_string()),
            ("size.chi_square", format!("{:.2} ({} degrees)", self.size.chi_square, self.size.degrees_of_freedom)),
            ("size.largest", share(self.size.largest)),
            ("size.total_variation", share(self.size.total_variation)),
            ("depth.chi_square", format!("{:.2} ({} degrees)", self.depth.chi_square, self.depth.degrees_of_freedom)),
            ("depth.largest", share(self.depth.largest)),
            ("depth.total_variation", share(self.depth.total_variation)),
            ("age.chi_square", format!("{:.2} ({} degrees)", self.age.chi_square, self.age.degrees_of_freedom)),
            ("age.largest", share(self.age.largest)),
            ("age.total_variation", share(self.age.total_variation)),
            ("no_space", self.no_space.to_string()),
            ("sizes_left_out", self.sizes_left_out.to_string()),
            ("ended_by", self.ended_by.map_or("none", Bound::as_str).to_owned()),
        ]
    }

    /// Whether everything is within the requested accuracy.
    pub fn is_reached(&self) -> bool {
        let near = |deviation: &Deviation| deviation.total_variation <= self.accuracy;
        near(&self.size)
            && near(&self.depth)
            && near(&self.age)
            && (self.fullness - self.fullness_asked).abs() <= self.accuracy
    }
}
