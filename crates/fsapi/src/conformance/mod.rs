//! The conformance suite of engines: cases as text, and sequences of operations that are compared
//! with [`ModelFs`].
//!
//! A crate with an engine enables the feature `conformance` in its dev-dependencies, implements
//! [`Subject`], and runs each of these in a test:
//!
//! - [`run_cases`]: short stories with their answers, each on a new file system;
//! - [`run_sequence`]: random operations on the engine and on the model. All answers, and regularly
//!   the whole trees, are compared. A difference is reported with the shortest sequence found;
//! - [`run_read_dir`]: directories that change while they are listed;
//! - [`run_threads`]: several threads, each below its own directory.
//!
//! [`collect_tree`] and [`find_difference`] compare any two file systems, for example after a
//! crash.
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

/// An engine under test with its own file system.
pub trait Subject {
    /// The open file system.
    fn file_system(&self) -> &dyn FileSystem;

    /// Closes the file system like an unmount, and opens it again.
    fn reopen(&mut self) -> FsResult<()>;

    /// Checks that are specific to the engine. It is called often.
    fn check(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Makes a subject with an empty file system, large enough for about 20 MiB and 2,000 inodes.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Subject>;

/// A difference between a subject and the expected behaviour.
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
