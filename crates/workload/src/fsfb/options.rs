//! Parameters of FSFB, and the published ones.

use senesce_core::{Rng, Seed};

use crate::WorkloadError;

/// Sizes of files: `unit_bytes` times a number that is drawn uniformly from 1 to `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The unit, bytes: 1024 in the paper, 1000 in the published code.
    pub unit_bytes: u64,
    /// The largest multiple.
    pub most: u64,
}

impl Sizes {
    /// Draws one size, bytes.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.unit_bytes * rng.between(1, self.most)
    }

    /// The largest size, bytes.
    pub fn largest(&self) -> u64 {
        self.unit_bytes * self.most
    }
}

/// Parameters of [`Fsfb`](super::Fsfb).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsfbOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// Sizes of files.
    pub sizes: Sizes,
    /// Directories of the tree that set-up makes, its root included. Each round adds one.
    pub directories: u64,
    /// The largest number of children of a directory.
    pub children: u64,
    /// The used share of the capacity after set-up, percent. Used is all that is not free to users.
    pub fill_percent: u64,
    /// The share of the files' bytes that a round replaces, percent.
    pub replace_percent: u64,
    /// The number of rounds.
    pub rounds: u64,
}

impl FsfbOptions {
    /// The parameters of the paper: 1 to 150 KiB, 500 rounds.
    pub fn paper(seed: Seed) -> Self {
        Self {
            seed,
            sizes: Sizes { unit_bytes: 1024, most: 150 },
            directories: 1000,
            children: 10,
            fill_percent: 95,
            replace_percent: 5,
            rounds: 500,
        }
    }

    /// The parameters of the published code: 1 to 150 times 1000 bytes, 600 rounds.
    pub fn code(seed: Seed) -> Self {
        Self { sizes: Sizes { unit_bytes: 1000, most: 150 }, rounds: 600, ..Self::paper(seed) }
    }

    /// Errors: a parameter out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let wrong =
            |name, value: u64, problem| Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
        if self.sizes.unit_bytes == 0 || self.sizes.most == 0 {
            return wrong("sizes", 0, "must be at least one byte");
        }
        if self.directories == 0 {
            return wrong("directories", 0, "must be at least 1: the tree's root counts");
        }
        if self.children == 0 || self.children > 10_000 {
            return wrong("children", self.children, "must be between 1 and 10,000");
        }
        if !(1..=99).contains(&self.fill_percent) {
            return wrong("fill_percent", self.fill_percent, "must be between 1 and 99");
        }
        if !(1..=100).contains(&self.replace_percent) {
            return wrong("replace_percent", self.replace_percent, "must be between 1 and 100");
        }
        Ok(())
    }
}
