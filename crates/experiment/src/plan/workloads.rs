//! Workloads without a history, and their parameters in a plan.

use schemars::JsonSchema;
use senesce_core::{Bytes, Seed};
use senesce_workload::{
    fsfb::FsfbOptions,
    mail::MailOptions,
    micro::{InterfileOptions, IntrafileOptions, Push, RenamesOptions},
    overwrite::{OverwriteOptions, Pattern, Space},
};
use serde::{Deserialize, Serialize};

use super::Size;

/// What makes the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// The table `history`: a repository, a synthetic history, a model or a trace, in the given
    /// `edition`.
    #[default]
    History,
    /// FSFB, the free-space fragmentation benchmark (HotStorage 2019): table `workload.fsfb`.
    Fsfb,
    /// Profile-driven aging (ATC 2018) to surveyed sizes, depths, ages: table `workload.profile`.
    Profile,
    /// A mail server with Maildirs (FAST 2017): table `workload.mail`.
    Mail,
    /// Files that grow in turn (FAST 2017): table `workload.intrafile`.
    Intrafile,
    /// Files copied in shuffled order (FAST 2017): table `workload.interfile`.
    Interfile,
    /// Directories renamed into another order: table `workload.renames`.
    Renames,
    /// Overwrites of large files: OLTP, random or streams (FAST 2019): table `workload.overwrite`.
    Overwrite,
    /// An operation log: of a recording, an aging or a run: table `workload.replay`.
    Replay,
}

impl WorkloadKind {
    /// The name in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Fsfb => "fsfb",
            Self::Profile => "profile",
            Self::Mail => "mail",
            Self::Intrafile => "intrafile",
            Self::Interfile => "interfile",
            Self::Renames => "renames",
            Self::Overwrite => "overwrite",
            Self::Replay => "replay",
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
    /// The share of the volume that is used after set-up and held from then on, percent. Used is
    /// all space that is not free to users.
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
    /// Converts to the options of the workload.
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

/// A mail server. A counted step is a cycle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MailPlan {
    /// How many users.
    pub users: u64,
    /// Mailboxes of a user.
    pub mailboxes: u64,
    /// Messages in a mailbox at the beginning.
    pub messages: u64,
    /// A message has 1 to this number of bytes, uniformly.
    pub largest: Size,
    /// Operations of a cycle, for each user.
    pub operations: u64,
    /// How many cycles.
    pub cycles: u64,
}

impl Default for MailPlan {
    fn default() -> Self {
        let published = MailOptions::paper(Seed(0));
        Self {
            users: published.users,
            mailboxes: published.mailboxes,
            messages: published.messages,
            largest: Size(Bytes(published.largest_bytes)),
            operations: published.operations,
            cycles: published.cycles,
        }
    }
}

impl MailPlan {
    /// Converts to the options of the workload.
    pub fn options(&self, seed: Seed) -> MailOptions {
        MailOptions {
            seed,
            users: self.users,
            mailboxes: self.mailboxes,
            messages: self.messages,
            largest_bytes: self.largest.0.0,
            operations: self.operations,
            cycles: self.cycles,
        }
    }
}

/// How appends reach the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushPlan {
    /// An fsync after every append.
    #[default]
    Append,
    /// The whole file system is synchronised after every append.
    AppendAll,
    /// The whole file system is synchronised after every round.
    Round,
}

/// Files that grow in turn. A counted step is a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IntrafilePlan {
    /// How many files.
    pub files: u64,
    /// Their size at the beginning.
    pub file_size: Size,
    /// Size that a round appends to each file.
    pub append: Size,
    /// How many rounds.
    pub rounds: u64,
    /// How appends reach the device.
    pub push: PushPlan,
    /// Multiplies the number of files and their size at the beginning.
    pub scale: u64,
}

impl Default for IntrafilePlan {
    fn default() -> Self {
        let published = IntrafileOptions::paper(Seed(0));
        Self {
            files: published.files,
            file_size: Size(Bytes(published.file_bytes)),
            append: Size(Bytes(published.append_bytes)),
            rounds: published.rounds,
            push: PushPlan::Append,
            scale: published.scale,
        }
    }
}

impl IntrafilePlan {
    /// Converts to the options of the workload.
    pub fn options(&self, seed: Seed) -> IntrafileOptions {
        IntrafileOptions {
            seed,
            files: self.files,
            file_bytes: self.file_size.0.0,
            append_bytes: self.append.0.0,
            rounds: self.rounds,
            push: match self.push {
                PushPlan::Append => Push::Append,
                PushPlan::AppendAll => Push::AppendAll,
                PushPlan::Round => Push::Round,
            },
            scale: self.scale,
        }
    }
}

/// Files copied in shuffled order, each copy to a new volume. A counted step is a copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InterfilePlan {
    /// How many files.
    pub files: u64,
    /// Their size.
    pub file_size: Size,
    /// Files of a directory.
    pub files_per_directory: u64,
    /// The shuffled share grows by this percentage from copy to copy.
    pub step_percent: u64,
}

impl Default for InterfilePlan {
    fn default() -> Self {
        let published = InterfileOptions::paper(Seed(0));
        Self {
            files: published.files,
            file_size: Size(Bytes(published.file_bytes)),
            files_per_directory: published.files_per_directory,
            step_percent: published.step_percent,
        }
    }
}

impl InterfilePlan {
    /// Converts to the options of the workload.
    pub fn options(&self, seed: Seed) -> InterfileOptions {
        InterfileOptions {
            seed,
            files: self.files,
            file_bytes: self.file_size.0.0,
            files_per_directory: self.files_per_directory,
            step_percent: self.step_percent,
        }
    }
}

/// Directories that exchange their names. A counted step is a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RenamesPlan {
    /// How many directories.
    pub directories: u64,
    /// Files of a directory.
    pub files_per_directory: u64,
    /// Their maximum size. The minimum is a sixth of it.
    pub file_size: Size,
    /// How many rounds.
    pub rounds: u64,
    /// How many of the directories exchange their names in a round, percent.
    pub percent: u64,
}

impl Default for RenamesPlan {
    fn default() -> Self {
        let usual = RenamesOptions::usual(Seed(0));
        Self {
            directories: usual.directories,
            files_per_directory: usual.files_per_directory,
            file_size: Size(Bytes(usual.file_bytes)),
            rounds: usual.rounds,
            percent: usual.percent,
        }
    }
}

impl RenamesPlan {
    /// Converts to the options of the workload.
    pub fn options(&self, seed: Seed) -> RenamesOptions {
        RenamesOptions {
            seed,
            directories: self.directories,
            files_per_directory: self.files_per_directory,
            file_bytes: self.file_size.0.0,
            rounds: self.rounds,
            percent: self.percent,
        }
    }
}

/// Which requests overwrite and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PatternPlan {
    /// Three files and eight streams, like SPC-1 (no SPC result).
    #[default]
    Oltp,
    /// Requests of one size at random places.
    Random,
    /// Each file from front to end and again, the files in turn.
    Streams,
}

/// Whether requests bypass the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IoPlan {
    /// O_DIRECT, as databases do.
    #[default]
    Direct,
    /// Through the page cache.
    Buffered,
}

/// Overwrites of large files. A counted step is a round of operations, synchronised at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverwritePlan {
    /// Which requests.
    pub pattern: PatternPlan,
    /// Whether requests bypass the page cache.
    pub io: IoPlan,
    /// Size of all files together.
    pub size: Size,
    /// Instead of `size`: the fullness of the volume in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_percent: Option<u64>,
    /// Files (`random`, `streams`).
    pub files: u64,
    /// Size of a request (`random`, `streams`); a multiple of 4 KiB.
    pub request: Size,
    /// Share of reads (`random`) or of streams that read (`streams`), percent.
    pub read_percent: u64,
    /// Requests of a round.
    pub operations: u64,
    /// How many rounds.
    pub rounds: u64,
}

impl Default for OverwritePlan {
    fn default() -> Self {
        Self {
            pattern: PatternPlan::Oltp,
            io: IoPlan::Direct,
            size: Size::mib(1024),
            fill_percent: None,
            files: 1,
            request: Size(Bytes(4 * Bytes::KIB)),
            read_percent: 0,
            operations: 10_000,
            rounds: 100,
        }
    }
}

impl OverwritePlan {
    /// Converts to the options of the workload.
    pub fn options(&self, seed: Seed) -> OverwriteOptions {
        let (request_bytes, files, read_percent) = (self.request.0.0, self.files, self.read_percent);
        OverwriteOptions {
            seed,
            pattern: match self.pattern {
                PatternPlan::Oltp => Pattern::Oltp,
                PatternPlan::Random => Pattern::Random { request_bytes, files, read_percent },
                PatternPlan::Streams => Pattern::Streams { request_bytes, streams: files, read_percent },
            },
            space: match self.fill_percent {
                Some(percent) => Space::FillPercent(percent),
                None => Space::Bytes(self.size.0.0),
            },
            operations: self.operations,
            rounds: self.rounds,
        }
    }
}
