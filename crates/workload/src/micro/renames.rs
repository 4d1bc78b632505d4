//! Directories that exchange their names.

use std::collections::BTreeMap;

use senesce_core::{Bytes, Rng, Seed};
use senesce_oplog::{Content, Op, Outcome, Step};

use super::rounds::{InRounds, Rounds, next_step};
use crate::{Feedback, Workload, WorkloadError, generated_paths::path};

/// Parameters of [`Renames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenamesOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// The number of directories.
    pub directories: u64,
    /// Files of a directory.
    pub files_per_directory: u64,
    /// The largest size of a file, bytes. The smallest is a sixth of it.
    pub file_bytes: u64,
    /// The number of rounds.
    pub rounds: u64,
    /// The share of the directories that a round renames, percent.
    pub percent: u64,
}

impl RenamesOptions {
    /// 2,000 directories of three files of 2 to 12 KiB. All directories exchange their names in
    /// each of 4 rounds.
    pub fn usual(seed: Seed) -> Self {
        Self { seed, directories: 2_000, files_per_directory: 3, file_bytes: 12 * Bytes::KIB, rounds: 4, percent: 100 }
    }

    /// Estimates the largest number of bytes that the files occupy; `u64::MAX` if the number
    /// overflows.
    pub fn first_state_bytes(&self) -> u64 {
        let files = self.directories.saturating_mul(self.files_per_directory);
        let blocks = self.file_bytes.div_ceil(4096).saturating_mul(files).saturating_add(self.directories);
        blocks.saturating_mul(4096)
    }

    /// Errors: a parameter out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        for (name, value, least, most, problem) in [
            ("directories", self.directories, 2, 1_000_000, "must be between 2 and 1,000,000"),
            ("files_per_directory", self.files_per_directory, 1, 1_000_000, "must be between 1 and 1,000,000"),
            ("file_size", self.file_bytes, 1, 1 << 40, "must be between 1 byte and 1 TiB"),
            ("percent", self.percent, 1, 100, "must be between 1 and 100"),
        ] {
            if !(least..=most).contains(&value) {
                return Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
            }
        }
        Ok(())
    }
}

/// Directories that exchange their names. Steps: `make the directories` (not counted), then
/// `round R` (counted). In a round a share of the directories exchange their names at random, each
/// through a temporary name.
///
/// The path order then differs from the write order, although no file changed.
pub struct Renames {
    options: RenamesOptions,
    order: Rng,
    sizes: Rng,
    rounds: Rounds,
}

impl Renames {
    /// Errors: a parameter out of its range.
    pub fn new(options: RenamesOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let rng = |purpose| Rng::for_purpose(options.seed, purpose);
        let (order, sizes) = (rng("renames order"), rng("renames sizes"));
        Ok(Self { options, order, sizes, rounds: Rounds::new(options.rounds) })
    }
}

impl InRounds for Renames {
    const ROOT: &str = "renames";
    const FIRST: &str = "make the directories";

    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn make(&mut self) -> Vec<Op> {
        let mut ops = vec![Op::Mkdir { path: path(""), mode: 0o755 }];
        for directory in 0..self.options.directories {
            ops.push(Op::Mkdir { path: path(&name(directory)), mode: 0o755 });
            for file in 0..self.options.files_per_directory {
                let most = self.options.file_bytes;
                let len = self.sizes.between(most.div_ceil(6), most);
                let content = Content::Seeded { seed: self.sizes.next_u64(), len };
                let path = path(&format!("{}/f{file:03}", name(directory)));
                ops.push(Op::Create { path, mode: 0o644, content });
            }
        }
        ops.push(Op::SyncFs);
        ops
    }

    fn round(&mut self, _: u64) -> Vec<Op> {
        let all = self.options.directories;
        let count = (u128::from(all) * u128::from(self.options.percent)).div_ceil(100).max(2) as u64;
        // The first `count` positions of a Fisher-Yates shuffle, without the rest of it.
        let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
        let chosen: Vec<u64> = (0..count)
            .map(|at| {
                let other = at + self.order.below(all - at);
                let here = moved.remove(&at).unwrap_or(at);
                if other == at { here } else { moved.insert(other, here).unwrap_or(other) }
            })
            .collect();
        let mut targets = chosen.clone();
        self.order.shuffle(&mut targets);
        let rename = |from: String, to: String| Op::Rename { from: path(&from), to: path(&to) };
        let away = chosen.iter().map(|&directory| rename(name(directory), format!("moving {}", name(directory))));
        let back = chosen.iter().zip(&targets).map(|(&from, &to)| rename(format!("moving {}", name(from)), name(to)));
        away.chain(back).chain([Op::SyncFs]).collect()
    }
}

fn name(directory: u64) -> String {
    format!("d{directory:06}")
}

impl Workload for Renames {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        next_step(self, feedback)
    }

    fn copies(&self) -> u64 {
        1
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        self.rounds.is_whole(last)
    }
}
