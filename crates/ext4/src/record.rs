//! The result of a scan for each file, directory and symlink.

use senesce_core::Extent;

use crate::{
    DirectoryEntries, ExtentState, FileKind, InodeFlags, MappedExtent, Timestamp,
    inode::{CONTENT_BYTES, CONTENT_OFFSET_BYTES},
    map::{MapJob, compute_extents},
};

/// The form in which an inode stores the places of its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// An extent tree.
    ExtentTree,
    /// The older map of single blocks, in up to three levels.
    BlockMap,
    /// The contents are in the inode.
    Inline,
    /// A symlink whose target is in the inode.
    FastSymlink,
}

/// A file, directory or symlink: the fields of its inode, and the places of its contents and its
/// map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeRecord {
    /// The inode's number.
    pub inode: u32,
    /// Its file type; never [`FileKind::Special`].
    pub kind: FileKind,
    /// Size of the contents, bytes.
    pub size_bytes: u64,
    /// Bytes allocated to it, with its map and attributes (`st_blocks` × 512).
    pub allocated_bytes: u64,
    /// Number of names. A directory with too many for the field has 1.
    pub links: u16,
    /// The inode's flags.
    pub flags: InodeFlags,
    /// Time of the last change of the contents.
    pub modified: Timestamp,
    /// Time of the last change of the inode.
    pub changed: Timestamp,
    /// Time of its creation, if the inode has space for it.
    pub created: Option<Timestamp>,
    /// Position of the inode, bytes from the start of the device.
    pub position_bytes: u64,
    /// The form of its map.
    pub mapping: Mapping,
    /// The places of the contents, in the order of the file. Neighbours of one state are merged.
    /// Blocks that are reserved after the end of the file are included.
    pub extents: Vec<MappedExtent>,
    /// Positions of the blocks of its map (extent tree or indirect blocks), bytes from the start of
    /// the device, ascending.
    pub map_blocks_bytes: Vec<u64>,
    /// Position of its block of extended attributes, bytes from the start of the device.
    pub attribute_block_bytes: Option<u64>,
    /// The entries of a directory, if they were requested.
    pub entries: Option<DirectoryEntries>,
}

impl InodeRecord {
    /// Makes the record of a finished job.
    pub(crate) fn new(job: MapJob, block_bytes: u64, entries: Option<DirectoryEntries>) -> Self {
        let MapJob { inode, position_bytes, .. } = job;
        let mapping = if inode.flags.contains(InodeFlags::INLINE_DATA) {
            Mapping::Inline
        } else if inode.flags.contains(InodeFlags::EXTENTS) {
            Mapping::ExtentTree
        } else if inode.kind == FileKind::Symlink && job.runs.is_empty() {
            Mapping::FastSymlink
        } else {
            Mapping::BlockMap
        };
        let extents = match mapping {
            Mapping::Inline => {
                let physical = position_bytes + CONTENT_OFFSET_BYTES as u64;
                let length = inode.size_bytes.min((CONTENT_BYTES + job.inline_value.len()) as u64);
                let extent = Extent { logical: 0, physical, length };
                if length == 0 { Vec::new() } else { vec![MappedExtent { extent, state: ExtentState::Inline }] }
            }
            _ => compute_extents(job.runs, block_bytes),
        };
        Self {
            inode: job.number,
            kind: inode.kind,
            size_bytes: inode.size_bytes,
            allocated_bytes: inode.allocated_bytes,
            links: inode.links,
            flags: inode.flags,
            modified: inode.modified,
            changed: inode.changed,
            created: inode.created,
            position_bytes,
            mapping,
            extents,
            map_blocks_bytes: job.tree_blocks.iter().map(|block| block * block_bytes).collect(),
            attribute_block_bytes: (inode.attribute_block != 0)
                .then_some(inode.attribute_block.saturating_mul(block_bytes)),
            entries,
        }
    }
}
