//! Totals of a log.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use crate::{DoneStep, Outcome};

/// How a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Ended {
    /// The log ends with its trailer, whose totals and digest match.
    Complete,
    /// The log ends with a whole frame, but without a trailer.
    Unfinished,
    /// The log ends within a frame.
    Truncated {
        /// End of the last whole frame, bytes.
        at_bytes: u64,
    },
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Unfinished => f.write_str("unfinished: whole frames, but no trailer"),
            Self::Truncated { at_bytes } => write!(f, "truncated: the last whole frame ends at byte {at_bytes}"),
        }
    }
}

/// The contents of a log, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogSummary {
    /// Steps.
    pub steps: u64,
    /// Steps that count towards checkpoints.
    pub counted_steps: u64,
    /// Steps that failed for lack of space.
    pub no_space_steps: u64,
    /// Operations, including failed ones.
    pub operations: u64,
    /// The number of operations by kind.
    pub operations_by_kind: BTreeMap<String, u64>,
    /// Bytes written by contents, including those that a failed operation wrote.
    pub content_bytes: u64,
    /// Frames, including header and trailer.
    pub frames: u64,
    /// Uncompressed bytes of the steps.
    pub raw_bytes: u64,
    /// Bytes of the file up to the last whole frame.
    pub file_bytes: u64,
    /// XXH3-128 (hex) of the steps' uncompressed bytes: equal for equal steps, wherever frames end.
    pub digest: String,
    /// How the log ends.
    #[serde(flatten)]
    pub ended: Ended,
}

/// The trailer's fields, which must match the steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trailer {
    pub steps: u64,
    pub operations: u64,
    pub content_bytes: u64,
    pub raw_bytes: u64,
    pub digest: String,
}

/// Running totals, the same in the writer and in the reader.
#[derive(Clone, Default)]
pub(crate) struct Totals {
    pub steps: u64,
    counted_steps: u64,
    no_space_steps: u64,
    operations: u64,
    by_kind: BTreeMap<&'static str, u64>,
    content_bytes: u64,
    raw_bytes: u64,
    digest: Xxh3Default,
}

impl Totals {
    /// Adds a step as it is logged: of a failed one, the operations up to the failed one.
    pub fn add(&mut self, done: &DoneStep) {
        self.steps += 1;
        self.counted_steps += u64::from(done.step.counted);
        let (kept, partial) = match done.outcome {
            Outcome::Done => (done.step.ops.len(), None),
            Outcome::NoSpace { failed_op, written } => (failed_op + 1, Some(written.unwrap_or(0))),
        };
        self.no_space_steps += u64::from(partial.is_some());
        let mut contents = done.contents.iter();
        for (index, op) in done.step.ops.iter().take(kept).enumerate() {
            self.operations += 1;
            *self.by_kind.entry(op.kind()).or_default() += 1;
            if op.content().is_some() {
                let whole = contents.next().map_or(0, |&(len, _)| len);
                let written = partial.filter(|_| index + 1 == kept).unwrap_or(whole);
                self.content_bytes = self.content_bytes.saturating_add(written);
            }
        }
    }

    /// Adds the uncompressed bytes of a frame.
    pub fn add_raw(&mut self, raw: &[u8]) {
        self.raw_bytes += raw.len() as u64;
        self.digest.update(raw);
    }

    pub fn trailer(&self) -> Trailer {
        Trailer {
            steps: self.steps,
            operations: self.operations,
            content_bytes: self.content_bytes,
            raw_bytes: self.raw_bytes,
            digest: format!("{:032x}", self.digest.digest128()),
        }
    }

    pub fn summary(&self, frames: u64, file_bytes: u64, ended: Ended) -> LogSummary {
        LogSummary {
            steps: self.steps,
            counted_steps: self.counted_steps,
            no_space_steps: self.no_space_steps,
            operations: self.operations,
            operations_by_kind: self.by_kind.iter().map(|(&kind, &count)| (kind.to_owned(), count)).collect(),
            content_bytes: self.content_bytes,
            frames,
            raw_bytes: self.raw_bytes,
            file_bytes,
            digest: self.trailer().digest,
            ended,
        }
    }
}
