//! Files of the aggregate: the table of volumes, container maps, bits, areas.

use std::ops::Range;

use super::{
    field_offsets::{AREAS, INODE as INODE_FIELDS, VOLUME as VOLUME_FIELDS},
    reader::{Reader, Tree},
    value::{Dump, DumpTable, DumpValue, read_fields, text},
};
use crate::{
    Damage,
    error::Result,
    format::{
        BLOCK, Decoded,
        bytes::u32_at,
        inode::INODE,
        pointer::{Form, Physical},
        top_areas::{MAX_LISTED, TopAreas},
        volume::VolumeRecord,
    },
    store::{aggregate, container_of, volume},
};

const INODE_FILE_AT: usize = 192;
const BITS: u64 = 8 * BLOCK as u64;

/// The record of every volume.
pub(super) fn volumes(reader: &Reader) -> Dump {
    let mut all = Dump::new("volume table (file 2 of the aggregate)");
    let records = match reader.volume_records() {
        Ok(records) => records,
        Err(damage) => {
            all.wrong(damage);
            return all;
        }
    };
    for (space, bytes) in records {
        let name = match VolumeRecord::decode(&bytes) {
            Ok(Some(record)) => format!(", {}", text(&record.name)),
            _ => String::new(),
        };
        let mut dump = Dump::new(format!("volume {space}{name}"));
        read_fields(&mut dump, &bytes, VOLUME_FIELDS);
        dump.field("container file", container_of(space));
        if let Err(damage) = VolumeRecord::decode(&bytes) {
            dump.wrong(damage);
        }
        let mut inode = Dump::new("inode of file 0");
        read_fields(&mut inode, &bytes[INODE_FILE_AT..INODE_FILE_AT + INODE], INODE_FIELDS);
        dump.parts.push(inode);
        all.parts.push(dump);
    }
    all
}

/// Consecutive VVBNs of a container map with adjacent places on one drive.
struct Run {
    first: u64,
    at: Option<Physical>,
    blocks: u64,
    in_use: bool,
}

/// The container map of a volume from a VVBN on, in runs of adjacent blocks.
pub(super) fn container(reader: &Reader, name: &[u8], range: Range<u64>, most: u64) -> Result<Dump> {
    let volume = reader.volume(name)?;
    let mut dump =
        Dump::new(format!("container map of volume {} ({}), file {}", volume.space, text(name), volume.container.file));
    let columns = ["VVBN", "blocks", "PVBN", "tag", "RAID group", "drive", "stripe", "bit of file 2", "f"];
    let mut table = DumpTable::new(&columns);
    let active = reader.inode(&volume.inodes(), volume::ACTIVE_MAP);
    let active = active.and_then(|inode| inode.ok_or_else(|| Damage::new("inode", "kind", "free", "in use")));
    let active = match active {
        Ok(inode) => volume.tree(volume::ACTIVE_MAP, inode),
        Err(damage) => {
            dump.wrong(format!("inode {}: {damage}", volume::ACTIVE_MAP));
            return Ok(dump);
        }
    };
    let mut run: Option<Run> = None;
    let (mut vvbn, end) = (range.start, range.end.min(volume.record.blocks));
    while vvbn < end {
        let found = look(reader, &volume.container.tree(), &active, vvbn);
        let Stretch { at, in_use, next } = match found {
            Ok(found) => found,
            Err(damage) => {
                dump.wrong(format!("VVBN {vvbn}: {damage}"));
                if dump.wrong.len() as u64 > most {
                    break;
                }
                vvbn += 1;
                continue;
            }
        };
        let blocks = next.min(end) - vvbn;
        match &mut run {
            Some(run) if goes_on(reader, run, vvbn, at, in_use) => run.blocks += blocks,
            _ => {
                let before = run.replace(Run { first: vvbn, at, blocks, in_use });
                before.iter().for_each(|run| push_run(reader, &mut table, most, run));
            }
        }
        vvbn += blocks;
    }
    run.iter().for_each(|run| push_run(reader, &mut table, most, run));
    dump.table = Some(table);
    Ok(dump)
}

/// One VVBN, or several ones of a hole.
struct Stretch {
    at: Option<Physical>,
    in_use: bool,
    next: u64,
}

/// The place and the bit of a VVBN; for a hole in both maps, up to its end.
fn look(reader: &Reader, map: &Tree, active: &Tree, vvbn: u64) -> Decoded<Stretch> {
    let at = reader.pointer(map, 0, vvbn)?.map(|pointer| pointer.at);
    let in_use = reader.contents(active, vvbn / BITS)?.is_some_and(|block| bit(&block[..], vvbn % BITS));
    let next = match (at, reader.hole_end(active, vvbn / BITS)?) {
        (None, Some(end)) => reader.hole_end(map, vvbn)?.map_or(vvbn + 1, |hole| hole.min(end.saturating_mul(BITS))),
        _ => vvbn + 1,
    };
    Ok(Stretch { at, in_use, next })
}

fn goes_on(reader: &Reader, run: &Run, vvbn: u64, at: Option<Physical>, in_use: bool) -> bool {
    if run.first + run.blocks != vvbn || run.in_use != in_use {
        return false;
    }
    match (run.at, at) {
        (None, None) => true,
        (Some(first), Some(at)) => {
            (first.form, at.form) == (Form::Block, Form::Block)
                && first.pvbn + run.blocks == at.pvbn
                && first.tag == at.tag
                && (first.in_object().is_some() || reader.media.geometry.stripes_behind(first.pvbn) > run.blocks)
        }
        _ => false,
    }
}

fn push_run(reader: &Reader, table: &mut DumpTable, most: u64, run: &Run) {
    let [group, drive, stripe] = place(reader, run.at.map(|at| at.pvbn));
    let tag = run.at.map(|at| u64::from(at.tag));
    let pvbn = run.at.map(shown);
    let in_use = u64::from(run.in_use);
    let form = run.at.map(|at| at.form as u64);
    let row = vec![
        run.first.into(),
        run.blocks.into(),
        pvbn.unwrap_or(DumpValue::None),
        tag.into(),
        group,
        drive,
        stripe,
        in_use.into(),
        form.into(),
    ];
    table.push(most, row);
}

/// A place for display: a PVBN, or a block of an object.
pub(super) fn shown(at: Physical) -> DumpValue {
    match at.in_object() {
        None => at.pvbn.into(),
        Some(place) => format!("object {}, block {}", place.object, place.slot).into(),
    }
}

/// RAID group, drive and stripe of a block.
pub(super) fn place(reader: &Reader, pvbn: Option<u64>) -> [DumpValue; 3] {
    let geometry = &reader.media.geometry;
    match pvbn.and_then(|pvbn| geometry.locate(pvbn)) {
        None => [DumpValue::None, DumpValue::None, DumpValue::None],
        Some(place) => {
            let drive = geometry.first_drive(place.group) + place.drive;
            [place.group as u64, drive as u64, place.stripe].map(Into::into)
        }
    }
}

/// The bits of PVBNs, or of a volume's VVBNs, as runs of equal bits. `held` selects the VVBNs that
/// snapshots use.
pub(super) fn bitmap(reader: &Reader, name: Option<&[u8]>, held: bool, range: Range<u64>, most: u64) -> Result<Dump> {
    let (mut dump, what, end, tree) = match name {
        None => {
            let dump = Dump::new("PVBNs in use (file 1 of the aggregate)");
            (dump, "PVBN", reader.media.geometry.blocks(), reader.aggregate_file(aggregate::BITMAP))
        }
        Some(name) => {
            let volume = reader.volume(name)?;
            let (file, what) = match held {
                false => (volume::ACTIVE_MAP, "VVBNs in use"),
                true => (volume::SUMMARY_MAP, "VVBNs that snapshots use"),
            };
            let inode = reader.inode(&volume.inodes(), file);
            let free = || Damage::new("inode", "kind", "free", "in use");
            let tree = inode.and_then(|inode| Ok(volume.tree(file, inode.ok_or_else(free)?)));
            let title = format!("{what} (file {file} of volume {})", text(name));
            (Dump::new(title), "VVBN", volume.record.blocks, tree)
        }
    };
    let tree = match tree {
        Ok(tree) => tree,
        Err(damage) => {
            dump.wrong(damage);
            return Ok(dump);
        }
    };
    let mut table = DumpTable::new(&[what, "blocks", "bit"]);
    let mut run: Option<(u64, u64, bool)> = None;
    let mut used = 0;
    let (mut number, end) = (range.start, range.end.min(end));
    while number < end {
        let found = reader.contents(&tree, number / BITS).and_then(|block| match block {
            Some(block) => Ok((bit(&block[..], number % BITS), number + 1)),
            None => {
                Ok((false, reader.hole_end(&tree, number / BITS)?.map_or(number + 1, |end| end.saturating_mul(BITS))))
            }
        });
        let (is_used, next) = match found {
            Ok(found) => found,
            Err(damage) => {
                dump.wrong(format!("block {}: {damage}", number / BITS));
                break;
            }
        };
        let blocks = next.min(end) - number;
        used += if is_used { blocks } else { 0 };
        match &mut run {
            Some((_, count, bit)) if *bit == is_used => *count += blocks,
            _ => {
                if let Some(before) = run.replace((number, blocks, is_used)) {
                    push_bits(&mut table, most, before);
                }
            }
        }
        number += blocks;
    }
    if let Some(last) = run {
        push_bits(&mut table, most, last);
    }
    dump.field("in use", used);
    dump.table = Some(table);
    Ok(dump)
}

fn push_bits(table: &mut DumpTable, most: u64, (first, count, is_used): (u64, u64, bool)) {
    table.push(most, vec![first.into(), count.into(), u64::from(is_used).into()]);
}

pub(super) fn bit(bytes: &[u8], number: u64) -> bool {
    bytes[(number / 8) as usize] >> (number % 8) & 1 == 1
}

/// The lists of areas with most free blocks.
pub(super) fn areas(reader: &Reader, most: u64) -> Dump {
    let mut all = Dump::new("areas with most free blocks (file 3 of the aggregate)");
    let tree = match reader.aggregate_file(aggregate::TOP_AREAS) {
        Ok(tree) => tree,
        Err(damage) => {
            all.wrong(damage);
            return all;
        }
    };
    for group in 0..reader.media.geometry.groups.len() {
        let mut dump = Dump::new(format!("RAID group {group}"));
        match reader.contents(&tree, group as u64) {
            Ok(Some(block)) => {
                read_fields(&mut dump, &block[..], AREAS);
                let mut table = DumpTable::new(&["area", "score"]);
                let listed = (u32_at(&block[..], 28) as usize).min(MAX_LISTED);
                for at in (0..listed).map(|index| 40 + 8 * index) {
                    let row = [u32_at(&block[..], at), u32_at(&block[..], at + 4)];
                    table.push(most, row.map(|number| u64::from(number).into()).into());
                }
                dump.table = Some(table);
                if let Err(damage) = TopAreas::decode(&block) {
                    dump.wrong(damage);
                }
            }
            Ok(None) => dump.wrong(Damage::new("top areas", "block", "a hole", "a block")),
            Err(damage) => dump.wrong(damage),
        }
        all.parts.push(dump);
    }
    all
}
