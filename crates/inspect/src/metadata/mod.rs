//! Where the metadata lies that a cold reader has to fetch before it can read a file: inodes, blocks of directories, maps
//! of extents.
//!
//! The kernel tells nobody where these are. Whoever may read the device (root) finds out from the file system's own
//! structures; [`MetadataReader`] does, read-only. Whoever may not gets [`ToldMetadata`]: the blocks of directories, where
//! the kernel maps them (ext4). Requests are made of what is not in memory yet ([`PageCache`]).
//!
//! Not here: metadata that reading needs only now and then (bitmaps, quotas, logs), and what memory pressure throws out.

mod btrfs;
mod device;
mod ext4;
mod xfs;
mod xfs_log;

pub(crate) use btrfs::collect_file_system_id;
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

/// What is fetched in one go, positions on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The byte that is wanted: if its page is in memory, nothing is fetched.
    pub wanted: u64,
    /// First byte of what is fetched then.
    pub start: u64,
    /// Its bytes; pages that are in memory are left out.
    pub length: u64,
}

impl Piece {
    /// A piece that is fetched for itself alone.
    pub(crate) fn whole(start: u64, length: u64) -> Self {
        Self { wanted: start, start, length }
    }
}

/// What is known about a file system's metadata.
pub(crate) trait Metadata {
    /// What is in memory since the file system was mounted.
    fn mounted(&self) -> Vec<Piece> {
        Vec::new()
    }

    /// Adds what a reader needs of `entry` before its content, in the order in which it comes to it. The entries come in
    /// the order of the tree. What cannot be found out is left out.
    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>);

    /// Where an extent lies on the device; none if that is not known.
    fn locate(&self, extent: Extent) -> Option<Extent> {
        Some(extent)
    }

    /// Bytes of `entry`'s metadata in a fresh copy, where those of each entry lie behind those of the entry made before,
    /// in front of all content. The blocks of directories are not among them, if they lie by themselves.
    fn packed_bytes(&self, entry: &Surveyed) -> u64;

    /// What is fetched of those in one go, bytes.
    fn unit_bytes(&self) -> u64;

    /// Where on the volume a copy puts what.
    fn copy_places(&self) -> CopyPlaces {
        CopyPlaces::OneRow
    }
}

/// Where on a volume a copy puts what it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPlaces {
    /// One behind the other.
    OneRow,
    /// Directories with all that is in them into parts of the volume, in turn.
    Regions(Regions),
    /// Contents into groups of this many bytes that hold small ones, middling ones or large ones only (see
    /// [`SIZE_CLASSES`]).
    SizeClasses {
        /// Bytes of a group.
        group_bytes: u64,
    },
}

/// Up to which size contents are small, and middling, to Btrfs, bytes. Since Linux 6.3 it keeps block groups for each;
/// source: `btrfs_calc_block_group_size_class` in the kernel's fs/btrfs/block-group.c.
pub(crate) const SIZE_CLASSES: [u64; 2] = [128 << 10, 8 << 20];

/// Parts of a volume, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Regions {
    /// How many; at least one.
    pub count: u64,
    /// The length of each, bytes; none matters if there is one.
    pub bytes: u64,
}

/// Only what the kernel told: the blocks of directories, if any.
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

/// The blocks of a directory that the kernel told, each fetched by itself: a listing asks for one after the other.
pub(crate) fn add_directory_blocks(entry: &Surveyed, pieces: &mut Vec<Piece>) {
    if entry.kind != EntryKind::Directory {
        return;
    }
    for raw in entry.extents.iter().filter(|raw| raw.placement() == Placement::Placed) {
        // No further than the directory goes: a map may be nonsense.
        let length = raw.extent.length.min(entry.size_bytes.saturating_sub(raw.extent.logical));
        let blocks = (0..length).step_by(PAGE_BYTES as usize);
        pieces.extend(blocks.map(|at| Piece::whole(raw.extent.physical + at, PAGE_BYTES)));
    }
}

/// Looks into the device of the file system mounted at `mount_point`, without writing.
///
/// Errors: why the metadata are not known, for a warning; then there is [`ToldMetadata`].
/// Cost: ext4: all inode tables in use and all blocks of extent trees are read; 16 bytes of memory an inode. XFS: nothing
/// yet; later the inodes of directories and of files in many pieces. Btrfs: the inner nodes of its trees, and 24 bytes of
/// memory for each leaf.
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
        FileSystemKind::Garden | FileSystemKind::Evergreen => {
            return Err("an engine of our own tells them itself".to_owned());
        }
    })
}

/// What a reader of a tree fetches besides contents, entry by entry.
pub(crate) struct MetadataReader {
    source: Box<dyn Metadata>,
    /// Why no more than what the kernel tells is known.
    problem: Option<String>,
    cache: PageCache,
    pieces: Vec<Piece>,
}

impl MetadataReader {
    /// A reader that has just mounted the file system. Without a device, or the right to read it, it knows only what the
    /// kernel tells, and [`problem`](Self::problem) says why.
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

    /// A reader that knows only what the kernel tells.
    pub(crate) fn told(problem: impl Into<String>) -> Self {
        Self::of(Box::new(ToldMetadata), Some(problem.into()))
    }

    /// A reader that knows what `source` does.
    pub(crate) fn of(source: Box<dyn Metadata>, problem: Option<String>) -> Self {
        let mut cache = PageCache::default();
        source.mounted().iter().for_each(|piece| cache.insert(piece));
        Self { source, problem, cache, pieces: Vec::new() }
    }

    /// Why inodes and maps are not known.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
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

    /// Where an extent lies on the device; as it is told if that is not known.
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

/// The pages of metadata that are in memory; what has been fetched stays there.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pages: HashSet<u64>,
}

impl PageCache {
    /// Takes a piece as being in memory.
    pub(crate) fn insert(&mut self, piece: &Piece) {
        self.pages.extend(pages_of(piece));
    }

    /// The requests that fetch what is not in memory yet: one for each row of neighbouring pages.
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
