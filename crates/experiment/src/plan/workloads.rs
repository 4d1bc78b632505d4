//! Workloads that need no history, and their parameters as a plan gives them.

use schemars::JsonSchema;
use senesce_core::Seed;
use senesce_workload::fsfb::FsfbOptions;
use serde::{Deserialize, Serialize};

/// What makes the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// The table `history`: a repository, a synthetic history or a trace, in the given `edition`.
    #[default]
    History,
    /// FSFB, the free-space fragmentation benchmark (HotStorage 2019): table `workload.fsfb`.
    Fsfb,
    /// Profile-driven aging (ATC 2018): sizes, depths and ages of files as surveyed: table `workload.profile`.
    Profile,
}

impl WorkloadKind {
    /// As plans spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Fsfb => "fsfb",
            Self::Profile => "profile",
        }
    }
}

/// Which of two descriptions that disagree is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The text of the paper.
    #[default]
    Paper,
    /// The published scripts.
    Code,
}

/// FSFB. A counted step is a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FsfbPlan {
    /// `paper`: files of 1 to 150 KiB, 500 rounds; `code`: 1 to 150 times 1000 bytes, 600 rounds.
    pub variant: Variant,
    /// The share of the volume that is used after set-up and held from then on, percent. Used is what is not free to users.
    pub fill_percent: u64,
    /// The share of the files' bytes that a round replaces, percent.
    pub replace_percent: u64,
    /// Directories of the tree that set-up makes, its root included.
    pub directories: u64,
    /// Children that a directory has at most.
    pub children: u64,
    /// How many rounds; the variant's number by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
}

impl Default for FsfbPlan {
    fn default() -> Self {
        let published = FsfbOptions::paper(Seed(0));
        Self {
            variant: Variant::Paper,
            fill_percent: published.fill_percent,
            replace_percent: published.replace_percent,
            directories: published.directories,
            children: published.children,
            rounds: None,
        }
    }
}

impl FsfbPlan {
    /// In the words of the workload.
    pub fn options(&self, seed: Seed) -> FsfbOptions {
        let published = match self.variant {
            Variant::Paper => FsfbOptions::paper(seed),
            Variant::Code => FsfbOptions::code(seed),
        };
        FsfbOptions {
            fill_percent: self.fill_percent,
            replace_percent: self.replace_percent,
            directories: self.directories,
            children: self.children,
            rounds: self.rounds.unwrap_or(published.rounds),
            ..published
        }
    }
}
