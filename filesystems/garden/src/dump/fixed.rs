//! Structures at fixed places of each drive: labels and superblocks.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::{
    field_offsets::{INODE as INODE_FIELDS, LABEL, LOG_LABEL, OLD_LOG_LABEL, SUPERBLOCK},
    slot::trailer,
    value::{Dump, DumpTable, DumpValue, read_fields},
};
use crate::{
    error::Result,
    format::{
        BLOCK, Block, OLD_VERSION, SLOT, VERSION,
        bytes::{u16_at, u32_at, u64_at},
        inode::INODE,
        label::{Aggregate, DriveLabel, LogLabel, LogShape, OldLogLabel},
        slot::{self, Slot},
        superblock::Superblock,
        zero_block,
    },
    log::{Copies, LogDevices, Place, find_aggregate, label_offsets},
    raid::{LABELS, superblock_slot},
    store::{self, of_version, read_labels},
};

/// Offsets in a superblock: the inode of file 0, missing drives, drives being filled. The offset of
/// the groups in a label.
const ROOT_AT: usize = 128;
const MISSING_AT: usize = 512;
const FILLING_AT: usize = 1024;
const GROUPS_AT: usize = 64;
/// The capacity of each of these lists.
const MOST: usize = 64;

/// The labels of all drives and of the log, both copies of each.
pub(super) fn labels(drives: &[Arc<dyn BlockDevice>], log: &LogDevices) -> Result<Dump> {
    let mut all = Dump::new("labels");
    for drive in drives {
        let is_old = is_old(drive);
        for number in LABELS.into_iter().take(if is_old { 1 } else { LABELS.len() }) {
            let slot = read_slot(drive, number)?;
            let mut dump = Dump::new(format!("label of {} in slot {number}", drive.name()));
            read_fields(&mut dump, &slot[..], LABEL);
            dump.table = Some(groups(&slot[..]));
            judge(&mut dump, &slot, |block| DriveLabel::decode(block).map(drop));
            dump.parts.push(trailer(&slot));
            all.parts.push(dump);
        }
    }
    let aggregate = store::find_aggregate(drives).or_else(|| find_aggregate(log));
    for (number, place) in places(log, aggregate.as_ref(), None)?.into_iter().enumerate() {
        let (device, shape) = match place {
            Ok(found) => found,
            Err(why) => {
                let mut dump = Dump::new(format!("label of log copy {number}"));
                dump.wrong(why);
                all.parts.push(dump);
                continue;
            }
        };
        let offsets = label_offsets(&shape);
        let is_old = aggregate.as_ref().is_some_and(|aggregate| aggregate.version == OLD_VERSION);
        for offset in offsets.into_iter().take(if is_old { 1 } else { offsets.len() }) {
            let mut block = zero_block();
            device.read_at(offset, &mut block[..])?;
            let mut dump = Dump::new(format!("label of {} at byte {offset}", device.name()));
            read_fields(&mut dump, &block[..], if is_old { OLD_LOG_LABEL } else { LOG_LABEL });
            let judged =
                if is_old { OldLogLabel::decode(&block).map(drop) } else { LogLabel::decode(&block).map(drop) };
            if let Err(damage) = judged {
                dump.wrong(damage);
            }
            all.parts.push(dump);
        }
    }
    Ok(all)
}

fn groups(slot: &[u8]) -> DumpTable {
    let mut groups = DumpTable::new(&["group", "data drives", "parity", "medium", "stripes of an area", "stripes"]);
    for group in 0..(u32_at(slot, 40) as usize).min(MOST) {
        let at = GROUPS_AT + 16 * group;
        let medium = match slot[at + 3] {
            1 => "hdd".into(),
            2 => "ssd".into(),
            other => DumpValue::Number(other.into()),
        };
        groups.rows.push(vec![
            (group as u64).into(),
            u64::from(u16_at(slot, at)).into(),
            u64::from(slot[at + 2]).into(),
            medium,
            u64::from(u32_at(slot, at + 4)).into(),
            u64_at(slot, at + 8).into(),
        ]);
    }
    groups
}

/// A copy of the log and its shape, or why it is lost.
type LogCopy = std::result::Result<(Arc<dyn BlockDevice>, LogShape), String>;

/// The copies of a log, by number. `sb` is the superblock, if there is one.
pub(super) fn places(log: &LogDevices, aggregate: Option<&Aggregate>, sb: Option<&Superblock>) -> Result<Vec<LogCopy>> {
    let Some(aggregate) = aggregate else { return Ok(vec![Err("no label says where it is".to_owned())]) };
    let copies = Copies::find(log, aggregate, sb)?;
    let place = |place: &Place| match place {
        Place::Here(device) | Place::Spare(device) => Ok((device.clone(), copies.shape)),
        Place::Lost { why } => Err(why.clone()),
    };
    Ok(copies.places.iter().map(place).collect())
}

fn is_old(drive: &Arc<dyn BlockDevice>) -> bool {
    read_labels(drive).is_ok_and(|(label, _)| label.aggregate.version == OLD_VERSION)
}

/// Both superblocks of all drives; equal ones only once.
pub(super) fn superblocks(drives: &[Arc<dyn BlockDevice>]) -> Result<Dump> {
    let mut newest = None;
    let mut parts: Vec<(usize, Slot, Vec<String>)> = Vec::new();
    for place in 0..2 {
        for drive in drives {
            let version = if is_old(drive) { OLD_VERSION } else { VERSION };
            let slot = read_slot(&of_version(drive.clone(), version), superblock_slot(place as u64))?;
            if let Ok(sb) = slot::decode(&slot).and_then(|_| Superblock::decode(&slot::payload(&slot))) {
                newest = newest.max(Some(sb.cp));
            }
            match parts.iter_mut().find(|(at, other, _)| *at == place && other[..] == slot[..]) {
                Some((_, _, names)) => names.push(drive.name().to_owned()),
                None => parts.push((place, slot, vec![drive.name().to_owned()])),
            }
        }
    }
    let mut all = Dump::new("superblocks");
    for (place, slot, names) in parts {
        let is_newest = newest == Some(u64_at(&slot[..], 32));
        let name = if place == 0 { "A" } else { "B" };
        let kind = if is_newest { ", the newest" } else { "" };
        let mut dump = Dump::new(format!("superblock {name}{kind}, of {}", names.join(", ")));
        if slot[..].iter().all(|&byte| byte == 0) {
            dump.field("slot", "zeros: never written");
        } else {
            superblock(&mut dump, &slot);
        }
        all.parts.push(dump);
    }
    Ok(all)
}

fn superblock(dump: &mut Dump, slot: &Slot) {
    let bytes = &slot[..];
    read_fields(dump, bytes, SUPERBLOCK);
    judge(dump, slot, |block| Superblock::decode(block).map(drop));
    let mut root = Dump::new("inode of file 0");
    read_fields(&mut root, &bytes[ROOT_AT..ROOT_AT + INODE], INODE_FIELDS);
    dump.parts.push(root);
    let missing = (u32_at(bytes, MISSING_AT) as usize).min(MOST);
    if missing > 0 {
        let mut part = Dump::new("drives that are missing");
        let mut table = DumpTable::new(&["drive"]);
        table.rows.extend((0..missing).map(|at| vec![u64::from(u32_at(bytes, MISSING_AT + 4 + 4 * at)).into()]));
        part.table = Some(table);
        dump.parts.push(part);
    }
    let filling = (u32_at(bytes, FILLING_AT) as usize).min(MOST);
    if filling > 0 {
        let mut part = Dump::new("drives being filled");
        let mut table = DumpTable::new(&["drive", "stripes that it holds"]);
        let places = (0..filling).map(|index| FILLING_AT + 16 * (index + 1));
        table.rows.extend(places.map(|at| vec![u64::from(u32_at(bytes, at)).into(), u64_at(bytes, at + 8).into()]));
        part.table = Some(table);
        dump.parts.push(part);
    }
    dump.parts.push(trailer(slot));
}

/// Adds the damage that the codecs find.
fn judge(dump: &mut Dump, slot: &Slot, decode: impl Fn(&Block) -> std::result::Result<(), crate::Damage>) {
    for damage in [slot::decode(slot).err(), decode(&slot::payload(slot)).err()].into_iter().flatten() {
        dump.wrong(damage);
    }
}

fn read_slot(drive: &Arc<dyn BlockDevice>, number: u64) -> Result<Slot> {
    let mut slot = Slot::zeros();
    drive.read_at(number * SLOT as u64, &mut slot[..])?;
    debug_assert!(slot.len() > BLOCK);
    Ok(slot)
}
