//! Evergreen: a file system that does not age, because what is related lies together in big nodes of a B-epsilon-tree, and
//! because updates wait in buffers on their way down, so that big nodes do not mean much writing.
//!
//! Two halves meet at the trait [`KeyValue`]: above it a file system puts names, inodes and blocks under keys whose order is
//! the order in which they are read; below it a tree keeps keys and values on a device. Each half is tested without the other:
//! the file system over [`ModelStore`], the tree against it.
//!
//! It is not a store for everything: keys are short, values are a block at most ([`MAX_KEY_BYTES`], [`MAX_VALUE_BYTES`]).

mod batch;
mod check;
pub mod disk;
mod dump;
mod error;
mod fs;
mod key_value;
mod keys;
pub mod log;
mod message;
mod model;
mod node;
mod repair;
mod store;
mod tree;

pub use batch::{Batch, Change};
pub use check::{CheckReport, CopyReport, Finding, check, check_store};
pub use dump::{Dump, DumpTable, DumpValue, DumpWhat, Holds, Outline, OutlinedNode, Waiting, dump, outline};
pub use error::{Error, Result};
pub use fs::{
    EvergreenFs, FsOptions, KeySweep, KeySweepCounts, LostFile, Mended, Survey, SurveyedFile, check_files, survey,
};
pub use key_value::{CHANGE_BYTES, Claim, KeyValue, Live, MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use message::{Edit, Message};
pub use model::ModelStore;
pub use repair::{Loss, Lost, RepairReport, Told, repair};
pub use store::{
    CopyFigures, Evergreen, FLUSHED_LEVELS, Figures, Flushes, LeafSweep, Limits, MakeOptions, Sweep, Torn,
};
