//! The superblocks that a repair may start with: whole ones, those with one wrong bit, and those
//! with a wrong checksum.

use senesce_block::BlockDevice;
use xxhash_rust::xxh3::xxh3_64;

use super::scan::Found;
use crate::disk::{BLOCK, FORMAT_VERSION, MIRRORS_AT, OLDEST_VERSION, SLOTS_AT, Superblock, u32_at, u64_at};

/// A superblock to start with.
pub(super) struct Base {
    pub superblock: Superblock,
    /// Whether it is as it was written.
    pub is_certain: bool,
    /// A description of its origin.
    pub name: String,
}

const MAGIC: &[u8; 8] = b"SNSCevrg";
const SUM_AT: usize = BLOCK - 8;

/// The superblocks of both copies of both slots, the better one first.
pub(super) fn of_slots(device: &dyn BlockDevice) -> Vec<Base> {
    let mut bases: Vec<Base> = SLOTS_AT.into_iter().filter_map(|at| of_slot(device, at)).collect();
    let uuid = bases.iter().find(|base| base.is_certain).map(|base| base.superblock.uuid);
    // A copy may belong to an earlier file system, if another program did not overwrite it.
    let copies = MIRRORS_AT.into_iter().filter_map(|at| of_slot(device, at));
    for copy in copies.filter(|copy| uuid.is_none_or(|uuid| uuid == copy.superblock.uuid)).collect::<Vec<_>>() {
        if !bases.iter().any(|base| base.superblock == copy.superblock && base.is_certain >= copy.is_certain) {
            bases.push(copy);
        }
    }
    bases.sort_by_key(|base| std::cmp::Reverse((base.is_certain, base.superblock.generation)));
    bases.retain(|base| base.superblock.geometry.device_bytes <= device.size().0);
    bases
}

fn of_slot(device: &dyn BlockDevice, at: u64) -> Option<Base> {
    let mut block = Box::new([0; BLOCK]);
    device.read_at(at, &mut block[..]).ok()?;
    if let Ok(superblock) = Superblock::decode(&block) {
        let name = format!("superblock {} at {at}", superblock.generation);
        return Some(Base { superblock, is_certain: true, name });
    }
    if let Some(bit) = correct_bit(&mut block) {
        let superblock = Superblock::decode(&block).ok()?;
        let name = format!("superblock {} at {at}, with bit {bit} corrected", superblock.generation);
        return Some(Base { superblock, is_certain: true, name });
    }
    let superblock = is_ours(&block).then(|| Superblock::decode_fields(&block).ok())??;
    let name = format!("superblock {} at {at}, though its checksum is wrong", superblock.generation);
    Some(Base { superblock, is_certain: false, name })
}

fn is_ours(block: &[u8; BLOCK]) -> bool {
    block.starts_with(MAGIC) && (OLDEST_VERSION..=FORMAT_VERSION).contains(&u32_at(block, 8))
}

/// Flips the one bit that makes the checksum right, if there is one.
fn correct_bit(block: &mut [u8; BLOCK]) -> Option<usize> {
    let differences = |version: u32| {
        block[..12].iter().zip(MAGIC.iter().chain(&version.to_le_bytes())).filter(|(a, b)| a != b).count()
    };
    if (OLDEST_VERSION..=FORMAT_VERSION).all(|version| differences(version) > 1) {
        return None;
    }
    // A bit of the checksum, or a bit of the checked bytes.
    let (sum, stored) = (xxh3_64(&block[..SUM_AT]), u64_at(block, SUM_AT));
    let bit = match (sum ^ stored).count_ones() {
        1 => Some(SUM_AT * 8 + (sum ^ stored).trailing_zeros() as usize),
        _ => (0..SUM_AT * 8).find(|bit| {
            block[bit / 8] ^= 1 << (bit % 8);
            let is_right = xxh3_64(&block[..SUM_AT]) == stored;
            block[bit / 8] ^= 1 << (bit % 8);
            is_right
        }),
    }?;
    block[bit / 8] ^= 1 << (bit % 8);
    Some(bit)
}

/// Whether nodes of an evergreen exist, without its superblocks.
pub(super) fn has_trace(device: &dyn BlockDevice) -> bool {
    let Found { nodes, .. } = super::scan::scan(device, None);
    !nodes.is_empty()
}
