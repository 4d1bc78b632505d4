//! The garden: a copy-on-write file system whose blocks can be moved below it.
//!
//! An *aggregate* is a set of drives in RAID-4 groups with a log. It holds *volumes*; each lives in a *container file*,
//! whose pointers say where each of the volume's blocks lies. So a block has two numbers: the one that the volume knows
//! (VVBN), and the place on the drives (PVBN), which may change without the volume knowing.
//!
//! - Nothing that the last *consistency point* uses is written over; one superblock makes the next one valid.
//! - An operation returns when its record is durable in the log; opening does again what no consistency point includes.
//! - A drive of each group may fail, and be replaced while the aggregate is in use; a scrub looks at every block and parity.
//! - Every block has a trailer that says what it is. A block that is not the one wanted is found elsewhere by the
//!   container map, or put together from the other drives, or the read fails: wrong data are never given.
//! - Blocks are moved to make room for whole stripes: within consistency points if [`Gardening`] says so, or by steps of a scan.
//!   No volume's block changes by that; pointers to old places are put right as [`FixUp`] says.
//! - A *snapshot* keeps the tree of a volume as a consistency point had it. It is a file system that takes no changes; what
//!   only it used becomes free bit by bit when it is deleted.
//!
//! - Blocks that are *cold* may be written to objects of an object store, and leave the drives: to those who read them nothing
//!   changes, but that it takes longer, and fails while the store is away.
//!
//! - [`Autonomy`] fits all that into what clients leave, as a [`Scheduler`] says.
//!
//! [`Garden`] makes and opens aggregates, [`VolumeFs`] is a volume as a [`senesce_fsapi::FileSystem`]. The bytes are drawn
//! in docs/reference/garden-format.md.
//!
//! Not here: a clock, threads, knowledge of mounts.

mod autonomy;
mod check;
mod dump;
mod engine;
mod error;
mod format;
mod fs;
mod gardening;
mod layout;
mod log;
mod object_defrag;
mod object_gardening;
mod opening;
mod packing;
mod positions;
mod raid;
mod reads;
mod report;
mod scheduler;
mod sharing;
mod snapshots;
mod store;
mod tiering;
mod trailer;
mod volume;

pub use autonomy::{Autonomy, AutonomyReport, Seen};
pub use check::{
    CheckPart, CheckProgress, CheckReport, Finding, Stripes, check, check_telling, check_with, collect_used_slots,
};
pub use dump::{
    Dump, DumpTable, DumpValue, DumpWhat, Survey, SurveyedArea, SurveyedFile, SurveyedRun, dump, dump_with, survey,
};
pub use engine::{Acknowledge, Garden, VolumeOptions};
pub use error::{Error, Result};
pub use format::Damage;
pub use format::label::{Group, Medium};
pub use fs::VolumeFs;
pub use layout::{Defrag, DefragFiles};
pub use log::{Accepted, LOST_LOG, LogCopyReport, LogDevices, LogFailure, LogLoss, LogPlaces};
pub use object_defrag::ObjectDefrag;
pub use object_gardening::ObjectGardening;
pub use packing::{Packing, RECOMPACTED_BELOW_PERCENT};
pub use positions::Positions;
pub use raid::{Chains, DriveCounts, DriveFailure, DriveState, RaidCounts};
pub use report::{AggregateReport, DriveReport, LogReport, OpeningReport};
pub use scheduler::{Caution, Observed, Scheduler, Task};
pub use sharing::Sharing;
pub use snapshots::SnapshotReport;
pub use store::{
    AreaMoves, Change, Cleaning, Counts, DedupStep, DefragCounts, Demotion, FixUp, FixUpStep, FormatOptions, Gardening,
    Headroom, InodeChange, LOST_POINT, LeftOut, Limits, PackingSurvey, Placing, RebuildStep, RecompactStep, ScanStep,
    ScrubReport, ScrubStep, Tiering, Worth, WriteAfterRead,
};
pub use tiering::{ColdReport, Tier, TierCounts};
pub use trailer::{Trailer, read_trailer};
