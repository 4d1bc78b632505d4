//! The older block map: 12 addresses in the inode, then blocks of addresses in one, two and three
//! levels.
//!
//! Source: the kernel's documentation of the format, "Direct/Indirect Block Addressing".

use super::{MAX_FILE_BLOCKS, Run};
use crate::{Problem, bytes::u32_at};

/// Addresses in the inode that point to data.
const DIRECT: usize = 12;

/// A block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressBlock {
    pub(super) block: u64,
    /// 1: its addresses point to data. 2 and 3: they point to address blocks one level lower.
    pub(super) level: u32,
    /// The first block of the file that it maps.
    pub(super) logical: u64,
}

/// The range of valid blocks, and the number of addresses in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) first_block: u64,
    pub(super) blocks: u64,
    pub(super) addresses: u64,
}

impl Limits {
    /// The number of blocks of the file below one address of a block of this level.
    fn span(&self, level: u32) -> u64 {
        self.addresses.saturating_pow(level.saturating_sub(1))
    }

    fn check(&self, place: usize, block: u64, logical: u64) -> Result<(), Problem> {
        if block < self.first_block || block >= self.blocks {
            return Err(format!("address {place} is block {block} of {}", self.blocks).into());
        }
        if logical >= MAX_FILE_BLOCKS {
            return Err(format!("address {place} is for block {logical} of the file, which is too high").into());
        }
        Ok(())
    }
}

/// Parses the 15 addresses in an inode.
pub(super) fn parse_root(
    content: &[u8],
    limits: &Limits,
    runs: &mut Vec<Run>,
    below: &mut Vec<AddressBlock>,
) -> Result<(), Problem> {
    parse_data_addresses(content.get(..DIRECT * 4).unwrap_or(content), 0, limits, runs)?;
    let mut logical = DIRECT as u64;
    for level in 1..=3 {
        let place = DIRECT + level as usize - 1;
        let block = u64::from(u32_at(content, place * 4));
        if block != 0 {
            limits.check(place, block, logical)?;
            below.push(AddressBlock { block, level, logical });
        }
        logical += limits.addresses.saturating_pow(level);
    }
    Ok(())
}

/// Parses a block of addresses.
pub(super) fn parse_block(
    bytes: &[u8],
    own: &AddressBlock,
    limits: &Limits,
    runs: &mut Vec<Run>,
    below: &mut Vec<AddressBlock>,
) -> Result<(), Problem> {
    if own.level == 1 {
        return parse_data_addresses(bytes, own.logical, limits, runs);
    }
    for (place, address) in bytes.chunks_exact(4).enumerate() {
        let block = u64::from(u32_at(address, 0));
        if block != 0 {
            let logical = own.logical.saturating_add((place as u64).saturating_mul(limits.span(own.level)));
            limits.check(place, block, logical)?;
            below.push(AddressBlock { block, level: own.level - 1, logical });
        }
    }
    Ok(())
}

/// Parses addresses of data from block `logical` of the file on. Neighbours become one run, zeros
/// are holes.
fn parse_data_addresses(bytes: &[u8], logical: u64, limits: &Limits, runs: &mut Vec<Run>) -> Result<(), Problem> {
    let mut open: Option<Run> = None;
    for (place, address) in bytes.chunks_exact(4).enumerate() {
        let physical = u64::from(u32_at(address, 0));
        if physical == 0 {
            continue;
        }
        let logical = logical + place as u64;
        limits.check(place, physical, logical)?;
        let next = Run { logical, physical, blocks: 1, unwritten: false };
        match &mut open {
            Some(run) if run.continues_into(&next) => run.blocks += 1,
            _ => runs.extend(open.replace(next)),
        }
    }
    runs.extend(open);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { first_block: 1, blocks: 1000, addresses: 256 };

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn inode_addresses_are_runs_and_three_levels() {
        let content = words(&[10, 11, 12, 0, 14, 15, 0, 0, 0, 0, 0, 30, 100, 200, 300]);
        let (mut runs, mut below) = (Vec::new(), Vec::new());
        parse_root(&content, &LIMITS, &mut runs, &mut below).unwrap();
        let got: Vec<_> = runs.iter().map(|run| (run.logical, run.physical, run.blocks)).collect();
        assert_eq!(got, [(0, 10, 3), (4, 14, 2), (11, 30, 1)]);
        let got: Vec<_> = below.iter().map(|block| (block.block, block.level, block.logical)).collect();
        assert_eq!(got, [(100, 1, 12), (200, 2, 12 + 256), (300, 3, 12 + 256 + 256 * 256)]);
    }

    #[test]
    fn upper_addresses_span_all_blocks_below() {
        let own = AddressBlock { block: 300, level: 3, logical: 65_804 };
        let mut below = Vec::new();
        parse_block(&words(&[0, 7, 8]), &own, &LIMITS, &mut Vec::new(), &mut below).unwrap();
        let got: Vec<_> = below.iter().map(|block| (block.block, block.level, block.logical)).collect();
        assert_eq!(got, [(7, 2, 65_804 + 65_536), (8, 2, 65_804 + 131_072)]);
    }

    #[test]
    fn addresses_outside_the_file_system_are_refused() {
        let own = AddressBlock { block: 5, level: 1, logical: 12 };
        let result = parse_block(&words(&[0, 1000]), &own, &LIMITS, &mut Vec::new(), &mut Vec::new());
        assert_eq!(result.unwrap_err().to_string(), "address 1 is block 1000 of 1000");
    }
}
