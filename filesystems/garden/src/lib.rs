//! The garden: a copy-on-write file system that can move the blocks of its volumes.
//!
//! An *aggregate* is a set of drives in RAID groups with a log. It holds *volumes*. Each volume has
//! a *container file*, whose pointers name the place of each of its blocks. So a block has two
//! numbers: the one in its volume (VVBN), and the place on the drives (PVBN). The PVBN may change
//! without a change in the volume.
//!
//! - Nothing that the last *consistency point* uses is overwritten. One superblock makes the next
//!   one valid.
//! - An operation returns when its record is durable in the log. Opening replays the operations
//!   that no consistency point includes.
//! - A group with parity survives the loss of a drive, which can be replaced while the aggregate
//!   is in use. A scrub reads every block and checks parity.
//! - Every block has a trailer that identifies it. If a block is not the expected one, the reader
//!   finds its new place in the container map or restores it from the other drives. Otherwise the
//!   read fails; it never returns wrong data.
//! - Blocks are moved to free whole stripes, within consistency points if [`Gardening`] says so,
//!   or by steps of a scan. The contents of volumes do not change. [`FixUp`] controls when pointers
//!   to old places are fixed.
//! - A *snapshot* keeps the tree of a volume as of a consistency point, as a read-only file
//!   system. After its deletion, the blocks that only it used are freed in steps.
//! - *Cold* blocks may move from the drives to objects of an object store. Readers see the same
//!   contents, but later, and reads fail while the store is away.
//! - [`MaintenanceController`] runs all this with the resources that clients leave, by a
//!   [`Scheduler`].
//!
//! [`Garden`] makes and opens aggregates. [`VolumeFs`] is a volume as a
//! [`senesce_fsapi::FileSystem`]. docs/reference/garden-format.md draws the format.
//!
//! The crate has no clock, spawns no thread except the one that writes a background consistency
//! point, and knows nothing of mounts.

mod aggregate;
mod check;
mod dump;
mod error;
mod format;
mod fs;
mod log;
mod raid;
mod store;
mod trailer;
mod volume;

pub use aggregate::{
    Acknowledge, AggregateReport, ColdReport, Defrag, DefragFiles, DriveReport, Garden, LoadMeasurements, LogReport,
    MaintenanceController, MaintenanceReport, ObjectDefrag, ObjectGardening, OpeningReport, Packing, Positions,
    RECOMPACTED_BELOW_PERCENT, Scheduler, SchedulerLimits, SchedulerSample, Sharing, SnapshotReport, Task, Tier,
    TierCounts, VolumeOptions,
};
pub use check::{
    CheckPart, CheckProgress, CheckReport, Finding, Stripes, check, check_telling, check_with, collect_used_slots,
};
pub use dump::{
    Dump, DumpTable, DumpValue, DumpWhat, Survey, SurveyedArea, SurveyedFile, SurveyedRun, dump, dump_with, survey,
};
pub use error::{Error, Result};
pub use format::Damage;
pub use format::label::{Group, Medium};
pub use fs::VolumeFs;
pub use log::{Accepted, LOST_LOG, LogCopyReport, LogDevices, LogFailure, LogLoss, LogPlaces};
pub use raid::{Chains, DriveCounts, DriveFailure, DriveState, RaidCounts};
pub use store::{
    AreaMoves, Change, Cleaning, Counts, DedupStep, DefragCounts, Demotion, FixUp, FixUpStep, FormatOptions, Gardening,
    Headroom, InodeChange, LOST_POINT, LeftOut, Limits, PackingSurvey, Placing, RebuildStep, RecompactStep, ScanStep,
    ScrubReport, ScrubStep, Tiering, Worth, WriteAfterRead,
};
pub use trailer::{Trailer, read_trailer};
