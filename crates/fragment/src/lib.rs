//! Fragments files and free space as requested, for tests of defragmenters, databases and file
//! systems.
//!
//! [`fragment_file`] gives a file a number of extents or a layout score, and [`fragment_tree`] does
//! so for all files of a tree. [`fragment_free_space`] makes the free space of a volume follow a
//! histogram. They report the result as FIEMAP and the file system's own free-space map show it,
//! and fail if it differs from the request.
//!
//! The method for files works with every allocator. The file is allocated in as few extents as
//! possible, with spare blocks at the cuts. Then the spare blocks are removed: on ext4 with
//! `FALLOC_FL_COLLAPSE_RANGE`, on file systems that share blocks (Btrfs, XFS) by cloning the rest
//! into a new file.
//!
//! The method for free space: a filler file takes all free space, and holes are punched into it.
//! The filler stays.
//!
//! This is not aging. The rest of the volume does not change, and no workload leaves such a regular
//! layout.

mod apply;
mod cuts;
mod error;
mod file;
mod free_space;
mod histogram;
mod holes;
mod tree;

pub use error::{Error, Result};
pub use file::{FilePlan, FileReport, FileTarget, fragment_file, plan_file};
pub use free_space::{FILLER_NAME, FreeOptions, FreePlan, FreeReport, fragment_free_space, plan_free_space};
pub use histogram::{Histogram, ParseHistogramError};
pub use tree::{TreePlan, TreeReport, fragment_tree, plan_tree};
