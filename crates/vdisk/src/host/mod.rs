//! The calls to the machine: mounts, FUSE connections, processes, control groups.

mod cgroup;
mod connection;
mod harden;
mod mounts;
mod process;

pub use cgroup::{GroupLevel, plan_group};
pub use connection::Connection;
pub(crate) use harden::harden;
pub(crate) use mounts::{find_fuse_mount, unmount};
pub use process::{BootId, Identity, ProcessRef};
