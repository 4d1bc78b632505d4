//! Reads a log before any volume is made: whether a volume can follow it, the space it needs, its
//! counted steps.

use std::{collections::HashSet, path::Path};

use senesce_core::{Bytes, RelPath};
use senesce_exec::{ModelTarget, NullTarget, OpFailure, Target, apply_step};
use senesce_oplog::{Content, ContentSource, DoneStep, Ended, LogReader, LogSummary, Op, Payload, SpaceChange, Step};
use senesce_workload::replay::{ReplayOptions, ops_done, plan_pieces};

use super::log::records;
use crate::{Error, arm::check_signal};

/// The properties of a log.
pub(super) struct Survey {
    pub summary: LogSummary,
    /// Counted steps of one repetition.
    pub counted: u64,
    /// The maximum that one repetition occupies in blocks of 4 KiB, if holes use space.
    pub peak: Bytes,
    /// The minimum that it occupies at its peak: holes, directories and the ends of files use no
    /// space.
    pub needed: Bytes,
}

/// Reads the log, and follows it on a volume in memory that keeps lengths and no contents.
///
/// With `check_contents`, makes each derived content once, and compares it with its record. Errors:
/// damage; an operation that an empty volume could not follow; a content that is unavailable or has
/// changed.
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
            "ends in the middle of a frame, at byte {at_bytes}; a replay would stop there as if the log were complete"
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

/// The minimum that the log's files occupy together at their peak. If an empty volume cannot follow
/// the log, stops at the first such operation.
///
/// Errors: the log cannot be opened, a signal. Cost: reads the log once; makes no contents.
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

/// A volume in memory with an account of its holes.
struct Account {
    model: ModelTarget,
    /// An upper bound of the bytes in holes.
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
            // Of a failed operation, only the written start.
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
                    format!(
                        "step {} ({}): {op}: {said} on a volume that was empty at the start",
                        done.number, done.step.label
                    ),
                )
            })?;
            let used = self.model.used().0;
            self.peak = self.peak.max(used);
            let free_of_charge = self.hole_bytes.saturating_add(4096 * self.model.names());
            self.needed = self.needed.max(used.saturating_sub(free_of_charge));
        }
        Ok(())
    }

    /// Adds the bytes that an operation may leave unwritten.
    fn note_holes(&mut self, root: &RelPath, op: &Op) {
        let length = |path: &RelPath| self.model.file_bytes(&root.join(path)).unwrap_or(0);
        let more = match op {
            Op::Truncate { path, len } => len.saturating_sub(length(path)),
            // With the rest of the file's last block.
            Op::Write { path, offset, .. } => offset.saturating_sub(length(path)),
            Op::Fallocate { how: SpaceChange::Punch, len, .. } => *len,
            // Some file systems make holes of these.
            Op::Fallocate { how: SpaceChange::Zero | SpaceChange::ZeroKeepSize, len, .. } => *len,
            _ => 0,
        };
        if more > 0 {
            // The log may claim any length.
            let blocks = more.checked_next_multiple_of(4096).unwrap_or(u64::MAX);
            self.hole_bytes = self.hole_bytes.saturating_add(blocks);
        }
    }
}

/// The same operation with `len` arbitrary bytes.
fn without_content(op: Op, len: u64) -> Op {
    let content = Content::Seeded { seed: 0, len };
    match op {
        Op::Create { path, mode, .. } => Op::Create { path, mode, content },
        Op::Write { path, offset, .. } => Op::Write { path, offset, content },
        other => other,
    }
}

/// Makes the derived contents of a record that were not seen before, and compares them with their
/// record.
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
