//! Renames.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use senesce_fsapi::{Caller, FileKind, FsError, FsResult, Ino, MAX_NAME_BYTES, RenameMode};

use super::{
    evergreen::{EvergreenFs, damaged},
    inode_record::{Body, Inode},
    inode_table::{Object, Writing},
    name_record::Entry,
    names::{Next, Target, check_alive, count_name, entry_bytes, set_left, touch},
};
use crate::{
    Batch, KeyValue,
    keys::{Home, home_of_key},
};

/// The most bytes of a file with one name that a rename moves to the keys of its new name.
const REHOMED_BYTES: u64 = 128 << 10;

type Name<'a> = (Ino, &'a [u8]);

/// The likely place of an object's contents, which decides how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likely {
    /// In memory, high in the tree, because they were written recently: read each block by its key.
    InMemory,
    /// In leaves on the device: a scan prefetches.
    OnDevice,
}

/// The locked directories of a rename, one if they are the same, with their new inodes.
struct Directories<'a> {
    from: Writing<'a>,
    to: Option<Writing<'a>>,
    from_inode: Inode,
    to_inode: Inode,
}

impl Directories<'_> {
    fn to(&self) -> &Object {
        self.to.as_deref().unwrap_or(&self.from)
    }

    /// The directory of the new name, and its new inode.
    fn target(&mut self) -> (&Object, &mut Inode) {
        match &self.to {
            Some(to) => (to, &mut self.to_inode),
            None => (&self.from, &mut self.from_inode),
        }
    }
}

impl<S: KeyValue> EvergreenFs<S> {
    pub(super) fn do_rename(&self, caller: &Caller, from: Name<'_>, to: Name<'_>, how: RenameMode) -> FsResult<()> {
        // From here on no other call changes the parent of a directory, and no other call locks two
        // siblings.
        let _alone = self.lock_renames();
        if from.0 == to.0 {
            let node = self.table.get(from.0);
            let object = self.writing(&node)?;
            let (from_inode, to_inode) = (object.inode, object.inode);
            let directories = Directories { from: object, to: None, from_inode, to_inode };
            return self.rename_between(caller, directories, (from, &[]), (to, &[]), how);
        }
        let (above_from, above_to) = (self.ancestors(from.0)?, self.ancestors(to.0)?);
        let (first, second) = (self.table.get(from.0), self.table.get(to.0));
        if !self.reading(&second)?.inode.is_directory() {
            // Kinds never change: only directories are locked before others.
            self.find(&*self.reading(&first)?, from.1)?.ok_or(FsError::NotFound)?;
            return Err(FsError::NotDirectory);
        }
        self.reading(&first)?.inode.check_directory()?;
        let to_is_above = above_from.contains(&to.0) || (!above_to.contains(&from.0) && to.0 < from.0);
        let (object, other) = if to_is_above {
            let other = self.writing(&second)?;
            (self.writing(&first)?, other)
        } else {
            (self.writing(&first)?, self.writing(&second)?)
        };
        let (from_inode, to_inode) = (object.inode, other.inode);
        let directories = Directories { from: object, to: Some(other), from_inode, to_inode };
        self.rename_between(caller, directories, (from, &above_from), (to, &above_to), how)
    }

    /// An inode and the directories above it.
    pub(super) fn ancestors(&self, mut ino: Ino) -> FsResult<Vec<Ino>> {
        let mut all = vec![ino];
        loop {
            let node = self.table.get(ino);
            let object = self.reading(&node)?;
            match object.inode.parent() {
                Ok(parent) if parent != ino && object.inode.links > 0 => ino = parent,
                _ => return Ok(all),
            }
            all.push(ino);
        }
    }

    fn rename_between(
        &self,
        caller: &Caller,
        mut directories: Directories<'_>,
        (from, above_from): (Name<'_>, &[Ino]),
        (to, above_to): (Name<'_>, &[Ino]),
        how: RenameMode,
    ) -> FsResult<()> {
        let found = self.find_place(&directories.from, from.1)?;
        let moved = found.entry.ok_or(FsError::NotFound)?;
        let place = self.find_place(directories.to(), to.1)?;
        check_alive(directories.to())?;
        match (how, &place.entry) {
            (RenameMode::NoReplace, Some(_)) => return Err(FsError::Exists),
            (RenameMode::Exchange, None) => return Err(FsError::NotFound),
            (_, Some(there)) if there.ino == moved.ino => return Ok(()),
            _ => {}
        }
        let loops = FsError::Invalid { what: "a directory cannot come below itself" };
        if above_to.contains(&moved.ino) {
            return Err(loops);
        }
        match &place.entry {
            Some(there) if how == RenameMode::Exchange && above_from.contains(&there.ino) => return Err(loops),
            Some(there) if how != RenameMode::Exchange => match (moved.kind, there.kind) {
                (FileKind::Directory, FileKind::Directory) if above_from.contains(&there.ino) => {
                    return Err(FsError::NotEmpty);
                }
                (FileKind::Directory, FileKind::Directory) => {}
                (FileKind::Directory, _) => return Err(FsError::NotDirectory),
                (_, FileKind::Directory) => return Err(FsError::IsDirectory),
                _ => {}
            },
            _ => {}
        }
        let moved_node = self.node_of(&directories.from.home, from.1, &moved)?;
        touch(&mut directories.from_inode, caller.now);
        touch(&mut directories.to_inode, caller.now);
        let there = match &place.entry {
            Some(there) => Some((there, self.node_of(&directories.to().home, to.1, there)?)),
            None => None,
        };
        // In the order of their numbers, as a clone between two files locks them.
        let is_first = there.as_ref().is_some_and(|(there, _)| there.ino < moved.ino);
        let first = there.as_ref().filter(|_| is_first).map(|(_, node)| self.writing(node)).transpose()?;
        let mut moved_object = self.writing(&moved_node)?;
        let second = there.as_ref().filter(|_| !is_first).map(|(_, node)| self.writing(node)).transpose()?;
        let mut batch = Batch::new();
        let (new_home, inode) =
            self.move_object(&mut batch, caller, &moved_object, moved.ino, (directories.to(), to))?;
        let target = Target { ino: moved.ino, kind: moved.kind, home: &new_home };
        let mut label = None;
        match (&there, first.or(second)) {
            (Some((there, _)), Some(mut there_object)) if how == RenameMode::Exchange => {
                let (there_home, there_inode) =
                    self.move_object(&mut batch, caller, &there_object, there.ino, (&directories.from, from))?;
                let back = Target { ino: there.ino, kind: there.kind, home: &there_home };
                self.replace(&mut batch, &directories.from, from.1, &moved, moved.floor, &back);
                self.replace(&mut batch, directories.to(), to.1, there, there.floor, &target);
                change_kind(&mut directories.from_inode, moved.kind, there.kind);
                change_kind(directories.target().1, there.kind, moved.kind);
                self.finish(batch, &mut directories, (from, to))?;
                if self.told_home(&directories.from.home, from.1, there.ino, &there_home).is_some() {
                    self.tending.note_rename();
                }
                there_object.home = there_home;
                there_object.inode = there_inode;
            }
            (Some((there, node)), Some(there_object)) => {
                if there_object.inode.is_directory() && there_object.inode.size > 0 {
                    return Err(FsError::NotEmpty);
                }
                batch.claim.is_removal = true;
                let next = self.strike_name(
                    &mut batch,
                    (&directories.from, &mut directories.from_inode),
                    from.1,
                    &moved,
                    found.next.as_ref(),
                );
                // The successor of the removed name may be the replaced name.
                let is_next = directories.to.is_none() && next.as_ref().is_some_and(|next| next.name == to.1);
                let floor = next.filter(|_| is_next).map_or(there.floor, |next| next.floor);
                self.replace(&mut batch, directories.to(), to.1, there, floor, &target);
                change_kind(directories.target().1, there.kind, moved.kind);
                let left = self.lose_name(&mut batch, caller, node, &there_object);
                self.finish(batch, &mut directories, (from, to))?;
                set_left(there_object, left);
            }
            _ => {
                let next = self.strike_name(
                    &mut batch,
                    (&directories.from, &mut directories.from_inode),
                    from.1,
                    &moved,
                    found.next.as_ref(),
                );
                let behind =
                    if directories.to.is_some() { place.next } else { behind_new_name(from.1, place.next, next) };
                label = Some(self.add_name(&mut batch, directories.target(), (to.1, behind.as_ref()), &target));
                self.finish(batch, &mut directories, (from, to))?;
            }
        }
        if let Some(label) = label {
            let directory = directories.to.as_mut().unwrap_or(&mut directories.from);
            directory.labels.note_new(label.label, label.between, to.1);
        }
        if self.told_home(&directories.to().home, to.1, moved.ino, &new_home).is_some() {
            self.tending.note_rename();
        }
        moved_object.home = new_home;
        moved_object.inode = inode;
        Ok(())
    }

    /// Adds the changes of the directories to the batch, and applies it.
    fn finish(
        &self,
        mut batch: Batch,
        directories: &mut Directories<'_>,
        (from, to): (Name<'_>, Name<'_>),
    ) -> FsResult<()> {
        self.change_inode(&mut batch, from.0, &directories.from, &directories.from_inode);
        if let Some(other) = &directories.to {
            self.change_inode(&mut batch, to.0, other, &directories.to_inode);
        }
        self.store.apply(batch)?;
        directories.from.inode = directories.from_inode;
        if let Some(other) = &mut directories.to {
            other.inode = directories.to_inode;
        }
        Ok(())
    }

    /// Replaces the record of a name, which keeps its label.
    pub(super) fn replace(
        &self,
        batch: &mut Batch,
        directory: &Object,
        name: &[u8],
        old: &Entry,
        floor: u64,
        target: &Target<'_>,
    ) {
        batch.claim.bytes -= entry_bytes(&directory.home, name, old);
        self.put_entry(batch, &directory.home, name, old.label, floor, target);
    }

    /// Adds the move of an inode to a new name: its new home, if it moves, and its record.
    fn move_object(
        &self,
        batch: &mut Batch,
        caller: &Caller,
        object: &Object,
        ino: Ino,
        (directory, to): (&Object, Name<'_>),
    ) -> FsResult<(Home, Inode)> {
        let mut inode = object.inode;
        inode.changed = caller.now;
        if let Body::Directory { parent, .. } = &mut inode.body {
            *parent = to.0;
        }
        let born = directory.home.child(self.layout, to.1, ino.0);
        let may_move = !inode.is_directory() && inode.links == 1 && inode.size <= REHOMED_BYTES;
        if !may_move || born == object.home || !self.fits_a_batch(&inode, &born) {
            self.change_inode(batch, ino, object, &inode);
            return Ok((object.home.clone(), inode));
        }
        batch.claim.bytes += inode.claim(ino, &born) - object.inode.claim(ino, &object.home);
        self.move_content(batch, object, &born, Likely::InMemory)?;
        batch.put(born.inode_key(), inode.encode());
        batch.put(home_of_key(ino.0), born.bytes().to_vec());
        Ok((born, inode))
    }

    /// Whether one batch can move all of an object.
    pub(super) fn fits_a_batch(&self, inode: &Inode, to: &Home) -> bool {
        let (blocks, _) = inode.file().unwrap_or_default();
        let values = blocks + u64::from(inode.xattr_pieces) + 1;
        values <= self.batch_values(to.byte_count() + MAX_NAME_BYTES + 4) as u64
    }

    /// Moves all records of an object's home to another one, except its inode.
    pub(super) fn move_content(&self, batch: &mut Batch, object: &Object, to: &Home, likely: Likely) -> FsResult<()> {
        let home = &object.home;
        match (object.inode.body, object.inode.dense_blocks()) {
            (Body::File { blocks: 0, .. }, _) => {}
            (Body::File { .. }, Some(blocks)) if likely == Likely::InMemory => {
                for block in 0..blocks {
                    let value = self.block(home, block)?;
                    let lost = || damaged(format!("{home:?}"), format!("block {block} of {blocks} is missing"));
                    batch.put(to.block_key(block), value.ok_or_else(lost)?);
                }
            }
            (Body::File { blocks, .. }, _) => {
                let found = self.copy_range(batch, home, to, home.blocks_from(0))?;
                if found != blocks {
                    let what = format!("found {found} blocks; the inode has {blocks}");
                    return Err(damaged(format!("{home:?}"), what).into());
                }
            }
            (Body::Symlink, _) => batch.put(to.target_key(), self.target(object)?),
            (Body::Directory { .. } | Body::Special { .. }, _) => {}
        }
        if object.inode.xattr_pieces > 0 {
            self.copy_range(batch, home, to, home.xattrs())?;
        }
        let (own, blocks) = (home.metadata(), home.blocks_from(0));
        batch.delete_range(own.start, own.end);
        if matches!(object.inode.body, Body::File { blocks: 1.., .. }) {
            batch.delete_range(blocks.start, blocks.end);
        }
        Ok(())
    }

    /// Copies the values of a range to another home. Returns their number.
    fn copy_range(&self, batch: &mut Batch, home: &Home, to: &Home, range: Range<Vec<u8>>) -> FsResult<u64> {
        let (behind, mut count) = (1 + home.byte_count(), 0);
        self.store.scan(&range.start, &range.end, &mut |key, value| {
            batch.put(Bytes::from([&key[..1], to.bytes(), &key[behind..]].concat()), value);
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}

/// Changes the kind of a name in the counts of its directory.
fn change_kind(inode: &mut Inode, old: FileKind, new: FileKind) {
    count_name(inode, old, -1);
    count_name(inode, new, 1);
}

/// The successor of a new name, after another name of the directory was removed. `next`: the
/// successor before the removal; `behind`: the changed successor of the removed name.
fn behind_new_name(struck: &[u8], next: Option<Next>, behind: Option<Next>) -> Option<Next> {
    match (next, behind) {
        (Some(next), behind) if next.name == struck => behind,
        (Some(next), Some(behind)) if next.name == behind.name => Some(behind),
        (next, _) => next,
    }
}
