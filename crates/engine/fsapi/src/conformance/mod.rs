//! What every engine must do: cases in words, and sequences of operations that are compared with [`ModelFs`].
//!
//! A crate with an engine turns on the feature `conformance` among its dev-dependencies, implements [`Subject`], and runs
//! each of these in a test:
//!
//! - [`run_cases`]: short stories with every answer written beside them, on a new file system each;
//! - [`run_sequence`]: operations drawn from a seed, on the engine and on the model; every answer and, time and again,
//!   the whole trees are compared; a difference comes back with the shortest sequence found that shows it;
//! - [`run_read_dir`]: directories that change while they are read;
//! - [`run_threads`]: several threads at once, each below a directory of its own.
//!
//! [`collect_tree`] and [`find_difference`] compare any two file systems, after a crash for example.
//!
//! [`ModelFs`]: crate::ModelFs

mod apply;
mod cases;
mod draw;
mod operation;
mod path;
mod read_dir;
mod sequence;
mod story;
mod threads;
mod tree;
mod words;

pub use apply::{Answer, Player};
pub use cases::{CASES, run_cases};
pub use draw::{Draw, SequenceOptions};
pub use operation::{Operation, Place};
pub use path::{parent_and_name, resolve};
pub use read_dir::run_read_dir;
pub use sequence::{run_operations, run_sequence, set_root};
pub use story::tell;
pub use threads::run_threads;
pub use tree::{Tree, TreeNode, Visit, collect_tree, find_difference, walk};

use crate::{FileSystem, FsResult};

/// An engine under test, with a file system of its own that nobody else uses.
pub trait Subject {
    /// The file system as it is open now.
    fn file_system(&self) -> &dyn FileSystem;

    /// Closes it as at an unmount, and opens it again.
    fn reopen(&mut self) -> FsResult<()>;

    /// Whatever else must hold now, such as the engine's own check. Asked often.
    fn check(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Makes a subject with an empty file system, large enough for some 20 MiB and 2,000 inodes.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Subject>;

/// What a subject does otherwise than it must.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Difference(pub String);

impl Subject for crate::ModelFs {
    fn file_system(&self) -> &dyn FileSystem {
        self
    }

    fn reopen(&mut self) -> FsResult<()> {
        crate::ModelFs::reopen(self);
        Ok(())
    }
}
