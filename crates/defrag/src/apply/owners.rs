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

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, statx};
use senesce_core::Extent;
use senesce_probe::collect::{BtrfsSubvolume, collect_btrfs_subvolumes};

use super::{
    Skip,
    share::{Source, dedupe},
    sys,
};

/// The inode number of the root of a subvolume.
const SUBVOLUME_ROOT: u64 = 256;

/// Subvolumes that contain each other in a longer chain than this are not followed.
const MOST_DEEP: usize = 64;

/// A leaf of a subvolume, in two copies, bytes. The first move in it ends its sharing.
const LEAF_BYTES: u64 = 32 << 10;

/// Inodes with numbers that differ only in this number of low bits count as one leaf.
const LEAF_BITS: u32 = 5;

/// The new metadata use at most one part in this number of the space in use.
const METADATA_SHARE: u64 = 50;

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

/// A range of a file that shares blocks with a range of the file that moves.
pub(super) struct Owner {
    /// Its subvolume and inode number.
    id: (u64, u64),
    file: File,
    /// The start in the owner.
    offset: u64,
    /// The start in the file that moves, and in its donor.
    logical: u64,
    length: u64,
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
        let left_bytes = (space.f_blocks - space.f_bfree) * space.f_frsize / METADATA_SHARE;
        Some(Self { root, mounted, subvolumes: BTreeMap::new(), left_bytes, leaves: BTreeSet::new() })
    }

    /// All other owners of these extents of a file. The physical address of a Btrfs extent is the
    /// logical address of the file system.
    ///
    /// Errors: [`Skip::Sharers`] if an owner cannot be opened below the mount.
    pub fn find(&mut self, source: &Source<'_>, extents: &[Extent]) -> Result<Vec<Owner>, Skip> {
        let inode = source.file.metadata().map_err(|error| Skip::io(&error))?.ino();
        let (subvolume, _) = sys::look_up_inode(source.file.as_fd(), 0, SUBVOLUME_ROOT).map_err(|_| Skip::Sharers)?;
        let mut owners = Vec::new();
        for extent in extents {
            let found = sys::find_owners(&source.file, extent.physical).map_err(|_| Skip::Sharers)?;
            for (owner, offset, root) in found {
                if (owner, root, offset) == (inode, subvolume, extent.logical) {
                    continue;
                }
                let file = self.open_owner(root, owner).ok_or(Skip::Sharers)?;
                owners.push(Owner { id: (root, owner), file, offset, logical: extent.logical, length: extent.length });
            }
        }
        Ok(owners)
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
        (meta.is_file() && meta.ino() == inode).then_some(file)
    }

    /// The root of a subvolume. A snapshot may be made at any time, so an unknown one is looked up.
    fn subvolume(&mut self, id: u64) -> Option<BorrowedFd<'_>> {
        if id == self.mounted {
            return Some(self.root.as_fd());
        }
        if !self.subvolumes.contains_key(&id) {
            let all = collect_btrfs_subvolumes(&self.root).ok()?;
            let path = self.path_of(id, &all);
            let open = |path: Vec<u8>| open_below(self.root.as_fd(), &path, OFlags::RDONLY | OFlags::DIRECTORY);
            let opened = path.and_then(open);
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

impl Owner {
    /// Makes the owner share the donor's blocks. An owner whose content changed meanwhile no longer
    /// shares the old blocks, and stays as it is. Returns whether the caller let it finish.
    pub fn share(
        &self,
        (source, donor): (&Source<'_>, &File),
        block_bytes: u64,
        pace: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, Skip> {
        let size = self.file.metadata().map_err(|error| Skip::io(&error))?.len();
        let here = source.size_bytes.saturating_sub(self.logical);
        let there = size.saturating_sub(self.offset);
        let length = self.length.min(here).min(there);
        // A block at the end of a file is shared only if it is the last one of both.
        let is_end_of_both = here == there && length == here;
        let length = if is_end_of_both { length } else { length - length % block_bytes };
        match dedupe((donor, self.logical), (&self.file, self.offset), length, pace) {
            Err(Skip::Changed) => Ok(true),
            done => done,
        }
    }
}
