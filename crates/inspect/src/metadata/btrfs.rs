//! Btrfs: the leaves of its trees. A walk over the inner nodes on the device finds them.
//!
//! Inodes, names and maps of extents are items of the tree of files, in the order of inode numbers.
//! Checksums of data are items of another tree, in the order of the data's positions. A reader
//! reaches a leaf through the nodes above it. These nodes alone define the keys of each leaf, so
//! this module does not read leaves.
//!
//! Source: the kernel's include/uapi/linux/btrfs_tree.h and fs/btrfs/ctree.c. Only file systems on
//! one device are supported.

use std::{os::fd::AsFd, path::Path};

use senesce_core::{Extent, RelPath};
use senesce_probe::{
    collect::{EntryKind, Surveyed, collect_btrfs_free_space_as_it_is},
    map::{BtrfsGroupType, ExtentFlags, Placement},
};

use super::{CopyPlaces, Metadata, Piece};

mod after;
mod ask;
mod node;
mod volume;

use after::AfterMoves;
use ask::collect_subvolume;
use node::Key;

use volume::{Tree, Volume};

/// The first logical address of predicted block groups, which do not exist yet. Contents in them
/// have this address plus their place on the device.
pub const NEW_GROUPS_START: u64 = 1 << 62;

/// The inode of the root of every subvolume.
const FIRST_INODE: u64 = 256;
/// The largest distance of a leaf that is read ahead from the leaf that is needed, bytes. Listings
/// and lookups of many checksums read ahead.
const AHEAD_BYTES: u64 = 64 << 10;
/// The largest number of following leaves that read-ahead checks.
const AHEAD_LEAVES: usize = 32;
/// A read of fewer bytes looks up its checksums without read-ahead.
const SMALL_READ_BYTES: u64 = 8 * 4096;

mod kind {
    pub(super) const INODE: u8 = 1;
    pub(super) const DIRECTORY_NAME: u8 = 84;
    pub(super) const DIRECTORY_INDEX: u8 = 96;
    pub(super) const EXTENT_DATA: u8 = 108;
    pub(super) const CHECKSUM: u8 = 128;
}

/// The object of all checksums (-10).
const CHECKSUM_OBJECT: u64 = u64::MAX - 9;
/// The tree of checksums.
const CHECKSUM_TREE: u64 = 7;

/// Metadata of a mounted Btrfs.
pub(super) struct BtrfsMetadata {
    volume: Volume,
    root: std::path::PathBuf,
    /// The subvolumes on the path to the current entry, with the path of each; the innermost is
    /// last.
    subvolumes: Vec<(RelPath, Tree)>,
    /// The directories on the path to the current entry, with their inodes; the innermost is last.
    directories: Vec<(RelPath, u64)>,
    checksums: Option<Tree>,
    device: std::path::PathBuf,
    /// The nodes that moves of contents rewrite. `None` if nothing moves.
    after: Option<AfterMoves>,
}

impl BtrfsMetadata {
    pub(super) fn open(device: &Path, root: &Path) -> Result<Self, String> {
        let mut volume = Volume::open(device)?;
        let number =
            subvolume_of(root).map_err(|error| format!("the number of its subvolume cannot be read: {error}"))?;
        let tree = volume.tree(number)?;
        // Without checksums (`nodatasum`) the tree is empty. Recent formats have several such
        // trees.
        let checksums = volume.tree(CHECKSUM_TREE).ok();
        let subvolumes = vec![(RelPath::root(), tree)];
        let (root, device) = (root.to_owned(), device.to_owned());
        Ok(Self { volume, root, subvolumes, directories: Vec::new(), checksums, device, after: None })
    }

    fn nodes(&self) -> Nodes<'_> {
        Nodes { volume: &self.volume, after: self.after.as_ref() }
    }

    /// Adds the leaves of an entry's name in its directory.
    fn look_up(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>) {
        while self.directories.last().is_some_and(|(path, _)| !is_below(&entry.path, path)) {
            self.directories.pop();
        }
        if let (Some((_, parent)), Some((_, tree))) = (self.directories.last(), self.subvolumes.last()) {
            let offset = u64::from(compute_name_hash(entry.path.name()));
            let key = Key { object: *parent, kind: kind::DIRECTORY_NAME, offset };
            add_leaves(&self.nodes(), tree, key, key, false, pieces);
        }
        if entry.kind == EntryKind::Directory {
            self.directories.push((entry.path.clone(), entry.inode));
        }
    }

    /// Enters the subvolume whose root `entry` is, if it is one.
    fn enter(&mut self, entry: &Surveyed) {
        if is_subvolume(entry) {
            let number = subvolume_of(&self.root.join(entry.path.as_path()));
            // A subvolume that cannot be read counts as empty.
            let tree = number.ok().and_then(|number| self.volume.tree(number).ok()).unwrap_or_default();
            self.subvolumes.push((entry.path.clone(), tree));
        }
    }
}

/// Whether an entry is the root of a subvolume other than that of the tree.
fn is_subvolume(entry: &Surveyed) -> bool {
    entry.inode == FIRST_INODE && entry.kind == EntryKind::Directory && !entry.path.is_root()
}

/// Whether a path is `start` or below it.
fn is_below(path: &RelPath, start: &RelPath) -> bool {
    let (path, start) = (path.as_bytes(), start.as_bytes());
    start.is_empty() || (path.starts_with(start) && matches!(path.get(start.len()), None | Some(b'/')))
}

/// The sort key of a name in its directory: CRC-32C with the initial value -2, not inverted at the
/// end.
fn compute_name_hash(name: &[u8]) -> u32 {
    name.iter()
        .fold(!1u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82F6_3B78 * (crc & 1))))
}

fn subvolume_of(path: &Path) -> std::io::Result<u64> {
    Ok(collect_subvolume(std::fs::File::open(path)?.as_fd())?)
}

/// The places of nodes on the device.
struct Nodes<'a> {
    volume: &'a Volume,
    after: Option<&'a AfterMoves>,
}

impl Nodes<'_> {
    fn locate(&self, logical: u64) -> Option<u64> {
        self.volume.locate(self.after.map_or(logical, |after| after.place(logical)))
    }
}

/// Adds the leaves from key `first` to key `last`, and the nodes above them.
fn add_leaves(nodes: &Nodes<'_>, tree: &Tree, first: Key, last: Key, is_ahead: bool, pieces: &mut Vec<Piece>) {
    let node_bytes = nodes.volume.node_bytes();
    let mut add = |logical: u64, wanted: u64| {
        if let (Some(start), Some(wanted)) = (nodes.locate(logical), nodes.locate(wanted)) {
            pieces.push(Piece { wanted, start, length: node_bytes });
        }
    };
    for at in tree.find(first)..=tree.find(last) {
        let Some(leaf) = tree.leaves.get(at) else { break };
        for &node in &tree.parents[leaf.parent as usize] {
            add(node, node);
        }
        if is_ahead {
            // Leaves that are read ahead come first, and only if the needed leaf is not in memory.
            let same = tree.leaves[at + 1..].iter().take_while(|next| next.parent == leaf.parent).take(AHEAD_LEAVES);
            let near = same.filter(|next| next.logical.abs_diff(leaf.logical) <= AHEAD_BYTES);
            near.take((AHEAD_BYTES / node_bytes + 1) as usize).for_each(|next| add(next.logical, leaf.logical));
        }
        add(leaf.logical, leaf.logical);
    }
}

impl Metadata for BtrfsMetadata {
    fn mounted(&self) -> Vec<Piece> {
        let trees = self.subvolumes.iter().map(|(_, tree)| tree).chain(&self.checksums);
        let roots = trees.filter_map(|tree| self.nodes().locate(tree.root?));
        let mut pieces: Vec<Piece> = roots.map(|root| Piece::whole(root, self.volume.node_bytes())).collect();
        // The inode of the root directory.
        if let Some((_, tree)) = self.subvolumes.first() {
            let key = Key { object: FIRST_INODE, kind: kind::INODE, offset: 0 };
            add_leaves(&self.nodes(), tree, key, key, false, &mut pieces);
        }
        pieces
    }

    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>) {
        while self.subvolumes.len() > 1 && self.subvolumes.last().is_some_and(|(path, _)| !is_below(&entry.path, path))
        {
            self.subvolumes.pop();
        }
        self.look_up(entry, pieces);
        self.enter(entry);
        let Some((_, tree)) = self.subvolumes.last() else { return };
        let key = |kind, offset| Key { object: entry.inode, kind, offset };
        add_leaves(&self.nodes(), tree, key(kind::INODE, 0), key(kind::INODE, 0), false, pieces);
        match entry.kind {
            EntryKind::Directory => {
                // Opening reads the last index of a name. Listing starts at the first one.
                let [first, last] = [0, u64::MAX].map(|offset| key(kind::DIRECTORY_INDEX, offset));
                add_leaves(&self.nodes(), tree, last, last, false, pieces);
                add_leaves(&self.nodes(), tree, first, last, true, pieces);
            }
            EntryKind::File => {
                let last = entry.extents.last().map_or(0, |raw| raw.extent.logical);
                // Traces show no read-ahead here, although the inode's leaf often ends before its
                // map.
                let [first, last] = [0, last].map(|offset| key(kind::EXTENT_DATA, offset));
                add_leaves(&self.nodes(), tree, first, last, false, pieces);
                let placed = |placement| matches!(placement, Placement::Placed | Placement::Encoded);
                for raw in entry.extents.iter().filter(|raw| placed(raw.placement())) {
                    let Some(tree) = &self.checksums else { break };
                    let leaf = |at| self.after.as_ref()?.find_checksums(entry.inode, at);
                    let new: Vec<u64> = AfterMoves::checksum_units(&raw.extent).filter_map(leaf).collect();
                    if !new.is_empty() {
                        let places = new.into_iter().filter_map(|leaf| self.volume.locate(leaf));
                        pieces.extend(places.map(|place| Piece::whole(place, self.volume.node_bytes())));
                        continue;
                    }
                    let key = |offset| Key { object: CHECKSUM_OBJECT, kind: kind::CHECKSUM, offset };
                    let [first, last] = [raw.extent.physical, raw.extent.end().saturating_sub(1)].map(key);
                    let is_ahead = raw.extent.length > SMALL_READ_BYTES;
                    add_leaves(&self.nodes(), tree, first, last, is_ahead, pieces);
                }
            }
        }
    }

    fn locate(&self, extent: Extent) -> Option<Extent> {
        let physical = match extent.physical.checked_sub(NEW_GROUPS_START) {
            Some(physical) => Some(physical),
            None => self.volume.locate(extent.physical),
        };
        physical.map(|physical| Extent { physical, ..extent })
    }

    fn packed_bytes(&self, entry: &Surveyed) -> u64 {
        // Each item with its header: the inode, and its name in three places.
        let names = 145 + 3 * entry.path.name().len() as u64;
        let is_inline = entry.extents.first().is_some_and(|raw| raw.flags.contains(ExtentFlags::INLINE));
        let content = match entry.kind {
            EntryKind::Directory => 0,
            EntryKind::File if is_inline => 46 + entry.size_bytes.min(self.volume.node_bytes()),
            // A map of one extent, and four bytes of checksum per sector.
            EntryKind::File => 78 + entry.size_bytes / 1024,
        };
        185 + names + content
    }

    fn unit_bytes(&self) -> u64 {
        self.volume.node_bytes()
    }

    fn after_moves(
        &self,
        entries: &[Surveyed],
        moved: &mut dyn Iterator<Item = (usize, Surveyed)>,
    ) -> Option<Box<dyn Metadata>> {
        let space = collect_btrfs_free_space_as_it_is(&self.root).ok()?;
        let free = space.free_extents(BtrfsGroupType::METADATA).map(|free| (free.start_bytes, free.length_bytes));
        let mut after = Self::open(&self.device, &self.root).ok()?;
        let (_, tree) = after.subvolumes.first()?;
        // Inodes of other subvolumes have the same numbers, and their trees are not read here.
        let nested: Vec<&RelPath> =
            entries.iter().filter(|entry| is_subvolume(entry)).map(|entry| &entry.path).collect();
        let mut is_nested = false;
        let moved = moved.map(|(number, entry)| (&entries[number], entry)).inspect(|(_, entry)| {
            is_nested |= nested.iter().any(|start| is_below(&entry.path, start));
        });
        let planned = AfterMoves::plan(tree, after.volume.node_bytes(), free, moved);
        after.after = (!is_nested).then_some(planned);
        after.after.is_some().then(|| Box::new(after) as Box<dyn Metadata>)
    }

    /// Block groups for data alone hold contents of one size class.
    fn copy_places(&self) -> CopyPlaces {
        let group_bytes = self.volume.data_chunk_bytes();
        group_bytes.map_or(CopyPlaces::OneRow, |group_bytes| CopyPlaces::SizeClasses { group_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hashed_like_the_kernel_does() {
        // Every Btrfs has this name in its tree of roots: (6 DIR_ITEM 2378154706).
        assert_eq!(compute_name_hash(b"default"), 2_378_154_706);
    }

    #[test]
    fn a_path_is_below_its_ancestors_only() {
        let path = |text: &str| RelPath::new(text.as_bytes()).unwrap();
        assert!(is_below(&path("a/b"), &path("a")) && is_below(&path("a"), &path("a")));
        assert!(is_below(&path("a"), &RelPath::root()));
        assert!(!is_below(&path("ab"), &path("a")) && !is_below(&path("a"), &path("a/b")));
    }
}
