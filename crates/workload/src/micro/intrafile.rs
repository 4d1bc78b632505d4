//! Round-robin append.

use senesce_core::{Bytes, Rng, Seed};
use senesce_oplog::{Content, Op, Outcome, Step};

use super::rounds::{InRounds, Rounds, next_step};
use crate::{Feedback, Workload, WorkloadError, generated_paths::path};

/// When appends are flushed to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// An fsync after every append.
    Append,
    /// A sync of the whole file system after every append.
    AppendAll,
    /// A sync of the whole file system after every round.
    Round,
}

/// Parameters of [`Intrafile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntrafileOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// The number of files.
    pub files: u64,
    /// Their initial size, bytes.
    pub file_bytes: u64,
    /// Bytes that a round appends to each file.
    pub append_bytes: u64,
    /// The number of rounds.
    pub rounds: u64,
    /// When appends are flushed to the device.
    pub push: Push,
    /// A factor for the number of files and for their initial size.
    pub scale: u64,
}

impl IntrafileOptions {
    /// The published parameters: 10 files of 256 KiB, 100 rounds of 4 KiB.
    pub fn paper(seed: Seed) -> Self {
        Self {
            seed,
            files: 10,
            file_bytes: 256 * Bytes::KIB,
            append_bytes: 4 * Bytes::KIB,
            rounds: 100,
            push: Push::Append,
            scale: 1,
        }
    }

    fn scaled(&self) -> (u64, u64) {
        (self.files.saturating_mul(self.scale), self.file_bytes.saturating_mul(self.scale))
    }

    /// The initial size of all files, bytes.
    pub fn first_state_bytes(&self) -> u64 {
        let (files, bytes) = self.scaled();
        files.saturating_mul(bytes)
    }

    /// Errors: a parameter out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let (files, bytes) = self.scaled();
        for (name, value) in [("files", files), ("append_bytes", self.append_bytes)] {
            if value == 0 || value > 1 << 32 {
                let problem = "must be between 1 and 4294967296";
                return Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
            }
        }
        if bytes > 1 << 40 {
            let problem = "must be at most 1 TiB";
            return Err(WorkloadError::Parameter { name: "file_bytes", value: bytes.to_string(), problem });
        }
        Ok(())
    }
}

/// Files that grow in turn. Steps: `make the files` (not counted), then `round R` (counted).
pub struct Intrafile {
    options: IntrafileOptions,
    content: Rng,
    rounds: Rounds,
}

impl Intrafile {
    /// Errors: a parameter out of its range.
    pub fn new(options: IntrafileOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let content = Rng::for_purpose(options.seed, "intrafile content");
        Ok(Self { options, content, rounds: Rounds::new(options.rounds) })
    }

    fn content(&mut self, len: u64) -> Content {
        Content::Seeded { seed: self.content.next_u64(), len }
    }
}

impl InRounds for Intrafile {
    const ROOT: &str = "append";
    const FIRST: &str = "make the files";

    fn rounds(&mut self) -> &mut Rounds {
        &mut self.rounds
    }

    fn make(&mut self) -> Vec<Op> {
        let (files, len) = self.options.scaled();
        let mut ops = vec![Op::Mkdir { path: path(""), mode: 0o755 }];
        for file in 0..files {
            ops.push(Op::Create { path: path(&format!("f{file:05}")), mode: 0o644, content: self.content(len) });
        }
        ops.push(Op::SyncFs);
        ops
    }

    fn round(&mut self, number: u64) -> Vec<Op> {
        let (files, len) = self.options.scaled();
        let append = self.options.append_bytes;
        let offset = len + append * (number - 1);
        let mut ops = Vec::new();
        for file in 0..files {
            let at = path(&format!("f{file:05}"));
            ops.push(Op::Write { path: at.clone(), offset, content: self.content(append) });
            match self.options.push {
                Push::Append => ops.push(Op::Fsync { path: at }),
                Push::AppendAll => ops.push(Op::SyncFs),
                Push::Round => {}
            }
        }
        if self.options.push == Push::Round {
            ops.push(Op::SyncFs);
        }
        ops
    }
}

impl Workload for Intrafile {
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
