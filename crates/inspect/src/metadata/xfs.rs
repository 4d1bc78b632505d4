//! XFS: clusters of inodes, whose places follow from their numbers; blocks of directories and of
//! extent trees, which the inodes name.
//!
//! Source: the kernel's fs/xfs/libxfs/xfs_format.h. Changes that a mounted XFS has only in its log
//! are not visible. An inode with another number, or a block that is not part of a tree, adds
//! nothing.

use std::path::Path;

use senesce_probe::collect::{EntryKind, Surveyed};

use super::{CopyPlaces, Metadata, Piece, Regions, device::Device};

/// The number of inodes that are read together, whatever their size.
const CLUSTER_INODES: u64 = 32;
/// The map of a file with fewer extents always fits into its inode.
const FEW_EXTENTS: usize = 8;
/// The largest number of levels of a tree.
const MAX_LEVELS: u16 = 9;
/// The largest number of blocks of a tree that the walk follows.
const MAX_BLOCKS: usize = 100_000;

/// The geometry of an XFS, from its superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    block_bytes: u64,
    /// Blocks of an allocation group.
    group_blocks: u64,
    groups: u64,
    /// Bits of a block number within its group.
    group_block_bits: u32,
    inode_bytes: u64,
    /// Bits of an inode number within its block.
    block_inode_bits: u32,
    /// Bytes of a directory block.
    directory_block_bytes: u64,
    root_inode: u64,
    /// Whether inodes have the wider field for the number of extents.
    has_wide_counts: bool,
}

impl Geometry {
    /// Parses the superblock. `None` if it is not of version 5, or inconsistent.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let shift = |at: usize| bytes.get(at).map(|&bits| u32::from(bits)).filter(|bits| *bits < 32);
        let block_bits = shift(120)?;
        let this = Self {
            block_bytes: u64::from(u32_at(bytes, 4)?),
            group_blocks: u64::from(u32_at(bytes, 84)?),
            groups: u64::from(u32_at(bytes, 88)?),
            group_block_bits: shift(124)?,
            inode_bytes: u64::from(u16_at(bytes, 104)?),
            block_inode_bits: shift(123)?,
            directory_block_bytes: 1 << (block_bits + shift(192).filter(|bits| *bits <= 8)?),
            root_inode: u64_at(bytes, 56)?,
            has_wide_counts: u32_at(bytes, 216)? & 0x20 != 0,
        };
        let is_sound = bytes.starts_with(b"XFSB")
            && u16_at(bytes, 100)? & 0xF == 5
            && (512..=65536).contains(&this.block_bytes)
            && this.block_bytes == 1 << block_bits
            && (256..=2048).contains(&this.inode_bytes)
            && this.inode_bytes << this.block_inode_bits == this.block_bytes
            && this.group_blocks <= 1 << this.group_block_bits;
        is_sound.then_some(this)
    }

    /// The byte at which a block starts. `None` if the block does not exist.
    fn block(&self, number: u64) -> Option<u64> {
        let (group, block) = (number >> self.group_block_bits, number & ((1 << self.group_block_bits) - 1));
        let is_there = group < self.groups && block < self.group_blocks;
        is_there.then(|| (group * self.group_blocks + block) * self.block_bytes)
    }

    /// The byte at which an inode starts.
    fn inode(&self, number: u64) -> Option<u64> {
        let within = number & ((1 << self.block_inode_bits) - 1);
        Some(self.block(number >> self.block_inode_bits)? + within * self.inode_bytes)
    }

    /// The inodes that are read together with this one. Clusters are aligned within the group.
    fn cluster(&self, number: u64) -> Option<Piece> {
        let blocks = (CLUSTER_INODES * self.inode_bytes / self.block_bytes).max(1);
        let block = number >> self.block_inode_bits;
        let within = block & ((1 << self.group_block_bits) - 1);
        let start = self.block(block - within % blocks)?;
        Some(Piece { wanted: self.inode(number)?, start, length: blocks * self.block_bytes })
    }
}

/// Metadata of a mounted XFS.
#[derive(Debug)]
pub(super) struct XfsMetadata {
    geometry: Geometry,
    device: Device,
}

impl XfsMetadata {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let device = Device::open(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let start = device.read(0, 512).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let geometry = Geometry::parse(&start).ok_or("its superblock is not one of XFS version 5")?;
        Ok(Self { geometry, device })
    }

    /// The inode as it is on the device. `None` if the device has another inode there.
    fn inode(&mut self, number: u64) -> Option<Vec<u8>> {
        let cluster = self.geometry.cluster(number)?;
        let bytes = self.device.read_kept(cluster.start, cluster.length as usize).ok()?;
        let at = (cluster.wanted - cluster.start) as usize;
        let inode = bytes.get(at..at + self.geometry.inode_bytes as usize)?;
        let is_it = inode.starts_with(b"IN") && inode.get(4) == Some(&3) && u64_at(inode, 152)? == number;
        is_it.then(|| inode.to_vec())
    }

    /// The map of an inode's content: the blocks of its tree in the order of reading, and its
    /// extents.
    fn map(&self, inode: &[u8]) -> Option<Map> {
        let count = if self.geometry.has_wide_counts { u64_at(inode, 24)? } else { u64::from(u32_at(inode, 76)?) };
        let fork = u64::from(*inode.get(82)?) * 8;
        let end = if fork == 0 { inode.len() } else { (INODE_HEADER + fork as usize).min(inode.len()) };
        let area = inode.get(INODE_HEADER..end)?;
        let mut map = Map::default();
        match inode.get(5)? {
            2 => map.add_extents(area, count as usize),
            3 => {
                let (level, records) = (u16_at(area, 0)?, usize::from(u16_at(area, 2)?));
                let pointers = 4 + area.len().saturating_sub(4) / 16 * 8;
                self.walk(area.get(pointers..)?, records, level.min(MAX_LEVELS), &mut map);
            }
            _ => {}
        }
        Some(map)
    }

    /// Follows the pointers to blocks of `level - 1`.
    fn walk(&self, pointers: &[u8], count: usize, level: u16, map: &mut Map) {
        for pointer in pointers.chunks_exact(8).take(count) {
            let Some(start) = u64_at(pointer, 0).and_then(|number| self.geometry.block(number)) else { continue };
            let Ok(block) = self.device.read(start, self.geometry.block_bytes as usize) else { continue };
            let (Some(at), Some(records)) = (u16_at(&block, 4), u16_at(&block, 6)) else { continue };
            if !block.starts_with(b"BMA3") || at + 1 != level || map.blocks.len() >= MAX_BLOCKS {
                continue;
            }
            map.blocks.push(start);
            let area = &block[TREE_HEADER..];
            if at == 0 {
                map.add_extents(area, usize::from(records));
            } else {
                self.walk(&area[area.len() / 16 * 8..], usize::from(records), at, map);
            }
        }
    }
}

/// The offset of the index of free space in the address space of a directory, bytes.
const DIRECTORY_FREE_BYTES: u64 = 64 << 30;
/// Bytes of an inode before its data fork.
const INODE_HEADER: usize = 176;
/// Bytes of an extent tree block before its records.
const TREE_HEADER: usize = 72;

/// The contents of an inode's map.
#[derive(Debug, Default)]
struct Map {
    /// Positions of the blocks of the tree.
    blocks: Vec<u64>,
    /// Extents: block in the file, block number, number of blocks.
    extents: Vec<(u64, u64, u64)>,
}

impl Map {
    fn add_extents(&mut self, area: &[u8], count: usize) {
        for record in area.chunks_exact(16).take(count) {
            let (Some(high), Some(low)) = (u64_at(record, 0), u64_at(record, 8)) else { continue };
            let logical = (high << 1) >> 10; // below the flag, 54 bits
            let block = (high & 0x1FF) << 43 | low >> 21;
            self.extents.push((logical, block, low & 0x1F_FFFF));
        }
    }
}

impl Metadata for XfsMetadata {
    fn mounted(&self) -> Vec<Piece> {
        self.geometry.cluster(self.geometry.root_inode).into_iter().collect()
    }

    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>) {
        pieces.extend(self.geometry.cluster(entry.inode));
        let is_directory = entry.kind == EntryKind::Directory;
        if !is_directory && entry.extents.len() < FEW_EXTENTS {
            return;
        }
        let Some(map) = self.inode(entry.inode).and_then(|inode| self.map(&inode)) else { return };
        let block_bytes = self.geometry.block_bytes;
        pieces.extend(map.blocks.iter().map(|&block| Piece::whole(block, block_bytes)));
        if is_directory {
            // First the blocks that a listing reads, then those that a name lookup reads: they are
            // at higher offsets of the directory. Each is a read of its own. Blocks at still higher
            // offsets are needed only to add names.
            let is_read = |extent: &(u64, u64, u64)| extent.0 < DIRECTORY_FREE_BYTES / block_bytes;
            for (_, block, blocks) in map.extents.into_iter().filter(is_read) {
                let Some(start) = self.geometry.block(block) else { continue };
                let step = self.geometry.directory_block_bytes;
                let length = blocks.min(self.geometry.group_blocks) * block_bytes;
                pieces.extend((0..length).step_by(step as usize).map(|at| Piece::whole(start + at, step)));
            }
        }
    }

    fn packed_bytes(&self, _entry: &Surveyed) -> u64 {
        self.geometry.inode_bytes
    }

    fn unit_bytes(&self) -> u64 {
        (CLUSTER_INODES * self.geometry.inode_bytes).max(self.geometry.block_bytes)
    }

    /// Every new directory goes to the next allocation group, with the inodes and contents of its
    /// files.
    fn copy_places(&self) -> CopyPlaces {
        let Geometry { groups, group_blocks, block_bytes, .. } = self.geometry;
        CopyPlaces::Regions(Regions { count: groups.max(1), bytes: group_blocks * block_bytes })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A superblock as mkfs makes it on 640 MiB.
    fn superblock() -> Vec<u8> {
        let mut bytes = vec![0; 512];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"XFSB");
        put(4, &4096u32.to_be_bytes());
        put(56, &128u64.to_be_bytes());
        put(84, &40960u32.to_be_bytes());
        put(88, &4u32.to_be_bytes());
        put(100, &0xB4A5u16.to_be_bytes());
        put(104, &512u16.to_be_bytes());
        put(120, &[12, 9, 9, 3, 16]);
        bytes
    }

    #[test]
    fn inode_number_determines_its_place() {
        let geometry = Geometry::parse(&superblock()).unwrap();
        assert_eq!(geometry.inode(128), Some(16 * 4096));
        // Group 2, block 21 of it, the sixth inode. It is read with the four blocks from 20 on.
        let number = (2 << 16 | 21) << 3 | 5;
        let block = 2 * 40960 + 21;
        let cluster = Piece { wanted: block * 4096 + 5 * 512, start: (block - 1) * 4096, length: 16384 };
        assert_eq!(geometry.cluster(number), Some(cluster));
        assert_eq!(geometry.cluster(5 << 19), None, "there is no such group");
    }

    #[test]
    fn extents_are_unpacked() {
        // Unwritten; block 0x1234 in the file; block 3 << 43 | 77; 5 blocks.
        let high: u64 = 1 << 63 | 0x1234 << 9 | 3;
        let low: u64 = 77 << 21 | 5;
        let mut map = Map::default();
        map.add_extents(&[high.to_be_bytes(), low.to_be_bytes()].concat(), 9);
        assert_eq!(map.extents, [(0x1234, 3 << 43 | 77, 5)]);
    }

    proptest! {
        #[test]
        fn damaged_superblock_is_refused_or_stays_in_bounds(at in 0usize..230, value: u8, number: u64) {
            let mut bytes = superblock();
            bytes[at] = value;
            if let Some(geometry) = Geometry::parse(&bytes) {
                let device_bytes = geometry.groups * geometry.group_blocks * geometry.block_bytes;
                for number in [number, number >> 32, number >> 44] {
                    prop_assert!(geometry.inode(number).is_none_or(|at| at < device_bytes));
                    geometry.cluster(number);
                }
            }
        }
    }
}
