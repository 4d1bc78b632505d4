//! Plan files: the workload, the file systems, the volumes, and the measurements.
//!
//! A plan is TOML, and `format` names its version. Unknown keys are refused. [`Plan::parse`] reads
//! a plan. [`Plan::arms`] expands it.

mod arms;
mod cure;
mod devices;
mod did_you_mean;
mod error;
mod file_system;
mod messages;
mod parse;
mod profile;
mod published;
mod reference;
mod relative_paths;
mod replay;
mod schema;
mod setting;
mod size;
mod unused_keys;
mod volume_plan;
mod workloads;

use schemars::JsonSchema;
use senesce_core::Seed;
use senesce_store::Published;
use serde::{Deserialize, Serialize};

pub use arms::{Arm, PlannedCell};
pub use cure::{CureAt, CurePlan, CureStrategy, CureTool};
pub(crate) use devices::find_device;
pub use did_you_mean::is_foreign;
pub use error::PlanError;
pub use file_system::{FileSystem, FileSystemName, GardeningName};
pub(crate) use parse::{is_name, parse_format};
pub use profile::{ContentName, ProfilePlan, ScheduleName, SizesName};
pub(crate) use published::with_titles;
pub use reference::plan_reference;
pub use replay::ReplayPlan;
pub use schema::plan_schema_json;
pub use setting::Setting;
pub(crate) use setting::insert;
pub use size::{AutoSize, Size, StartAt};
pub use workloads::{
    FsfbPlan, InterfilePlan, IntrafilePlan, IoPlan, MailPlan, OverwritePlan, PatternPlan, PushPlan, RenamesPlan,
    Variant, WorkloadKind,
};

/// The version this program writes and reads.
pub const PLAN_FORMAT: &str = "senesce-plan/1";

/// A whole experiment, as written in a plan file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the plan format: `senesce-plan/1`.
    pub format: String,
    /// Short name; part of the run directory's name.
    pub name: String,
    /// The purpose of the plan, for readers of the report.
    #[serde(default)]
    pub description: String,
    /// The seed of all random choices.
    #[serde(default = "default_seed")]
    #[schemars(with = "u64")]
    pub seed: Seed,
    /// The source of the steps, unless the workload needs no history.
    #[serde(default)]
    pub history: History,
    /// The workload that runs the steps.
    #[serde(default)]
    pub workload: WorkloadPlan,
    /// When and how to measure.
    #[serde(default)]
    pub measure: Measure,
    /// The volumes of every arm.
    #[serde(default)]
    pub volumes: Volumes,
    /// The file systems to compare; each is formatted afresh.
    #[serde(rename = "file_system")]
    pub file_systems: Vec<FileSystem>,
    /// Values that a publication prints. `senesce show` and the report print those of the run
    /// beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

impl Plan {
    /// The name of the counted steps, in the plural: the unit of checkpoints in reports.
    pub fn step_unit(&self) -> &'static str {
        match self.workload.kind {
            WorkloadKind::History if self.history.trace.is_some() => "commits",
            WorkloadKind::History => "pulls",
            WorkloadKind::Mail => "cycles",
            WorkloadKind::Interfile => "copies",
            WorkloadKind::Replay => "steps",
            WorkloadKind::Fsfb
            | WorkloadKind::Profile
            | WorkloadKind::Intrafile
            | WorkloadKind::Renames
            | WorkloadKind::Overwrite => "rounds",
        }
    }
}

/// The source of the steps. Exactly one of `repo`, `synthetic`, `like` and `trace`, or none if the
/// workload needs no history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct History {
    /// A git repository: a path, or a URL to clone first (off the tested volumes).
    pub repo: Option<String>,
    /// A git history made from the seed.
    pub synthetic: Option<Synthetic>,
    /// A git history made from the seed and a model file of `senesce synth --like`.
    pub like: Option<String>,
    /// A size-only trace file (plain or .xz).
    pub trace: Option<String>,
    /// The commit whose ancestors are replayed; the repository's HEAD by default.
    pub tip: Option<String>,
    /// Follow only first parents.
    pub first_parent: bool,
    /// Number of the commit that the copies start at (0 is the oldest), or `"auto"`.
    pub start: StartAt,
    /// How many pulls (commits of a trace) to make at most; all by default.
    pub pulls: Option<u64>,
}

/// Parameters of the synthetic history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Synthetic {
    /// The statistics to follow; only `linux-like` is known.
    pub model: String,
    /// Files in the first commit.
    pub files: u64,
    /// Commits after the first.
    pub commits: u64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self { model: "linux-like".into(), files: 20_000, commits: 1_000 }
    }
}

/// The published experiment to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Edition {
    /// One repository on an otherwise empty volume (FAST 2017): the volumes *empty* and *unaged*.
    #[default]
    Single,
    /// Copies fill the volume to `fill_percent`, then one pull per copy in turn (HotStorage 2019,
    /// text).
    FullDiskPaper,
    /// `copies` copies. The last copy is deleted when free space runs low (HotStorage 2019,
    /// scripts).
    FullDiskCode,
}

/// The program that issues the file operations of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// This program, the same operations that git issues.
    Native,
    /// The real git binary.
    Git,
}

/// The workload that runs the steps. A list makes one arm for every value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadPlan {
    /// The source of the steps: the history, or a workload that needs none.
    pub kind: WorkloadKind,
    /// The published experiment that uses the history.
    pub edition: Edition,
    /// The program that issues the operations; an arm for each.
    pub engine: Vec<Engine>,
    /// Whether `git gc --auto` repacks at its thresholds; an arm for each.
    pub gc: Vec<bool>,
    /// Full-disk edition of the paper: how full the copies make the volume, percent.
    pub fill_percent: u64,
    /// Full-disk edition of the scripts: how many copies.
    pub copies: u64,
    /// Full-disk edition of the scripts: if less than this is free, the last copy is deleted before
    /// a round.
    pub keep_free: Size,
    /// Operations between synchronisations of the file system, because the pace of commits changes
    /// the layout. 0: never.
    pub sync_every_operations: u64,
    /// Operations between two commits of a volume that settles: each file is written back at once,
    /// on one processor, and work that the kernel would do later is done now. Then two runs of the
    /// plan have the same layout on ext4 and Btrfs, and on XFS if they are short. It changes the
    /// layout. Btrfs commits after at most 32 operations, and discards its free space after each
    /// mount. 0: the kernel chooses.
    #[serde(skip_serializing_if = "is_zero")]
    pub settle_every_operations: u64,
    /// Parameters of `kind = "fsfb"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsfb: Option<FsfbPlan>,
    /// Parameters of `kind = "profile"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfilePlan>,
    /// Parameters of `kind = "mail"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail: Option<MailPlan>,
    /// Parameters of `kind = "intrafile"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intrafile: Option<IntrafilePlan>,
    /// Parameters of `kind = "interfile"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interfile: Option<InterfilePlan>,
    /// Parameters of `kind = "renames"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renames: Option<RenamesPlan>,
    /// Parameters of `kind = "overwrite"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<OverwritePlan>,
    /// Parameters of `kind = "replay"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayPlan>,
}

impl WorkloadPlan {
    /// Operations between two commits of a volume that settles. `None`: volumes do not settle.
    pub fn settle(&self) -> Option<u64> {
        (self.settle_every_operations > 0).then_some(self.settle_every_operations)
    }
}

impl Default for WorkloadPlan {
    fn default() -> Self {
        Self {
            kind: WorkloadKind::History,
            edition: Edition::Single,
            engine: vec![Engine::Native],
            gc: vec![false],
            fill_percent: 75,
            copies: 10,
            keep_free: Size::mib(500),
            sync_every_operations: 2_000,
            settle_every_operations: 0,
            fsfb: None,
            profile: None,
            mail: None,
            intrafile: None,
            interfile: None,
            renames: None,
            overwrite: None,
            replay: None,
        }
    }
}

/// The program that runs the grep test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scanner {
    /// The scanner in this program.
    #[default]
    Senesce,
    /// GNU grep, as in the papers.
    Grep,
}

/// The order in which the grep test visits the entries of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScanOrder {
    /// As readdir gives them.
    #[default]
    Readdir,
    /// By name.
    Sorted,
    /// By inode number.
    Inode,
}

/// The checkpoints at which the grep test runs. Layout, free space and modelled costs are measured
/// at every checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAt {
    /// At every checkpoint.
    #[default]
    EveryCheckpoint,
    /// All repetitions at the first and the last checkpoint, one at the others.
    OnceBetween,
    /// At the first and the last checkpoint only: more repetitions in the same time.
    FirstAndLast,
}

/// When and how to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// A checkpoint after this many pulls, besides the first (before any) and the last.
    pub every: u64,
    /// The program that runs the grep test.
    pub scanner: Scanner,
    /// The order of the scanner. GNU grep has its own.
    pub order: ScanOrder,
    /// Cold runs that are not recorded.
    pub warmups: u64,
    /// Cold runs that are recorded.
    pub repetitions: u64,
    /// If other work disturbed repetitions of a volume, it is read up to N more times. 2 by
    /// default; 0: never. All repetitions are stored.
    #[serde(skip_serializing_if = "is_usual_repeat")]
    pub repeat_disturbed: u64,
    /// The checkpoints at which the grep test runs.
    #[serde(skip_serializing_if = "is_default")]
    pub read_at: ReadAt,
    /// Devices whose read costs are modelled: built-in ones (`senesce device list`) or files in
    /// TOML.
    pub devices: Vec<String>,
    /// One more cold run at every checkpoint, with a trace of its block requests. The kernel traces
    /// exactly the volume's device. A disk in virtual time has its own log.
    #[serde(skip_serializing_if = "is_false")]
    pub trace: bool,
    /// Synchronises the file system after every step, and measures that time separately. This
    /// changes the aging, because no data is left to be written later.
    #[serde(skip_serializing_if = "is_false")]
    pub sync_steps: bool,
    /// Keeps a copy of the images of the last checkpoint, so that a killed run resumes there.
    pub snapshots: bool,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            every: 100,
            scanner: Scanner::default(),
            order: ScanOrder::default(),
            warmups: 0,
            repetitions: 1,
            repeat_disturbed: REPEAT_DISTURBED,
            read_at: ReadAt::default(),
            devices: vec!["hdd-7200".to_owned()],
            trace: false,
            sync_steps: false,
            snapshots: true,
        }
    }
}

/// The storage of volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Sparse images on a loop device with direct I/O.
    #[default]
    Image,
    /// Images in memory (tmpfs): for structure, not for times.
    Memory,
}

/// One volume: a size (an image is made) or a place that exists and may be destroyed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum VolumePlan {
    /// An image of this size; `"auto"` follows from the history.
    Size(AutoSize),
    /// A block device or directory, named as scratch: its content may be destroyed.
    Place(Place),
    /// This volume is left out; only the unaged one can be.
    Absent(Absent),
}

/// A volume that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// `"none"`
    None,
}

impl VolumePlan {
    /// Whether it is a directory, which is not formatted or mounted.
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Place(place) if place.directory.is_some())
    }
}

/// A block device or directory, named as scratch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// A block device to format.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<String>,
    /// An existing directory. The volume is a new directory in it. Nothing is formatted, so it
    /// needs no root. But the metadata stays in the cache, and no unaged twin can be made there.
    /// Needs a file system of kind `host`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub directory: Option<String>,
}

/// The volumes of every arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Volumes {
    /// The storage of images: on disk or in memory.
    pub backend: Backend,
    /// Directory for images; inside the run directory by default.
    pub dir: Option<String>,
    /// A device to model. The images are then disks in virtual time, with the times of this device.
    /// A built-in one (`senesce device list`) or a description in TOML. By default the images' own
    /// times count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The modelled device needs real time: every reply waits until it is due.
    pub real_time: bool,
    /// Read-ahead of the block device, KiB. It is fixed, because it changes read costs.
    pub read_ahead_kib: u32,
    /// The volume that is nearly full: of full-disk editions, and of other workloads that fill one.
    pub full: VolumePlan,
    /// The volume with plenty of space.
    pub empty: VolumePlan,
    /// The volume for fresh copies.
    pub unaged: VolumePlan,
}

impl Default for Volumes {
    fn default() -> Self {
        let auto = || VolumePlan::Size(AutoSize::Auto);
        Self {
            backend: Backend::Image,
            dir: None,
            device: None,
            real_time: false,
            read_ahead_kib: 128,
            full: auto(),
            empty: auto(),
            unaged: auto(),
        }
    }
}

/// Default values are not written, for the same reason as in [`is_false`].
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `false` is not written, so that a plan from before the key existed keeps its text and its hash.
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// The default number of additional reads of a disturbed volume.
const REPEAT_DISTURBED: u64 = 2;

/// The default is not written, for the same reason as in [`is_false`].
fn is_usual_repeat(value: &u64) -> bool {
    *value == REPEAT_DISTURBED
}

fn default_seed() -> Seed {
    Seed(1)
}
