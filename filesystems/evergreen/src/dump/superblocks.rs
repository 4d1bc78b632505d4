//! Dumps of the superblocks.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockResult};
use senesce_fsapi::dump::{Dump, DumpTable, read_fields};

use super::field_offsets::SUPERBLOCK;
use crate::{
    Result,
    disk::{BLOCK, Decoded, MAX_MAP_PIECES, MAX_SECOND_MAP_PIECES, MIRRORS_AT, SLOTS_AT, Superblock, u32_at},
};

/// For each copy of the map: the offsets of the number of its pieces and of the pieces, and the
/// most pieces.
const MAP_COPIES: [(usize, usize, usize); 2] =
    [(92, 256, MAX_MAP_PIECES), (164, 256 + 8 * MAX_MAP_PIECES, MAX_SECOND_MAP_PIECES)];

/// Dumps both superblocks and their second copies. An unreadable one is noted in the dump. If
/// neither superblock can be read, that is an error.
pub(super) fn superblocks(device: &Arc<dyn BlockDevice>) -> Result<Dump> {
    let blocks = SLOTS_AT.map(|at| (at, read(device, at)));
    if let [(_, Err(error)), (_, Err(_))] = blocks {
        return Err(error.into());
    }
    let decoded = blocks.iter().filter_map(|(_, read)| read.as_ref().ok()?.1.as_ref().ok());
    let newest = decoded.map(|superblock| superblock.generation).max();
    let mut all = Dump::new(format!("superblocks of {}", device.name()));
    for (at, read) in &blocks {
        let superblock = read.as_ref().ok().and_then(|(_, superblock)| superblock.as_ref().ok());
        let is_newest = superblock.is_some_and(|superblock| Some(superblock.generation) == newest);
        let mut dump = Dump::new(format!("superblock at {at}{}", if is_newest { ", the newest" } else { "" }));
        match read {
            Err(error) => dump.wrong(format!("the device cannot read it: {error}")),
            Ok((block, _)) if block.iter().all(|&byte| byte == 0) => dump.field("slot", "zeros: never written"),
            Ok((block, superblock)) => {
                superblock_fields(&mut dump, &block[..]);
                if let Err(damage) = superblock {
                    dump.wrong(damage);
                }
            }
        }
        copy_fields(&mut dump, device, *at, read.as_ref().ok());
        all.parts.push(dump);
    }
    Ok(all)
}

/// Dumps the second copy of a slot. A different copy is no damage by itself: a loss of power
/// between the two writes can cause it.
fn copy_fields(dump: &mut Dump, device: &Arc<dyn BlockDevice>, slot: u64, first: Option<&Slot>) {
    let number = usize::from(slot != SLOTS_AT[0]);
    let (at, word) = (MIRRORS_AT[number], ["copy at 768 KiB", "copy at 256 KiB"][number]);
    let told = match (read(device, at), first) {
        (Err(error), _) => format!("the device cannot read it: {error}"),
        (Ok((copy, _)), Some((block, _))) if copy == *block => "the same".to_owned(),
        (Ok((copy, _)), _) if copy.iter().all(|&byte| byte == 0) => "zeros: never written".to_owned(),
        (Ok((_, Ok(copy))), _) => format!("another: superblock {}", copy.generation),
        (Ok((_, Err(damage))), _) => damage.to_string(),
    };
    dump.field(word, told);
}

type Slot = (Box<[u8; BLOCK]>, Decoded<Superblock>);

fn read(device: &Arc<dyn BlockDevice>, at: u64) -> BlockResult<Slot> {
    let mut block = Box::new([0; BLOCK]);
    // Repeat a failed read, as opening does.
    device.read_at(at, &mut block[..]).or_else(|_| device.read_at(at, &mut block[..]))?;
    let superblock = Superblock::decode(&block);
    Ok((block, superblock))
}

fn superblock_fields(dump: &mut Dump, block: &[u8]) {
    read_fields(dump, block, SUPERBLOCK);
    let mut table = DumpTable::new(&["map extent: first unit", "units", "copy"]);
    for (copy, (pieces_at, extents_at, most)) in (1u64..).zip(MAP_COPIES) {
        for index in 0..(u32_at(block, pieces_at) as usize).min(most) {
            let at = extents_at + 8 * index;
            let [first, units] = [at, at + 4].map(|at| u64::from(u32_at(block, at)).into());
            table.rows.push(vec![first, units, copy.into()]);
        }
    }
    dump.table = Some(table);
}
