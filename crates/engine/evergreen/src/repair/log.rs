//! The log of an evergreen that is repaired: how far it can be read, and where it begins anew.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::staged::Staged;
use crate::{
    Result,
    disk::{BLOCK, Geometry, Superblock, read_newest, read_slots, write_superblock},
    log::{LogStart, Replay, clear_blocks, frames, unreadable_blocks},
};

/// At the start of a log, so many bytes of the ring can be read.
const FREE_BYTES: u64 = 8 * BLOCK as u64;

/// How far the log behind a superblock can be read.
pub(super) struct LogState {
    /// Batches that are whole.
    pub batches: u64,
    /// What is wrong with the one behind them, and where that begins.
    pub damage: Option<(String, u64)>,
    /// The number of the batch that would come next.
    pub next: u64,
    /// Where it would be.
    pub end: u64,
}

/// Reads the log behind a superblock. Errors: `Device` for one of the places of superblocks.
pub(super) fn read(device: &Arc<dyn BlockDevice>, superblock: &Superblock) -> Result<LogState> {
    let is_torn = read_slots(&**device)?.torn().is_some();
    let mut replay = Replay::new(device.clone(), &superblock.geometry, superblock.uuid, superblock.replay)
        .beside_torn(is_torn)
        .of_version(superblock.version);
    let mut state = LogState { batches: 0, damage: None, next: 0, end: 0 };
    while let Some(batch) = replay.next() {
        match batch {
            Ok(_) => state.batches += 1,
            Err(error) => state.damage = Some((error.to_string(), replay.reached().position)),
        }
    }
    (state.next, state.end) = (replay.reached().sequence, replay.reached().position);
    Ok(state)
}

/// A start to which nothing is chained that lies in the log, at blocks that can be read.
pub(super) fn anew(device: &Arc<dyn BlockDevice>, superblock: &Superblock, generation: u64) -> LogStart {
    let Superblock { geometry, uuid, replay, .. } = superblock;
    let last = frames(device, geometry, uuid).into_iter().map(|(_, header)| (header.position, header.sequence)).max();
    let (position, sequence) = last.unwrap_or((0, 0)).max((replay.position, replay.sequence));
    // Behind all laps: nothing there can be what says that more was durable.
    let laps = position / geometry.log_bytes + 3;
    let unreadable = unreadable_blocks(device, geometry);
    let is_free = |at: &u64| !unreadable.iter().any(|bad| (*at..*at + FREE_BYTES).contains(bad));
    let at = (0..geometry.log_bytes - FREE_BYTES).step_by(BLOCK).find(is_free).unwrap_or(0);
    let position = laps * geometry.log_bytes + at;
    let start = LogStart { position, sequence: sequence + (1 << 32), chain: 0 };
    start.anew(uuid, generation)
}

/// Writes zeros to blocks of the ring that the device does not return: then it returns them, if it can. No superblock needs what was there.
pub(super) fn clear_unreadable(device: &Arc<dyn BlockDevice>, geometry: &Geometry) {
    for at in unreadable_blocks(device, geometry) {
        // A device that refuses it leaves the block as it was, and the log begins elsewhere.
        let _ = clear_blocks(device, geometry, &[at]);
    }
}

/// Lets both superblocks of a repaired state name a log that is empty, behind all that is in the ring of `device`.
pub(super) fn begin_again(device: &Arc<dyn BlockDevice>, staged: &Staged) -> Result<()> {
    let newest = read_newest(staged)?;
    let start = anew(device, &newest, newest.generation);
    for superblock in read_slots(staged)?.slots.into_iter().flatten().filter(|other| other.uuid == newest.uuid) {
        // Behind a block for the newer one: what comes there says that it was durable, should only the older one be left.
        let start = if superblock.generation == newest.generation { start.skip(0) } else { start };
        let replay = start.anew(&superblock.uuid, superblock.generation);
        write_superblock(staged, &Superblock { replay, ..superblock })?;
    }
    Ok(())
}
