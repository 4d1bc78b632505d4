//! Operation of an open engine: requests, the work that answers them, and the control socket that carries them.
//!
//! A command builds a [`Request`]. If the engine is not mounted, the command opens it and answers the request itself; if a
//! process serves it, the command sends the request through a [`socket`] to that process. Both use the same code
//! ([`garden`], [`evergreen`]), so a command behaves the same either way.
//!
//! - [`Request`] and [`Response`] are types with a JSON form: one line each on the socket.
//! - A [`Task`] receives progress, and says when work must end early.
//! - [`socket`] serves requests of the owner of the process and of root, and of nobody else. It trusts no request: lines have
//!   a maximal length, values are checked where they are used.
//!
//! Not here: the command line, printing, mounts, the clock, the environment.

mod checked;
mod devices;
mod error;
pub mod evergreen;
pub mod garden;
mod mounts;
mod name;
mod passes;
mod request;
mod response;
pub mod socket;
mod task;

pub use checked::{Checked, CheckedPart, EvergreenChecked, EvergreenCheckedPart, EvergreenFinding};
pub use devices::{Devices, Frozen};
pub use error::{Error, Failure, FailureKind, Result};
pub use mounts::{MountStat, Mounts};
pub use name::Name;
pub use passes::{Passes, Turn};
pub use request::{Prices, Request};
pub use response::{
    AggregateStat, Cleaned, CloneOf, Cloned, ColdStat, Deduped, Defragmented, Deleted, DriveStat,
    EvergreenDefragmented, EvergreenStat, GroupStat, LogCopyStat, ReadChains, Requests, Response, Scrubbed, Serves,
    SnapshotMade, SnapshotStat, Snapshots, Stat, Tiered, VolumeMade, VolumeStat, Volumes,
};
pub use task::{NoTask, Task};

/// Bytes of a block.
const BLOCK_BYTES: u64 = 4096;
