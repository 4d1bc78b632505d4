//! Free space, from the block bitmaps.
//!
//! Source: the kernel's documentation of the format, "Block and Inode Bitmaps". The contents of a
//! group whose bitmap was never written follow from "Layout" and "Meta Block Groups". Tests compare
//! with `e2freefrag`.

use crate::{
    Error, FileSystem, ReadAt, Report, Warning,
    bitmap::{BitmapKind, BitmapReader, visit_zero_runs},
    scan::compute_change_warning,
};

/// A run of free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FreeExtent {
    /// Its start, bytes from the start of the device.
    pub start_bytes: u64,
    /// Its length, bytes.
    pub length_bytes: u64,
}

/// The free space of a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// In the order of the device. Neighbours are merged, also across groups.
    pub extents: Vec<FreeExtent>,
    /// Warnings about it. The numbers of inodes are 0.
    pub report: Report,
}

impl FreeSpace {
    /// The sum of all extents, bytes.
    pub fn total_bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.length_bytes).sum()
    }
}

impl<D: ReadAt> FileSystem<D> {
    /// Reads the free extents.
    ///
    /// Blocks of the journal are in use, and blocks reserved for root are free. On a mounted file
    /// system the result is the state of the device, without changes that are only in memory.
    /// Errors: a bitmap cannot be read; damage, with its block, if it is not reported. If damage is
    /// reported, a damaged group counts as used. Cost: reads one block per group; 16 bytes for each
    /// extent.
    pub fn collect_free_space(&self) -> Result<FreeSpace, Error> {
        let report = Report { warnings: self.warnings(), attempts: 1, ..Report::default() };
        let mut free = FreeSpace { extents: Vec::new(), report };
        let mut damage = self.damage.clone();
        let mut reader = BitmapReader::new(BitmapKind::Blocks);
        let mut differing: Option<Warning> = None;
        let metadata = self.find_metadata_of_uninitialised();
        for (group, descriptor) in (0..).zip(&self.groups) {
            let Some(descriptor) = descriptor else { continue };
            let bits = (self.superblock.group_end(group) - self.superblock.group_start(group))
                .div_ceil(self.superblock.cluster_blocks);
            let computed;
            let bitmap = if descriptor.blocks_uninitialised {
                computed = self.compute_uninitialised(group, bits, &metadata);
                &computed
            } else {
                match reader.read(self, group, descriptor)? {
                    Ok(bitmap) => bitmap,
                    Err(found) if self.reports_damage() => {
                        damage.add(found);
                        continue;
                    }
                    Err(found) => return Err(found.into()),
                }
            };
            let mut clusters = 0;
            visit_zero_runs(bitmap, bits, |start, length| {
                clusters += length;
                self.push_clusters(&mut free.extents, group, start, length);
            });
            let described = u64::from(descriptor.free_clusters);
            if clusters != described {
                match &mut differing {
                    Some(Warning::FreeCountsDiffer { groups, .. }) => *groups += 1,
                    _ => {
                        differing = Some(Warning::FreeCountsDiffer {
                            groups: 1,
                            first_group: group,
                            described,
                            counted: clusters,
                        });
                    }
                }
            }
        }
        free.report.warnings.extend(differing);
        self.finish_report(&mut free.report, damage);
        let (superblock, groups) = self.find_changes()?;
        free.report.warnings.extend(compute_change_warning(superblock, groups));
        Ok(free)
    }

    fn push_clusters(&self, extents: &mut Vec<FreeExtent>, group: u32, start: u64, length: u64) {
        let superblock = &self.superblock;
        let first = superblock.group_start(group) + start * superblock.cluster_blocks;
        let end = (first + length * superblock.cluster_blocks).min(superblock.blocks);
        let start_bytes = first * superblock.block_bytes;
        let length_bytes = (end - first) * superblock.block_bytes;
        match extents.last_mut() {
            Some(last) if last.start_bytes + last.length_bytes == start_bytes => last.length_bytes += length_bytes,
            _ => extents.push(FreeExtent { start_bytes, length_bytes }),
        }
    }

    /// Blocks of bitmaps and inode tables in groups whose bitmap was never written, sorted, as
    /// start and length.
    fn find_metadata_of_uninitialised(&self) -> Vec<(u64, u64)> {
        let table = self.superblock.inode_table_blocks();
        let is_uninitialised = |block: u64| {
            let group = block.saturating_sub(self.superblock.first_data_block) / self.superblock.group_blocks;
            let descriptor = self.groups.get(group as usize).copied().flatten();
            descriptor.is_some_and(|descriptor| descriptor.blocks_uninitialised)
        };
        let mut metadata: Vec<(u64, u64)> = self
            .groups
            .iter()
            .flatten()
            .flat_map(|group| [(group.block_bitmap, 1), (group.inode_bitmap, 1), (group.inode_table, table)])
            .filter(|&(start, length)| is_uninitialised(start) || is_uninitialised(start + length - 1))
            .collect();
        metadata.sort_unstable();
        metadata
    }

    /// The bitmap of a group that holds only metadata.
    fn compute_uninitialised(&self, group: u32, bits: u64, metadata: &[(u64, u64)]) -> Vec<u8> {
        let superblock = &self.superblock;
        let (from, to) = (superblock.group_start(group), superblock.group_end(group));
        let mut bitmap = vec![0u8; bits.div_ceil(8) as usize];
        let mut mark = |start: u64, end: u64| {
            let (start, end) = (start.max(from), end.min(to));
            if start < end {
                for bit in (start - from) / superblock.cluster_blocks..=(end - 1 - from) / superblock.cluster_blocks {
                    bitmap[(bit / 8) as usize] |= 1 << (bit % 8);
                }
            }
        };
        let table = superblock.inode_table_blocks();
        // A table may start in the previous group.
        let first = metadata.partition_point(|&(start, _)| start + table < from);
        for &(start, length) in metadata[first..].iter().take_while(|&&(start, _)| start < to) {
            mark(start, start + length);
        }
        mark(from, from + superblock.leading_blocks(group));
        bitmap
    }
}
