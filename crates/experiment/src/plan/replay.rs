//! The parameters of a replayed log in a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A log replayed. A counted step is one of the log's, or several put together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayPlan {
    /// The operation log: of `senesce record`, of `senesce age --log`, of an arm of a run.
    pub log: String,
    /// The repository that the log's contents come from, if it has moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Steps of the log are joined until they have this number of operations or 16 MiB of contents.
    /// 0: they stay as they are. By default 1,000 for recordings, whose steps are single
    /// operations, and 0 for the logs of workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// How often the log is replayed. Each repetition has its own directory (`repeat-1`,
    /// `repeat-2`, …) if there are several. If space runs out, the oldest repetition is removed and
    /// the step continues.
    pub repeat: u64,
    /// Repetitions that stay at most: the oldest is removed before one more. All, by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
}

impl ReplayPlan {
    /// Operations of a counted step of a recording, unless the plan sets it.
    pub const RECORDED_OPERATIONS: u64 = 1_000;

    /// Repetitions that are on a volume at the end, if they all fit.
    pub fn repetitions_that_stay(&self) -> u64 {
        self.keep.unwrap_or(self.repeat).min(self.repeat)
    }
}

impl Default for ReplayPlan {
    fn default() -> Self {
        Self { log: String::new(), repo: None, operations: None, repeat: 1, keep: None }
    }
}
