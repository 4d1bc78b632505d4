//! Size-only traces of histories: paths, sizes and operations, without contents.
//!
//! A trace is a text of lines, each a record; paths are bytes and may contain spaces:
//!
//! ```text
//! S path size     a file of the tree that the history starts from; all of them come first
//! D path          the commit deletes the file
//! W path size     the commit creates the file, or replaces it
//! C number        a commit
//! ```
//!
//! There are two forms; the first `C` line determines the form. In the *heading* form `C` comes
//! before the operations of its commit, and its number counts the commits from 1. In the *closing*
//! form `C` comes after them, and its number is the sum of their sizes in bytes. The reader checks
//! either number on every commit, so that it refuses a damaged trace. Only a heading trace that was
//! truncated between two lines looks like a complete, shorter one.
//!
//! ```
//! use senesce_core::{Bytes, Seed};
//! use senesce_workload::{Feedback, Workload, trace::{TraceOptions, TraceReplay}};
//! let text = "S src/a.c 10\nC 1\nW src/b.c 5\nD src/a.c\n";
//! let options = TraceOptions { seed: Seed(1), max_commits: None };
//! let mut replay = TraceReplay::new(text.as_bytes(), options);
//! let feedback = Feedback { capacity: Bytes(1 << 30), free: Bytes(1 << 30), last: None };
//! let start = replay.next_step(&feedback).unwrap().unwrap();
//! assert_eq!((start.counted, start.ops.len()), (false, 2)); // mkdir src, create src/a.c
//! let commit = replay.next_step(&feedback).unwrap().unwrap();
//! assert_eq!((commit.counted, commit.ops.len()), (true, 2)); // create src/b.c, unlink src/a.c
//! assert!(replay.next_step(&feedback).unwrap().is_none());
//! ```
//!
//! The reader accepts plain text; it does not decompress.

mod reader;
mod replay;
#[cfg(test)]
mod tests;

pub use reader::{TraceChange, TraceCommit, TraceFile, TraceReader};
pub use replay::{TraceOptions, TraceReplay};
