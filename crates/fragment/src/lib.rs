//! Fragmentation as it was asked for: for those who test defragmenters, databases, file systems.
//!
//! [`fragment_file`] makes a file have so many extents, or such a layout score, [`fragment_tree`] all files of a tree;
//! [`fragment_free_space`] makes the free
//! space of a volume follow a histogram. Both say what was reached, as FIEMAP and the file system's own free-space map tell
//! it, and fail if that is not what was asked for.
//!
//! How a file is cut, whatever the allocator does: it is allocated in as few extents as there are to be had, with spare
//! blocks at the cuts, and then the spare blocks are taken out of it: on ext4 by `FALLOC_FL_COLLAPSE_RANGE`, on file
//! systems that share blocks (Btrfs, XFS) by cloning the rest into a new file.
//!
//! How free space is cut: a filler file takes all there is, and holes are punched into it. The filler stays.
//!
//! What it is not: aging. The rest of the volume stays as it is, and no workload ever leaves such a regular layout.

mod apply;
mod cuts;
mod error;
mod file;
mod free_space;
mod histogram;
mod holes;
mod tree;

pub use error::{Error, Result};
pub use file::{FileReport, FileTarget, fragment_file};
pub use free_space::{FILLER_NAME, FreeOptions, FreeReport, fragment_free_space};
pub use histogram::{Histogram, ParseHistogramError};
pub use tree::{TreeReport, fragment_tree};
