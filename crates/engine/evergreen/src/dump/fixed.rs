//! What lies at fixed places: the superblocks.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockResult};
use senesce_fsapi::dump::{Dump, DumpTable, read_fields};

use super::layout::SUPERBLOCK;
use crate::{
    Result,
    disk::{BLOCK, Decoded, MAX_MAP_PIECES, SLOTS_AT, Superblock, u32_at},
};

const PIECES_AT: usize = 92;
const EXTENTS_AT: usize = 256;

/// Both superblocks. Of one that the device does not give, that is said; if it gives neither, it is the error.
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
            Err(error) => dump.wrong(format!("the device does not give it: {error}")),
            Ok((block, _)) if block.iter().all(|&byte| byte == 0) => dump.field("slot", "zeros: never written"),
            Ok((block, superblock)) => {
                superblock_fields(&mut dump, &block[..]);
                if let Err(damage) = superblock {
                    dump.wrong(damage);
                }
            }
        }
        all.parts.push(dump);
    }
    Ok(all)
}

type Slot = (Box<[u8; BLOCK]>, Decoded<Superblock>);

fn read(device: &Arc<dyn BlockDevice>, at: u64) -> BlockResult<Slot> {
    let mut block = Box::new([0; BLOCK]);
    // Again, if it failed: as whoever opens it does.
    device.read_at(at, &mut block[..]).or_else(|_| device.read_at(at, &mut block[..]))?;
    let superblock = Superblock::decode(&block);
    Ok((block, superblock))
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
