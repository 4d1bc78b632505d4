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

/// Headers of frames of a file system, and at which byte of the ring. Skips blocks that cannot be read. Cost: reads the ring.
pub(crate) fn frames(device: &Arc<dyn BlockDevice>, geometry: &Geometry, uuid: &[u8; 16]) -> Vec<(u64, FrameHeader)> {
    let seed = seed(uuid);
    let mut found = Vec::new();
    for_each_block(device, geometry, &mut |at, block| {
        found.extend(block.and_then(|block| FrameHeader::decode(block, seed).ok()).map(|header| (at, header)));
    });
    found
}

/// Bytes of the ring at which blocks begin that the device does not return. Cost: reads the ring.
pub(crate) fn unreadable_blocks(device: &Arc<dyn BlockDevice>, geometry: &Geometry) -> Vec<u64> {
    let mut found = Vec::new();
    for_each_block(device, geometry, &mut |at, block| found.extend(block.is_none().then_some(at)));
    found
}

/// Calls `each` with every block of the ring, or with none where it cannot be read.
fn for_each_block(device: &Arc<dyn BlockDevice>, geometry: &Geometry, each: &mut dyn FnMut(u64, Option<&[u8]>)) {
    let ring = Ring::new(device.clone(), geometry);
    let mut from = 0;
    while from < ring.bytes() {
        let len = (ring.bytes() - from).min(READ_BYTES);
        match ring.read(from, len as usize) {
            Ok(bytes) => {
                (from..).step_by(BLOCK).zip(bytes.chunks_exact(BLOCK)).for_each(|(at, block)| each(at, Some(block)))
            }
            Err(_) => {
                for at in (from..from + len).step_by(BLOCK) {
                    each(at, ring.read(at, BLOCK).ok().as_deref());
                }
            }
        }
        from += len;
    }
}

/// Writes zeros to blocks of the ring, which begin at these bytes of it. Not durable before the next flush.
///
/// Errors: `Device`.
pub(crate) fn clear_blocks(device: &Arc<dyn BlockDevice>, geometry: &Geometry, blocks: &[u64]) -> Result<()> {
    let ring = Ring::new(device.clone(), geometry);
    blocks.iter().try_for_each(|at| ring.write(*at, &[0; BLOCK]))
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
