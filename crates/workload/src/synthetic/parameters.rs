//! The parameters of a synthetic history.

use senesce_core::Seed;

use crate::WorkloadError;

/// The parameters of a `linux-like` history. Everything else is fixed by the figures it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticParameters {
    /// The seed of the whole history.
    pub seed: Seed,
    /// Files in the first commit, 500 to 1,000,000. The number of directories follows (15 to 17
    /// files in each).
    pub start_files: u64,
    /// Commits of the main line after the first one. Those of side branches are additional (about
    /// 2.5 times this number).
    pub commits: u64,
}

impl Default for SyntheticParameters {
    /// Seed 0, 20,000 files, 1,000 commits.
    fn default() -> Self {
        Self { seed: Seed(0), start_files: 20_000, commits: 1_000 }
    }
}

impl SyntheticParameters {
    /// Errors: a parameter out of its range, by its name in plans and options.
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        if !(500..=1_000_000).contains(&self.start_files) {
            return Err(WorkloadError::Parameter {
                name: "files",
                value: self.start_files.to_string(),
                problem: "a synthetic history starts with 500 to 1,000,000 files",
            });
        }
        if self.commits > 10_000_000 {
            return Err(WorkloadError::Parameter {
                name: "commits",
                value: self.commits.to_string(),
                problem: "a synthetic history has at most 10,000,000 commits",
            });
        }
        Ok(())
    }
}
