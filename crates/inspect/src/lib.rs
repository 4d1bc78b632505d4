//! How aged a file system in use is, where, why, and at what cost: `senesce inspect` without
//! output.
//!
//! [`find_target`] resolves a path: a mounted file system, an ext4 to read straight from its device
//! or image, or an XFS or Btrfs to mount read-only during the inspection. [`inspect`] surveys it
//! without causing a write. It scores the layout and models the time of a cold grep test on
//! described devices, for four layouts: as found, with every file defragmented in place, in the
//! best order, and as a fresh copy. It also ranks the files and directories that lose most.
//! [`inspect_told`] does the same with the survey of another reader. Measured and modelled figures
//! are never mixed: each modelled figure is named as one.
//!
//! Memory: about 100 bytes for each entry of the tree.

mod adder;
mod best_order;
mod cost;
mod drives;
mod error;
mod figures;
mod finish;
mod free;
mod fresh_copy;
mod gaps;
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
pub use gaps::{Gaps, Mounted, Stale};
pub use inspect::{DEFAULT_READ_AHEAD_KIB, InspectOptions, inspect};
pub use judge::{DeviceJudgement, Grade, Judge, Judged, JudgedDevice, NOTICEABLE_SECONDS};
pub use loss::LossSeconds;
pub use metadata::NEW_GROUPS_START;
pub use model::{ModelOptions, ModelledTree, MoveCost, TreeCost, model_moves, model_told, model_tree};
pub use partitions::Partition;
pub use source::{find_btrfs_devices, has_btrfs_quotas};
pub use target::{Access, Target, find_target};
pub use told::{Told, ToldEntry, inspect_told};
pub use worst::DEFAULT_TOP;
