//! Parameters of the overwriting workloads.

use senesce_core::{Bytes, Seed};

use super::request::BLOCK_BYTES;
use crate::{Feedback, WorkloadError};

/// The pattern of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Three files under a load similar to SPC-1.
    Oltp,
    /// Requests of one size at random multiples of it, all equally likely.
    Random {
        /// The size, bytes; a multiple of 4 KiB.
        request_bytes: u64,
        /// The number of files that share the space.
        files: u64,
        /// Share of reads, percent.
        read_percent: u64,
    },
    /// Streams in turn. Each reads or writes a file of its own from start to end, repeatedly.
    Streams {
        /// The size of a request, bytes; a multiple of 4 KiB.
        request_bytes: u64,
        /// The number of streams.
        streams: u64,
        /// Share of the streams that read, percent, rounded down; the others overwrite.
        read_percent: u64,
    },
}

/// The space of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A fixed number of bytes.
    Bytes(u64),
    /// The size that brings the volume to this fullness, percent of its capacity.
    FillPercent(u64),
}

/// Parameters of [`Overwrite`](super::Overwrite).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverwriteOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// The pattern of the requests.
    pub pattern: Pattern,
    /// The space of the files.
    pub space: Space,
    /// Requests of a round.
    pub operations: u64,
    /// The number of rounds.
    pub rounds: u64,
}

impl OverwriteOptions {
    /// The size of all files, bytes; 0 if it depends on the volume.
    pub fn first_state_bytes(&self) -> u64 {
        if let Space::Bytes(bytes) = self.space { bytes } else { 0 }
    }

    /// Blocks of each file.
    pub(super) fn plan_files(&self, feedback: &Feedback) -> Result<Vec<u64>, WorkloadError> {
        let bytes = match self.space {
            Space::Bytes(bytes) => bytes,
            Space::FillPercent(percent) => {
                let target = u128::from(feedback.capacity.0) * u128::from(percent) / 100;
                let used = feedback.capacity.0.saturating_sub(feedback.free.0);
                (target as u64).saturating_sub(used)
            }
        };
        let blocks = bytes / BLOCK_BYTES;
        let files = match self.pattern {
            Pattern::Oltp => vec![blocks * 45 / 100, blocks * 45 / 100, blocks / 10],
            Pattern::Random { files, request_bytes, .. } | Pattern::Streams { streams: files, request_bytes, .. } => {
                let of_request = request_bytes / BLOCK_BYTES;
                vec![blocks / files / of_request * of_request; usize::try_from(files).unwrap_or(0)]
            }
        };
        // The walks need a few leaves in a twentieth of a file.
        let least = if self.pattern == Pattern::Oltp { 10_000 } else { 1 };
        if files.iter().any(|&file| file * 10 < least) {
            return Err(WorkloadError::VolumeTooSmall {
                label: "make the files".into(),
                capacity: feedback.capacity,
                problem: format!("the files would have {} in total, too little for the requests", Bytes(bytes)),
            });
        }
        Ok(files)
    }

    /// Errors: a parameter out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let wrong =
            |name, value: u64, problem| Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
        if self.operations == 0 || self.operations > 100_000_000 {
            return wrong("operations", self.operations, "must be between 1 and 100,000,000");
        }
        if let Space::FillPercent(percent) = self.space
            && !(1..=99).contains(&percent)
        {
            return wrong("fill_percent", percent, "must be between 1 and 99");
        }
        match self.pattern {
            Pattern::Oltp => Ok(()),
            Pattern::Random { request_bytes, files, read_percent }
            | Pattern::Streams { request_bytes, streams: files, read_percent } => {
                if request_bytes == 0 || !request_bytes.is_multiple_of(BLOCK_BYTES) || request_bytes > 1 << 30 {
                    return wrong("request_bytes", request_bytes, "must be a multiple of 4096, at most 1 GiB");
                }
                if files == 0 || files > 100_000 {
                    return wrong("files", files, "must be between 1 and 100,000");
                }
                if read_percent > 100 {
                    return wrong("read_percent", read_percent, "must be between 0 and 100");
                }
                Ok(())
            }
        }
    }
}
