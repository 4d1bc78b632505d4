//! The files and snapshots that share the blocks of a Btrfs file.
//!
//! The kernel reports the owners of a block as subvolume, inode and offset (`LOGICAL_INO_V2`). A
//! move is possible only if all of them can be opened below the mount: otherwise the old blocks
//! would stay in use, and the move would use space twice.
//!
//! Snapshots share metadata, too. A leaf that the move changes in one snapshot is not shared any
//! more. So the metadata of all moves together has a limit, and small files of many snapshots stay.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, File},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::Path,
};

use rustix::fs::{AtFlags, CWD, IFlags, Mode, OFlags, ResolveFlags, StatxFlags, statx};
use senesce_core::Extent;
use senesce_probe::{
    collect::{BtrfsSubvolume, collect_btrfs_subvolumes},
    map::RawExtent,
};

use super::{
    Skip, Steps, read_map,
    share::{Source, Stops, dedupe},
    sys,
};
use crate::Tree;

/// The inode number of the root of a subvolume.
const SUBVOLUME_ROOT: u64 = 256;

/// Subvolumes that contain each other in a longer chain than this are not followed.
const MOST_DEEP: usize = 64;

/// A leaf of a subvolume, in two copies, bytes. The first move in it ends its sharing.
const LEAF_BYTES: u64 = 32 << 10;

/// Inodes with numbers that differ only in this number of low bits count as one leaf.
const LEAF_BITS: u32 = 5;

/// The new metadata uses at most one part in this number of the space in use.
const METADATA_SHARE: u64 = 50;

/// Nor more than one part in this number of the free space.
const FREE_SHARE: u64 = 8;

/// Finds owners of blocks on one mount.
pub(super) struct Owners {
    root: OwnedFd,
    /// The subvolume at the root of the mount.
    mounted: u64,
    /// Open roots of subvolumes. `None` if one is not below the mount.
    subvolumes: BTreeMap<u64, Option<OwnedFd>>,
    /// Bytes of new metadata that the moves may still cause.
    left_bytes: u64,
    /// Leaves that are not shared any more: the subvolume, and the inode number without low bits.
    leaves: BTreeSet<(u64, u64)>,
}

/// A file that has the same blocks as the file that moves.
pub(super) struct Owner {
    /// Its subvolume and inode number.
    id: (u64, u64),
    file: File,
}

impl Owners {
    /// Opens the root of the mount of `path`. `None` if that is no root of a subvolume, or if the
    /// caller is not root: then owners cannot be found.
    pub fn open(path: &Path) -> Option<Self> {
        let id_of = |path: &Path| Some(statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?.stx_mnt_id);
        let mut top = fs::canonicalize(path).ok()?;
        let mount = id_of(&top)?;
        while let Some(parent) = top.parent().filter(|parent| id_of(parent) == Some(mount)) {
            top = parent.to_owned();
        }
        if fs::metadata(&top).ok()?.ino() != SUBVOLUME_ROOT {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, &top, flags, Mode::empty()).ok()?;
        collect_btrfs_subvolumes(&root).ok()?;
        let (mounted, _) = sys::look_up_inode(root.as_fd(), 0, SUBVOLUME_ROOT).ok()?;
        let space = rustix::fs::fstatvfs(&root).ok()?;
        let used_bytes = space.f_blocks.saturating_sub(space.f_bfree) * space.f_frsize;
        let left_bytes = (used_bytes / METADATA_SHARE).min(space.f_bavail * space.f_frsize / FREE_SHARE);
        Some(Self { root, mounted, subvolumes: BTreeMap::new(), left_bytes, leaves: BTreeSet::new() })
    }

    /// All other owners of these shared extents of a file with this map. The physical address of a
    /// Btrfs extent is the logical address of the file system.
    ///
    /// Btrfs frees an extent as a whole. So an owner that keeps a part of one would keep all of it,
    /// and the move would use space twice.
    ///
    /// Errors: [`Skip::Sharers`] if an owner cannot be opened below the mount, or has not exactly
    /// the blocks of the file, as after a change since the snapshot.
    pub fn find(
        &mut self,
        tree: &Tree,
        source: &Source<'_>,
        (map, shared): (&[RawExtent], &[Extent]),
    ) -> Result<Vec<Owner>, Skip> {
        let inode = source.file.metadata().map_err(|error| Skip::io(&error))?.ino();
        let (subvolume, _) = sys::look_up_inode(source.file.as_fd(), 0, SUBVOLUME_ROOT).map_err(|_| Skip::Sharers)?;
        let mut ids = BTreeSet::new();
        for extent in shared {
            let find = |part| -> Result<BTreeSet<(u64, u64)>, Skip> {
                let found = sys::find_owners(&source.file, extent.physical, part).map_err(|_| Skip::Sharers)?;
                Ok(found.into_iter().map(|(inode, _, root)| (root, inode)).collect())
            };
            let here = find(sys::Part::Byte)?;
            if !find(sys::Part::Extent)?.is_subset(&here) {
                return Err(Skip::Sharers);
            }
            ids.extend(here);
        }
        ids.remove(&(subvolume, inode));
        let open = |id: (u64, u64)| {
            let file = self.open_owner(id.0, id.1).ok_or(Skip::Sharers)?;
            match has_same_blocks(&read_map(&file, tree)?, map) {
                true => Ok(Owner { id, file }),
                false => Err(Skip::Sharers),
            }
        };
        ids.into_iter().map(open).collect()
    }

    /// Counts the metadata of the owners of one more file.
    ///
    /// Errors: [`Skip::Sharers`] if they would need too much.
    pub fn charge(&mut self, owners: &[Owner]) -> Result<(), Skip> {
        let leaves: BTreeSet<(u64, u64)> = owners.iter().map(|owner| (owner.id.0, owner.id.1 >> LEAF_BITS)).collect();
        let needed = leaves.difference(&self.leaves).count() as u64 * LEAF_BYTES;
        self.left_bytes = self.left_bytes.checked_sub(needed).ok_or(Skip::Sharers)?;
        self.leaves.extend(leaves);
        Ok(())
    }

    fn open_owner(&mut self, subvolume: u64, inode: u64) -> Option<File> {
        let root = self.subvolume(subvolume)?;
        let (_, path) = sys::look_up_inode(root, subvolume, inode).ok()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOATIME;
        let file = File::from(open_below(root, &path, flags)?);
        let meta = file.metadata().ok()?;
        // The kernel would refuse the move of one owner after that of others.
        let flags = rustix::fs::ioctl_getflags(&file).ok()?;
        let is_movable = !flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND | IFlags::NOCOW);
        (meta.is_file() && meta.ino() == inode && is_movable).then_some(file)
    }

    /// The root of a subvolume. A snapshot may be made at any time, so an unknown one is looked up.
    fn subvolume(&mut self, id: u64) -> Option<BorrowedFd<'_>> {
        if id == self.mounted {
            return Some(self.root.as_fd());
        }
        if !self.subvolumes.contains_key(&id) {
            let all = collect_btrfs_subvolumes(&self.root).ok()?;
            let opened = match self.path_of(id, &all) {
                // An error here may pass, so it is not kept.
                Some(path) => Some(open_below(self.root.as_fd(), &path, OFlags::RDONLY | OFlags::DIRECTORY)?),
                None => None,
            };
            self.subvolumes.insert(id, opened);
        }
        self.subvolumes.get(&id)?.as_ref().map(AsFd::as_fd)
    }

    /// The path of a subvolume from the root of the mount.
    fn path_of(&self, id: u64, all: &[BtrfsSubvolume]) -> Option<Vec<u8>> {
        let (mut path, mut at) = (Vec::new(), id);
        for _ in 0..MOST_DEEP {
            if at == self.mounted {
                return Some(path);
            }
            let place = all.iter().find(|subvolume| subvolume.id == at)?;
            let mut start = match place.directory {
                SUBVOLUME_ROOT => Vec::new(),
                directory => sys::look_up_inode(self.root.as_fd(), place.parent, directory).ok()?.1,
            };
            if !start.is_empty() && start.last() != Some(&b'/') {
                start.push(b'/');
            }
            start.extend(&place.name);
            if !path.is_empty() {
                start.push(b'/');
                start.extend(&path);
            }
            (path, at) = (start, place.parent);
        }
        None
    }
}

/// Opens a path below a directory: no symbolic link, and no other mount.
fn open_below(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Option<OwnedFd> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(root, OsStr::from_bytes(path), flags | OFlags::CLOEXEC, Mode::empty(), resolve).ok()
}

/// Whether two files have the same ranges at the same places.
fn has_same_blocks(a: &[RawExtent], b: &[RawExtent]) -> bool {
    a.iter().map(|raw| raw.extent).eq(b.iter().map(|raw| raw.extent))
}

impl Owner {
    /// Makes the owner share the blocks of `donor`. An owner whose content changed meanwhile no
    /// longer shares the old blocks, and stays as it is.
    pub fn share(&self, source: &Source<'_>, donor: &File, steps: &mut Steps<'_>) -> Result<(), Skip> {
        for part in source.parts {
            let length = source.content_bytes(part);
            // A stop between two owners would leave the old blocks in use.
            match dedupe((donor, part.logical), (&self.file, part.logical), length, (steps, Stops::Nowhere)) {
                Ok(_) | Err(Skip::Changed) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}
