//! A disk in virtual time: a file system of the real kernel on a disk that this machine does not
//! have.
//!
//! A server process holds a FUSE mount with one file, `disk`. A loop device with direct I/O on that
//! file passes every block request to the server. The server stores the contents in a sparse file.
//! It gets the duration of the request from a device model ([`senesce_device::DeviceModel`]),
//! advances *virtual time* by it, and answers at once. Results are modelled seconds, and are always
//! labelled so. The server's request log ([`read_log`]) is a lossless block trace that needs no
//! tracing rights.
//!
//! The module of [`VirtualClock`] defines virtual time: requests are served one by one, in the
//! order of their arrival.
//!
//! ```no_run
//! use senesce_vdisk::{BackingSpec, Launch, ServeConfig, Server};
//! # fn main() -> senesce_vdisk::Result<()> {
//! let arguments = vec!["vdisk-serve".into()];
//! let launch = Launch { executable: "/usr/bin/senesce".into(), arguments };
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
//! # Protection against hangs
//!
//! A user-space disk under a kernel file system can deadlock a machine: the write-back of dirty
//! pages needs the server, and the server needs memory that is full of dirty pages. The crate
//! prevents that:
//!
//! - The server is a separate process. It leaves memory-limited control groups, the out-of-memory
//!   killer never chooses it, and its memory stays locked. Its allocations never wait for I/O
//!   (`PR_SET_IO_FLUSHER`).
//! - If the server dies, the kernel fails all requests. The file system on the disk sees I/O
//!   errors, and no process waits.
//! - If the server makes no progress while requests wait (stopped, stuck), a second process, the
//!   guard, aborts the connection.
//! - If the parent dies, the server continues until its disk is no longer in use, or for a grace
//!   period.
//! - A request log on the disk itself is refused.
//!
//! [`plan_release`] has the order of the release. The disk does not have the durability of a real
//! one: contents are as durable as the backing file's page cache, and an unlinked backing file
//! disappears with its server.

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
