//! The superblock: the description of the file system, checked before it is used.
//!
//! Source: the kernel's documentation of the format, "The super block".

use crate::{
    Damage, Error, Owner, Problem, Structure,
    bytes::{u8_at, u16_at, u32_at, wide},
    checksum::crc32c,
    features::{compat, compute_unknown, incompat, ro_compat},
};

/// Position of the superblock, bytes from the start of the device.
pub(crate) const SUPERBLOCK_OFFSET_BYTES: u64 = 1024;
/// Its length, bytes.
pub(crate) const SUPERBLOCK_BYTES: usize = 1024;

const MAGIC: u16 = 0xEF53;
const STATE_CLEAN: u16 = 1;
const STATE_ERRORS: u16 = 2;
const CRC32C_TYPE: u8 = 1;

/// The fields of the superblock, as plain numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Length of a block, bytes: a power of two from 1,024 to 65,536.
    pub block_bytes: u64,
    /// Blocks of a cluster, the unit of allocation; 1 without bigalloc.
    pub cluster_blocks: u64,
    /// Blocks of the file system.
    pub blocks: u64,
    /// The block with which group 0 starts.
    pub first_data_block: u64,
    /// Blocks of a group (the last may have fewer).
    pub group_blocks: u64,
    /// Inodes of a group.
    pub group_inodes: u32,
    /// Number of groups.
    pub groups: u32,
    /// Number of inodes, used or not. It is the highest inode number.
    pub inodes: u32,
    /// The first inode number that is not reserved.
    pub first_inode: u32,
    /// Length of an inode, bytes.
    pub inode_bytes: usize,
    /// Length of a group descriptor, bytes.
    pub descriptor_bytes: usize,
    /// Free blocks; out of date while the file system is mounted.
    pub free_blocks: u64,
    /// Free inodes; out of date while the file system is mounted.
    pub free_inodes: u32,
    /// Clusters of its own structures, which `statfs` leaves out of the capacity; 0 if it does not
    /// have the number.
    pub overhead_clusters: u64,
    /// Time of its creation, seconds since 1970.
    pub made_unix_seconds: u64,
    /// Time of the last mount, seconds since 1970.
    pub mounted_unix_seconds: u64,
    /// Time of the last write of the superblock, seconds since 1970.
    pub written_unix_seconds: u64,
    /// Its UUID.
    pub uuid: [u8; 16],
    /// Its label, without the zeros at the end.
    pub label: Vec<u8>,
    /// Whether the journal is not replayed: mounted for writing now, or not unmounted before the
    /// image was copied.
    pub needs_recovery: bool,
    /// Whether it has the mark of a clean unmount. With a journal it has the mark while it is
    /// mounted, too.
    pub clean: bool,
    /// Whether the kernel recorded errors of its metadata.
    pub errors_recorded: bool,
    /// Groups that hold copies of the superblock instead of the usual ones (`sparse_super2`).
    pub(crate) backup_groups: [u32; 2],
    pub(crate) compat: u32,
    pub(crate) incompat: u32,
    pub(crate) ro_compat: u32,
    pub(crate) reserved_descriptor_blocks: u64,
    pub(crate) first_meta_group: u64,
    pub(crate) hash_seed: [u32; 4],
    pub(crate) default_hash: u8,
    pub(crate) flags: u32,
    pub(crate) checksum_seed: u32,
}

impl Superblock {
    /// Parses the 1,024 bytes of a superblock.
    ///
    /// Errors: not ext4; features that this version cannot read; damage, with block 0 or 1.
    pub fn parse(bytes: &[u8], verify_checksum: bool) -> Result<Self, Error> {
        let magic = u16_at(bytes, 0x38);
        if magic != MAGIC || bytes.len() < SUPERBLOCK_BYTES {
            return Err(Error::NotExt4 { found: magic });
        }
        let revision = u32_at(bytes, 0x4C);
        let (compat, incompat, ro_compat) = match revision {
            0 => (0, 0, 0),
            _ => (u32_at(bytes, 0x5C), u32_at(bytes, 0x60), u32_at(bytes, 0x64)),
        };
        let log_block = u32_at(bytes, 0x18);
        let block = if log_block == 0 { 1 } else { 0 };
        let damaged = |problem: Problem| {
            Error::Damaged(Damage { block, structure: Structure::Superblock, owner: Owner::FileSystem, problem })
        };
        if ro_compat & ro_compat::METADATA_CSUM != 0 && verify_checksum {
            let (stored, computed) = (u32_at(bytes, 0x3FC), crc32c(!0, &bytes[..0x3FC]));
            if stored != computed {
                return Err(damaged(Problem::Checksum { stored, computed }));
            }
            if u8_at(bytes, 0x175) != CRC32C_TYPE {
                return Err(damaged(format!("its checksum type is {}, not 1 (CRC-32C)", u8_at(bytes, 0x175)).into()));
            }
        }
        if let Some(features) = compute_unknown(incompat) {
            return Err(Error::UnknownFeatures { features });
        }
        if log_block > 6 {
            let log_bytes = u64::from(log_block) + 10;
            return Err(damaged(format!("its block length is 2^{log_bytes} bytes, more than 65,536").into()));
        }
        let is_64bit = incompat & incompat::IS_64BIT != 0;
        let high = |at| if is_64bit { u32_at(bytes, at) } else { 0 };
        let bigalloc = ro_compat & ro_compat::BIGALLOC != 0;
        let log_cluster = if bigalloc { u32_at(bytes, 0x1C) } else { log_block };
        if log_cluster < log_block || log_cluster > 20 {
            return Err(damaged(format!("its cluster length is 2^{} bytes", u64::from(log_cluster) + 10).into()));
        }
        let cluster_blocks = 1u64 << (log_cluster - log_block);
        let uuid: [u8; 16] = bytes[0x68..0x78].try_into().unwrap_or_default();
        let mut superblock = Self {
            block_bytes: 1024 << log_block,
            cluster_blocks,
            blocks: wide(u32_at(bytes, 0x4), high(0x150)),
            first_data_block: u64::from(u32_at(bytes, 0x14)),
            group_blocks: u64::from(u32_at(bytes, 0x20)),
            group_inodes: u32_at(bytes, 0x28),
            groups: 0,
            inodes: u32_at(bytes, 0x0),
            first_inode: if revision == 0 { 11 } else { u32_at(bytes, 0x54) },
            inode_bytes: if revision == 0 { 128 } else { usize::from(u16_at(bytes, 0x58)) },
            descriptor_bytes: if is_64bit { usize::from(u16_at(bytes, 0xFE)) } else { 32 },
            free_blocks: wide(u32_at(bytes, 0xC), high(0x158)),
            free_inodes: u32_at(bytes, 0x10),
            overhead_clusters: u64::from(u32_at(bytes, 0x248)),
            made_unix_seconds: wide(u32_at(bytes, 0x108), u32::from(u8_at(bytes, 0x276))),
            mounted_unix_seconds: wide(u32_at(bytes, 0x2C), u32::from(u8_at(bytes, 0x275))),
            written_unix_seconds: wide(u32_at(bytes, 0x30), u32::from(u8_at(bytes, 0x274))),
            uuid,
            label: bytes[0x78..0x88].iter().copied().take_while(|&byte| byte != 0).collect(),
            needs_recovery: incompat & incompat::RECOVER != 0,
            clean: u16_at(bytes, 0x3A) & STATE_CLEAN != 0,
            errors_recorded: u16_at(bytes, 0x3A) & STATE_ERRORS != 0,
            backup_groups: [u32_at(bytes, 0x24C), u32_at(bytes, 0x250)],
            compat,
            incompat,
            ro_compat,
            reserved_descriptor_blocks: u64::from(u16_at(bytes, 0xCE)),
            first_meta_group: u64::from(u32_at(bytes, 0x104)),
            hash_seed: std::array::from_fn(|word| u32_at(bytes, 0xEC + 4 * word)),
            default_hash: u8_at(bytes, 0xFC),
            flags: u32_at(bytes, 0x160),
            checksum_seed: if incompat & incompat::CSUM_SEED != 0 { u32_at(bytes, 0x270) } else { crc32c(!0, &uuid) },
        };
        superblock.check(u64::from(u32_at(bytes, 0x24))).map_err(|text| damaged(text.into()))?;
        Ok(superblock)
    }

    /// Checks for contradictions, and computes the number of groups.
    fn check(&mut self, clusters_per_group: u64) -> Result<(), String> {
        let bits = self.block_bytes * 8;
        if self.inode_bytes < 128 || self.inode_bytes as u64 > self.block_bytes || !self.inode_bytes.is_power_of_two() {
            return Err(format!("its inode length is {} bytes", self.inode_bytes));
        }
        let least_descriptor = if self.has_incompat(incompat::IS_64BIT) { 64 } else { 32 };
        if self.descriptor_bytes < least_descriptor
            || self.descriptor_bytes as u64 > self.block_bytes
            || !self.descriptor_bytes.is_power_of_two()
        {
            return Err(format!("its group descriptors have {} bytes", self.descriptor_bytes));
        }
        if self.group_blocks == 0
            || !self.group_blocks.is_multiple_of(self.cluster_blocks)
            || self.group_blocks / self.cluster_blocks > bits
        {
            return Err(format!(
                "it has {} blocks a group, and clusters of {}",
                self.group_blocks, self.cluster_blocks
            ));
        }
        if self.cluster_blocks > 1 && self.group_blocks != clusters_per_group.saturating_mul(self.cluster_blocks) {
            return Err(format!("it has {} blocks but {clusters_per_group} clusters a group", self.group_blocks));
        }
        let first_allowed = if self.block_bytes == 1024 { 1 } else { 0 };
        if self.first_data_block > first_allowed || self.blocks <= self.first_data_block {
            return Err(format!("it has {} blocks, the first group at {}", self.blocks, self.first_data_block));
        }
        if self.group_inodes == 0 || u64::from(self.group_inodes) > bits || !self.group_inodes.is_multiple_of(8) {
            return Err(format!("it has {} inodes a group", self.group_inodes));
        }
        let groups = (self.blocks - self.first_data_block).div_ceil(self.group_blocks);
        if groups.checked_mul(u64::from(self.group_inodes)) != Some(u64::from(self.inodes)) {
            return Err(format!("{groups} groups of {} inodes are not its {}", self.group_inodes, self.inodes));
        }
        if self.first_inode < 11 || self.first_inode > self.inodes {
            return Err(format!("its first inode that is not reserved is {}", self.first_inode));
        }
        self.groups = groups as u32; // not more than the number of inodes
        Ok(())
    }

    /// Whether the device may be changing, or be in the middle of a change: mounted for writing, or
    /// never unmounted.
    pub fn may_change(&self) -> bool {
        self.needs_recovery || !self.clean
    }

    /// Whether every metadata block has a checksum.
    pub(crate) fn has_metadata_csum(&self) -> bool {
        self.ro_compat & ro_compat::METADATA_CSUM != 0
    }

    /// Whether groups can have bitmaps or inodes that were never initialised.
    pub(crate) fn has_group_csum(&self) -> bool {
        self.ro_compat & (ro_compat::METADATA_CSUM | ro_compat::GDT_CSUM) != 0
    }

    pub(crate) fn has_incompat(&self, feature: u32) -> bool {
        self.incompat & feature != 0
    }

    pub(crate) fn has_ro_compat(&self, feature: u32) -> bool {
        self.ro_compat & feature != 0
    }

    /// Whether directories are sorted, and listed, by the hashes of their names.
    pub(crate) fn has_dir_index(&self) -> bool {
        self.compat & compat::DIR_INDEX != 0
    }

    /// The block of the superblock.
    pub(crate) fn own_block(&self) -> u64 {
        SUPERBLOCK_OFFSET_BYTES / self.block_bytes
    }

    /// The first block of a group.
    pub(crate) fn group_start(&self, group: u32) -> u64 {
        self.first_data_block + u64::from(group) * self.group_blocks
    }

    /// The first block after a group.
    pub(crate) fn group_end(&self, group: u32) -> u64 {
        (self.group_start(group) + self.group_blocks).min(self.blocks)
    }

    /// Blocks of one group's inode table.
    pub(crate) fn inode_table_blocks(&self) -> u64 {
        (u64::from(self.group_inodes) * self.inode_bytes as u64).div_ceil(self.block_bytes)
    }

    fn descriptors_per_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes as u64
    }

    /// Blocks of the whole table of group descriptors.
    pub(crate) fn descriptor_blocks(&self) -> u64 {
        u64::from(self.groups).div_ceil(self.descriptors_per_block())
    }

    /// The place of the `n`th block of group descriptors: after the superblock, or (`meta_bg`) in
    /// the first of the groups that it describes.
    pub(crate) fn descriptor_block(&self, n: u64) -> u64 {
        if !self.has_incompat(incompat::META_BG) || n < self.first_meta_group {
            return self.own_block() + 1 + n;
        }
        let group = (n * self.descriptors_per_block()) as u32; // below the number of groups
        let mut behind = u64::from(self.has_superblock_copy(group));
        if self.block_bytes == 1024 && n == 0 && self.first_data_block == 0 {
            behind += 1; // block 0 is before the superblock
        }
        self.group_start(group) + behind
    }

    /// Whether a group starts with a superblock.
    pub(crate) fn has_superblock_copy(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if self.compat & compat::SPARSE_SUPER2 != 0 {
            return self.backup_groups.contains(&group);
        }
        if group == 1 || !self.has_ro_compat(ro_compat::SPARSE_SUPER) {
            return true;
        }
        [3, 5, 7].iter().any(|&base| {
            let mut power: u64 = base;
            while power < u64::from(group) {
                power *= base;
            }
            power == u64::from(group)
        })
    }

    /// The number of blocks at the start of a group for the superblock and descriptors, with those
    /// reserved for growth.
    pub(crate) fn leading_blocks(&self, group: u32) -> u64 {
        let copy = self.has_superblock_copy(group);
        let meta = self.has_incompat(incompat::META_BG);
        let per_block = self.descriptors_per_block();
        let own = u64::from(group) / per_block;
        if !meta || own < self.first_meta_group {
            let described = if meta { self.first_meta_group } else { self.descriptor_blocks() };
            return if copy { 1 + described + self.reserved_descriptor_blocks } else { 0 };
        }
        // The first, second and last group that a descriptor block describes hold a copy of it.
        let place = u64::from(group) % per_block;
        u64::from(copy) + u64::from(place < 2 || place + 1 == per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The superblock of a file system with 3 groups of 32,768 blocks of 4 KiB. The last group is
    /// short.
    fn example() -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0x0, &(3 * 8192u32).to_le_bytes());
        put(0x4, &(2 * 32_768 + 5000u32).to_le_bytes());
        put(0x18, &2u32.to_le_bytes());
        put(0x20, &32_768u32.to_le_bytes());
        put(0x28, &8192u32.to_le_bytes());
        put(0x38, &[0x53, 0xEF, 1, 0]);
        put(0x4C, &1u32.to_le_bytes());
        put(0x54, &11u32.to_le_bytes());
        put(0x58, &256u16.to_le_bytes());
        put(0x60, &0x42u32.to_le_bytes());
        put(0x64, &0x1u32.to_le_bytes());
        bytes
    }

    #[test]
    fn geometry_follows_from_the_numbers() {
        let superblock = Superblock::parse(&example(), true).unwrap();
        assert_eq!((superblock.groups, superblock.block_bytes, superblock.cluster_blocks), (3, 4096, 1));
        assert_eq!((superblock.group_start(2), superblock.group_end(2)), (65_536, 70_536));
        assert_eq!(superblock.inode_table_blocks(), 512);
        assert_eq!(superblock.descriptor_block(0), 1);
        assert!(!superblock.may_change());
        let with_copies: Vec<u32> = (0..100).filter(|&group| superblock.has_superblock_copy(group)).collect();
        assert_eq!(with_copies, [0, 1, 3, 5, 7, 9, 25, 27, 49, 81]);
    }

    #[test]
    fn contradictions_are_refused_with_the_block() {
        let cases: [(usize, u32, &str); 8] = [
            (0x18, 9, "block length is 2^19"),
            (0x18, u32::MAX, "block length is 2^4294967305"),
            (0x20, 0, "blocks a group"),
            (0x20, 40_000, "blocks a group"),
            (0x28, 8190, "inodes a group"),
            (0x0, 8192, "groups of"),
            (0x54, 3, "first inode"),
            (0x14, 1, "first group"),
        ];
        for (at, value, part) in cases {
            let mut bytes = example();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let message = Superblock::parse(&bytes, true).unwrap_err().to_string();
            assert!(message.starts_with("block 0 (superblock): ") && message.contains(part), "{message}");
        }
        assert!(matches!(Superblock::parse(&[0; 1024], true), Err(Error::NotExt4 { found: 0 })));
    }
}
