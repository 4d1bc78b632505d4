//! Frames of a file system wherever they lie in the ring, and taking them away.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::{FrameHeader, Ring, seed};
use crate::{
    Result,
    disk::{BLOCK, Geometry},
};

/// What is read at once.
const READ_BYTES: u64 = 1 << 20;

/// Headers of frames of a file system, and at which byte of the ring. Blocks that cannot be read are passed over. Cost: reads the ring.
pub(crate) fn frames(device: &Arc<dyn BlockDevice>, geometry: &Geometry, uuid: &[u8; 16]) -> Vec<(u64, FrameHeader)> {
    let (ring, seed) = (Ring::new(device.clone(), geometry), seed(uuid));
    let mut found = Vec::new();
    let mut take = |at: u64, bytes: &[u8]| {
        for (at, block) in (at..).step_by(BLOCK).zip(bytes.chunks_exact(BLOCK)) {
            found.extend(FrameHeader::decode(block, seed).ok().map(|header| (at, header)));
        }
    };
    let mut at = 0;
    while at < ring.bytes() {
        let bytes = (ring.bytes() - at).min(READ_BYTES);
        match ring.read(at, bytes as usize) {
            Ok(bytes) => take(at, &bytes),
            // Single blocks: those that cannot be read hold no frame that a replay could take.
            Err(_) => {
                for at in (at..at + bytes).step_by(BLOCK) {
                    ring.read(at, BLOCK).into_iter().for_each(|block| take(at, &block));
                }
            }
        }
        at += bytes;
    }
    found
}

/// Takes away the frames of a file system from a position on, with their parity: they are none any more. Not durable before the next flush.
///
/// Errors: `Device`. Cost: reads the ring.
pub(crate) fn erase_frames(
    device: &Arc<dyn BlockDevice>,
    geometry: &Geometry,
    uuid: &[u8; 16],
    position: u64,
) -> Result<()> {
    let ring = Ring::new(device.clone(), geometry);
    for (at, header) in frames(device, geometry, uuid) {
        if header.position >= position {
            ring.write(at, &[0; BLOCK])?;
            if header.has_parity {
                ring.write(at + header.frame_bytes() - BLOCK as u64, &[0; BLOCK])?;
            }
        }
    }
    Ok(())
}
