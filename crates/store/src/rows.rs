//! The rows of the result tables. Every table is one row type; units are in the column names.
//!
//! Vocabulary: a *run* executes one plan. An *arm* is one file system with its options under one
//! variant of the workload. A *cell* is one volume (full, empty or unaged) of an arm at one
//! checkpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The volume of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Aged while nearly full.
    Full,
    /// Aged by the same operations on a volume with plenty of space.
    Empty,
    /// The same tree, freshly copied to a fresh file system.
    Unaged,
    /// The full volume after a cure.
    CuredFull,
    /// The empty volume after a cure.
    CuredEmpty,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] = [Role::Full, Role::Empty, Role::Unaged, Role::CuredFull, Role::CuredEmpty];

    /// The role as the tables spell it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Full => "full",
            Role::Empty => "empty",
            Role::Unaged => "unaged",
            Role::CuredFull => "cured-full",
            Role::CuredEmpty => "cured-empty",
        }
    }

    /// The role of that name.
    pub fn of_name(name: &str) -> Option<Role> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The same volume after a cure. A fresh copy is never cured.
    pub fn cured(self) -> Role {
        match self {
            Role::Full | Role::CuredFull => Role::CuredFull,
            Role::Empty | Role::CuredEmpty => Role::CuredEmpty,
            Role::Unaged => Role::Unaged,
        }
    }

    /// The same volume before a cure.
    pub fn uncured(self) -> Role {
        match self {
            Role::Full | Role::CuredFull => Role::Full,
            Role::Empty | Role::CuredEmpty => Role::Empty,
            Role::Unaged => Role::Unaged,
        }
    }

    /// Whether it is a volume after a cure.
    pub fn is_cured(self) -> bool {
        self != self.uncured()
    }
}

/// The key of a cell: the first columns of every table of measurements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CellKey {
    /// The arm's name, unique in the run: `ext4`, `xfs-gc`, `btrfs-git`.
    pub arm: String,
    /// The file system: `ext4`, `xfs`, `btrfs`.
    pub file_system: String,
    /// The volume.
    pub role: Role,
    /// The checkpoint, as the number of counted steps (pulls) before it.
    pub pulls: u64,
}

/// Table `cells`: one row per cell, valid or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Whether every step of the cell was verified; if not, its measurements must not be used.
    pub valid: bool,
    /// The reason why it is invalid; empty if valid.
    pub reason: String,
    /// Hash (hex) over paths, types, modes, sizes and contents of the whole tree; equal for full,
    /// empty and unaged.
    pub tree_hash: String,
    /// The same hash without anything below a `.git` directory. It is equal for a native and a real
    /// git replay.
    pub work_tree_hash: String,
    /// Files in the tree.
    pub files: u64,
    /// Directories in the tree.
    pub directories: u64,
    /// Sum of the files' sizes, bytes.
    pub content_bytes: u64,
    /// The capacity of the file system, bytes.
    pub capacity_bytes: u64,
    /// Space that is not free to users, bytes: in use, or reserved.
    pub used_bytes: u64,
}

impl CellRow {
    /// A cell without figures. It is valid if `reason` is empty.
    pub fn without_figures(key: CellKey, reason: &str) -> Self {
        Self {
            key,
            valid: reason.is_empty(),
            reason: reason.to_owned(),
            tree_hash: String::new(),
            work_tree_hash: String::new(),
            files: 0,
            directories: 0,
            content_bytes: 0,
            capacity_bytes: 0,
            used_bytes: 0,
        }
    }
}

/// Table `grep`: one row per repetition of the grep test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrepRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Repetition, from 0.
    pub repetition: u64,
    /// `senesce` (the scanner in this program) or `grep` (GNU grep).
    pub scanner: String,
    /// Order of the walk: `readdir`, `sorted`, `inode`.
    pub order: String,
    /// How the cache was made cold: `remount+direct-io`, …; `warm` if it was not.
    pub cache: String,
    /// Wall time, seconds.
    pub wall_seconds: f64,
    /// Allocated size of the tree as `du -s` reports it, bytes.
    pub allocated_bytes: u64,
    /// The grep cost: wall seconds per GiB of allocated size.
    pub seconds_per_gib: f64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Files read.
    pub files: u64,
    /// CPU time in user mode, seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, seconds.
    pub system_seconds: f64,
    /// Bytes that the block device read during the test, from its statistics; none in a directory.
    pub device_read_bytes: Option<u64>,
    /// Read requests of the block device during the test; none in a directory.
    pub device_read_requests: Option<u64>,
    /// Whether the CPU, not the device, limited the speed. The figure then needs a warning.
    pub cpu_bound: bool,
    /// The FUSE floor: wall seconds of the same test of the same tree from memory, through the same
    /// FUSE adapter. NaN if the volume is not mounted through FUSE, or if it was not measured.
    pub fuse_floor_seconds: f64,
}

/// Table `load`: the other work of the machine during a repetition of the grep test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// The repetition, as in table `grep`.
    pub repetition: u64,
    /// The disturbances beyond the limits, in words; empty if there were none.
    pub disturbance: String,
    /// Load average of the last minute, at the end of the test. This and the following
    /// floating-point figures are NaN if unknown.
    pub load_average: f64,
    /// Time in which some task waited for a processor, seconds.
    pub cpu_pressure_seconds: f64,
    /// Time in which some task waited for a drive, seconds.
    pub io_pressure_seconds: f64,
    /// Time in which some task waited for memory, seconds.
    pub memory_pressure_seconds: f64,
    /// Time in which the hypervisor ran another machine, summed over all processors, seconds.
    pub steal_seconds: f64,
    /// Time in user mode of senesce with all its servers, seconds.
    pub own_user_seconds: f64,
    /// Time in user mode of all other processes, seconds.
    pub other_user_seconds: f64,
    /// Time of all processors in the kernel, seconds.
    pub kernel_seconds: f64,
    /// Processors that were online; 0 if unknown.
    pub processors: u64,
    /// Bytes that the volume's own device moved.
    pub own_drive_bytes: f64,
    /// Bytes that the drives below it moved for others.
    pub other_drive_bytes: f64,
}

/// Table `layout`: the static layout of a cell, from its extents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Address space of the extents: `device` or `btrfs-logical`.
    pub space: String,
    /// Files with at least one data extent.
    pub files: u64,
    /// Files with more than one extent.
    pub fragmented_files: u64,
    /// Extents of all files, adjacent ones merged.
    pub extents: u64,
    /// Blocks (4 KiB) of all files.
    pub blocks: u64,
    /// Mean extents per file.
    pub extents_per_file: f64,
    /// Aggregate layout score (Smith and Seltzer 1997), 0..1; NaN if no file has two blocks.
    pub layout_score: f64,
    /// Share (0..1) of files that start where the previous file in directory order ends.
    pub adjacent_files_share: f64,
    /// The same share for files in path order, bytewise.
    pub path_adjacent_files_share: f64,
}

/// Table `free_space`: one row per bucket of a cell's free extents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FreeSpaceRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Smallest extent of the bucket, bytes (a power of two); the bucket ends below twice this.
    pub bucket_bytes: u64,
    /// Free extents in the bucket.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Table `modelled`: the cost of a cold read of a cell's tree on a described device. A model, not a
/// measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// The device: `model: HDD 7.2K`.
    pub device: String,
    /// The source of the requests. `extents`: predicted from the map of the tree. `trace`: the
    /// reads of a traced grep test, replayed one by one. `virtual-time`: the grep test's own
    /// requests, served by a disk in virtual time; one row for each repetition.
    pub method: String,
    /// Modelled seconds.
    pub seconds: f64,
    /// The same if every content followed the content that is read before it, and metadata stayed.
    /// NaN for methods other than `extents`, and in older results.
    pub best_order_seconds: f64,
    /// The same per GiB of allocated size, as in the grep test.
    pub seconds_per_gib: f64,
    /// Requests.
    pub requests: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
}

/// Table `trace`: the requests to the block device in one cold grep test, reads and writes
/// separately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// The recorder: `tracefs` (the kernel), or `virtual-disk` (the log of a disk in virtual time).
    pub source: String,
    /// `read` or `write`; the figures are about these requests alone, in issue order.
    pub access: String,
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their blocks of 4 KiB, rounded up for each request.
    pub blocks: u64,
    /// Requests that do not start where the previous one ended; the first does not count.
    pub discontinuities: u64,
    /// Dynamic layout score (FAST 2017): 1 - discontinuities / blocks; NaN without requests.
    pub dynamic_layout_score: f64,
    /// Sum of the distances from the end of a request to the start of the next, bytes.
    pub seek_bytes: u64,
    /// Chain length (FAST 2019): mean blocks of a request; NaN without requests.
    pub blocks_per_request: f64,
    /// Chains: maximal sequences of requests in which each starts where the previous one ended.
    pub chains: u64,
    /// Mean blocks of a chain; NaN without requests.
    pub blocks_per_chain: f64,
    /// Lost events of the whole trace; if not 0, requests are missing.
    pub lost_events: u64,
}

/// Table `trace_buckets`: the histograms of a cell's trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceBucketRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// `read` or `write`.
    pub access: String,
    /// `request-size`; or `seek-distance`, from the end of a request to the start of the next, up
    /// or down.
    pub histogram: String,
    /// Smallest value of the bucket, bytes: a power of two, or 0 for no distance; the bucket ends
    /// below twice this. Distances are rounded up to whole blocks of 4 KiB.
    pub bucket_bytes: u64,
    /// Requests in the bucket.
    pub requests: u64,
    /// For sizes, the bytes of these requests; for distances none.
    pub bytes: Option<u64>,
}

/// Table `maps`: one row per non-empty cell of the map of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Cells on each side of the picture.
    pub side: u64,
    /// Bytes of a cell.
    pub cell_bytes: u64,
    /// The cell, counted along the volume from 0.
    pub cell: u64,
    /// Bytes of files in it.
    pub used_bytes: u64,
    /// Free bytes in it.
    pub free_bytes: u64,
    /// Extents that overlap it.
    pub extents: u64,
    /// Position in the tree of the file with the most bytes in it: 0 the first, 1 the last; NaN for
    /// metadata alone.
    pub place: f64,
    /// The path of that file (or directory) from the volume's root; none for metadata alone, and in
    /// older results.
    pub path: Option<String>,
}

/// Table `aging`: the operations on one volume between the previous checkpoint and this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgingRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Steps, counted and not.
    pub steps: u64,
    /// Operations.
    pub operations: u64,
    /// Bytes of content written.
    pub written_bytes: u64,
    /// Steps that ended because of a lack of space.
    pub no_space_steps: u64,
    /// Copies of the repository that exist at this checkpoint.
    pub copies: u64,
    /// Wall time of the steps, seconds.
    pub wall_seconds: f64,
    /// CPU time of the whole process in user mode during the steps, seconds.
    pub user_seconds: f64,
    /// CPU time of the whole process in the kernel during the steps, seconds.
    pub system_seconds: f64,
    /// Bytes that the block device wrote from the end of the previous checkpoint until the volume
    /// was unmounted; none in a directory, and in older results.
    pub device_written_bytes: Option<u64>,
}

/// Table `latency`: the latencies of the operations that aged a volume, since the previous
/// checkpoint, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// `create`, `write`, `rename`, `unlink`, `fsync`, `syncfs`, …; `all` combines all but `fsync`
    /// and `syncfs`.
    pub operation: String,
    /// Operations.
    pub operations: u64,
    /// Sum of their times, seconds.
    pub total_seconds: f64,
    /// The median, seconds; like the next two within 0.1%.
    pub p50_seconds: f64,
    /// The 99th percentile, seconds.
    pub p99_seconds: f64,
    /// The 99.9th percentile, seconds.
    pub p99_9_seconds: f64,
    /// The maximum, seconds; exact.
    pub max_seconds: f64,
}

/// Table `steps`: one row per step that aged a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// Its number in the operation log, from 0.
    pub step: u64,
    /// Whether it counts towards checkpoints.
    pub counted: bool,
    /// Operations; 0 if the git binary did it.
    pub operations: u64,
    /// Bytes of content written; 0 if the git binary did it.
    pub written_bytes: u64,
    /// Whether it ended because of a lack of space.
    pub no_space: bool,
    /// Wall time, seconds, including the generation of contents.
    pub wall_seconds: f64,
    /// The part of it spent in operations other than `fsync` and `syncfs`, seconds; NaN if the git
    /// binary did it.
    pub operation_seconds: f64,
    /// Time of its own `fsync` and `syncfs`, and of the syncfs that the plan may request after
    /// every step (`measure.sync_steps`), seconds; NaN if there was none of them.
    pub sync_seconds: f64,
    /// Modelled seconds that a disk in virtual time was busy during the step and the syncfs after
    /// it; NaN on other volumes. Data that stays in memory is written later.
    pub disk_seconds: f64,
}

/// Table `cures`: one cure of a volume, and its gain on one device. The key is that of the cell
/// after the cure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CureRow {
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub key: CellKey,
    /// `senesce`, `e4defrag`, `xfs_fsr` or `btrfs`.
    pub tool: String,
    /// The strategies of `senesce`, with commas; else empty.
    pub strategies: String,
    /// Bytes of write requests to the block device until the volume was unmounted after the
    /// cure; none in a directory.
    pub written_bytes: Option<u64>,
    /// Wall time of the tool, and of the write-back and the unmount after it, seconds.
    pub wall_seconds: f64,
    /// Modelled seconds that a disk in virtual time was at work meanwhile; NaN on other volumes.
    pub disk_seconds: f64,
    /// Files that moved; none if the tool does not report it.
    pub moved_files: Option<u64>,
    /// Files that cannot move, and files that were to move and did not; none if the tool does not
    /// report them.
    pub skipped_files: Option<u64>,
    /// The reasons, as `12 in use; 3 changed meanwhile`; empty if none.
    pub skipped: String,
    /// The modelled device of the next three columns: `model: HDD 7.2K`.
    pub device: String,
    /// Modelled seconds of a cold read before the cure, from the map; NaN if they were not
    /// modelled.
    pub modelled_before_seconds: f64,
    /// The same after the cure, as `senesce` predicted it before it moved a file; NaN of other
    /// tools.
    pub predicted_seconds: f64,
    /// The same after the cure, from the new map; NaN if they were not modelled.
    pub modelled_after_seconds: f64,
    /// The grep test before the cure, seconds: the median of its repetitions, in virtual time if
    /// the volume is such a disk, else wall time; NaN if it was not run.
    pub read_before_seconds: f64,
    /// The same after the cure.
    pub read_after_seconds: f64,
}

/// The key of a circumstance of an arm whose cure did not run. Its value is the reason, as a
/// sentence.
pub const MISSED_CURE: &str = "cure.missed";

/// Whether a circumstance is of one execution of a plan, such as its start and its duration. Such a
/// circumstance differs between any two runs.
pub fn is_of_execution(key: &str) -> bool {
    key.starts_with("run.")
}

/// Table `circumstances`: everything a figure depends on, as keys and values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircumstanceRow {
    /// Its arm; empty if it applies to the whole run.
    pub arm: String,
    /// Dotted key: `kernel.release`, `fs.mkfs.command`, `plan.hash`, `workload.first_commit`.
    pub key: String,
    /// The value as text.
    pub value: String,
}
