//! Records the changes of a directory as an operation log that can be replayed anywhere.
//!
//! There are two sources: a FUSE mount that passes requests on to a *backing directory* and logs
//! its changes ([`Recording::start`]), or the output of `strace -f` ([`import_strace`]).
//!
//! One thread serves the mount, so that the log has the order of the changes. Writes through memory
//! maps arrive by writeback before the last user closes the file, and are logged like others. A
//! file that is removed while open gets a hidden name in the log's root until its last user closes
//! it. So a replay holds its space as long. A file without a name (O_TMPFILE) has a hidden name
//! until it gets one.
//!
//! A recording is not a sandbox, and it is slow: every request switches twice between processes and
//! twice between threads. Reads are not logged.

mod alias;
mod backing;
mod changes;
mod error;
mod found;
mod fuse;
mod nameless;
mod recorder;
mod recording;
mod relay;
mod sink;
mod strace;
mod table;

pub use error::{Error, Result};
pub use recording::{RecordOptions, Recorded, Recording, Trouble};
pub use strace::{ImportOptions, Imported, import_strace};
