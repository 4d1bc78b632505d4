//! ext4: inode tables, which the kernel reads ahead in aligned windows, and blocks of extent trees.

use std::{collections::HashMap, fs::File, path::Path};

use senesce_ext4::{FileSystem, InodeRecord, ScanOptions, Superblock};
use senesce_probe::collect::Surveyed;

use super::{Metadata, PAGE_BYTES, Piece, add_directory_blocks};

/// The default of `inode_readahead_blks`: the blocks of an inode table that the kernel reads
/// together.
const WINDOW_BLOCKS: u64 = 32;
/// The inode of the root directory. A mount reads it.
const ROOT_INODE: u64 = 2;

/// The places of ext4 metadata, by inode.
pub(crate) struct Ext4Metadata {
    block_bytes: u64,
    inode_bytes: u64,
    group_inodes: u64,
    /// For each group, the position of its inode table, and the number of inodes that were ever
    /// used.
    tables: HashMap<u64, Table>,
    /// Positions of the blocks of extent trees, by inode.
    maps: HashMap<u64, Vec<u64>>,
}

#[derive(Clone, Copy)]
struct Table {
    start: u64,
    used: u64,
}

impl Ext4Metadata {
    pub(super) fn open(device: &Path, threads: usize) -> Result<Self, String> {
        let file = File::open(device).map_err(|error| format!("{} cannot be read: {error}", device.display()))?;
        let fs = FileSystem::open(file).map_err(|error| error.to_string())?;
        let mut this = Self::new(fs.superblock());
        let options = ScanOptions { threads: threads.max(1), entries: None };
        fs.collect_inodes(&options, &mut |record| this.add(&record)).map_err(|error| error.to_string())?;
        Ok(this)
    }

    /// Starts without inodes.
    pub(crate) fn new(superblock: &Superblock) -> Self {
        Self {
            block_bytes: superblock.block_bytes,
            inode_bytes: superblock.inode_bytes as u64,
            group_inodes: u64::from(superblock.group_inodes).max(1),
            tables: HashMap::new(),
            maps: HashMap::new(),
        }
    }

    /// Records an inode in use, and the blocks of its map.
    pub(crate) fn add(&mut self, record: &InodeRecord) {
        let number = u64::from(record.inode);
        self.add_inode(number, record.position_bytes);
        if !record.map_blocks_bytes.is_empty() {
            self.maps.insert(number, record.map_blocks_bytes.clone());
        }
    }

    /// Records an inode in use.
    fn add_inode(&mut self, number: u64, position: u64) {
        let Some(index) = number.checked_sub(1) else { return };
        let (group, at) = (index / self.group_inodes, index % self.group_inodes);
        let start = position.saturating_sub(at * self.inode_bytes);
        let table = self.tables.entry(group).or_insert(Table { start, used: 0 });
        table.used = table.used.max(at + 1);
    }

    /// The range that the kernel fetches for an inode: the aligned window of its block and the
    /// first block of the next window, within the part of the table that was ever used. Source:
    /// `__ext4_get_inode_loc` in the kernel's fs/ext4/inode.c.
    fn inode_piece(&self, number: u64) -> Option<Piece> {
        let index = number.checked_sub(1)?;
        let table = self.tables.get(&(index / self.group_inodes))?;
        let position = table.start + index % self.group_inodes * self.inode_bytes;
        let block = position / self.block_bytes;
        let (first, last) = (block - block % WINDOW_BLOCKS, block - block % WINDOW_BLOCKS + WINDOW_BLOCKS);
        let used_end = (table.start + table.used * self.inode_bytes).div_ceil(self.block_bytes);
        let start = first.max(table.start / self.block_bytes);
        let end = (last + 1).min(used_end).max(block + 1);
        Some(Piece { wanted: position, start: start * self.block_bytes, length: (end - start) * self.block_bytes })
    }
}

impl Metadata for Ext4Metadata {
    fn mounted(&self) -> Vec<Piece> {
        self.inode_piece(ROOT_INODE).into_iter().collect()
    }

    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>) {
        pieces.extend(self.inode_piece(entry.inode));
        let map = self.maps.get(&entry.inode).into_iter().flatten();
        pieces.extend(map.map(|&block| Piece::whole(block, self.block_bytes)));
        add_directory_blocks(entry, pieces);
    }

    fn packed_bytes(&self, _entry: &Surveyed) -> u64 {
        self.inode_bytes
    }

    fn unit_bytes(&self) -> u64 {
        (WINDOW_BLOCKS * self.block_bytes).next_multiple_of(PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_inode_with_used_window_and_next_block() {
        let mut ext4 = Ext4Metadata {
            block_bytes: 4096,
            inode_bytes: 256,
            group_inodes: 1024, // a table of 64 blocks
            tables: HashMap::new(),
            maps: HashMap::new(),
        };
        // The table starts at block 40. Inodes up to 800 are in use, and the last one is in block
        // 40 + 49.
        ext4.add_inode(1024 + 800, 40 * 4096 + 799 * 256);
        let piece =
            |number| ext4.inode_piece(number).map(|piece| (piece.wanted, piece.start / 4096, piece.length / 4096));
        assert_eq!(
            piece(1024 + 1),
            Some((40 * 4096, 40, 25)),
            "from the table's start to the window's end and one more"
        );
        assert_eq!(piece(1024 + 400), Some((40 * 4096 + 399 * 256, 64, 26)), "to the last block in use");
        assert_eq!(piece(1024 + 1024), Some((40 * 4096 + 1023 * 256, 96, 8)), "its own block in any case");
        assert_eq!(piece(5), None, "a group of which nothing is known");
        assert_eq!(piece(0), None);
    }
}
