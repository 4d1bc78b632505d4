//! What a reading hands over for each file, directory and symlink.

use senesce_core::Extent;

use crate::{
    DirectoryEntries, ExtentState, FileKind, InodeFlags, MappedExtent, Timestamp,
    inode::{CONTENT_BYTES, CONTENT_OFFSET_BYTES},
    map::{MapJob, compute_extents},
};

/// How an inode says where its contents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// By an extent tree.
    ExtentTree,
    /// By the older map of single blocks, in up to three levels.
    BlockMap,
    /// The contents lie in the inode.
    Inline,
    /// A symlink whose target lies in the inode.
    FastSymlink,
}

/// A file, directory or symlink: what its inode says, and where its contents and its map lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeRecord {
    /// The inode's number.
    pub inode: u32,
    /// What it is; never [`FileKind::Special`].
    pub kind: FileKind,
    /// Size of the contents, bytes.
    pub size_bytes: u64,
    /// What it takes on the device, its map and attributes included, bytes (`st_blocks` × 512).
    pub allocated_bytes: u64,
    /// Number of names. A directory with too many for the field says 1.
    pub links: u16,
    /// The inode's flags.
    pub flags: InodeFlags,
    /// When the contents were last changed.
    pub modified: Timestamp,
    /// When the inode was last changed.
    pub changed: Timestamp,
    /// When it was made, where the inode has room for it.
    pub created: Option<Timestamp>,
    /// Where the inode itself lies, bytes from the start of the device.
    pub position_bytes: u64,
    /// How it says where its contents are.
    pub mapping: Mapping,
    /// Where the contents lie, in the file's order; neighbours of one state are merged. Blocks behind the end of the
    /// file, set aside for its growth, are among them.
    pub extents: Vec<MappedExtent>,
    /// Where the blocks of its map lie (extent tree or indirect blocks), bytes from the start of the device, ascending.
    pub map_blocks_bytes: Vec<u64>,
    /// Where its block of extended attributes lies, bytes from the start of the device.
    pub attribute_block_bytes: Option<u64>,
    /// A directory's entries, if they were asked for.
    pub entries: Option<DirectoryEntries>,
}

impl InodeRecord {
    /// Makes a record of a finished job.
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
