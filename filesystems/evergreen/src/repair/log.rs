//! The log of a damaged evergreen: its readable part, and a new start.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::deferred_device::Staged;
use crate::{
    Result,
    disk::{BLOCK, Geometry, Superblock, read_newest, read_slots, write_superblock},
    log::{LogStart, Replay, clear_blocks, frames, unreadable_blocks},
};

/// The ring bytes that must be readable at the start of a log.
const FREE_BYTES: u64 = 8 * BLOCK as u64;

/// The readable part of the log after a superblock.
pub(super) struct LogState {
    /// The number of whole batches.
    pub batches: u64,
    /// The damage after them, and its position.
    pub damage: Option<(String, u64)>,
    /// The number of the next batch.
    pub next: u64,
    /// The position of the next batch.
    pub end: u64,
}

/// Reads the log after a superblock. Errors: `Device` if a superblock cannot be read.
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

/// Returns a start in the ring, at readable blocks, that no frame is chained to.
pub(super) fn anew(device: &Arc<dyn BlockDevice>, superblock: &Superblock, generation: u64) -> LogStart {
    let Superblock { geometry, uuid, replay, .. } = superblock;
    let last = frames(device, geometry, uuid).into_iter().map(|(_, header)| (header.position, header.sequence)).max();
    let (position, sequence) = last.unwrap_or((0, 0)).max((replay.position, replay.sequence));
    // After all laps, so that no old frame can prove that later frames were durable.
    let laps = position / geometry.log_bytes + 3;
    let unreadable = unreadable_blocks(device, geometry);
    let is_free = |at: &u64| !unreadable.iter().any(|bad| (*at..*at + FREE_BYTES).contains(bad));
    let at = (0..geometry.log_bytes - FREE_BYTES).step_by(BLOCK).find(is_free).unwrap_or(0);
    let position = laps * geometry.log_bytes + at;
    let start = LogStart { position, sequence: sequence + (1 << 32), chain: 0 };
    start.anew(uuid, generation)
}

/// Writes zeros to unreadable blocks of the ring, which may make them readable. No superblock needs
/// their contents.
pub(super) fn clear_unreadable(device: &Arc<dyn BlockDevice>, geometry: &Geometry) {
    for at in unreadable_blocks(device, geometry) {
        // If the write fails, the log starts elsewhere.
        let _ = clear_blocks(device, geometry, &[at]);
    }
}

/// Sets the log of both superblocks of a repaired state to an empty one, after all frames in the
/// ring of `device`.
pub(super) fn begin_again(device: &Arc<dyn BlockDevice>, staged: &Staged) -> Result<()> {
    let newest = read_newest(staged)?;
    let start = anew(device, &newest, newest.generation);
    for superblock in read_slots(staged)?.slots.into_iter().flatten().filter(|other| other.uuid == newest.uuid) {
        // For the newer superblock after an empty block: later frames then prove that it was
        // durable, if only the older one is left.
        let start = if superblock.generation == newest.generation { start.skip(0) } else { start };
        let replay = start.anew(&superblock.uuid, superblock.generation);
        write_superblock(staged, &Superblock { replay, ..superblock })?;
    }
    Ok(())
}
