//! Records what programs do to a directory, as an operation log that can be replayed anywhere.
//!
//! Two ways: a FUSE mount that passes everything on to a *backing directory* and logs what changed it
//! ([`Recording::start`]), or the output of `strace -f` ([`import_strace`]).
//!
//! One thread serves the mount, so that the order of the log is the order in which things were done. Writes through
//! memory maps arrive by writeback, before the last user of the file is gone, and are logged like others. A file that
//! is removed while it is open gets a hidden name in the log's root until its last user closes it, so that a replay
//! holds its space as long; so does a file that begins without a name (O_TMPFILE) until it gets one.
//!
//! What is not: a sandbox, or fast (every request is two changes of process and two of thread); reads are not logged.

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
