//! A mail server that keeps Maildirs (FAST 2017). It delivers and deletes messages at random, one
//! small file a message.
//!
//! Each user has mailboxes, and each mailbox has messages of uniform size. A mailbox also has three
//! directories (`tmp`, `new`, `cur`) and the files in which Dovecot stores its state. A counted
//! step completes a *cycle*: a number of operations for every user, each on a random mailbox of a
//! random user. Half of them are deliveries, half deletions.
//!
//! - Delivery: the message is written in `tmp`, flushed with fsync, renamed to `new`, then to `cur`
//!   with the flags `:2,`.
//! - Deletion: a random message is flagged (renamed to `:2,T`), then unlinked.
//! - `dovecot-uidlist`: each new message appends a line. If fewer than three quarters of the lines
//!   belong to existing messages, the list is rewritten under a temporary name and renamed.
//! - `dovecot.index.log`: every change appends a record. At 32 KiB the index is rewritten under a
//!   temporary name and renamed. The log is renamed to `dovecot.index.log.2`, and a new one starts.
//!
//! The UID list has Dovecot's format. Records of the index and its log have the right sizes and
//! random bytes.
//!
//! ```
//! use senesce_core::{Bytes, Seed};
//! use senesce_workload::{Feedback, Workload, mail::{Mail, MailOptions}};
//!
//! let options = MailOptions { mailboxes: 2, messages: 3, ..MailOptions::paper(Seed(1)) };
//! let feedback = Feedback { capacity: Bytes(1 << 30), free: Bytes(1 << 30), last: None };
//! let step = Mail::new(options).unwrap().next_step(&feedback).unwrap().unwrap();
//! assert_eq!(step.label, "mailbox 1 of user 1");
//! ```

mod mailbox;
mod options;
mod workload;

#[cfg(test)]
mod tests;

pub use options::MailOptions;
pub use workload::Mail;
