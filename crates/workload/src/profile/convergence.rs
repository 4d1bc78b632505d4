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

impl Bound {
    /// As records spell it.
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
            ("ended_by", self.ended_by.map_or("(goes on)", Bound::as_str).to_owned()),
        ]
    }

    /// Whether everything is as near as was asked.
    pub fn is_reached(&self) -> bool {
        let near = |deviation: &Deviation| deviation.total_variation <= self.accuracy;
        near(&self.size)
            && near(&self.depth)
            && near(&self.age)
            && (self.fullness - self.fullness_asked).abs() <= self.accuracy
    }
}
