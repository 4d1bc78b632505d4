//! A disk in virtual time: the real kernel file system on a disk this machine does not have.
//!
//! A server process holds a FUSE mount with one file, `disk`. A loop device with direct I/O on that file passes every
//! block request to the server, which keeps the contents in a sparse file, asks a device model
//! ([`senesce_device::DeviceModel`]) how long the request would have taken, advances *virtual time* by it, and answers
//! at once. What the experiment reports are modelled seconds: always called so. The server's request log ([`read_log`])
//! is a lossless block trace that needs no tracing rights.
//!
//! What time means stands in [`VirtualClock`]'s module: requests are served one by one, in the order of their coming.
//!
//! ```no_run
//! use senesce_vdisk::{BackingSpec, Launch, ServeConfig, Server};
//! # fn main() -> senesce_vdisk::Result<()> {
//! let launch = Launch { executable: "/usr/bin/senesce".into(), arguments: vec!["vdisk-serve".into()] };
//! let backing = BackingSpec::Unlinked { dir: "/dev/shm".into() };
//! let config = ServeConfig::new("aged-1", "/run/aged-1".into(), 1 << 30, backing, "hdd-7200");
//! let mut server = Server::start(&launch, config)?;
//! // losetup --direct-io=on on server.disk_path(), mkfs, mount, age ...
//! server.mark("grep test")?;
//! // ... read everything, cold ...
//! let grep = server.mark("after")?.phase;
//! assert_eq!(grep.name, "grep test");
//! let _modelled_seconds = grep.totals.elapsed().0 as f64 / 1e9;
//! // ... unmount, losetup -d
//! server.quit()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Why the machine cannot hang on it
//!
//! A user-space disk under a kernel file system can deadlock a machine: writing back dirty pages needs the server, and
//! the server needs memory that is dirty pages. Against that:
//!
//! - the server is a process of its own, leaves memory-limited control groups, is never the out-of-memory killer's
//!   choice, keeps its memory, and tells the kernel that its allocations must not wait for I/O (`PR_SET_IO_FLUSHER`);
//! - when it dies, the kernel fails all requests; the file system on it sees I/O errors, and nothing waits;
//! - when it stands still with requests waiting (stopped, stuck), a second process, the guard, aborts the connection;
//! - when the parent dies, the server goes on until its disk falls out of use, or for a grace period;
//! - a request log on the disk itself is refused.
//!
//! The order in which everything is given back is in [`plan_release`]. Not a real disk's durability: contents are as
//! durable as the backing file's page cache, and an unlinked backing file is gone with its server.

mod backing;
mod clock;
mod config;
mod disk;
mod error;
mod footprint;
mod fuse;
mod guard;
mod host;
mod log;
mod model;
mod protocol;
mod serve;
mod server;

pub use clock::{OpTotals, Pace, Phase, Served, Totals, VirtualClock, compute_sectors};
pub use config::{BackingSpec, GuardConfig, PROTOCOL_VERSION, ServeConfig};
pub use error::{Error, Result};
pub use footprint::{DiskMount, Footprint, ReleaseStep, Released, abort, plan_release, release};
pub use host::{BootId, Connection, GroupLevel, Identity, ProcessRef, plan_group};
pub use log::{Log, LogHeader, LogWriter, MAX_REQUEST_KIB, Mark, parse_log, read_log};
pub use model::{PLAIN, PlainDisk, find_device};
pub use protocol::TimeReport;
pub use serve::serve_stdio;
pub use server::{Launch, Server};
