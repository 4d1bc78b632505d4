//! Evergreen: a file system that does not age. Related data is adjacent in the big nodes of a
//! B-epsilon-tree. Updates wait in buffers of inner nodes, so big nodes do not cause many writes.
//!
//! The crate has two halves, which meet at the trait [`KeyValue`]. The file system above it stores
//! names, inodes and blocks under keys in the order in which they are read. The tree below it keeps
//! keys and values on a device. Tests run the file system on [`ModelStore`], and compare the tree
//! with it.
//!
//! It is not a general store: keys and values are short ([`MAX_KEY_BYTES`], [`MAX_VALUE_BYTES`]).

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
pub use fs::{EvergreenFs, FsOptions, KeySweep, KeySweepCounts, Survey, SurveyedFile, check_files, survey};
pub use key_value::{CHANGE_BYTES, Claim, KeyValue, Live, MAX_KEY_BYTES, MAX_VALUE_BYTES};
pub use message::{Edit, Message};
pub use model::ModelStore;
pub use repair::{Loss, Lost, LostFile, RepairNote, RepairReport, RepairedFiles, repair};
pub use store::{
    CopyFigures, Evergreen, FLUSHED_LEVELS, Figures, Flushes, LeafSweep, Limits, MakeOptions, Sweep,
    UnreadableSuperblock,
};
