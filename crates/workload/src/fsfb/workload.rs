//! The workload: it fills the volume, then runs rounds. Feedback of the file system holds the
//! fullness.

use senesce_core::{Bytes, RelPath, Rng};
use senesce_oplog::{Outcome, Step};

use super::{
    files::{BLOCK_BYTES, File, Files},
    options::FsfbOptions,
    pending_step::{PendingStep, StepOutcome},
    tree::DirectoryTree,
};
use crate::{Feedback, Workload, WorkloadError};

/// The most bytes that a step of set-up creates. A killed run loses at most one step.
const FILL_STEP_BYTES: u64 = 256 * Bytes::MIB;
/// The held level is above the target by the capacity divided by this. File systems may store small
/// files with the metadata and free space late. Neither must take the volume below the target.
const SLACK_DIVISOR: u64 = 2_000;
/// After this number of failures in a row without progress, the volume has no more space.
const PATIENCE: u32 = 3;

/// The phase of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Set-up, until the target is reached.
    Fill,
    /// The next step deletes the files of a round.
    Delete,
    /// The round's files are deleted. Its directory is to be made or is being filled.
    Create {
        /// `None` until it is made.
        directory: Option<u32>,
        /// Whether the counted step was returned.
        counted: bool,
    },
}

/// The kind of the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Fill,
    Delete,
    Create,
    MakeRoom,
    /// No operations: its label reports an event.
    Note,
}

/// The state that set-up reached, and that rounds hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    content_bytes: u64,
    block_bytes: u64,
    used_bytes: u64,
}

/// The streams of random numbers, one for each purpose.
struct Draws {
    place: Rng,
    size: Rng,
    victim: Rng,
    slot: Rng,
    content: Rng,
}

/// FSFB as a source of steps.
///
/// Steps: `fill to 95%` (not counted, until the target is reached), then for each round *k*:
/// `round k: delete …` (not counted), `round k: create …` (counted). After a lack of space:
/// `make room`, and more steps of the same kind (not counted).
pub struct Fsfb {
    options: FsfbOptions,
    draws: Draws,
    tree: DirectoryTree,
    files: Files,
    next_file: u64,
    phase: Phase,
    /// The current round, from 1.
    round: u64,
    pending: PendingStep,
    /// A file that a lack of space left unfinished.
    part: Option<RelPath>,
    failures: u32,
    level: Option<Level>,
    /// `None` before the first step.
    given: Option<Given>,
    /// Set if the last step only raised the used space: the bytes that were missing then, and the
    /// number of such steps in a row without progress.
    raising: Option<(u64, u32)>,
    /// Whether the round's counted step met a lack of space, so that a later step must report the
    /// end of the round.
    owes_end: bool,
    /// Whether the last step came after set-up.
    set_up: bool,
}

impl Fsfb {
    /// Errors: a parameter out of its range.
    pub fn new(options: FsfbOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let rng = |purpose: &str| Rng::for_purpose(options.seed, &format!("fsfb {purpose}"));
        Ok(Self {
            options,
            draws: Draws {
                place: rng("place"),
                size: rng("size"),
                victim: rng("victim"),
                slot: rng("slot"),
                content: rng("content"),
            },
            tree: DirectoryTree::new(options.children, options.directories),
            files: Files::default(),
            next_file: 0,
            phase: Phase::Fill,
            round: 1,
            pending: PendingStep::default(),
            part: None,
            failures: 0,
            level: None,
            given: None,
            raising: None,
            owes_end: false,
            set_up: false,
        })
    }

    /// The number of existing files.
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// Bytes of their contents.
    pub fn content_bytes(&self) -> u64 {
        self.files.content_bytes()
    }

    /// The number of directories, the root included.
    pub fn directories(&self) -> u64 {
        self.tree.len() as u64
    }

    /// The used bytes after set-up and between rounds.
    fn target_bytes(&self, capacity: Bytes) -> u64 {
        let target = u128::from(capacity.0) * u128::from(self.options.fill_percent);
        u64::try_from(target.div_ceil(100)).unwrap_or(u64::MAX).saturating_add(capacity.0 / SLACK_DIVISOR)
    }

    fn give(&mut self, given: Given, label: String, counted: bool) -> Step {
        self.given = Some(given);
        self.pending.start(label, counted)
    }

    fn new_file(&mut self, directory: u32, size_bytes: u64) {
        let file = File { directory, number: self.next_file, size_bytes };
        self.next_file += 1;
        self.pending.create(&self.tree, file, self.draws.content.next_u64());
    }

    /// A step of set-up, or `None` when the target is reached.
    fn fill(&mut self, feedback: &Feedback) -> Option<Step> {
        let missing = self.target_bytes(feedback.capacity).saturating_sub(used(feedback));
        if missing == 0 {
            return None;
        }
        // Metadata shows in the used space only after the sync. The first step therefore creates
        // most of the missing bytes, and later ones the rest.
        let most = if missing > 64 * self.options.sizes.largest() { missing / 4 * 3 } else { missing };
        while self.pending.block_bytes < most.min(FILL_STEP_BYTES) {
            let known = self.tree.len();
            let directory = self.tree.descend(&mut self.draws.place);
            for new in known..self.tree.len() {
                self.pending.make_directory(&self.tree, new as u32);
            }
            let size_bytes = self.options.sizes.draw(&mut self.draws.size);
            self.new_file(directory, size_bytes);
        }
        self.pending.synchronise();
        Some(self.give(Given::Fill, format!("fill to {}%", self.options.fill_percent), false))
    }

    fn end_of_fill(&mut self, feedback: &Feedback) -> Result<(), WorkloadError> {
        if self.files.len() == 0 {
            return Err(WorkloadError::VolumeTooSmall {
                label: format!("fill to {}%", self.options.fill_percent),
                capacity: feedback.capacity,
                problem: format!("{} of it are used before the first file exists", Bytes(used(feedback))),
            });
        }
        self.level = Some(Level {
            content_bytes: self.files.content_bytes(),
            block_bytes: self.files.block_bytes(),
            used_bytes: used(feedback).min(self.target_bytes(feedback.capacity)),
        });
        self.phase = Phase::Delete;
        Ok(())
    }

    fn delete(&mut self) -> Step {
        let share = u128::from(self.files.content_bytes()) * u128::from(self.options.replace_percent);
        let wanted = share.div_ceil(100) as u64;
        let (mut gone, mut count) = (0, 0);
        while gone < wanted
            && let Some(file) = self.files.take_any(&mut self.draws.victim)
        {
            gone += file.size_bytes;
            count += 1;
            self.pending.unlink(&self.tree, file);
        }
        // The sync makes the next feedback exact and the freed blocks usable: freed blocks wait for
        // a commit.
        self.pending.synchronise();
        self.phase = Phase::Create { directory: None, counted: false };
        self.give(Given::Delete, format!("round {}: delete {count} files, {gone} bytes", self.round), false)
    }

    /// The bytes of contents and the bytes of blocks that the round still has to create.
    fn missing(&self, feedback: &Feedback) -> (u64, u64) {
        let Some(level) = self.level else { return (0, 0) };
        let blocks = level.block_bytes.saturating_sub(self.files.block_bytes());
        let told = level.used_bytes.saturating_sub(used(feedback));
        (level.content_bytes.saturating_sub(self.files.content_bytes()), blocks.max(told))
    }

    /// A step that fills the round's directory, or `None` when nothing is missing.
    fn create(&mut self, feedback: &Feedback) -> Option<Step> {
        let Phase::Create { directory, counted } = self.phase else { return None };
        let (content, blocks) = self.missing(feedback);
        if counted && content == 0 && blocks == 0 {
            let owed = std::mem::take(&mut self.owes_end);
            return owed.then(|| self.give(Given::Note, format!("round {}: the level is held", self.round), false));
        }
        self.owes_end = false;
        if content == 0 && counted && !self.is_rising(blocks) {
            return Some(self.stay(feedback, "what is created does not show"));
        }
        let directory = match directory {
            Some(directory) => directory,
            None => {
                let directory = self.tree.make_at_free_slot(&mut self.draws.slot);
                self.pending.make_directory(&self.tree, directory);
                directory
            }
        };
        while self.pending.content_bytes < content || self.pending.block_bytes < blocks {
            let drawn = self.options.sizes.draw(&mut self.draws.size);
            // The last file has exactly the missing size, so that no error accumulates over the
            // rounds.
            let left = content.saturating_sub(self.pending.content_bytes);
            // Files that only use up space have whole blocks: a file system may store partial
            // blocks where they do not count.
            let space = blocks.saturating_sub(self.pending.block_bytes).next_multiple_of(BLOCK_BYTES);
            let left = left.max(space);
            self.new_file(directory, drawn.min(left));
        }
        self.pending.synchronise();
        let (name, files, bytes) = (self.tree.path(directory), self.pending.created, self.pending.content_bytes);
        let label = format!("round {}: create {name} with {files} files, {bytes} bytes", self.round);
        self.phase = Phase::Create { directory: Some(directory), counted: true };
        Some(self.give(Given::Create, label, !counted))
    }

    /// Whether steps that only raise the used space have an effect. `missing` is the number of
    /// bytes missing now.
    fn is_rising(&mut self, missing: u64) -> bool {
        let idle = match self.raising {
            Some((before, idle)) if missing >= before => idle + 1,
            _ => 0,
        };
        self.raising = (idle <= PATIENCE).then_some((missing, idle));
        self.raising.is_some()
    }

    /// Ends a round below its level. Later rounds hold the lower level.
    fn stay(&mut self, feedback: &Feedback, why: &str) -> Step {
        self.level = Some(Level {
            content_bytes: self.files.content_bytes(),
            block_bytes: self.files.block_bytes(),
            used_bytes: used(feedback).min(self.target_bytes(feedback.capacity)),
        });
        let label = format!("round {}: {why}: the volume stays at {:.2}%", self.round, used_percent(feedback));
        self.end_round();
        self.give(Given::Note, label, false)
    }

    /// Ends the round. Later rounds do not make up for missing bytes.
    fn end_round(&mut self) {
        self.round += 1;
        self.raising = None;
        self.phase = Phase::Delete;
    }

    /// The step after a lack of space: it removes the unfinished file, and the sync frees blocks.
    fn make_room(&mut self) -> Step {
        if let Some(part) = &self.part {
            self.pending.remove_part(part);
        }
        self.pending.synchronise();
        self.give(Given::MakeRoom, "make room after no space".into(), false)
    }

    /// Stops after repeated failures: the fullness stays as it is.
    fn give_up(&mut self, feedback: &Feedback) -> Result<Step, WorkloadError> {
        (self.failures, self.owes_end) = (0, false);
        match self.phase {
            Phase::Fill => {
                self.end_of_fill(feedback)?;
                let share = used_percent(feedback);
                let label =
                    format!("no space to fill to {}%: the volume stays at {share:.2}%", self.options.fill_percent);
                Ok(self.give(Given::Note, label, false))
            }
            Phase::Create { .. } if self.files.len() > 0 => Ok(self.stay(feedback, "no space to hold the level")),
            Phase::Create { .. } | Phase::Delete => Err(no_deletion(feedback, "even a deletion found no space")),
        }
    }

    /// Applies the outcome of the last step. Returns the step that must follow, if any.
    fn settle(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        let outcome = feedback.last.unwrap_or(Outcome::Done);
        let end = self.pending.finish(outcome, &mut self.tree, &mut self.files, &mut self.part);
        let StepOutcome { no_space, progressed, has_root } = end;
        if !has_root {
            return Err(no_deletion(feedback, "even a directory found no space"));
        }
        if let Phase::Create { directory: Some(directory), counted } = self.phase
            && directory as usize >= self.tree.len()
        {
            self.phase = Phase::Create { directory: None, counted };
        }
        if !no_space {
            if progressed {
                self.failures = 0;
            }
            let gives_up = self.failures > PATIENCE;
            return if gives_up { self.give_up(feedback).map(Some) } else { Ok(None) };
        }
        if self.given == Some(Given::Delete) && !progressed {
            self.phase = Phase::Delete;
        }
        self.owes_end |= self.given == Some(Given::Create);
        self.failures = if progressed { 1 } else { self.failures + 1 };
        if self.failures > 2 * PATIENCE {
            return Err(no_deletion(feedback, "even a deletion found no space"));
        }
        if self.failures <= PATIENCE || self.part.is_some() {
            return Ok(Some(self.make_room()));
        }
        self.give_up(feedback).map(Some)
    }
}

/// Bytes that are not free to users.
fn used(feedback: &Feedback) -> u64 {
    feedback.capacity.0.saturating_sub(feedback.free.0)
}

fn used_percent(feedback: &Feedback) -> f64 {
    used(feedback) as f64 * 100.0 / feedback.capacity.0.max(1) as f64
}

fn no_deletion(feedback: &Feedback, problem: &str) -> WorkloadError {
    WorkloadError::VolumeTooSmall {
        label: "make room after no space".into(),
        capacity: feedback.capacity,
        problem: problem.into(),
    }
}

impl Workload for Fsfb {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        if self.given.is_none() {
            self.pending.make_directory(&self.tree, 0);
        } else if let Some(step) = self.settle(feedback)? {
            return Ok(Some(step));
        }
        loop {
            match self.phase {
                Phase::Fill => match self.fill(feedback) {
                    Some(step) => return Ok(Some(step)),
                    None => self.end_of_fill(feedback)?,
                },
                Phase::Delete if self.round > self.options.rounds => return Ok(None),
                Phase::Delete => {
                    self.set_up = true;
                    return Ok(Some(self.delete()));
                }
                Phase::Create { .. } => match self.create(feedback) {
                    Some(step) => return Ok(Some(step)),
                    None => self.end_round(),
                },
            }
        }
    }

    fn copies(&self) -> u64 {
        u64::from(self.given.is_some())
    }

    fn is_set_up(&self) -> bool {
        self.set_up
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        *last == Outcome::Done && !matches!(self.given, Some(Given::Delete | Given::MakeRoom))
    }
}
