//! The control socket: a Unix socket in a private directory, with one request for each connection.
//!
//! A client writes one line, a [`Request`](crate::Request) or an application's extension of it. It
//! reads any number of [`Reply::Progress`] lines, and one [`Reply::Done`] or [`Reply::Failed`]. If
//! the client writes anything more or closes its end, the work ends after its present step.
//!
//! The caller must provide a directory that no other user can write. In addition, the socket has
//! mode 0600, and the server asks the kernel for the user of each connection.

mod client;
mod line;
mod server;

use serde::{Deserialize, Serialize};

pub use client::{Answer, Client};
pub use server::{Connection, Server};

use crate::{Failure, Response};

/// Bytes of the longest request.
pub const MOST_REQUEST_BYTES: usize = 64 << 10;
/// Bytes of the longest reply. It has the free blocks of all allocation areas of a large aggregate.
pub const MOST_REPLY_BYTES: usize = 64 << 20;
/// Simultaneous connections. Further ones wait in the kernel's queue.
pub const MOST_CONNECTIONS: usize = 32;

/// A line from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The progress of the work.
    Progress {
        /// The work.
        what: String,
        /// The unit of progress.
        unit: String,
        /// The finished units.
        done: u64,
        /// All units.
        of: u64,
    },
    /// The last line: the response.
    Done(Box<Response>),
    /// The last line: there is no response.
    Failed(Failure),
}
