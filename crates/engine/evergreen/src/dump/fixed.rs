//! What lies at fixed places: the superblocks.

use std::sync::Arc;

use senesce_block::BlockDevice;
use senesce_fsapi::dump::{Dump, DumpTable};

use super::layout::{SUPERBLOCK, read_fields};
use crate::{
    Result,
    disk::{BLOCK, MAX_MAP_PIECES, SLOTS_AT, Superblock, u32_at},
};

const PIECES_AT: usize = 92;
const EXTENTS_AT: usize = 256;

/// Both superblocks.
pub(super) fn superblocks(device: &Arc<dyn BlockDevice>) -> Result<Dump> {
    let mut blocks = Vec::new();
    for at in SLOTS_AT {
        let mut block = Box::new([0; BLOCK]);
        device.read_at(at, &mut block[..])?;
        blocks.push((at, Superblock::decode(&block), block));
    }
    let newest = blocks.iter().filter_map(|(_, sb, _)| sb.as_ref().ok()).map(|sb| sb.generation).max();
    let mut all = Dump::new(format!("superblocks of {}", device.name()));
    for (at, superblock, block) in &blocks {
        let is_newest = superblock.as_ref().is_ok_and(|superblock| Some(superblock.generation) == newest);
        let mut dump = Dump::new(format!("superblock at {at}{}", if is_newest { ", the newest" } else { "" }));
        if block.iter().all(|&byte| byte == 0) {
            dump.field("slot", "zeros: never written");
        } else {
            superblock_fields(&mut dump, &block[..]);
            if let Err(damage) = superblock {
                dump.wrong(damage);
            }
        }
        all.parts.push(dump);
    }
    Ok(all)
}

fn superblock_fields(dump: &mut Dump, block: &[u8]) {
    read_fields(dump, block, SUPERBLOCK);
    let mut table = DumpTable::new(&["map extent: first unit", "units"]);
    for index in 0..(u32_at(block, PIECES_AT) as usize).min(MAX_MAP_PIECES) {
        let at = EXTENTS_AT + 8 * index;
        table.rows.push([at, at + 4].map(|at| u64::from(u32_at(block, at)).into()).into());
    }
    dump.table = Some(table);
}
