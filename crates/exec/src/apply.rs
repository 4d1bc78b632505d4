//! Applies steps to a target, for the first time or from their record.

use std::{io, sync::Arc};

use senesce_core::{StopFn, never};
use senesce_oplog::{Content, ContentError, ContentSource, DoneStep, Op, Outcome, Step};

use crate::{
    ExecError, OpFailure, Target,
    content::{CHUNK_BYTES, Ready, make_payload, make_ready, make_ready_until},
    error::OpPlace,
};

/// A step whose contents are resolved, generated and hashed, so that applying it needs only system
/// calls.
#[derive(Clone, Debug)]
pub struct PreparedStep {
    step: Step,
    contents: Vec<Ready>,
}

impl PreparedStep {
    /// The step.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Bytes that its contents hold in memory, for the budget of [`Prefetcher`](crate::Prefetcher).
    pub fn held_bytes(&self) -> u64 {
        // A rough figure for the operations themselves, so that steps without contents also count.
        self.contents.iter().map(|ready| ready.payload.held_bytes()).sum::<u64>() + 128 * self.step.ops.len() as u64
    }
}

/// Makes all contents of a step, which it then holds in memory at once. For a thread that runs
/// ahead.
pub fn prepare_step(step: Step, source: &dyn ContentSource) -> Result<PreparedStep, ContentError> {
    let mut buffer = Vec::new();
    let contents = step.ops.iter().filter_map(Op::content).map(|content| make_ready(content, source, &mut buffer));
    let contents = contents.collect::<Result<_, _>>()?;
    Ok(PreparedStep { step, contents })
}

/// Applies a prepared step, like [`apply_step`].
pub fn apply_prepared(target: &mut dyn Target, number: u64, prepared: PreparedStep) -> Result<DoneStep, ExecError> {
    let mut contents = prepared.contents.into_iter();
    run(target, number, prepared.step, |_| {
        Ok(contents.next().expect("prepare_step makes one content for each operation that has one"))
    })
}

/// Applies a step until it is complete or the space runs out.
///
/// Out: the record for the log. If the space runs out, the record does not have the operations
/// after the failed one, or their contents. Errors: a content cannot be made, an operation fails
/// for another reason than lack of space, or [`ExecError::Stopped`] if the target's
/// [`stop`](Target::stop) ends the making of a content. Cost: contents are made one after the other
/// and not kept, so memory does not grow with the step.
pub fn apply_step(
    target: &mut dyn Target,
    number: u64,
    step: Step,
    source: &dyn ContentSource,
) -> Result<DoneStep, ExecError> {
    let (mut buffer, stop) = (Vec::new(), target.stop());
    run(target, number, step, |op| {
        let content = op.content().expect("asked only for operations with a content");
        make_ready_until(content, source, &mut buffer, stop)
    })
}

fn run(
    target: &mut dyn Target,
    number: u64,
    mut step: Step,
    mut content_of: impl FnMut(&Op) -> Result<Ready, ContentError>,
) -> Result<DoneStep, ExecError> {
    let mut contents = Vec::new();
    let mut outcome = Outcome::Done;
    for (index, op) in step.ops.iter().enumerate() {
        let ready = match op.content() {
            Some(_) => {
                let failed = |source| stopped_or(target.stop(), content_error(number, &step, index, source));
                Some(content_of(op).map_err(failed)?)
            }
            None => None,
        };
        if let Some(ready) = &ready {
            contents.push((ready.payload.len(), ready.hash));
        }
        match target.apply(&step.root, op, ready.as_ref().map(|ready| &ready.payload)) {
            Ok(()) => {}
            Err(OpFailure::NoSpace { written }) => {
                outcome = Outcome::NoSpace { failed_op: index, written };
                break;
            }
            Err(OpFailure::Io(source)) => return Err(operation_error(number, &step, index, source)),
        }
    }
    if let Outcome::NoSpace { failed_op, .. } = outcome {
        step.ops = Arc::from(&step.ops[..=failed_op]);
    }
    Ok(DoneStep { number, step, outcome, contents, began: None })
}

/// The strictness of a replay about contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckContents {
    /// Every content must have the recorded length and hash before it is written.
    Yes,
    /// Contents are written as the source returns them. Only their lengths must be as recorded.
    LengthOnly,
}

/// The options of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// The check of contents.
    pub check: CheckContents,
    /// When this returns true, the replay ends with [`ExecError::Stopped`].
    pub stop: StopFn,
}

impl From<CheckContents> for Replay {
    fn from(check: CheckContents) -> Self {
        Self { check, stop: never }
    }
}

/// The length in bytes from which on system calls refuse a path.
const MOST_PATH_BYTES: usize = 4095;

/// Replays a record exactly. If an operation ran out of space, only the part that was done is
/// replayed.
///
/// Errors: those of [`apply_step`], and lack of space, because the recorded operations had space.
pub fn apply_done(
    target: &mut dyn Target,
    done: &DoneStep,
    source: &dyn ContentSource,
    how: impl Into<Replay>,
) -> Result<(), ExecError> {
    let how = how.into();
    let mut buffer = Vec::new();
    let mut contents = 0;
    for (index, op) in done.step.ops.iter().enumerate() {
        apply_one(target, done, index, contents, source, how, &mut buffer)?;
        contents += usize::from(op.content().is_some());
    }
    Ok(())
}

/// Replays one operation of a record. `content_index` is the number of contents of earlier
/// operations.
pub(crate) fn apply_one(
    target: &mut dyn Target,
    done: &DoneStep,
    index: usize,
    content_index: usize,
    source: &dyn ContentSource,
    how: Replay,
    buffer: &mut Vec<u8>,
) -> Result<(), ExecError> {
    let Replay { check, stop } = how;
    if stop() {
        return Err(ExecError::Stopped);
    }
    let (number, step) = (done.number, &done.step);
    let op = &step.ops[index];
    check_paths(done, index)?;
    let part = match done.outcome {
        Outcome::NoSpace { failed_op, written: None } if index >= failed_op => return Ok(()),
        Outcome::NoSpace { failed_op, .. } if index > failed_op => return Ok(()),
        Outcome::NoSpace { failed_op, written: Some(written) } if index == failed_op => Some(written),
        _ => None,
    };
    let mut payload = None;
    if let Some(content) = op.content() {
        let &(recorded_bytes, recorded_hash) =
            done.contents.get(content_index).ok_or_else(|| record_error(done, "a content has no length and hash"))?;
        // A log may contain any length. A content that cannot fit is not generated, hashed or
        // written.
        if !fits(target, part.unwrap_or(recorded_bytes).min(recorded_bytes)) {
            return Err(ExecError::TooSmall { at: OpPlace::new(number, step, index) });
        }
        let failed = |source| content_error(number, step, index, source);
        let differs = |found_bytes, found_hash| ExecError::ContentDiffers {
            at: OpPlace::new(number, step, index),
            recorded_bytes,
            recorded_hash,
            found_bytes,
            found_hash,
        };
        if let Content::Seeded { len, .. } = content
            && *len != recorded_bytes
        {
            return Err(differs(*len, 0));
        }
        // If space ran out, the whole content may be larger than the volume. Only its written part
        // is replayed.
        let verifies = check == CheckContents::Yes && (part.is_none() || fits(target, recorded_bytes));
        let (made, hash) = match verifies {
            true => {
                let made = make_ready_until(content, source, buffer, stop);
                let made = made.map_err(|error| stopped_or(stop, failed(error)))?;
                (made.payload, made.hash)
            }
            false => {
                let ahead = source.ready(content).map(|(made, _)| Ok(made));
                (ahead.unwrap_or_else(|| make_payload(content, source)).map_err(failed)?, recorded_hash)
            }
        };
        if made.len() != recorded_bytes || hash != recorded_hash {
            return Err(differs(made.len(), hash));
        }
        payload = Some(match part {
            Some(written) => made.beginning(written),
            None => made,
        });
    } else if part.is_some() {
        return Err(record_error(done, "an operation without content wrote a part of it"));
    }
    if let Op::Read { len, .. } = op
        && !fits(target, *len)
    {
        let problem = format!("it reads {len} bytes, more than the volume can hold");
        return Err(operation_error(number, step, index, io::Error::new(io::ErrorKind::InvalidInput, problem)));
    }
    match target.apply(&step.root, op, payload.as_ref()) {
        Ok(()) => Ok(()),
        Err(OpFailure::NoSpace { .. }) => Err(ExecError::TooSmall { at: OpPlace::new(number, step, index) }),
        Err(OpFailure::Io(source)) => Err(stopped_or(stop, operation_error(number, step, index, source))),
    }
}

/// Fails if a path of an operation is longer than a system call accepts.
///
/// The cost of an operation grows with the depth of its paths, so targets without such a limit need
/// the check, too.
pub(crate) fn check_paths(done: &DoneStep, index: usize) -> Result<(), ExecError> {
    let root_bytes = done.step.root.as_bytes().len();
    let paths = done.step.ops[index].paths();
    match paths.iter().flatten().find(|path| root_bytes + path.as_bytes().len() >= MOST_PATH_BYTES) {
        None => Ok(()),
        Some(_) => {
            let source = io::ErrorKind::InvalidFilename.into();
            Err(operation_error(done.number, &done.step, index, source))
        }
    }
}

/// Whether a target has the capacity for this number of bytes. Small lengths are not worth a system
/// call.
fn fits(target: &mut dyn Target, bytes: u64) -> bool {
    bytes <= CHUNK_BYTES as u64 || target.space().is_ok_and(|space| bytes <= space.capacity.0)
}

/// Returns [`ExecError::Stopped`] if `stop` returns true, else `error`.
pub(crate) fn stopped_or(stop: StopFn, error: ExecError) -> ExecError {
    if stop() { ExecError::Stopped } else { error }
}

pub(crate) fn content_error(number: u64, step: &Step, index: usize, source: ContentError) -> ExecError {
    ExecError::Content { at: OpPlace::new(number, step, index), source: Box::new(source) }
}

pub(crate) fn operation_error(number: u64, step: &Step, index: usize, source: io::Error) -> ExecError {
    ExecError::Operation { at: OpPlace::new(number, step, index), source }
}

fn record_error(done: &DoneStep, problem: &'static str) -> ExecError {
    ExecError::Record { number: done.number, label: done.step.label.clone(), problem }
}
