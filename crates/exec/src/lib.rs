//! Applies steps to targets: a mounted file system, a model in memory, nothing at all.

mod ahead;
mod apply;
pub mod bare;
mod content;
mod error;
mod model;
mod null;
mod parents;
mod posix;
mod remove;
mod target;
pub mod tree;

pub use ahead::Ahead;
pub use apply::{CheckContents, PreparedStep, apply_done, apply_prepared, apply_step, prepare_step};
pub use content::{CHUNK_BYTES, resolve_ops};
pub use error::{ExecError, OpPlace};
pub use model::ModelTarget;
pub use null::NullTarget;
pub use posix::PosixTarget;
pub use target::{OpFailure, SpaceLeft, Target};
