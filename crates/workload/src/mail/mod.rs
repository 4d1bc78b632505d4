//! A mail server that keeps Maildirs (FAST 2017): deliveries and deletions at random, one small file a message.
//!
//! Each user has mailboxes, each mailbox messages of uniform size, three directories (`tmp`, `new`, `cur`) and the
//! files in which Dovecot keeps what it knows of them. A counted step is a *cycle*: a number of operations for every
//! user, each on a random mailbox of a random user, half of them deliveries, half deletions.
//!
//! - Delivery: written in `tmp`, fsync, renamed to `new`, then to `cur` with the flags `:2,`.
//! - Deletion: a random message is flagged (renamed to `:2,T`), then unlinked.
//! - `dovecot-uidlist`: a line is appended for each new message; the list is rewritten under a temporary name and renamed
//!   when fewer than three quarters of its lines are of messages that exist.
//! - `dovecot.index.log`: a record is appended for every change. At 32 KiB the index is rewritten under a temporary name
//!   and renamed, and the log begins anew, the old one kept as `dovecot.index.log.2`.
//!
//! The UID list is as Dovecot writes it. Records of the index and its log have the right sizes and random bytes.
//!
//! ```
//! use senesce_core::{Bytes, Seed};
//! use senesce_workload::{Feedback, Workload, mail::{Mail, MailOptions}};
//!
//! let options = MailOptions { mailboxes: 2, messages: 3, ..MailOptions::paper(Seed(1)) };
//! let step = Mail::new(options).unwrap()
//!     .next_step(&Feedback { capacity: Bytes(1 << 30), free: Bytes(1 << 30), last: None }).unwrap().unwrap();
//! assert_eq!(step.label, "mailbox 1 of user 1");
//! ```

mod mailbox;
mod options;
mod workload;

#[cfg(test)]
mod tests;

pub use options::MailOptions;
pub use workload::Mail;
