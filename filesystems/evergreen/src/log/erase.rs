//! Finds and erases the frames of a file system anywhere in the ring.

use std::sync::Arc;

use senesce_block::BlockDevice;

use super::{FrameHeader, Ring, seed};
use crate::{
    Result,
    disk::{BLOCK, Geometry},
};

/// The bytes of one read.
const READ_BYTES: u64 = 1 << 20;

/// The headers of all frames of a file system, with their offsets in the ring. Skips unreadable
/// blocks. Cost: reads the ring.
pub(crate) fn frames(device: &Arc<dyn BlockDevice>, geometry: &Geometry, uuid: &[u8; 16]) -> Vec<(u64, FrameHeader)> {
    let seed = seed(uuid);
    let mut found = Vec::new();
    for_each_block(device, geometry, &mut |at, block| {
        found.extend(block.and_then(|block| FrameHeader::decode(block, seed).ok()).map(|header| (at, header)));
    });
    found
}

/// The offsets in the ring of blocks that the device cannot read. Cost: reads the ring.
pub(crate) fn unreadable_blocks(device: &Arc<dyn BlockDevice>, geometry: &Geometry) -> Vec<u64> {
    let mut found = Vec::new();
    for_each_block(device, geometry, &mut |at, block| found.extend(block.is_none().then_some(at)));
    found
}

/// Calls `each` for every block of the ring, with `None` for unreadable ones.
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

/// Writes zeros to the blocks of the ring at these offsets. Durable after the next flush.
///
/// Errors: `Device`.
pub(crate) fn clear_blocks(device: &Arc<dyn BlockDevice>, geometry: &Geometry, blocks: &[u64]) -> Result<()> {
    let ring = Ring::new(device.clone(), geometry);
    blocks.iter().try_for_each(|at| ring.write(*at, &[0; BLOCK]))
}

/// Erases the frames of a file system from a position on, with their parity. Durable after the next
/// flush.
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
