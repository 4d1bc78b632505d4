//! The log of an evergreen that is repaired: how far it can be read, and where it goes on if it cannot.

use std::sync::Arc;

use senesce_block::BlockDevice;

use crate::{
    Error, Result,
    disk::{BLOCK, Geometry, Superblock},
    log::{FrameHeader, LogStart, Replay, Ring, seed},
};

/// How far the log behind a superblock can be read.
pub(super) struct LogState {
    /// Batches that are whole.
    pub batches: u64,
    /// What is wrong with the one behind them, and where that begins.
    pub damage: Option<(String, u64)>,
    /// The number of the batch that would come next.
    pub next: u64,
}

/// Reads the log behind a superblock.
pub(super) fn read(device: &Arc<dyn BlockDevice>, superblock: &Superblock) -> LogState {
    let mut replay = Replay::new(device.clone(), &superblock.geometry, superblock.uuid, superblock.replay);
    let mut state = LogState { batches: 0, damage: None, next: 0 };
    while let Some(batch) = replay.next() {
        match batch {
            Ok(_) => state.batches += 1,
            Err(error) => state.damage = Some((error.to_string(), replay.reached().position)),
        }
    }
    state.next = replay.reached().sequence;
    state
}

/// Ends the log at a position: the frames behind it are none any more.
pub(super) fn cut(device: &Arc<dyn BlockDevice>, superblock: &Superblock, position: u64) -> Result<()> {
    let ring = Ring::new(device.clone(), &superblock.geometry);
    for (at, header) in frames(device, &superblock.geometry, &superblock.uuid) {
        if header.position >= position {
            ring.write(at, &[0; BLOCK])?;
        }
    }
    Ok(())
}

/// A start to which nothing is chained that lies in the log.
pub(super) fn anew(device: &Arc<dyn BlockDevice>, superblock: &Superblock, generation: u64) -> LogStart {
    let Superblock { geometry, uuid, replay, .. } = superblock;
    let last = frames(device, geometry, uuid).map(|(_, header)| (header.position, header.sequence)).max();
    let (position, sequence) = last.unwrap_or((0, 0)).max((replay.position, replay.sequence));
    // Behind all laps: nothing there can be what says that more was durable.
    let laps = position / geometry.log_bytes + 3;
    let start = LogStart { position: laps * geometry.log_bytes, sequence: sequence + (1 << 32), chain: 0 };
    start.anew(uuid, generation)
}

/// Headers of frames of a file system, wherever they lie in the ring.
fn frames<'a>(
    device: &Arc<dyn BlockDevice>,
    geometry: &Geometry,
    uuid: &[u8; 16],
) -> impl Iterator<Item = (u64, FrameHeader)> + 'a {
    let (ring, seed) = (Ring::new(device.clone(), geometry), seed(uuid));
    (0..ring.bytes()).step_by(BLOCK).filter_map(move |at| {
        let block = ring.read(at, BLOCK).map_err(|_: Error| ()).ok()?;
        Some((at, FrameHeader::decode(&block, seed).ok()?))
    })
}
