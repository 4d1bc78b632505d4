//! Turns the records of a log into steps.

use std::sync::Arc;

use senesce_core::RelPath;
use senesce_oplog::{Content, DoneStep, Op, Outcome, Step};

use crate::{WorkloadError, generated_paths::path};

/// The most content of a step that is joined from small ones, bytes.
pub const STEP_BYTES: u64 = 16 << 20;

/// Label of the initial files of a recording.
const FOUND: &str = "found";

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Steps of the log are joined until they have this number of operations or [`STEP_BYTES`]; 0:
    /// they are not joined.
    pub operations: u64,
    /// The number of repetitions. With more than one, each has a directory of its own.
    pub repeat: u64,
    /// The number of repetitions to keep. The oldest is removed before another one starts.
    pub keep: u64,
}

/// A step of a repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The repetition, from 1.
    pub repetition: u64,
    /// The step itself.
    pub step: Step,
}

/// The steps of all repetitions. `open` returns the records of the log from its start.
///
/// A step is counted if the log counted it, unless it holds the initial files of a recording. Steps
/// with different roots are not joined, nor are counted and uncounted ones. Errors: those of `open`
/// and of the records; an error is the last item.
pub fn plan_pieces<I>(
    options: ReplayOptions,
    mut open: impl FnMut() -> Result<I, WorkloadError>,
) -> impl Iterator<Item = Result<Piece, WorkloadError>>
where
    I: Iterator<Item = Result<DoneStep, WorkloadError>>,
{
    let one = move |repetition| {
        let (records, failed) = match open() {
            Ok(records) => (Some(records), None),
            Err(error) => (None, Some(Err(error))),
        };
        let joined = Joined { options, repetition, records: records.into_iter().flatten(), next: None, ended: false };
        failed.into_iter().chain(joined)
    };
    let mut failed = false;
    (1..=options.repeat).flat_map(one).take_while(move |piece| {
        let before = failed;
        failed |= piece.is_err();
        !before
    })
}

/// The directory of a repetition.
pub(super) fn directory(repetition: u64) -> RelPath {
    path(&format!("repeat-{repetition}"))
}

struct Joined<I> {
    options: ReplayOptions,
    repetition: u64,
    records: I,
    next: Option<Draft>,
    ended: bool,
}

/// A step under construction.
struct Draft {
    label: String,
    /// Numbers in the log.
    first: u64,
    last: u64,
    counted: bool,
    root: RelPath,
    ops: Vec<Op>,
    bytes: u64,
}

impl<I: Iterator<Item = Result<DoneStep, WorkloadError>>> Iterator for Joined<I> {
    type Item = Result<Piece, WorkloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let done = match self.records.next() {
                Some(Ok(done)) => done,
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                None => {
                    self.ended = true;
                    break;
                }
            };
            let draft = self.draft(&done);
            match &mut self.next {
                Some(next) if next.takes(&draft, self.options.operations) => next.take(draft),
                next => {
                    if let Some(whole) = next.replace(draft) {
                        return Some(Ok(self.piece(whole)));
                    }
                }
            }
        }
        self.next.take().map(|last| Ok(self.piece(last)))
    }
}

impl<I> Joined<I> {
    fn draft(&self, done: &DoneStep) -> Draft {
        let step = &done.step;
        let root = match self.options.repeat {
            0 | 1 => step.root.clone(),
            _ => directory(self.repetition).join(&step.root),
        };
        Draft {
            label: step.label.clone(),
            first: done.number,
            last: done.number,
            counted: step.counted && step.label != FOUND,
            root,
            ops: ops_done(done),
            bytes: done.contents.iter().map(|(bytes, _)| bytes).sum(),
        }
    }

    fn piece(&self, draft: Draft) -> Piece {
        let Draft { label, first, last, counted, root, ops, .. } = draft;
        let mut label = match first == last {
            true => format!("{label} (step {first} of the log)"),
            false => format!("{label} (steps {first} to {last} of the log)"),
        };
        if self.options.repeat > 1 {
            label = format!("repetition {}: {label}", self.repetition);
        }
        Piece { repetition: self.repetition, step: Step { label, counted, root, ops: ops.into() } }
    }
}

impl Draft {
    fn takes(&self, next: &Self, operations: u64) -> bool {
        let fits = self.ops.len() as u64 + next.ops.len() as u64 <= operations && self.bytes + next.bytes <= STEP_BYTES;
        fits && (self.counted, &self.root) == (next.counted, &next.root)
    }

    fn take(&mut self, next: Self) {
        self.last = next.last;
        self.bytes += next.bytes;
        self.ops.extend(next.ops);
    }
}

/// The completed operations of a record. If it ran out of space, that is the part before the
/// failure.
pub fn ops_done(done: &DoneStep) -> Vec<Op> {
    let ops = &done.step.ops;
    let Outcome::NoSpace { failed_op, written } = done.outcome else { return ops.to_vec() };
    let mut out: Vec<Op> = ops.iter().take(failed_op).cloned().collect();
    match (ops.get(failed_op), written) {
        (Some(Op::Create { path, mode, content }), Some(len)) => {
            out.push(Op::Create { path: path.clone(), mode: *mode, content: beginning(content, len) });
        }
        (Some(Op::Write { path, offset, content }), Some(len)) => {
            out.push(Op::Write { path: path.clone(), offset: *offset, content: beginning(content, len) });
        }
        _ => {}
    }
    out
}

/// The first bytes of a content.
fn beginning(content: &Content, len: u64) -> Content {
    match content {
        Content::Inline(bytes) => {
            let len = bytes.len().min(usize::try_from(len).unwrap_or(usize::MAX));
            Content::Inline(Arc::from(&bytes[..len]))
        }
        Content::Seeded { seed, len: whole } => Content::Seeded { seed: *seed, len: len.min(*whole) },
        Content::Derived(derived) => Content::derived(format!("first {len} of {}", derived.key)),
    }
}

/// The length of the beginning and the key of the whole, if a key stands for the beginning of
/// another content.
pub fn parse_beginning(key: &str) -> Option<(u64, &str)> {
    let (len, whole) = key.strip_prefix("first ")?.split_once(" of ")?;
    Some((len.parse().ok()?, whole))
}
