//! The units of a scan: some thousand inodes of one group's table.

use crate::{FileSystem, ReadAt};

/// Table bytes of one unit.
const UNIT_BYTES: usize = 1 << 20;

/// A part of a group's inode table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) group: u32,
    /// The place of its first inode in the table.
    pub(super) first: u32,
    pub(super) count: u32,
}

/// All parts of all tables that may hold inodes in use, in the order of inode numbers.
///
/// Cost: 12 bytes for each MiB of inodes.
pub(super) fn plan_units<D: ReadAt>(fs: &FileSystem<D>) -> Vec<Unit> {
    let inodes = (UNIT_BYTES / fs.superblock.inode_bytes).max(16) as u32;
    let mut units = Vec::new();
    for (group, descriptor) in (0..).zip(&fs.groups) {
        let span = descriptor.as_ref().map_or(0, |descriptor| descriptor.used_span(&fs.superblock));
        let firsts = (0..span).step_by(inodes as usize);
        units.extend(firsts.map(|first| Unit { group, first, count: inodes.min(span - first) }));
    }
    units
}
