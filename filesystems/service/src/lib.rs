//! Operation of an open engine: requests, their execution, and the control socket.
//!
//! A command builds a [`Request`]. If the engine is not mounted, the command opens it and answers
//! the request itself. Otherwise it sends the request through a [`socket`] to the process that
//! serves the engine. Both use the same code ([`garden`], [`evergreen`]), so commands behave the
//! same either way.
//!
//! - [`Request`] and [`Response`] are types with a JSON form, one line each on the socket.
//! - A [`Task`] receives progress, and says when work must end early.
//! - A [`socket`] serves only requests of root and of the owner of the process. It trusts no
//!   request:
//!   lines have a maximal length, and values are checked where they are used.
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
pub use devices::{Devices, Frozen, MOST_CHANGES};
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
