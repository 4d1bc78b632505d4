//! The control socket: a Unix socket in a private directory, with one request for each connection.
//!
//! A client writes one line, a [`Request`](crate::Request) or what an application adds to it, and reads lines: any number of
//! [`Reply::Progress`], and one [`Reply::Done`] or [`Reply::Failed`]. If the client writes anything more, or closes its end,
//! the work ends after its present step.
//!
//! The directory is the caller's matter: nobody else may be able to write it. Besides, the socket has mode 0600, and the server
//! asks the kernel who connects.

mod client;
mod line;
mod server;

use serde::{Deserialize, Serialize};

pub use client::{Answer, Client};
pub use server::{Connection, Server};

use crate::{Failure, Response};

/// Bytes of the longest request.
pub const MOST_REQUEST_BYTES: usize = 64 << 10;
/// Bytes of the longest reply: the free blocks of all allocation areas of a large aggregate are in it.
pub const MOST_REPLY_BYTES: usize = 64 << 20;
/// Connections that are served at once. One more waits for its turn in the kernel's queue.
pub const MOST_CONNECTIONS: usize = 32;

/// A line from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// How far the work is.
    Progress {
        /// The work.
        what: String,
        /// What is counted.
        unit: String,
        /// How many are done.
        done: u64,
        /// Of how many.
        of: u64,
    },
    /// The last line: the response.
    Done(Box<Response>),
    /// The last line: there is no response.
    Failed(Failure),
}
