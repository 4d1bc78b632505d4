//! A log looked through before anything is made: whether a volume can follow it, what it needs, what it counts.

use std::{collections::HashSet, path::Path};

use senesce_core::{Bytes, RelPath};
use senesce_exec::{ModelTarget, NullTarget, OpFailure, Target, apply_step};
use senesce_oplog::{Content, ContentSource, DoneStep, Ended, LogReader, LogSummary, Op, Payload, SpaceChange, Step};
use senesce_workload::replay::{ReplayOptions, ops_done, plan_pieces};

use super::log::records;
use crate::{Error, arm::check_signal};

/// What a log is like.
pub(super) struct Survey {
    pub summary: LogSummary,
    /// Counted steps of one repetition.
    pub counted: u64,
    /// What one repetition occupies at most, if holes take space, in blocks of 4 KiB.
    pub peak: Bytes,
    /// What it occupies at its peak at least: holes, directories and the ends of files take none.
    pub needed: Bytes,
}

/// Reads the log through, and follows it on a volume in memory that keeps lengths and no contents.
///
/// In: `check_contents`: derived contents are made and compared with their record, each key once. Errors: damage; an
/// operation that an empty volume could not follow; a content that is not to be had, or another than it was.
pub(super) fn survey(
    path: &Path,
    options: ReplayOptions,
    contents: &dyn ContentSource,
    check_contents: bool,
) -> Result<Survey, Error> {
    let mut reader = LogReader::open(path)?;
    let mut account = Account { model: ModelTarget::default(), hole_bytes: 0, peak: 0, needed: 0 };
    let mut seen = HashSet::new();
    for done in reader.by_ref() {
        check_signal()?;
        let done = done?;
        account.follow(path, &done)?;
        if check_contents {
            check_derived(path, &done, contents, &mut seen)?;
        }
    }
    let summary = reader.summary();
    if let Ended::Truncated { at_bytes } = summary.ended {
        let problem = format!(
            "ends in the middle of a frame, at byte {at_bytes}; its beginning would be replayed as if it were all"
        );
        return Err(refuse(path, problem));
    }
    let once = ReplayOptions { repeat: 1, ..options };
    let mut counted = 0;
    for piece in plan_pieces(once, || records(path)) {
        counted += u64::from(piece?.step.counted);
    }
    Ok(Survey { summary, counted, peak: Bytes(account.peak), needed: Bytes(account.needed) })
}

/// What the log's files occupy together at its peak at least; a log that an empty volume cannot follow is followed as far
/// as it can be.
///
/// Errors: it cannot be opened, a signal. Cost: the log is read once; contents are not made.
pub fn collect_peak(path: &Path) -> Result<Bytes, Error> {
    let mut account = Account { model: ModelTarget::default(), hole_bytes: 0, peak: 0, needed: 0 };
    for done in LogReader::open(path)? {
        check_signal()?;
        let Ok(()) = done.map_err(Error::from).and_then(|done| account.follow(path, &done)) else { break };
    }
    Ok(Bytes(account.needed))
}

fn refuse(path: &Path, problem: String) -> Error {
    Error::Unverified { what: format!("the log {}", path.display()), problem }
}

/// A volume in memory with what is known of its holes.
struct Account {
    model: ModelTarget,
    /// At least as much as there are holes.
    hole_bytes: u64,
    peak: u64,
    needed: u64,
}

impl Account {
    fn follow(&mut self, path: &Path, done: &DoneStep) -> Result<(), Error> {
        let mut lengths = done.contents.iter().map(|(bytes, _)| *bytes);
        for op in ops_done(done) {
            check_signal()?;
            let recorded = op.content().and_then(|_| lengths.next());
            // Of an operation that failed, the beginning.
            let len = match op.content() {
                Some(Content::Inline(bytes)) => Some(bytes.len() as u64),
                Some(Content::Seeded { len, .. }) => Some(*len),
                Some(Content::Derived(_)) => recorded,
                None => None,
            };
            self.note_holes(&done.step.root, &op);
            let op = without_content(op, len.unwrap_or(0));
            let payload = len.map(|len| Payload::Seeded { seed: 0, len });
            self.model.apply(&done.step.root, &op, payload.as_ref()).map_err(|failure| {
                let said = match failure {
                    OpFailure::Io(error) => error.to_string(),
                    OpFailure::NoSpace { .. } => "no space".to_owned(),
                };
                refuse(
                    path,
                    format!("step {} ({}): {op}: {said} on a volume that began empty", done.number, done.step.label),
                )
            })?;
            let used = self.model.used().0;
            self.peak = self.peak.max(used);
            let free_of_charge = self.hole_bytes.saturating_add(4096 * self.model.names());
            self.needed = self.needed.max(used.saturating_sub(free_of_charge));
        }
        Ok(())
    }

    /// Adds what an operation may leave unwritten.
    fn note_holes(&mut self, root: &RelPath, op: &Op) {
        let length = |path: &RelPath| self.model.file_bytes(&root.join(path)).unwrap_or(0);
        let more = match op {
            Op::Truncate { path, len } => len.saturating_sub(length(path)),
            // With the rest of the block that the end lies in.
            Op::Write { path, offset, .. } => offset.saturating_sub(length(path)),
            Op::Fallocate { how: SpaceChange::Punch, len, .. } => *len,
            // Some file systems make holes of these.
            Op::Fallocate { how: SpaceChange::Zero | SpaceChange::ZeroKeepSize, len, .. } => *len,
            _ => 0,
        };
        if more > 0 {
            // The log may announce any length.
            let blocks = more.checked_next_multiple_of(4096).unwrap_or(u64::MAX);
            self.hole_bytes = self.hole_bytes.saturating_add(blocks);
        }
    }
}

/// The same operation with as many bytes of nothing in particular.
fn without_content(op: Op, len: u64) -> Op {
    let content = Content::Seeded { seed: 0, len };
    match op {
        Op::Create { path, mode, .. } => Op::Create { path, mode, content },
        Op::Write { path, offset, .. } => Op::Write { path, offset, content },
        other => other,
    }
}

/// Makes the derived contents of a record that were not seen before, and compares them with what is recorded.
fn check_derived(
    path: &Path,
    done: &DoneStep,
    contents: &dyn ContentSource,
    seen: &mut HashSet<String>,
) -> Result<(), Error> {
    let with_content = done.step.ops.iter().filter(|op| op.content().is_some());
    for (op, recorded) in with_content.zip(&done.contents) {
        let Some(Content::Derived(derived)) = op.content() else { continue };
        if !seen.insert(derived.key.clone()) {
            continue;
        }
        let step = Step { ops: [op.clone()].into(), ..done.step.clone() };
        let made = apply_step(&mut NullTarget::default(), done.number, step, contents)?;
        if made.contents.first() != Some(recorded) {
            let problem = format!("step {}: the content {:?} is not what it was", done.number, derived.key);
            return Err(refuse(path, problem));
        }
    }
    Ok(())
}
