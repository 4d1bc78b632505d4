//! Where files lie: extent trees and block maps of many inodes at once, read level by level in the device's order.

mod extent_tree;
mod indirect;
mod run;
mod walk;

/// The kernel gives no file more blocks: their numbers have 32 bits, and the highest is not used.
const MAX_FILE_BLOCKS: u64 = u32::MAX as u64;

pub(crate) use run::compute_extents;
pub use run::{ExtentState, MappedExtent};
use run::{Run, compute_merged};
pub(crate) use walk::{Budget, MapJob, USED_UP, collect_maps};
