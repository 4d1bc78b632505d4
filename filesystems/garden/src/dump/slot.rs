//! A slot of a drive: the trailer, the contents of the block, and the pointer to it.

use super::{
    aggregate::shown,
    field_offsets::{INODE as INODE_FIELDS, TRAILER},
    reader::Reader,
    value::{Dump, DumpTable, DumpValue, hex, read_fields},
};
use crate::{
    Damage,
    format::{
        BLOCK, compacted,
        inode::INODE,
        pointer::Shape,
        slot::{self, Context, Kind, Slot},
    },
    raid::{Place, slot_offset},
    store::aggregate,
};

/// The trailer of a slot, whatever the slot holds.
pub(super) fn trailer(slot: &Slot) -> Dump {
    let mut dump = Dump::new("trailer");
    read_fields(&mut dump, &slot[BLOCK..], TRAILER);
    dump
}

/// The slot at a PVBN, as it is on its drive.
pub(super) fn at_pvbn(reader: &Reader, pvbn: u64, with_hex: bool) -> Dump {
    let mut dump = Dump::new(format!("PVBN {pvbn}"));
    let Some(place) = reader.media.geometry.locate(pvbn) else {
        let end = reader.media.geometry.blocks();
        dump.wrong(Damage::new("PVBN", "number", pvbn, format!("less than {end}")));
        return dump;
    };
    add_place(&mut dump, reader, place);
    match in_use(reader, pvbn) {
        Ok(in_use) => dump.field("bit of file 1", if in_use { "1 (in use)" } else { "0 (free)" }),
        Err(damage) => dump.wrong(damage),
    }
    let slot = match reader.media.slot(pvbn) {
        Ok(slot) => slot,
        Err(damage) => {
            dump.wrong(damage);
            return dump;
        }
    };
    if slot[..].iter().all(|&byte| byte == 0) {
        dump.field("slot", "zeros: never written");
        return dump;
    }
    dump.parts.push(trailer(&slot));
    match slot::decode(&slot) {
        Ok(context) => {
            named_by(reader, pvbn, &context, &mut dump);
            dump.parts.extend(payload(&slot, &context));
        }
        Err(damage) => dump.wrong(damage),
    }
    if with_hex {
        let mut part = Dump::new("payload, without rows of zeros");
        part.table = Some(hex(&slot[..BLOCK]));
        dump.parts.push(part);
    }
    dump
}

fn add_place(dump: &mut Dump, reader: &Reader, place: Place) {
    dump.field("RAID group", place.group as u64);
    dump.field("drive", (reader.media.geometry.first_drive(place.group) + place.drive) as u64);
    dump.field("stripe", place.stripe);
    dump.field("byte of the drive", slot_offset(place.stripe));
    dump.field("allocation area", u64::from(reader.media.geometry.area_at(place)));
}

/// Whether a block is in use, according to file 1 of the aggregate.
fn in_use(reader: &Reader, pvbn: u64) -> Result<bool, Damage> {
    const BITS: u64 = 8 * BLOCK as u64;
    let map = reader.aggregate_file(aggregate::BITMAP)?;
    let block = reader.contents(&map, pvbn / BITS)?;
    let bit = pvbn % BITS;
    Ok(block.is_some_and(|block| block[(bit / 8) as usize] >> (bit % 8) & 1 == 1))
}

/// Whether the pointer to the block that the trailer names leads here. A replaced block still has
/// its old trailer.
fn named_by(reader: &Reader, pvbn: u64, context: &Context, dump: &mut Dump) {
    let named = match context.kind {
        Kind::Label | Kind::Superblock => {
            return dump.wrong(Damage::new("trailer", "kind", "of a fixed place", "3 to 5"));
        }
        Kind::Aggregate => reader.aggregate_file(context.owner).and_then(|tree| {
            let pointer = reader.pointer(&tree, context.level.min(tree.inode.height + 1), context.block)?;
            Ok(pointer.map(|pointer| pointer.at))
        }),
        Kind::Compacted => return chunks_left(reader, pvbn, dump),
        Kind::Volume => reader.aggregate_file(context.owner).and_then(|tree| {
            let pointer = reader.pointer(&tree, 0, context.block)?;
            Ok(pointer.map(|pointer| pointer.at))
        }),
    };
    let here = format!("{pvbn}: this block");
    let value: DumpValue = match named {
        Ok(Some(at)) if at.pvbn == pvbn => here.into(),
        Ok(Some(at)) => format!("{}: this is an older one", shown(at)).into(),
        Ok(None) => "a hole: this is an older one".into(),
        // The file was deleted.
        Err(damage) => format!("no such file ({damage})").into(),
    };
    dump.field("where its owner has it", value);
}

/// The initial and current number of its chunks.
fn chunks_left(reader: &Reader, pvbn: u64, dump: &mut Dump) {
    let per_block = (BLOCK / 2) as u64;
    let counts = reader.aggregate_file(aggregate::CHUNKS).and_then(|tree| reader.contents(&tree, pvbn / per_block));
    match counts {
        Ok(counts) => {
            let at = (pvbn % per_block * 2) as usize;
            let [initial, left] = counts.map_or([0; 2], |block| [block[at], block[at + 1]]);
            dump.field("chunks at first", u64::from(initial));
            dump.field("chunks left", u64::from(left));
        }
        Err(damage) => dump.wrong(damage),
    }
}

/// The VVBNs and positions of the chunks of a compacted block.
fn tuples(slot: &Slot) -> Dump {
    let mut dump = Dump::new("chunks");
    let mut table = DumpTable::new(&["VVBN", "offset", "length"]);
    match compacted::decode(&slot::payload(slot)) {
        Ok(tuples) => table.rows.extend(
            tuples
                .into_iter()
                .map(|tuple| vec![tuple.vvbn.into(), u64::from(tuple.offset).into(), u64::from(tuple.length).into()]),
        ),
        Err(damage) => dump.wrong(damage),
    }
    dump.table = Some(table);
    dump
}

/// The structure in a block, unless it holds contents of users.
fn payload(slot: &Slot, context: &Context) -> Option<Dump> {
    if context.kind == Kind::Compacted {
        return Some(tuples(slot));
    }
    let shape = if context.kind == Kind::Volume { Shape::Volume } else { Shape::Aggregate };
    if context.level > 0 {
        let mut dump = Dump::new("pointers");
        let mut table = DumpTable::new(&["pointer", "VVBN", "PVBN", "tag"]);
        for number in 0..shape.fanout() {
            match shape.decode(&slot[..BLOCK], number) {
                Ok(None) => {}
                Ok(Some(pointer)) => table.rows.push(vec![
                    number.into(),
                    pointer.vvbn.into(),
                    shown(pointer.at),
                    u64::from(pointer.at.tag).into(),
                ]),
                Err(damage) => dump.wrong(format!("pointer {number}: {damage}")),
            }
        }
        dump.table = Some(table);
        return Some(dump);
    }
    let holds_inodes = match context.kind {
        Kind::Aggregate => context.owner == aggregate::INODES,
        _ => context.hint_file == crate::store::volume::INODES,
    };
    if !holds_inodes {
        return None;
    }
    let mut dump = Dump::new("inodes in use");
    for (number, bytes) in (0_u64..).zip(slot[..BLOCK].as_chunks::<INODE>().0) {
        if bytes.iter().any(|&byte| byte != 0) {
            let first = match context.kind {
                Kind::Aggregate => context.block,
                _ => context.hint_block,
            };
            let mut inode = Dump::new(format!("inode {}", first * crate::format::inode::PER_BLOCK + number));
            read_fields(&mut inode, bytes, INODE_FIELDS);
            dump.parts.push(inode);
        }
    }
    Some(dump)
}
