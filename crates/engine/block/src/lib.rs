//! Block devices of the engines: a small trait, and what stands behind it.
//!
//! Everything an engine keeps goes through [`BlockDevice`], so a test can put a device there that fails, lies, or loses
//! its power, and the engine does not know.

mod device;
mod error;

pub use device::BlockDevice;
pub use error::{BlockError, BlockOperation, BlockProblem, BlockResult};
