//! The places of metadata that a cold reader fetches before the content of a file: inodes, blocks
//! of directories, maps of extents.
//!
//! The kernel does not report these places. If this process may read the device (as root),
//! [`MetadataReader`] finds them in the structures of the file system, without writing. Otherwise
//! [`ToldMetadata`] knows the blocks of directories only, and only if the kernel maps them (ext4).
//! [`PageCache`] makes requests for pages that are not in memory yet.
//!
//! Not modelled: metadata that reads rarely need (bitmaps, quotas, logs), and eviction under memory
//! pressure.

mod btrfs;
mod device;
mod ext4;
mod xfs;
mod xfs_log;

pub use btrfs::NEW_GROUPS_START;
pub(crate) use ext4::Ext4Metadata;
pub(crate) use xfs_log::is_xfs_log_clean;

use std::{collections::HashSet, path::Path};

use senesce_core::{BlockOp, BlockRequest, Extent, Nanos, SECTOR_BYTES};
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::Placement,
};
use senesce_volume::FileSystemKind;

/// The unit of the cache, bytes.
const PAGE_BYTES: u64 = 4096;

/// A range that is fetched together, as positions on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The needed byte. If its page is in memory, nothing is fetched.
    pub wanted: u64,
    /// The first byte of the fetched range.
    pub start: u64,
    /// The length of the range, bytes. Pages that are in memory are not fetched again.
    pub length: u64,
}

impl Piece {
    /// A range that is needed and fetched as a whole.
    pub(crate) fn whole(start: u64, length: u64) -> Self {
        Self { wanted: start, start, length }
    }
}

/// Knowledge about the metadata of a file system.
pub(crate) trait Metadata {
    /// The ranges that are in memory after the mount.
    fn mounted(&self) -> Vec<Piece> {
        Vec::new()
    }

    /// Adds the ranges that a reader needs before the content of `entry`, in the order of their
    /// use. Entries come in the order of the tree. Unknown ranges are omitted.
    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>);

    /// The place of an extent on the device. `None` if it is not known.
    fn locate(&self, extent: Extent) -> Option<Extent> {
        Some(extent)
    }

    /// Bytes of `entry`'s metadata in a fresh copy. A copy packs the metadata of all entries, in
    /// the order in which it makes them, before all content. Blocks of directories do not count if
    /// they are separate.
    fn packed_bytes(&self, entry: &Surveyed) -> u64;

    /// The unit in which packed metadata is fetched, bytes.
    fn unit_bytes(&self) -> u64;

    /// The rule by which a copy places contents on the volume.
    fn copy_places(&self) -> CopyPlaces {
        CopyPlaces::OneRow
    }

    /// The same metadata after contents move. `moved` has the numbers of the moved files among the
    /// entries of the tree, and the files at their new places, in the order of the moves. `None` if
    /// metadata stays where it is, or its new places are not known.
    fn after_moves(
        &self,
        entries: &[Surveyed],
        moved: &mut dyn Iterator<Item = (usize, Surveyed)>,
    ) -> Option<Box<dyn Metadata>> {
        let _ = (entries, moved);
        None
    }
}

/// The rule by which a copy places contents on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPlaces {
    /// All contents are adjacent.
    OneRow,
    /// Directories with their entries go to regions of the volume, in turn.
    Regions(Regions),
    /// Contents go to groups of blocks, each for one class of sizes (see [`SIZE_CLASSES`]).
    SizeClasses {
        /// Bytes of a group.
        group_bytes: u64,
    },
}

/// The largest small and the largest medium content of Btrfs, bytes. Since Linux 6.3 it has
/// separate block groups for small, medium and large contents. Source:
/// `btrfs_calc_block_group_size_class` in the kernel's fs/btrfs/block-group.c.
pub(crate) const SIZE_CLASSES: [u64; 2] = [128 << 10, 8 << 20];

/// Adjacent regions of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Regions {
    /// The number of regions, at least one.
    pub count: u64,
    /// The length of each region, bytes. Not used for a single region.
    pub bytes: u64,
}

/// Metadata places that the kernel reports: the blocks of directories, if any.
#[derive(Debug)]
pub(crate) struct ToldMetadata;

impl Metadata for ToldMetadata {
    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>) {
        add_directory_blocks(entry, pieces);
    }

    fn packed_bytes(&self, _entry: &Surveyed) -> u64 {
        0
    }

    fn unit_bytes(&self) -> u64 {
        PAGE_BYTES
    }
}

/// Adds the blocks of a directory that the kernel reported. Each is a read of its own, because a
/// listing requests one after the other.
pub(crate) fn add_directory_blocks(entry: &Surveyed, pieces: &mut Vec<Piece>) {
    if entry.kind != EntryKind::Directory {
        return;
    }
    for raw in entry.extents.iter().filter(|raw| raw.placement() == Placement::Placed) {
        // Stops at the end of the directory, because a damaged map may be longer.
        let length = raw.extent.length.min(entry.size_bytes.saturating_sub(raw.extent.logical));
        let blocks = (0..length).step_by(PAGE_BYTES as usize);
        pieces.extend(blocks.map(|at| Piece::whole(raw.extent.physical + at, PAGE_BYTES)));
    }
}

/// Reads the metadata places from `device`, whose file system is mounted at `root`. Causes no
/// write.
///
/// Errors: the reason why the places are not known, for a warning. The caller then uses
/// [`ToldMetadata`]. Cost: ext4: reads all inode tables in use and all blocks of extent trees; 16
/// bytes of memory per inode. XFS: nothing here; later the inodes of directories and of files in
/// many pieces. Btrfs: reads the inner nodes of its trees; 24 bytes of memory per leaf.
fn open_metadata(
    kind: FileSystemKind,
    device: &Path,
    root: &Path,
    threads: usize,
) -> Result<Box<dyn Metadata>, String> {
    Ok(match kind {
        FileSystemKind::Ext4 => Box::new(ext4::Ext4Metadata::open(device, threads)?),
        FileSystemKind::Xfs => Box::new(xfs::XfsMetadata::open(device)?),
        FileSystemKind::Btrfs => Box::new(btrfs::BtrfsMetadata::open(device, root)?),
        FileSystemKind::F2fs => return Err("nodes of F2FS are not read".to_owned()),
        FileSystemKind::Nilfs2 | FileSystemKind::Jfs | FileSystemKind::Reiserfs => {
            return Err(format!("metadata of {kind} is not read"));
        }
        FileSystemKind::Garden | FileSystemKind::Evergreen => {
            return Err("only the engine of this file system knows their places".to_owned());
        }
    })
}

/// The requests for metadata that a reader of a tree makes, entry by entry.
pub(crate) struct MetadataReader {
    source: Box<dyn Metadata>,
    /// The reason why only the places that the kernel reports are known.
    problem: Option<String>,
    cache: PageCache,
    pieces: Vec<Piece>,
}

impl MetadataReader {
    /// A reader that has just mounted the file system. Without a device, or without permission to
    /// read it, the reader knows only the places that the kernel reports, and
    /// [`problem`](Self::problem) has the reason.
    pub(crate) fn new(kind: FileSystemKind, device: Option<&Path>, root: &Path, threads: usize) -> Self {
        let opened = match device {
            Some(device) => open_metadata(kind, device, root, threads),
            None => Err("no block device is known".to_owned()),
        };
        match opened {
            Ok(source) => Self::of(source, None),
            Err(problem) => Self::told(problem),
        }
    }

    /// A reader that knows only the places that the kernel reports.
    pub(crate) fn told(problem: impl Into<String>) -> Self {
        Self::of(Box::new(ToldMetadata), Some(problem.into()))
    }

    /// A reader that knows the places of `source`.
    pub(crate) fn of(source: Box<dyn Metadata>, problem: Option<String>) -> Self {
        let mut cache = PageCache::default();
        source.mounted().iter().for_each(|piece| cache.insert(piece));
        Self { source, problem, cache, pieces: Vec::new() }
    }

    /// The reason why inodes and maps are not known.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// A reader of the metadata after contents move, see [`Metadata::after_moves`].
    pub(crate) fn after_moves(
        &self,
        entries: &[Surveyed],
        moved: &mut dyn Iterator<Item = (usize, Surveyed)>,
    ) -> Option<Self> {
        Some(Self::of(self.source.after_moves(entries, moved)?, None))
    }

    /// The requests for `entry`, before its content.
    pub(crate) fn requests(&mut self, entry: &Surveyed) -> Vec<BlockRequest> {
        self.pieces.clear();
        self.source.add_pieces(entry, &mut self.pieces);
        let mut requests = Vec::new();
        for piece in &self.pieces {
            self.cache.fetch(piece, &mut requests);
        }
        requests
    }

    /// The place of an extent on the device. If that is not known, the place as reported.
    pub(crate) fn locate(&self, extent: Extent) -> Extent {
        self.source.locate(extent).unwrap_or(extent)
    }

    /// See [`Metadata::packed_bytes`].
    pub(crate) fn packed_bytes(&self, entry: &Surveyed) -> u64 {
        self.source.packed_bytes(entry)
    }

    /// See [`Metadata::unit_bytes`].
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.source.unit_bytes()
    }

    /// See [`Metadata::copy_places`].
    pub(crate) fn copy_places(&self) -> CopyPlaces {
        self.source.copy_places()
    }
}

/// The pages of metadata that are in memory. Pages are never evicted.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pages: HashSet<u64>,
}

impl PageCache {
    /// Marks the pages of a range as being in memory.
    pub(crate) fn insert(&mut self, piece: &Piece) {
        self.pages.extend(pages_of(piece));
    }

    /// Adds the requests for pages that are not in memory yet, one for each run of adjacent pages.
    pub(crate) fn fetch(&mut self, piece: &Piece, requests: &mut Vec<BlockRequest>) {
        if self.pages.contains(&(piece.wanted / PAGE_BYTES)) {
            return;
        }
        let mut goes_on = false;
        for page in pages_of(piece) {
            let is_new = self.pages.insert(page);
            match requests.last_mut().filter(|_| goes_on && is_new) {
                Some(last) => last.sectors += (PAGE_BYTES / SECTOR_BYTES) as u32,
                None if is_new => requests.push(read(page * PAGE_BYTES, PAGE_BYTES)),
                None => {}
            }
            goes_on = is_new;
        }
    }
}

fn pages_of(piece: &Piece) -> std::ops::Range<u64> {
    piece.start / PAGE_BYTES..piece.start.saturating_add(piece.length).div_ceil(PAGE_BYTES)
}

fn read(start: u64, bytes: u64) -> BlockRequest {
    let sector = start / SECTOR_BYTES;
    BlockRequest { issued: Nanos(0), op: BlockOp::Read, sector, sectors: (bytes / SECTOR_BYTES) as u32 }
}

#[cfg(test)]
mod tests;
