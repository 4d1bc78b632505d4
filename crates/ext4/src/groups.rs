//! Group descriptors: the places of each group's bitmaps and inodes, and their usage.
//!
//! Source: the kernel's documentation of the format, "Block Group Descriptors".

use crate::{
    Problem, Superblock,
    bytes::{u16_at, u32_at, wide},
    checksum::{crc16, crc32c},
};

/// The descriptor of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupDescriptor {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    /// In clusters.
    pub(crate) free_clusters: u32,
    /// Inodes at the end of the table that were never used.
    pub(crate) unused_inodes: u32,
    /// Whether the inode bitmap was never written, so that no inode is in use.
    pub(crate) inodes_uninitialised: bool,
    /// Whether the block bitmap was never written, so that only metadata is in use.
    pub(crate) blocks_uninitialised: bool,
    pub(crate) block_bitmap_checksum: u32,
    pub(crate) inode_bitmap_checksum: u32,
}

const INODES_UNINITIALISED: u16 = 1;
const BLOCKS_UNINITIALISED: u16 = 2;

impl GroupDescriptor {
    /// Parses the descriptor of `group`.
    ///
    /// Errors: a wrong checksum; positions outside the file system; too many unused inodes.
    pub(crate) fn parse(
        bytes: &[u8],
        group: u32,
        superblock: &Superblock,
        verify_checksum: bool,
    ) -> Result<Self, Problem> {
        if verify_checksum && superblock.has_group_csum() {
            let (stored, computed) = (u16_at(bytes, 0x1E), compute_checksum(bytes, group, superblock));
            if stored != computed {
                return Err(Problem::Checksum { stored: stored.into(), computed: computed.into() });
            }
        }
        let is_wide = bytes.len() >= 64;
        let word = |low: usize, high: usize| {
            let high = if is_wide { u16_at(bytes, high) } else { 0 };
            u32::from(u16_at(bytes, low)) | u32::from(high) << 16
        };
        let block = |low: usize, high: usize| wide(u32_at(bytes, low), if is_wide { u32_at(bytes, high) } else { 0 });
        // Without checksums, the flags and the number of unused inodes are not kept up to date.
        let flags = if superblock.has_group_csum() { u16_at(bytes, 0x12) } else { 0 };
        let descriptor = Self {
            block_bitmap: block(0x0, 0x20),
            inode_bitmap: block(0x4, 0x24),
            inode_table: block(0x8, 0x28),
            free_clusters: word(0xC, 0x2C),
            unused_inodes: if superblock.has_group_csum() { word(0x1C, 0x32) } else { 0 },
            inodes_uninitialised: flags & INODES_UNINITIALISED != 0,
            blocks_uninitialised: flags & BLOCKS_UNINITIALISED != 0,
            block_bitmap_checksum: word(0x18, 0x38),
            inode_bitmap_checksum: word(0x1A, 0x3A),
        };
        let parts = [
            ("block bitmap", descriptor.block_bitmap, 1),
            ("inode bitmap", descriptor.inode_bitmap, 1),
            ("inode table", descriptor.inode_table, superblock.inode_table_blocks()),
        ];
        for (name, start, length) in parts {
            let fits = start.checked_add(length).is_some_and(|end| end <= superblock.blocks);
            if start <= superblock.own_block() || !fits {
                let text = format!("the {name} of group {group} would start at block {start} of {}", superblock.blocks);
                return Err(text.into());
            }
        }
        if descriptor.unused_inodes > superblock.group_inodes {
            return Err(format!(
                "group {group} would have {} unused inodes of {}",
                descriptor.unused_inodes, superblock.group_inodes
            )
            .into());
        }
        Ok(descriptor)
    }

    /// The number of inodes from the start of the table that may be in use.
    pub(crate) fn used_span(&self, superblock: &Superblock) -> u32 {
        if self.inodes_uninitialised { 0 } else { superblock.group_inodes - self.unused_inodes }
    }
}

fn compute_checksum(bytes: &[u8], group: u32, superblock: &Superblock) -> u16 {
    let (before, behind) = (bytes.get(..0x1E).unwrap_or(bytes), bytes.get(0x20..).unwrap_or(&[]));
    if superblock.has_metadata_csum() {
        let crc = crc32c(superblock.checksum_seed, &group.to_le_bytes());
        let crc = crc32c(crc32c(crc, before), &[0, 0]); // the checksum itself counts as zero
        return crc32c(crc, behind) as u16;
    }
    let crc = crc16(crc16(!0, &superblock.uuid), &group.to_le_bytes());
    crc16(crc16(crc, before), behind)
}

/// The first two groups, in the order of the device, whose inode tables overlap, with the first
/// shared block.
pub(crate) fn find_overlap(groups: &[Option<GroupDescriptor>], superblock: &Superblock) -> Option<(u32, u32, u64)> {
    let mut tables: Vec<(u64, u32)> =
        (0..).zip(groups).filter_map(|(n, group)| Some((group.as_ref()?.inode_table, n))).collect();
    tables.sort_unstable();
    let blocks = superblock.inode_table_blocks();
    tables.windows(2).find(|pair| pair[0].0 + blocks > pair[1].0).map(|pair| (pair[0].1, pair[1].1, pair[1].0))
}
