//! Superblocks that a repair may begin with: those that are whole, those that a bit makes whole, and what else their numbers say.

use senesce_block::BlockDevice;
use xxhash_rust::xxh3::xxh3_64;

use super::scan::Found;
use crate::disk::{BLOCK, FORMAT_VERSION, MIRRORS_AT, OLDEST_VERSION, SLOTS_AT, Superblock, u32_at, u64_at};

/// A superblock to begin with.
pub(super) struct Base {
    pub superblock: Superblock,
    /// It is as it was written.
    pub is_certain: bool,
    /// Where it comes from, in words.
    pub told: String,
}

const MAGIC: &[u8; 8] = b"SNSCevrg";
const SUM_AT: usize = BLOCK - 8;

/// Those of both copies of both slots, the better one first.
pub(super) fn of_slots(device: &dyn BlockDevice) -> Vec<Base> {
    let mut bases: Vec<Base> = SLOTS_AT.into_iter().filter_map(|at| of_slot(device, at)).collect();
    let uuid = bases.iter().find(|base| base.is_certain).map(|base| base.superblock.uuid);
    // A copy may be that of an earlier file system, which another program left there.
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
        let told = format!("superblock {} at {at}", superblock.generation);
        return Some(Base { superblock, is_certain: true, told });
    }
    if let Some(bit) = mend_bit(&mut block) {
        let superblock = Superblock::decode(&block).ok()?;
        let told = format!("superblock {} at {at}, of which bit {bit} was another", superblock.generation);
        return Some(Base { superblock, is_certain: true, told });
    }
    let superblock = is_ours(&block).then(|| Superblock::decode_fields(&block).ok())??;
    let told = format!("superblock {} at {at}, though its checksum is wrong", superblock.generation);
    Some(Base { superblock, is_certain: false, told })
}

fn is_ours(block: &[u8; BLOCK]) -> bool {
    block.starts_with(MAGIC) && (OLDEST_VERSION..=FORMAT_VERSION).contains(&u32_at(block, 8))
}

/// Finds the one bit that makes the checksum right, if one does, and turns it.
fn mend_bit(block: &mut [u8; BLOCK]) -> Option<usize> {
    let differences = |version: u32| {
        block[..12].iter().zip(MAGIC.iter().chain(&version.to_le_bytes())).filter(|(a, b)| a != b).count()
    };
    if (OLDEST_VERSION..=FORMAT_VERSION).all(|version| differences(version) > 1) {
        return None;
    }
    // A bit of the checksum itself, or one of what it is of.
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

/// Whether there is anything of an evergreen besides its superblocks: near the beginning of the area, which is filled from there on.
pub(super) fn has_trace(device: &dyn BlockDevice) -> bool {
    let Found { nodes, .. } = super::scan::scan(device, None);
    !nodes.is_empty()
}
