//! How aged a file system in use is, where, why, and what that costs: the whole of `senesce inspect`, without printing.
//!
//! [`find_target`] says what a path means; [`inspect`] surveys it without causing a write, scores the layout, models the
//! time of a cold grep test on described devices for three layouts (as it lies, every file defragmented where it begins,
//! a fresh copy), and names who loses most. What is measured and what is modelled is kept
//! apart: every modelled figure is called one.
//!
//! Memory: a few bytes for each directory and each file's name in the map; no list of all files.

mod cost;
mod error;
mod figures;
mod fresh_copy;
mod metadata;
mod model;
mod target;
mod tree;
mod verdict;
mod worst;

pub use cost::LayoutCosts;
pub use error::Error;
pub use figures::{
    DeviceCosts, FreeSpace, INSPECT_SCHEMA, Inspection, Loser, MappedFile, SpecialExtents, TargetFigures, TreeFigures,
};
pub use model::{ModelOptions, ModelledTree, TreeCost, model_tree};
pub use target::{Target, find_target};
pub use tree::{InspectOptions, inspect};
pub use verdict::compute_verdict;
