//! The object store's part of a pull: it finds the new objects and plans how they are written.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use senesce_oplog::{Content, Op};

use super::{
    ContentKey, EntryKind, Oid, PackKey, PackNames, Repository, TreeEntry,
    dotgit::{mkdir, path, rename, unlink},
    repository::content,
};
use crate::WorkloadError;

/// A hasher without work: object names already are hashes.
#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        unreachable!("only whole numbers are hashed, not {} bytes", bytes.len())
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// The objects that the copy on the volume has.
///
/// Memory: 9 to 21 bytes an object of any size (the first 8 bytes of its name in a hash set that
/// doubles), about 20 MiB for a million objects. Among ten million objects, two share these 8 bytes
/// with a probability of 3 in a million. One of the two would then be missing.
#[derive(Default)]
pub(super) struct Seen(HashSet<u64, BuildHasherDefault<AsIs>>);

/// New objects, in the order of writing.
#[derive(Default)]
pub(super) struct NewObjects {
    commits: Vec<Oid>,
    trees: Vec<Oid>,
    blobs: Vec<Oid>,
}

impl NewObjects {
    pub fn len(&self) -> usize {
        self.commits.len() + self.trees.len() + self.blobs.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Oid> {
        self.commits.iter().chain(&self.trees).chain(&self.blobs).copied()
    }

    pub fn clear(&mut self) {
        self.commits.clear();
        self.trees.clear();
        self.blobs.clear();
    }
}

impl Seen {
    /// Marks every object reachable from `commit` as seen, and lists those that were not: commits
    /// from the newest, trees and blobs in the order of the walk.
    ///
    /// Cost: reads only the new commits and trees.
    pub fn add(&mut self, repository: &dyn Repository, commit: Oid, new: &mut NewObjects) -> Result<(), WorkloadError> {
        let mut to_visit = vec![commit];
        while let Some(oid) = to_visit.pop() {
            if !self.0.insert(oid.short()) {
                continue;
            }
            new.commits.push(oid);
            let info = repository.commit(oid)?;
            to_visit.extend(info.parents.iter().rev());
            self.add_tree(repository, info.tree, new)?;
        }
        Ok(())
    }

    /// Walks with an explicit stack: trees may nest deeper than a thread's stack allows.
    fn add_tree(&mut self, repository: &dyn Repository, tree: Oid, new: &mut NewObjects) -> Result<(), WorkloadError> {
        let mut levels = vec![self.open_tree(repository, tree, new)?];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.next() else {
                levels.pop();
                continue;
            };
            match entry.kind() {
                EntryKind::Tree => levels.push(self.open_tree(repository, entry.oid, new)?),
                EntryKind::Submodule => {}
                _ if self.0.insert(entry.oid.short()) => new.blobs.push(entry.oid),
                _ => {}
            }
        }
        Ok(())
    }

    /// Marks a tree as seen. Returns its entries, or none if it was seen before.
    fn open_tree(
        &mut self,
        repository: &dyn Repository,
        tree: Oid,
        new: &mut NewObjects,
    ) -> Result<std::vec::IntoIter<TreeEntry>, WorkloadError> {
        if !self.0.insert(tree.short()) {
            return Ok(Vec::new().into_iter());
        }
        new.trees.push(tree);
        Ok(repository.tree(tree)?.into_iter())
    }
}

/// The state of `.git/objects` on the volume.
pub(super) struct Store {
    fan_out: [bool; 256],
    /// Loose objects in `objects/17`, the only directory that `git gc --auto` counts.
    pub loose_in_17: u32,
    /// All loose objects, if gc needs them.
    loose: Option<BTreeSet<Oid>>,
    pub packs: Vec<Oid>,
}

impl Store {
    /// An empty store. `keep_names` is needed if loose objects are removed later.
    ///
    /// Memory: with `keep_names` at most about 7,000 names.
    pub fn new(keep_names: bool) -> Self {
        Self { fan_out: [false; 256], loose_in_17: 0, loose: keep_names.then(BTreeSet::new), packs: Vec::new() }
    }

    /// Writes one loose object in git's way: a temporary name in its fan-out directory, then a
    /// rename.
    pub fn plan_loose(&mut self, oid: Oid, ops: &mut Vec<Op>) {
        let hex = oid.to_string();
        let directory = format!(".git/objects/{}", &hex[..2]);
        let temporary = format!("{directory}/tmp_obj_{}", &hex[34..]);
        let fan_out = &mut self.fan_out[usize::from(oid.0[0])];
        if !*fan_out {
            *fan_out = true;
            ops.push(mkdir(&directory));
        }
        ops.push(Op::Create { path: path(&temporary), mode: 0o444, content: content(ContentKey::Loose(oid)) });
        ops.push(rename(&temporary, &format!("{directory}/{}", &hex[2..])));
        self.loose_in_17 += u32::from(oid.0[0] == 0x17);
        if let Some(loose) = &mut self.loose {
            loose.insert(oid);
        }
    }

    /// Writes a pack and its index in the way of `index-pack` (`fetched`) or `pack-objects`. Both
    /// files are flushed to the device.
    pub fn plan_pack(
        &mut self,
        key: PackKey,
        fetched: bool,
        packs: &dyn PackNames,
        ops: &mut Vec<Op>,
    ) -> Result<(), WorkloadError> {
        let name = packs.pack_name(key)?;
        let directory = ".git/objects/pack";
        let suffix = &name.to_string()[34..];
        let (tmp_pack, tmp_idx) = (format!("{directory}/tmp_pack_{suffix}"), format!("{directory}/tmp_idx_{suffix}"));
        let file = |path_text: &str, key| Op::Create { path: path(path_text), mode: 0o444, content: content(key) };
        let fsync = |path_text: &str| Op::Fsync { path: path(path_text) };
        let keep = format!("{directory}/pack-{name}.keep");
        ops.push(file(&tmp_pack, ContentKey::Pack(key)));
        if fetched {
            ops.push(file(&tmp_idx, ContentKey::PackIdx(key)));
            ops.push(fsync(&tmp_idx));
            ops.push(fsync(&tmp_pack));
            let content = Content::Inline(b"fetch-pack on localhost\n".as_slice().into());
            ops.push(Op::Create { path: path(&keep), mode: 0o600, content });
        } else {
            ops.push(fsync(&tmp_pack));
            ops.push(file(&tmp_idx, ContentKey::PackIdx(key)));
            ops.push(fsync(&tmp_idx));
        }
        ops.push(rename(&tmp_pack, &format!("{directory}/pack-{name}.pack")));
        ops.push(rename(&tmp_idx, &format!("{directory}/pack-{name}.idx")));
        if fetched {
            ops.push(unlink(&keep));
        }
        // Two different keys can have the same bytes; the rename then replaces the older pack.
        if !self.packs.contains(&name) {
            self.packs.push(name);
        }
        Ok(())
    }

    /// Removes every pack but the newest, each with its index.
    pub fn plan_drop_old_packs(&mut self, ops: &mut Vec<Op>) {
        let Some(newest) = self.packs.pop() else { return };
        for name in self.packs.drain(..) {
            ops.push(unlink(&format!(".git/objects/pack/pack-{name}.pack")));
            ops.push(unlink(&format!(".git/objects/pack/pack-{name}.idx")));
        }
        self.packs.push(newest);
    }

    /// Removes every loose object and the empty fan-out directories.
    pub fn plan_drop_loose(&mut self, ops: &mut Vec<Op>) {
        let Some(loose) = &mut self.loose else { return };
        let mut loose = std::mem::take(loose).into_iter().peekable();
        for first in 0..=255u8 {
            if !std::mem::take(&mut self.fan_out[usize::from(first)]) {
                continue;
            }
            while let Some(oid) = loose.next_if(|oid| oid.0[0] == first) {
                let hex = oid.to_string();
                ops.push(unlink(&format!(".git/objects/{}/{}", &hex[..2], &hex[2..])));
            }
            ops.push(Op::Rmdir { path: path(&format!(".git/objects/{first:02x}")) });
        }
        self.loose_in_17 = 0;
    }
}
