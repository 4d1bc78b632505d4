//! The workload: it fills the mailboxes, then runs cycles.

use senesce_core::Rng;
use senesce_oplog::{Op, Outcome, Step};

use super::{MailOptions, mailbox::Mailbox};
use crate::{Feedback, Workload, WorkloadError, generated_paths::path, retry::Retry};

/// Mail operations of a step. A cycle has several steps, so that each stays small.
const STEP_OPERATIONS: u64 = 1_000;

/// The mail server as a source of steps.
///
/// Steps: `mailbox M of user U` (not counted), then `cycle C, operations A to B` (the last one of a
/// cycle is counted).
pub struct Mail {
    options: MailOptions,
    choice: Rng,
    size: Rng,
    content: Rng,
    /// By user, then by number.
    mailboxes: Vec<Mailbox>,
    cycle: u64,
    /// Operations of the cycle that were returned.
    done: u64,
    set_up: bool,
    retry: Retry,
}

impl Mail {
    /// Errors: a parameter out of its range.
    pub fn new(options: MailOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let rng = |purpose: &str| Rng::for_purpose(options.seed, &format!("mail {purpose}"));
        Ok(Self {
            options,
            choice: rng("choice"),
            size: rng("size"),
            content: rng("content"),
            mailboxes: Vec::new(),
            cycle: 1,
            done: 0,
            set_up: false,
            retry: Retry::default(),
        })
    }

    /// The number of existing messages.
    pub fn messages(&self) -> u64 {
        self.mailboxes.iter().map(|mailbox| mailbox.len() as u64).sum()
    }

    fn make_mailbox(&mut self) -> Step {
        let made = self.mailboxes.len() as u64;
        let (user, number) = (made / self.options.mailboxes + 1, made % self.options.mailboxes + 1);
        let mut ops = Vec::new();
        if made == 0 {
            ops.push(Op::Mkdir { path: path(""), mode: 0o755 });
        }
        if number == 1 {
            ops.push(Op::Mkdir { path: path(&format!("user-{user}")), mode: 0o700 });
        }
        let seeds = &mut || self.content.next_u64();
        let mut mailbox = Mailbox::make(format!("user-{user}/box-{number}"), seeds, &mut ops);
        for _ in 0..self.options.messages {
            mailbox.deliver(self.size.between(1, self.options.largest_bytes), seeds, &mut ops);
        }
        self.mailboxes.push(mailbox);
        step(format!("mailbox {number} of user {user}"), false, ops)
    }

    fn cycle_step(&mut self) -> Step {
        let all = self.options.operations * self.options.users;
        let (first, last) = (self.done + 1, all.min(self.done + STEP_OPERATIONS));
        let mut ops = Vec::new();
        let seeds = &mut || self.content.next_u64();
        for _ in first..=last {
            let at = self.choice.below(self.mailboxes.len() as u64) as usize;
            let mailbox = &mut self.mailboxes[at];
            let delivers = self.choice.chance(1, 2);
            // An empty mailbox has nothing to delete.
            if delivers || mailbox.len() == 0 {
                mailbox.deliver(self.size.between(1, self.options.largest_bytes), seeds, &mut ops);
            } else {
                let position = self.choice.below(mailbox.len() as u64) as usize;
                mailbox.expunge(position, seeds, &mut ops);
            }
        }
        let label = format!("cycle {}, operations {first} to {last}", self.cycle);
        self.done = last;
        let ends = last == all;
        if ends {
            (self.done, self.cycle) = (0, self.cycle + 1);
        }
        step(label, ends, ops)
    }

    /// Expected paths and sizes (0 if the size is not tracked); for tests.
    #[cfg(test)]
    pub(super) fn expected_files(&self) -> Vec<(String, u64)> {
        self.mailboxes.iter().flat_map(Mailbox::files).collect()
    }
}

fn step(label: String, counted: bool, ops: Vec<Op>) -> Step {
    Step { label, counted, root: path("mail"), ops: ops.into() }
}

impl Workload for Mail {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if let Some(step) = self.retry.settle(feedback)? {
            return Ok(Some(step));
        }
        let step = if (self.mailboxes.len() as u64) < self.options.users * self.options.mailboxes {
            self.make_mailbox()
        } else if self.cycle > self.options.cycles {
            return Ok(None);
        } else {
            self.set_up = true;
            self.cycle_step()
        };
        Ok(Some(self.retry.give(step)))
    }

    fn copies(&self) -> u64 {
        self.options.users
    }

    fn is_set_up(&self) -> bool {
        self.set_up
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        self.retry.is_whole(last)
    }
}
