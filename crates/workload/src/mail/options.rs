//! Parameters of the mail server, and the published ones.

use senesce_core::Seed;

use crate::WorkloadError;

/// Parameters of [`Mail`](super::Mail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailOptions {
    /// Everything random follows from it.
    pub seed: Seed,
    /// How many users.
    pub users: u64,
    /// Mailboxes of a user.
    pub mailboxes: u64,
    /// Messages in a mailbox at the beginning.
    pub messages: u64,
    /// A message has 1 to so many bytes, uniformly.
    pub largest_bytes: u64,
    /// Operations of a cycle, for each user.
    pub operations: u64,
    /// How many cycles.
    pub cycles: u64,
}

impl MailOptions {
    /// As published: 80 mailboxes of 1000 messages of 1 to 32768 bytes, 100 cycles of 8,000 operations; one user.
    pub fn paper(seed: Seed) -> Self {
        Self { seed, users: 1, mailboxes: 80, messages: 1000, largest_bytes: 32_768, operations: 8_000, cycles: 100 }
    }

    /// Estimates the bytes that the messages occupy at the start; `u64::MAX` if the number overflows.
    pub fn first_state_bytes(&self) -> u64 {
        // Blocks of 4 KiB are half empty at a message's end, and a mailbox has three directories and two files.
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
                let problem = "between 1 and 4294967296";
                return Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
            }
        }
        Ok(())
    }
}
