//! The tree in memory: one fixed part for each file, packed names and extents.

use senesce_core::Extent;

use super::index::RankIndex;
use crate::{
    Error, ExtentState, FileKind, FileSystem, InodeFlags, InodeRecord, MappedExtent, ReadAt, Report, ScanOptions,
    directory::EntryIterator,
};

/// The options for reading a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// Threads, and the order of entries. The default order is that of the kernel.
    pub scan: ScanOptions,
    /// The number of attempts if the file system changes during a scan. The last result then has a
    /// warning.
    pub attempts: u32,
    /// The memory limit of the tree.
    pub memory_limit_bytes: u64,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { scan: ScanOptions::default(), attempts: 3, memory_limit_bytes: 2 << 30 }
    }
}

/// All files of a file system, with their names and extents.
///
/// Memory: 32 bytes for a file, directory or symlink, 16 for each extent, 6 and the length of the
/// name for each name, and up to twice that during the scan. A million files of one extent with
/// names of 12 bytes need 70 MB.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(super) index: RankIndex,
    pub(super) heads: Vec<Head>,
    extents: Vec<PackedExtent>,
    names: Vec<u8>,
    block_bytes: u64,
    /// The report of the scan.
    pub report: Report,
}

/// The fixed part of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) size_bytes: u64,
    pub(super) modified_seconds: i64,
    /// The index of its first extent. Its extents end where those of the next file start.
    extents: u32,
    pub(super) links: u16,
    pub(super) kind: FileKind,
    marks: u8,
    /// The start of a directory's packed entries. They end where those of the next file start.
    names: u64,
}

/// Mark: the only extent is in the inode.
const INLINE: u8 = 1;
/// Mark: a directory's names are encrypted.
const ENCRYPTED: u8 = 2;

impl Head {
    fn is_inline(&self) -> bool {
        self.marks & INLINE != 0
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.marks & ENCRYPTED != 0
    }
}

/// An extent in blocks.
#[derive(Clone, Copy, Debug)]
struct PackedExtent {
    logical: u32,
    blocks: u32,
    /// Position in blocks; the highest bit is set if it was never written. If inline, position in
    /// bytes.
    physical: u64,
}

/// A bit of a position in blocks, which never needs that bit.
const UNWRITTEN: u64 = 1 << 63;

impl<D: ReadAt> FileSystem<D> {
    /// Reads all files and their names.
    ///
    /// Errors: those of [`FileSystem::collect_inodes`]; the tree needs more memory than the limit.
    /// Cost: that of [`FileSystem::collect_inodes`], for each attempt. Memory: see [`Tree`].
    pub fn collect_tree(&mut self, options: &TreeOptions) -> Result<Tree, Error> {
        self.collect_tree_with(options, &mut |_, _| true)
    }

    /// Reads all files and their names, and passes each record to `show` before the tree packs it.
    /// The tree does not keep all fields of a record.
    ///
    /// In: `show` receives the number of the attempt, from 1 on; records of earlier attempts are
    /// void. If it returns `false`, the scan ends with [`Error::Stopped`].
    pub fn collect_tree_with(
        &mut self,
        options: &TreeOptions,
        show: &mut dyn FnMut(u32, &InodeRecord) -> bool,
    ) -> Result<Tree, Error> {
        let scan = ScanOptions { entries: Some(options.scan.entries.unwrap_or_default()), ..options.scan };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut tree = Tree { block_bytes: self.superblock().block_bytes, ..Tree::default() };
            let report = self.try_collect_inodes(&scan, &mut |record| {
                let inode = record.inode;
                if !show(attempts, &record) {
                    return Err(Error::Stopped { inode });
                }
                tree.push(record);
                match tree.memory_bytes() > options.memory_limit_bytes {
                    true => Err(Error::MemoryLimit { limit_bytes: options.memory_limit_bytes, inode }),
                    false => Ok(()),
                }
            })?;
            if !report.has_changed() || attempts >= options.attempts {
                tree.report = Report { attempts, ..report };
                return Ok(tree);
            }
            self.refresh()?;
        }
    }
}

impl Tree {
    /// The number of files, directories and symlinks, with or without a name.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The memory of the tree, bytes.
    pub fn memory_bytes(&self) -> u64 {
        let parts = [
            self.heads.capacity() * size_of::<Head>(),
            self.extents.capacity() * size_of::<PackedExtent>(),
            self.names.capacity(),
            self.index.memory_bytes(),
        ];
        parts.iter().map(|&bytes| bytes as u64).sum()
    }

    /// Adds a record. Its inode number must be greater than all earlier ones.
    fn push(&mut self, record: InodeRecord) {
        let inline = record.extents.first().is_some_and(|mapped| mapped.state == ExtentState::Inline);
        let encrypted = record.flags.contains(InodeFlags::ENCRYPTED);
        self.index.push(record.inode);
        self.heads.push(Head {
            size_bytes: record.size_bytes,
            modified_seconds: record.modified.seconds,
            extents: self.extents.len() as u32,
            links: record.links,
            kind: record.kind,
            marks: if inline { INLINE } else { 0 } | if encrypted { ENCRYPTED } else { 0 },
            names: self.names.len() as u64,
        });
        for MappedExtent { extent, state } in record.extents {
            let Extent { logical, physical, length } = extent;
            if inline {
                self.extents.push(PackedExtent { logical: 0, blocks: length as u32, physical });
                continue;
            }
            let mark = if state == ExtentState::Unwritten { UNWRITTEN } else { 0 };
            let (logical, physical) = (logical / self.block_bytes, physical / self.block_bytes);
            let blocks = length / self.block_bytes; // both fit: a file has at most 2^32 blocks
            self.extents.push(PackedExtent {
                logical: logical as u32,
                blocks: blocks as u32,
                physical: physical | mark,
            });
        }
        if let Some(entries) = &record.entries {
            self.names.extend_from_slice(entries.packed());
        }
    }

    /// The extents of the file at a place.
    pub(super) fn extents(&self, place: usize) -> impl Iterator<Item = MappedExtent> + use<'_> {
        let head = self.heads.get(place);
        let from = head.map_or(0, |head| head.extents as usize);
        let to = self.heads.get(place + 1).map_or(self.extents.len(), |next| next.extents as usize);
        let inline = head.is_some_and(Head::is_inline);
        let block_bytes = if inline { 1 } else { self.block_bytes };
        self.extents[from..to].iter().map(move |packed| MappedExtent {
            extent: Extent {
                logical: u64::from(packed.logical) * block_bytes,
                physical: (packed.physical & !UNWRITTEN) * block_bytes,
                length: u64::from(packed.blocks) * block_bytes,
            },
            state: match (inline, packed.physical & UNWRITTEN != 0) {
                (true, _) => ExtentState::Inline,
                (_, true) => ExtentState::Unwritten,
                _ => ExtentState::Written,
            },
        })
    }

    /// The entries of the directory at a place.
    pub(super) fn entries(&self, place: usize) -> EntryIterator<'_> {
        let from = self.heads.get(place).map_or(0, |head| head.names as usize);
        let to = self.heads.get(place + 1).map_or(self.names.len(), |next| next.names as usize);
        EntryIterator(&self.names[from..to])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_documented_sizes() {
        assert_eq!((size_of::<Head>(), size_of::<PackedExtent>()), (32, 16));
    }
}
