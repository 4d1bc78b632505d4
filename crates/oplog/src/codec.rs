//! Encoding of one step: numbers as LEB128, text and paths after their length.
//!
//! docs/reference/oplog-format.md describes the layout. Tags never change; a new operation takes a
//! new number.

use std::sync::Arc;

use senesce_core::{Nanos, RelPath};

use crate::frame::MOST_STEP_OPERATIONS;
use crate::{Content, DoneStep, FileTime, Op, Outcome, SpaceChange, Step};

const COUNTED: u8 = 1;
const NO_SPACE: u8 = 2;
const WRITTEN: u8 = 4;
/// Since version 2.
const TIMED: u8 = 8;

/// Appends a step to `out`, without the operations after a failed one and without their contents.
///
/// Errors: the reason why the step cannot be logged.
pub(crate) fn encode_step(done: &DoneStep, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let step = &done.step;
    let kept = match done.outcome {
        Outcome::Done => &step.ops[..],
        Outcome::NoSpace { failed_op, .. } => {
            step.ops.get(..=failed_op).ok_or("the operation that failed is not one of its operations")?
        }
    };
    if kept.len() > MOST_STEP_OPERATIONS {
        return Err("it has more operations than the format allows for a step");
    }
    put_number(out, done.number);
    let (flags, failed) = match done.outcome {
        Outcome::Done => (0, None),
        Outcome::NoSpace { failed_op, written: None } => (NO_SPACE, Some((failed_op, None))),
        Outcome::NoSpace { failed_op, written } => (NO_SPACE | WRITTEN, Some((failed_op, written))),
    };
    out.push(flags | if step.counted { COUNTED } else { 0 } | if done.began.is_some() { TIMED } else { 0 });
    if let Some(began) = done.began {
        put_number(out, began.0);
    }
    put_bytes(out, step.label.as_bytes());
    put_bytes(out, step.root.as_bytes());
    if let Some((failed_op, written)) = failed {
        put_number(out, failed_op as u64);
        if let Some(written) = written {
            put_number(out, written);
        }
    }
    put_number(out, kept.len() as u64);
    let mut contents = done.contents.iter();
    for op in kept {
        put_op(out, op);
        if op.content().is_some() {
            let (len, hash) = contents.next().ok_or("a content has no length and hash")?;
            put_number(out, *len);
            out.extend_from_slice(&hash.to_le_bytes());
        }
    }
    Ok(())
}

fn put_op(out: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Mkdir { path, mode } => {
            put_tagged(out, 0, path);
            put_number(out, u64::from(*mode));
        }
        Op::Rmdir { path } => put_tagged(out, 1, path),
        Op::Create { path, mode, content } => {
            put_tagged(out, 2, path);
            put_number(out, u64::from(*mode));
            put_content(out, content);
        }
        Op::Write { path, offset, content } => {
            put_tagged(out, 3, path);
            put_number(out, *offset);
            put_content(out, content);
        }
        Op::Truncate { path, len } => {
            put_tagged(out, 4, path);
            put_number(out, *len);
        }
        Op::Rename { from, to } => {
            put_tagged(out, 5, from);
            put_bytes(out, to.as_bytes());
        }
        Op::Unlink { path } => put_tagged(out, 6, path),
        Op::Symlink { path, target } => {
            put_tagged(out, 7, path);
            put_bytes(out, target);
        }
        Op::Link { existing, path } => {
            put_tagged(out, 8, existing);
            put_bytes(out, path.as_bytes());
        }
        Op::Chmod { path, mode } => {
            put_tagged(out, 9, path);
            put_number(out, u64::from(*mode));
        }
        Op::RemoveTree { path } => put_tagged(out, 10, path),
        Op::Fsync { path } => put_tagged(out, 11, path),
        Op::SyncFs => out.push(12),
        Op::Allocate { path, mode, len } => {
            put_tagged(out, 13, path);
            put_number(out, u64::from(*mode));
            put_number(out, *len);
        }
        Op::SetModified { path, unix_seconds } => {
            put_tagged(out, 14, path);
            put_number(out, *unix_seconds);
        }
        Op::Read { path, offset, len } => {
            put_tagged(out, 15, path);
            put_number(out, *offset);
            put_number(out, *len);
        }
        Op::Fallocate { path, how, offset, len } => {
            put_tagged(out, 16, path);
            let number = SpaceChange::ALL.iter().position(|known| known == how).expect("ALL holds all");
            put_number(out, number as u64);
            put_number(out, *offset);
            put_number(out, *len);
        }
        Op::Exchange { first, second } => {
            put_tagged(out, 17, first);
            put_bytes(out, second.as_bytes());
        }
        Op::SetXattr { path, name, value } => {
            put_tagged(out, 18, path);
            put_bytes(out, name);
            put_bytes(out, value);
        }
        Op::RemoveXattr { path, name } => {
            put_tagged(out, 19, path);
            put_bytes(out, name);
        }
        Op::SetTimes { path, accessed, modified } => {
            put_tagged(out, 20, path);
            put_time(out, *accessed);
            put_time(out, *modified);
        }
        Op::Chown { path, uid, gid } => {
            put_tagged(out, 21, path);
            put_optional(out, *uid);
            put_optional(out, *gid);
        }
        Op::Mknod { path, mode, device } => {
            put_tagged(out, 22, path);
            put_number(out, u64::from(*mode));
            put_number(out, *device);
        }
    }
}

/// 0, or 1 and the seconds (8 bytes, signed) and nanoseconds.
fn put_time(out: &mut Vec<u8>, time: Option<FileTime>) {
    let Some(time) = time else { return out.push(0) };
    out.push(1);
    out.extend_from_slice(&time.unix_seconds.to_le_bytes());
    put_number(out, u64::from(time.nanoseconds));
}

/// 0, or one more than the number.
fn put_optional(out: &mut Vec<u8>, number: Option<u32>) {
    put_number(out, number.map_or(0, |number| u64::from(number) + 1));
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, path: &RelPath) {
    out.push(tag);
    put_bytes(out, path.as_bytes());
}

fn put_content(out: &mut Vec<u8>, content: &Content) {
    match content {
        Content::Inline(bytes) => {
            out.push(0);
            put_bytes(out, bytes);
        }
        Content::Seeded { seed, len } => {
            out.push(1);
            out.extend_from_slice(&seed.to_le_bytes());
            put_number(out, *len);
        }
        Content::Derived(derived) => {
            out.push(2);
            put_bytes(out, derived.key.as_bytes());
        }
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes one step from the front of `input`.
///
/// Errors: what is wrong with the bytes. Allocates at most a small multiple of the size of `input`.
pub(crate) fn decode_step(input: &mut &[u8], version: u16) -> Result<DoneStep, String> {
    let number = take_number(input)?;
    let flags = take(input, 1)?[0];
    let timed = if version < 2 { 0 } else { TIMED };
    if flags & !(COUNTED | NO_SPACE | WRITTEN | timed) != 0 || flags & (NO_SPACE | WRITTEN) == WRITTEN {
        return Err(format!("a step has unknown flags {flags:#x}"));
    }
    let began = if flags & TIMED == 0 { None } else { Some(Nanos(take_number(input)?)) };
    let label = take_text(input)?;
    let root = take_path(input)?;
    let outcome = if flags & NO_SPACE == 0 {
        Outcome::Done
    } else {
        let failed_op = usize::try_from(take_number(input)?).map_err(|_| "an operation's index is too large")?;
        let written = if flags & WRITTEN == 0 { None } else { Some(take_number(input)?) };
        Outcome::NoSpace { failed_op, written }
    };
    let count = take_number(input)?;
    if let Outcome::NoSpace { failed_op, .. } = outcome
        && failed_op as u64 != count.wrapping_sub(1)
    {
        return Err(format!("of {count} operations, number {failed_op} is said to have failed"));
    }
    // An operation has at least one byte. A larger count is wrong, and must not decide the size of
    // an allocation.
    if count > input.len() as u64 {
        return Err(format!("{count} operations are announced in {} bytes", input.len()));
    }
    // An operation needs more memory than its bytes, so the number of bytes alone is not a
    // sufficient bound.
    if count > MOST_STEP_OPERATIONS as u64 {
        return Err(format!("a step has {count} operations; the most is {MOST_STEP_OPERATIONS}"));
    }
    let mut ops = Vec::with_capacity(count as usize);
    let mut contents = Vec::new();
    for _ in 0..count {
        let op = take_op(input)?;
        if op.version() > version {
            return Err(format!("a log of version {version} has no operation {}", op.kind()));
        }
        if op.content().is_some() {
            let len = take_number(input)?;
            contents.push((len, take_u64(input)?));
        }
        ops.push(op);
    }
    let step = Step { label, counted: flags & COUNTED != 0, root, ops: ops.into() };
    Ok(DoneStep { number, step, outcome, contents, began })
}

fn take_op(input: &mut &[u8]) -> Result<Op, String> {
    let tag = take(input, 1)?[0];
    if tag == 12 {
        return Ok(Op::SyncFs);
    }
    let path = take_path(input)?;
    Ok(match tag {
        0 => Op::Mkdir { path, mode: take_mode(input)? },
        1 => Op::Rmdir { path },
        2 => Op::Create { path, mode: take_mode(input)?, content: take_content(input)? },
        3 => Op::Write { path, offset: take_number(input)?, content: take_content(input)? },
        4 => Op::Truncate { path, len: take_number(input)? },
        5 => Op::Rename { from: path, to: take_path(input)? },
        6 => Op::Unlink { path },
        7 => Op::Symlink { path, target: take_bytes(input)?.into() },
        8 => Op::Link { existing: path, path: take_path(input)? },
        9 => Op::Chmod { path, mode: take_mode(input)? },
        10 => Op::RemoveTree { path },
        11 => Op::Fsync { path },
        13 => Op::Allocate { path, mode: take_mode(input)?, len: take_number(input)? },
        14 => Op::SetModified { path, unix_seconds: take_number(input)? },
        15 => Op::Read { path, offset: take_number(input)?, len: take_number(input)? },
        16 => {
            let number = usize::try_from(take_number(input)?).unwrap_or(usize::MAX);
            let how = SpaceChange::ALL.get(number).copied();
            let how = how.ok_or_else(|| format!("a change of space numbered {number} is unknown"))?;
            Op::Fallocate { path, how, offset: take_number(input)?, len: take_number(input)? }
        }
        17 => Op::Exchange { first: path, second: take_path(input)? },
        18 => Op::SetXattr { path, name: take_bytes(input)?.into(), value: take_bytes(input)?.into() },
        19 => Op::RemoveXattr { path, name: take_bytes(input)?.into() },
        20 => Op::SetTimes { path, accessed: take_time(input)?, modified: take_time(input)? },
        21 => Op::Chown { path, uid: take_optional(input)?, gid: take_optional(input)? },
        22 => Op::Mknod { path, mode: take_mode(input)?, device: take_number(input)? },
        _ => return Err(format!("operation {tag} is unknown")),
    })
}

fn take_content(input: &mut &[u8]) -> Result<Content, String> {
    Ok(match take(input, 1)?[0] {
        0 => Content::Inline(Arc::from(take_bytes(input)?)),
        1 => Content::Seeded { seed: take_u64(input)?, len: take_number(input)? },
        2 => Content::derived(take_text(input)?),
        tag => return Err(format!("content {tag} is unknown")),
    })
}

fn take_time(input: &mut &[u8]) -> Result<Option<FileTime>, String> {
    match take(input, 1)?[0] {
        0 => Ok(None),
        1 => {
            let unix_seconds = take_u64(input)?.cast_signed();
            let nanoseconds = take_number(input)?;
            let nanoseconds = u32::try_from(nanoseconds).ok().filter(|&nanoseconds| nanoseconds < 1_000_000_000);
            Ok(Some(FileTime { unix_seconds, nanoseconds: nanoseconds.ok_or("a time has too many nanoseconds")? }))
        }
        tag => Err(format!("time {tag} is unknown")),
    }
}

fn take_optional(input: &mut &[u8]) -> Result<Option<u32>, String> {
    let Some(number) = take_number(input)?.checked_sub(1) else { return Ok(None) };
    u32::try_from(number).map(Some).map_err(|_| format!("{number} is no owner"))
}

fn take_mode(input: &mut &[u8]) -> Result<u32, String> {
    let mode = take_number(input)?;
    u32::try_from(mode).map_err(|_| format!("mode {mode:o} is too large"))
}

fn take_path(input: &mut &[u8]) -> Result<RelPath, String> {
    RelPath::new(take_bytes(input)?).map_err(|e| e.to_string())
}

fn take_text(input: &mut &[u8]) -> Result<String, String> {
    String::from_utf8(take_bytes(input)?.to_vec()).map_err(|_| "a text is not UTF-8".to_owned())
}

fn take_u64(input: &mut &[u8]) -> Result<u64, String> {
    Ok(u64::from_le_bytes(take(input, 8)?.try_into().expect("eight bytes were taken")))
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let len = take_number(input)?;
    take(input, usize::try_from(len).unwrap_or(usize::MAX))
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], String> {
    let (front, rest) =
        input.split_at_checked(len).ok_or_else(|| format!("{len} bytes are announced, {} are left", input.len()))?;
    *input = rest;
    Ok(front)
}

fn take_number(input: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(input, 1)?[0];
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && byte > 1 {
            break;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number has more than 64 bits".to_owned())
}
