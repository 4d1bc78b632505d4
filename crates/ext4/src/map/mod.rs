//! The places of files: extent trees and block maps of many inodes, read level by level in the
//! order of the device.

mod extent_tree;
mod indirect;
mod run;
mod walk;

/// The kernel's limit of blocks in a file: their numbers have 32 bits, and the highest is not used.
const MAX_FILE_BLOCKS: u64 = u32::MAX as u64;

pub(crate) use run::compute_extents;
pub use run::{ExtentState, MappedExtent};
use run::{Run, compute_merged};
pub(crate) use walk::{Budget, MapJob, USED_UP, collect_maps};
