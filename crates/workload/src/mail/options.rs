//! Parameters of the mail server, and the published ones.

use senesce_core::Seed;

use crate::WorkloadError;

/// Parameters of [`Mail`](super::Mail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// The number of users.
    pub users: u64,
    /// Mailboxes of a user.
    pub mailboxes: u64,
    /// Messages in a mailbox after set-up.
    pub messages: u64,
    /// The largest size of a message, bytes. Sizes are uniform from 1.
    pub largest_bytes: u64,
    /// Operations of a cycle, for each user.
    pub operations: u64,
    /// The number of cycles.
    pub cycles: u64,
}

impl MailOptions {
    /// The published parameters: 80 mailboxes of 1000 messages of 1 to 32768 bytes, 100 cycles of
    /// 8,000 operations; one user.
    pub fn paper(seed: Seed) -> Self {
        Self { seed, users: 1, mailboxes: 80, messages: 1000, largest_bytes: 32_768, operations: 8_000, cycles: 100 }
    }

    /// Estimates the bytes that the messages occupy at the start; `u64::MAX` if the number
    /// overflows.
    pub fn first_state_bytes(&self) -> u64 {
        // The last 4 KiB block of a message is half empty on average. A mailbox has three
        // directories and two files.
        let message = self.largest_bytes / 2 + 2048 + 64;
        let mailbox = self.messages.saturating_mul(message).saturating_add(7 * 4096);
        self.users.saturating_mul(self.mailboxes).saturating_mul(mailbox)
    }

    /// Errors: a parameter out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        for (name, value) in [
            ("users", self.users),
            ("mailboxes", self.mailboxes),
            ("largest_bytes", self.largest_bytes),
            ("operations", self.operations),
        ] {
            if value == 0 || value > 1 << 32 {
                let problem = "must be between 1 and 4294967296";
                return Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
            }
        }
        Ok(())
    }
}
