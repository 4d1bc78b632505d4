//! Dumps of the log: the frames from the start of the replay, and their batches.

use bytes::Bytes;
use senesce_fsapi::dump::{Dump, DumpTable, read_fields, text};

use super::{Media, field_offsets::FRAME};
use crate::{
    Batch, Change, Message, Result,
    disk::{Reader, read_slots},
    log::{FRAME_HEADER, FrameHeader, Replay, Ring, decode_batch, seed},
};

/// The changes of a batch to show; further ones are counted.
const MOST_CHANGES: usize = 8;

/// The frames that opening will read, and the damage that ends them, if any.
pub(super) fn log(media: &Media, most: u64) -> Result<Dump> {
    let Media { area, superblock } = media;
    let device = area.device();
    let (geometry, start) = (&superblock.geometry, superblock.replay);
    let mut dump = Dump::new(format!("log after superblock {}", superblock.generation));
    dump.field("position", start.position);
    dump.field("sequence", start.sequence);
    let is_torn = read_slots(&**device)?.torn().is_some();
    let mut replay = Replay::new(device.clone(), geometry, superblock.uuid, start)
        .beside_torn(is_torn)
        .of_version(superblock.version);
    if let Some(Err(error)) = replay.by_ref().find(Result::is_err) {
        dump.wrong(error);
    }
    replay.restored().iter().for_each(|restored| dump.wrong(restored));
    let ring = Ring::new(device.clone(), geometry);
    let mut position = start.position;
    while position < start.position + replay.bytes() {
        let header = FrameHeader::decode(&ring.read(position, FRAME_HEADER)?, seed(&superblock.uuid));
        let Ok(header) = header else { break };
        if dump.parts.len() as u64 == most {
            dump.field("more frames after position", position);
            break;
        }
        dump.parts.push(frame(&ring.read(position, header.frame_bytes() as usize)?, &header));
        position += header.frame_bytes();
    }
    Ok(dump)
}

fn frame(bytes: &[u8], header: &FrameHeader) -> Dump {
    let mut dump = Dump::new(format!("frame at position {}", header.position));
    read_fields(&mut dump, bytes, FRAME);
    if header.records == 0 && header.body_bytes == 0 {
        dump.field("batches", format!("none: records that all before position {} was durable", header.durable));
        return dump;
    }
    let mut table = DumpTable::new(&["sequence", "bytes", "claim", "removal", "changes"]);
    let body = Bytes::copy_from_slice(&bytes[FRAME_HEADER..][..header.body_bytes as usize]);
    let mut reader = Reader::new("log frame", body);
    for sequence in (header.sequence..).take(header.records as usize) {
        let record = reader.u32("record length").and_then(|len| reader.take("record", len as usize));
        match record.and_then(|record| Ok((record.len(), decode_batch(record)?))) {
            Ok((len, batch)) => table.rows.push(vec![
                sequence.into(),
                (len as u64).into(),
                format!("{:+}", batch.claim.bytes).into(),
                if batch.claim.is_removal { "yes" } else { "no" }.into(),
                changes(&batch).into(),
            ]),
            Err(damage) => {
                dump.wrong(format!("batch {sequence}: {damage}"));
                break;
            }
        }
    }
    dump.table = Some(table);
    dump
}

fn changes(batch: &Batch) -> String {
    let mut told: Vec<String> = batch.changes().iter().take(MOST_CHANGES).map(change).collect();
    let more = batch.changes().len().saturating_sub(MOST_CHANGES);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told.join("; ")
}

fn change(change: &Change) -> String {
    match change {
        Change::One { key, message } => format!("{} {}", message_text(message), text(key)),
        Change::DeleteRange { from, to } => format!("delete {} .. {}", text(from), text(to)),
    }
}

/// Describes a message.
pub(super) fn message_text(message: &Message) -> String {
    match message {
        Message::Put(value) => format!("put {} bytes at", value.len()),
        Message::Delete => "delete".to_owned(),
        Message::Edit(edit) => {
            let cut = (edit.cut() != u32::MAX).then(|| format!("cut to {}", edit.cut()));
            let least = (edit.least() > 0).then(|| format!("lengthen to {}", edit.least()));
            let patch = |(offset, bytes): &(u32, Bytes)| format!("write {}+{}", offset, bytes.len());
            let all: Vec<String> = cut.into_iter().chain(least).chain(edit.patches().iter().map(patch)).collect();
            format!("edit ({})", all.join(", "))
        }
    }
}
