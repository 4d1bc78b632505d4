//! An engine in this process as a target: without a mount and without the kernel.

mod remove;
mod target;
mod tree;

pub use target::EngineTarget;
pub use tree::{collect_engine_extents, collect_engine_tree, collect_engine_tree_until};
