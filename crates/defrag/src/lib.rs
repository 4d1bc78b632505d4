//! Restores the order of files on a mounted file system: all of `senesce defrag` except the output.
//!
//! On aged volumes, files are mostly in one piece, but files that are read one after the other are
//! far apart. This crate moves the contents of files so that they are on the device in the order in
//! which they are read. Of a large file it moves only the shattered ranges. A [`Strategy`] names
//! each. Names, inode numbers, times and contents stay.
//!
//! [`collect_tree`] lists the files. [`Order`] decides in which order they are read. [`plan_moves`]
//! is pure: it decides which files move and which stay, with reasons. [`predict_costs`] models a
//! cold read before and after. [`apply_plan`] moves the files through a [`Mover`]. [`find_mover`]
//! returns the mover of the file system.
//!
//! Memory: about 200 bytes for each file and directory.

mod advice;
mod apply;
mod balance;
mod error;
mod order;
mod place;
mod place_btrfs;
mod plan;
mod predict;
mod shared;
mod shatter;
mod space;
mod strategy;
mod tree;

pub use advice::{Advice, DEFRAG_SCHEMA, Gain, Share, Worth, compute_advice};
pub use apply::{
    Applied, ApplyOptions, BatchReport, Mover, Skip, Skipped, StepFigures, Steps, apply_plan, apply_space, find_left,
    find_mover, find_segments, hold_in_thought,
};
pub use balance::{WorstGroup, balance_group, free_lengths, next_group, plan_balance, predict_free_lengths};
pub use error::Error;
pub use order::Order;
pub use place::{Piece, measure_pieces, place_batches};

pub use plan::{Batch, Left, LeftWhy, Part, Plan, PlanOptions, plan_moves};
pub use predict::{place_moves, predict_costs};
pub use space::{Content, Segment, SpaceMove, SpacePlan, merge_segments, plan_space};
pub use strategy::Strategy;
pub use tree::{Tree, collect_tree};
