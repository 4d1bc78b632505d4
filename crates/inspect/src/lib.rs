//! How aged a file system in use is, where, why, and what that costs: the whole of `senesce inspect`, without printing.
//!
//! [`find_target`] says what a path means: a mounted file system, an ext4 that is read straight from its device or image,
//! an XFS or Btrfs that is mounted read-only for the time being; [`inspect_told`] takes what another reader tells. [`inspect`] surveys it without causing a write, scores the layout, models the
//! time of a cold grep test on described devices for four layouts (as it lies, every file defragmented where it begins,
//! the best order, a fresh copy), and names who loses most. What is measured and what is modelled is kept
//! apart: every modelled figure is called one.
//!
//! Memory: a few bytes for each directory and each file's name in the map; no list of all files.

mod adder;
mod cost;
mod drives;
mod error;
mod figures;
mod finish;
mod free;
mod fresh_copy;
mod inspect;
mod judge;
mod loss;
mod metadata;
mod meters;
mod model;
mod mounts;
mod names;
mod offline;
mod partitions;
mod reads;
mod source;
mod target;
mod told;
mod verdict;
mod worst;

pub use cost::LayoutCosts;
pub use error::Error;
pub use figures::{
    AreaGroup, BtrfsGroup, BtrfsPurpose, BtrfsSpace, DeviceCosts, FreeSpace, INSPECT_SCHEMA, Inspection, Loser,
    MappedFile, SpecialExtents, TargetFigures, TreeFigures,
};
pub use inspect::{DEFAULT_READ_AHEAD_KIB, InspectOptions, inspect};
pub use judge::{DeviceJudgement, Grade, Judge, Judged, JudgedDevice};
pub use loss::LossSeconds;
pub use model::{ModelOptions, ModelledTree, MoveCost, TreeCost, model_moves, model_told, model_tree};
pub use partitions::Partition;
pub use source::{find_btrfs_devices, has_btrfs_quotas};
pub use target::{Access, Target, find_target};
pub use told::{Told, ToldEntry, inspect_told};
