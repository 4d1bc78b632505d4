//! The log: both halves, record by record.

use std::sync::Arc;

use senesce_block::BlockDevice;
use senesce_fsapi::{FallocateMode, RenameMode, SetAttributes, SetXattrMode, Timestamp};

use super::{
    field_offsets::kind_word,
    fixed::places,
    value::{Dump, DumpTable, DumpValue, text},
};
use crate::{
    error::Result,
    format::{
        VERSION,
        bytes::{u32_at, u64_at},
        log_lap::Durable,
        log_record::{Record, RecordKind},
        operation::{Act, Operation},
        superblock::Superblock,
    },
    log::{LogDevices, find_aggregate, read_any_halves},
    store,
};

/// All records of all copies of the log, up to the ends of their chains. `sb` is the superblock, if
/// there is one.
pub(super) fn log(
    drives: &[Arc<dyn BlockDevice>],
    log: &LogDevices,
    sb: Option<&Superblock>,
    most: u64,
) -> Result<Dump> {
    let aggregate = store::find_aggregate(drives).or_else(|| find_aggregate(log));
    let version = aggregate.as_ref().map_or(VERSION, |aggregate| aggregate.version);
    let applied = sb.map(|sb| sb.applied);
    let mut all = Dump::new("log");
    all.field("last log record included", applied);
    for (number, place) in places(log, aggregate.as_ref(), sb)?.into_iter().enumerate() {
        let (device, shape) = match place {
            Ok(found) => found,
            Err(why) => {
                all.wrong(format!("copy {number}: {why}"));
                continue;
            }
        };
        let mut copy = Dump::new(format!("copy {number} on {}", device.name()));
        for (number, half) in read_any_halves(&device, &shape, version).into_iter().enumerate() {
            let mut part = Dump::new(format!("half {number}: {} records", half.len()));
            let mut table = DumpTable::new(&["sequence", "k", "length", "state", "body"]);
            for record in &half {
                table.push(most, row(record, applied, &mut part));
            }
            part.table = Some(table);
            copy.parts.push(part);
        }
        all.parts.push(copy);
    }
    Ok(all)
}

fn row(record: &Record, applied: Option<u64>, part: &mut Dump) -> Vec<DumpValue> {
    let state = match (record.kind, applied) {
        (RecordKind::Operation, Some(applied)) if record.sequence <= applied => "included",
        (RecordKind::Operation, Some(_)) => "waits",
        (RecordKind::Operation, None) => "not known",
        _ => "of a CP",
    };
    let body = body(record).unwrap_or_else(|damage| {
        part.wrong(format!("record {}: {damage}", record.sequence));
        "not readable".to_owned()
    });
    let (kind, length) = (record.kind as u64, record.body.len() as u64);
    vec![record.sequence.into(), kind.into(), length.into(), state.into(), body.into()]
}

fn body(record: &Record) -> crate::format::Decoded<String> {
    let body = &record.body[..];
    let short = || crate::Damage::new("log record", "length", body.len(), "as its kind needs");
    if record.kind != RecordKind::Operation && body.len() < 8 {
        return Err(short());
    }
    Ok(match record.kind {
        RecordKind::Operation => operation(&Operation::decode(body)?),
        RecordKind::Intent => {
            let range = |at: &[u8; 20]| {
                let (first, count) = (u64_at(at, 4), u64_at(at, 12));
                format!("group {} {first}..{}", u32_at(at, 0), first.saturating_add(count))
            };
            let ranges: Vec<String> = body[8..].as_chunks::<20>().0.iter().map(range).collect();
            format!("CP {} is about to write stripes: {}", u64_at(body, 0), ranges.join(", "))
        }
        RecordKind::Kept if body.len() >= 28 => format!(
            "CP {}: stripe {} of group {} is written in part, on data drives {:#b}; the sum of the others follows",
            u64_at(body, 0),
            u64_at(body, 12),
            u32_at(body, 8),
            u64_at(body, 20)
        ),
        RecordKind::Kept => return Err(short()),
        RecordKind::Without => {
            let drives: Vec<u32> = body[8..].as_chunks::<4>().0.iter().map(|at| u32::from_le_bytes(*at)).collect();
            format!("CP {} writes without drives {drives:?}", u64_at(body, 0))
        }
        RecordKind::Durable => {
            let durable = Durable::decode(body).ok_or_else(short)?;
            let how = if durable.is_logged { ": operations alone" } else { "" };
            format!("CP {} is durable{how}", durable.point)
        }
    })
}

fn operation(operation: &Operation<'_>) -> String {
    let Operation { volume, caller, act } = operation;
    format!("volume {volume}, {}:{} at {}: {}", caller.uid, caller.gid, time(caller.now), said(act))
}

fn said(act: &Act<'_>) -> String {
    match act {
        Act::SetAttributes { ino, change } => format!("set attributes of {ino}: {}", attributes(change)),
        Act::MakeNode { directory, name, node, ino } => format!(
            "make {ino}, {}, {:04o}, device {}, as {} in {directory}",
            kind_word(node.kind),
            node.permissions,
            node.device,
            quoted(name)
        ),
        Act::Symlink { directory, name, target, ino } => {
            format!("make {ino}, a symbolic link to {}, as {} in {directory}", quoted(target), quoted(name))
        }
        Act::Link { ino, directory, name } => format!("link {ino} as {} in {directory}", quoted(name)),
        Act::Unlink { directory, name, held } => format!("unlink {} in {directory}{}", quoted(name), is_held(*held)),
        Act::Rmdir { directory, name, held } => {
            format!("remove directory {} in {directory}{}", quoted(name), is_held(*held))
        }
        Act::Rename { from, name, to, new_name, how, held } => format!(
            "rename {} in {from} to {} in {to}{}{}",
            quoted(name),
            quoted(new_name),
            match how {
                RenameMode::Replace => "",
                RenameMode::NoReplace => ", replacing nothing",
                RenameMode::Exchange => ", exchanging both",
            },
            is_held(*held)
        ),
        Act::Write { ino, offset, data } => format!("write {} bytes at {offset} of {ino}", data.bytes.len()),
        Act::Allocate { ino, how, offset, len } => format!(
            "{} {len} bytes at {offset} of {ino}{}",
            match how {
                FallocateMode::Reserve { .. } => "reserve",
                FallocateMode::Punch => "punch",
                FallocateMode::Zero { .. } => "zero",
            },
            match how {
                FallocateMode::Reserve { keep_size: true } | FallocateMode::Zero { keep_size: true } => ", size kept",
                _ => "",
            }
        ),
        Act::SetXattr { ino, name, value, how, file } => format!(
            "set attribute {} of {ino} to {} bytes{}, in file {file}",
            quoted(name),
            value.len(),
            match how {
                SetXattrMode::Any => "",
                SetXattrMode::Create => ", a new one",
                SetXattrMode::Replace => ", another value",
            }
        ),
        Act::RemoveXattr { ino, name } => format!("remove attribute {} of {ino}", quoted(name)),
        Act::Reap { ino } => format!("reap {ino}"),
        Act::CloneRange { from, from_offset, to, to_offset, len } => {
            format!("clone {len} bytes at {from_offset} of {from} to {to_offset} of {to}")
        }
    }
}

fn attributes(change: &SetAttributes) -> String {
    let SetAttributes { permissions, uid, gid, size, accessed, modified, changed } = change;
    let parts = [
        permissions.map(|bits| format!("permissions {bits:04o}")),
        uid.map(|uid| format!("uid {uid}")),
        gid.map(|gid| format!("gid {gid}")),
        size.map(|size| format!("size {size}")),
        accessed.map(|at| format!("read {}", time(at))),
        modified.map(|at| format!("modified {}", time(at))),
        changed.map(|at| format!("changed {}", time(at))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn time(at: Timestamp) -> String {
    format!("{}.{:09}", at.seconds, at.nanoseconds)
}

fn quoted(name: &[u8]) -> String {
    format!("\"{}\"", text(name))
}

fn is_held(held: bool) -> &'static str {
    if held { ", held open" } else { "" }
}
