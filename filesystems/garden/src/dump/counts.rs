//! Tables beside the maps: records of snapshots and objects, pointers to shared blocks, and chunks
//! of compacted blocks.

use std::ops::Range;

use super::{
    field_offsets::{INODE as INODE_FIELDS, SNAPSHOT as SNAPSHOT_FIELDS},
    reader::{Reader, Tree},
    value::{Dump, DumpTable, read_fields, text},
};
use crate::{
    Damage,
    error::Result,
    format::{
        BLOCK, Block, Decoded,
        bytes::u16_at,
        inode::INODE,
        object::{self, MAX_OBJECTS, ObjectRecord, PER_BLOCK, RECORD},
        snapshot::{self, MAX_SNAPSHOTS, SNAPSHOT, SnapshotRecord},
    },
    store::{aggregate, volume},
};

const INODE_FILE_AT: usize = 256;
/// Counts of two bytes in a block.
const COUNTS: u64 = BLOCK as u64 / 2;

/// The record of every snapshot of every volume.
pub(super) fn snapshots(reader: &Reader) -> Dump {
    let mut all = Dump::new("snapshot table (file 4 of the aggregate)");
    let Some(tree) = known(reader.aggregate_file(aggregate::SNAPSHOTS), &mut all) else { return all };
    let mut parts = Vec::new();
    let blocks = 0..u64::from(MAX_SNAPSHOTS) / snapshot::PER_BLOCK;
    each_block(reader, &tree, blocks, &mut all, &mut |_, block, data| {
        for (place, bytes) in (block * snapshot::PER_BLOCK..).zip(data.as_chunks::<SNAPSHOT>().0) {
            let found = SnapshotRecord::decode(bytes);
            let name = match &found {
                Ok(None) => continue,
                Ok(Some(record)) => format!(", {}", text(&record.name)),
                Err(_) => String::new(),
            };
            let mut dump = Dump::new(format!("place {place}{name}"));
            read_fields(&mut dump, bytes, SNAPSHOT_FIELDS);
            if let Err(damage) = found {
                dump.wrong(damage);
            }
            let mut inode = Dump::new("inode of file 0");
            read_fields(&mut inode, &bytes[INODE_FILE_AT..INODE_FILE_AT + INODE], INODE_FIELDS);
            dump.parts.push(inode);
            parts.push(dump);
        }
    });
    all.parts = parts;
    all
}

/// The records of objects. [`object`](super::object) shows the objects themselves, which are not on
/// the drives.
pub(super) fn objects(reader: &Reader, most: u64) -> Dump {
    let mut dump = Dump::new("objects that hold cold blocks (file 7 of the aggregate)");
    dump.field("folder", object::folder(reader.media.uuid));
    let Some(tree) = known(reader.aggregate_file(aggregate::OBJECTS), &mut dump) else { return dump };
    let mut table = DumpTable::new(&["object", "living blocks", "blocks", "CP number"]);
    each_block(reader, &tree, 0..MAX_OBJECTS / PER_BLOCK, &mut dump, &mut |dump, block, data| {
        for (number, bytes) in (block * PER_BLOCK..).zip(data.as_chunks::<RECORD>().0) {
            match ObjectRecord::decode(bytes) {
                Ok(None) => {}
                Ok(Some(ObjectRecord { live, blocks, cp })) => {
                    table.push(most, [number, live.into(), blocks.into(), cp].map(Into::into).into());
                }
                Err(damage) => dump.wrong(format!("object {number}: {damage}")),
            }
        }
    });
    dump.table = Some(table);
    dump
}

/// The initial and current number of chunks of each compacted block.
pub(super) fn chunks(reader: &Reader, range: &Range<u64>, most: u64) -> Dump {
    let mut dump = Dump::new("chunks in compacted blocks (file 5 of the aggregate)");
    let Some(tree) = known(reader.aggregate_file(aggregate::CHUNKS), &mut dump) else { return dump };
    let mut table = DumpTable::new(&["PVBN", "chunks at first", "chunks left"]);
    let (end, mut left) = (range.end.min(reader.media.geometry.blocks()), 0);
    each_count(reader, &tree, range.start..end, &mut dump, &mut |pvbn, count| {
        let [initial, now] = count.to_le_bytes().map(u64::from);
        left += now;
        table.push(most, [pvbn, initial, now].map(Into::into).into());
    });
    dump.field("chunks left", left);
    dump.table = Some(table);
    dump
}

/// The number of a volume's pointers to each VVBN that is or was shared.
pub(super) fn references(reader: &Reader, name: &[u8], range: &Range<u64>, most: u64) -> Result<Dump> {
    let volume = reader.volume(name)?;
    let mut dump = Dump::new(format!("pointers to shared VVBNs (file 6 of volume {})", text(name)));
    let inode = reader.inode(&volume.inodes(), volume::REFERENCES);
    let found = inode.and_then(|inode| inode.ok_or_else(|| Damage::new("inode", "kind", "free", "in use")));
    let Some(inode) = known(found, &mut dump) else { return Ok(dump) };
    let tree = volume.tree(volume::REFERENCES, inode);
    let mut table = DumpTable::new(&["VVBN", "pointers"]);
    let (end, mut counted, mut saved) = (range.end.min(volume.record.blocks), 0, 0);
    each_count(reader, &tree, range.start..end, &mut dump, &mut |vvbn, count| {
        counted += 1;
        saved += u64::from(count) - 1;
        table.push(most, [vvbn, count.into()].map(Into::into).into());
    });
    dump.field("VVBNs with a count", counted);
    dump.field("pointers beyond the first of each", saved);
    dump.table = Some(table);
    Ok(dump)
}

/// Returns the value, or notes its damage.
fn known<T>(found: Decoded<T>, dump: &mut Dump) -> Option<T> {
    found.map_err(|damage| dump.wrong(damage)).ok()
}

/// Passes all two-byte numbers in a range of a file that are not 0, with their positions.
fn each_count(reader: &Reader, tree: &Tree, range: Range<u64>, dump: &mut Dump, look: &mut dyn FnMut(u64, u16)) {
    let blocks = range.start / COUNTS..range.end.div_ceil(COUNTS);
    each_block(reader, tree, blocks, dump, &mut |_, block, data| {
        for number in (block * COUNTS..(block + 1) * COUNTS).filter(|number| range.contains(number)) {
            let count = u16_at(&data[..], (number % COUNTS * 2) as usize);
            if count != 0 {
                look(number, count);
            }
        }
    });
}

/// Passes the existing blocks of a file, with their numbers. Notes blocks that cannot be read.
fn each_block(
    reader: &Reader,
    tree: &Tree,
    mut blocks: Range<u64>,
    dump: &mut Dump,
    look: &mut dyn FnMut(&mut Dump, u64, &Block),
) {
    while blocks.start < blocks.end {
        let block = blocks.start;
        let found = reader.contents(tree, block);
        blocks.start = match &found {
            Ok(None) => reader.hole_end(tree, block).ok().flatten().unwrap_or(block + 1).max(block + 1),
            _ => block + 1,
        };
        match found {
            Ok(data) => data.iter().for_each(|data| look(dump, block, data)),
            Err(damage) => dump.wrong(format!("block {block}: {damage}")),
        }
    }
}
