//! The request log: every request that the server served, with its times. A lossless block trace
//! that needs no rights.
//!
//! One file, written only by appends. All integers are little-endian.
//!
//! | bytes | header |
//! |---|---|
//! | 8 | `SNVDLOG` and a zero |
//! | 4 | version, 1 |
//! | 4 | length of the description |
//! | n | description: JSON, [`LogHeader`] |
//! | 4 | CRC-32C of everything before |
//!
//! | bytes | record |
//! |---|---|
//! | 8 | arrival, virtual nanoseconds |
//! | 8 | completion, virtual nanoseconds |
//! | 8 | first sector |
//! | 4 | sectors; of a mark, the bytes of its name |
//! | 4 | 0 read, 1 write, 2 discard, 3 flush, 4 mark |
//! | n | of a mark, its name |
//! | 4 | CRC-32C of the record before |
//!
//! A record is one FUSE request. The kernel splits block requests above 1 MiB (256 pages) before
//! FUSE; the log has their parts, one after the other. If the `max_sectors_kb` of a loop device is
//! at most [`MAX_REQUEST_KIB`], no request is split, and the log has exactly the requests of the
//! block layer.

mod format;
mod reader;
mod writer;

pub use format::{LogHeader, MAX_REQUEST_KIB};
pub use reader::{Log, Mark, parse_log, read_log};
pub use writer::LogWriter;
