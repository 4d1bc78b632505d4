//! Reads many single blocks in the order of the device, neighbours with one call.

use crate::{Error, FileSystem, ReadAt};

/// The longest single read.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Up to this length, blocks in between are read too, because that is cheaper than another call.
const MAX_GAP_BYTES: u64 = 32 << 10;

/// Reads blocks and passes each to `visit` with its index in the list. The list must be sorted; a
/// block may occur several times.
pub(crate) fn visit_blocks<D: ReadAt>(
    fs: &FileSystem<D>,
    blocks: impl Iterator<Item = u64> + Clone,
    buffer: &mut Vec<u8>,
    mut visit: impl FnMut(usize, &[u8]),
) -> Result<(), Error> {
    let block_bytes = fs.superblock.block_bytes;
    let (max_blocks, max_gap) = ((MAX_READ_BYTES / block_bytes).max(1), MAX_GAP_BYTES / block_bytes);
    let mut open = blocks.enumerate().peekable();
    let mut batch: Vec<(usize, u64)> = Vec::new();
    while let Some((place, first)) = open.next() {
        batch.clear();
        batch.push((place, first));
        let mut last = first;
        while let Some(&(_, block)) = open.peek() {
            if block - first >= max_blocks || block - last > max_gap + 1 {
                break;
            }
            last = block;
            batch.extend(open.next());
        }
        let length = ((last - first + 1) * block_bytes) as usize;
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        fs.read_blocks(first, &mut buffer[..length])?;
        for &(place, block) in &batch {
            let at = ((block - first) * block_bytes) as usize;
            visit(place, &buffer[at..at + block_bytes as usize]);
        }
    }
    Ok(())
}
