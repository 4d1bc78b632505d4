//! The objects of all homes: each has an inode with correct counts.

use std::{collections::BTreeMap, ops::ControlFlow};

use senesce_fsapi::{FileKind, Ino, Timestamp};

use super::{FileRepair, gather::Object};
use crate::fs::{
    inode_record::{Body, Inode},
    labels::LABELS,
    xattrs,
};
use crate::{
    KeyValue, Result,
    keys::{self, Home},
};

impl<S: KeyValue> FileRepair<'_, S> {
    /// Adds an inode to every home, and a home record to every inode.
    pub(super) fn complete_objects(&mut self) -> Result<()> {
        let mut kinds: BTreeMap<u64, FileKind> = BTreeMap::from([(Ino::ROOT.0, FileKind::Directory)]);
        for entry in self.files.objects.values().flat_map(|object| object.names.values()) {
            kinds.entry(entry.ino.0).or_insert(entry.kind);
        }
        self.files.object(&Home::root());
        for home in self.files.objects.keys().cloned().collect::<Vec<_>>() {
            let ino = home.ino();
            let other = self.files.home_of.get(&ino).filter(|other| **other != home);
            if let Some(other) = other.filter(|other| self.files.inode(other).is_some()).cloned() {
                if !self.is_copy(&home, &other)? {
                    let place = home.path();
                    self.lose_at(&other, format!("other contents at {}: deleted", place.escape_ascii()));
                }
                self.tell(format!("deleted: entries of inode {ino} at {}", home.path().escape_ascii()));
                self.remove_object(&home)?;
                continue;
            }
            if self.files.inode(&home).is_none() {
                match made_up(&self.files.objects[&home], kinds.get(&ino).copied()) {
                    Some(inode) => {
                        self.tell(format!("inode {ino} was made again"));
                        let more = if inode.is_directory() { "perhaps names" } else { "the size after the last block" };
                        self.lose_at(&home, format!("owner, permissions, times, {more}"));
                        self.put_inode(&home, inode)?;
                    }
                    None => {
                        self.lose(home.path(), format!("inode {ino}: it is lost, and its remains are deleted"));
                        self.remove_told(&home)?;
                        continue;
                    }
                }
            }
            let is_link = self.files.inode(&home).is_some_and(|inode| inode.kind == FileKind::Symlink);
            if is_link && self.files.objects[&home].target.is_none() {
                self.lose(home.path(), format!("symbolic link {ino}: its target is lost, so it is deleted"));
                self.remove_told(&home)?;
                continue;
            }
            if self.files.home_of.get(&ino) != Some(&home) {
                self.tell(format!("the home of inode {ino} is recorded again"));
                self.put(keys::home_of_key(ino), home.bytes().to_vec())?;
                self.files.home_of.insert(ino, home);
            }
        }
        for (ino, home) in self.files.home_of.clone() {
            if self.files.inode(&home).is_none() || home.ino() != ino {
                self.lose(home.path(), format!("inode {ino}: it is lost"));
                self.delete(keys::home_of_key(ino))?;
                self.files.home_of.remove(&ino);
            }
        }
        Ok(())
    }

    /// Deletes the entries of a home, and its home record. The caller has reported the loss.
    fn remove_told(&mut self, home: &Home) -> Result<()> {
        self.remove_object(home)?;
        let ino = home.ino();
        if self.files.home_of.get(&ino) == Some(home) {
            self.files.home_of.remove(&ino);
            self.delete(keys::home_of_key(ino))?;
        }
        Ok(())
    }

    /// Whether another home has all entries of this one.
    fn is_copy(&self, home: &Home, other: &Home) -> Result<bool> {
        let ranges = [(home.metadata(), other.metadata()), (home.blocks_from(0), other.blocks_from(0))];
        let behind = 1 + home.byte_count();
        for (own, others) in ranges {
            let mut result = Ok(true);
            self.store.scan(&own.start, &own.end, &mut |key, value| {
                let same = [&others.start[..=other.byte_count()], &key[behind..]].concat();
                result = self.store.get(&same).map(|there| there == Some(value));
                if matches!(result, Ok(true)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            if !result? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Corrects the counts in all inodes.
    pub(super) fn count(&mut self) -> Result<()> {
        for home in self.files.objects.keys().cloned().collect::<Vec<_>>() {
            self.drop_foreign(&home)?;
            self.count_xattrs(&home)?;
            self.relabel(&home)?;
            self.count_one(&home)?;
        }
        Ok(())
    }

    /// Deletes entries that belong to another kind of inode.
    fn drop_foreign(&mut self, home: &Home) -> Result<()> {
        let object = self.files.object(home);
        let Some(kind) = object.inode.map(|inode| inode.kind) else { return Ok(()) };
        let names = if kind == FileKind::Directory {
            Vec::new()
        } else {
            std::mem::take(&mut object.names).into_keys().collect()
        };
        let unordered = if kind == FileKind::Directory {
            Vec::new()
        } else {
            std::mem::take(&mut object.unordered).into_keys().collect()
        };
        let has_target = kind != FileKind::Symlink && object.target.take().is_some();
        let blocks = if kind == FileKind::File { 0 } else { std::mem::take(&mut object.blocks) };
        let has = [(names.len() as u64, "names"), (unordered.len() as u64, "places of names")];
        let has = has.into_iter().chain([(has_target.into(), "targets"), (blocks, "blocks")]);
        let has: Vec<String> =
            has.filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !has.is_empty() {
            self.lose_at(home, format!("{} of another kind of inode: deleted", has.join(", ")));
        }
        for name in names {
            self.delete(home.name_key(&name))?;
        }
        for number in unordered {
            self.delete(home.unordered_key(number))?;
        }
        if has_target {
            self.delete(home.target_key())?;
        }
        if blocks > 0 {
            self.delete_range(home.blocks_from(0))?;
        }
        Ok(())
    }

    /// Deletes extended attributes with a missing piece.
    fn count_xattrs(&mut self, home: &Home) -> Result<()> {
        let xattrs = std::mem::take(&mut self.files.object(home).xattrs);
        for (name, xattr) in xattrs {
            let pieces = xattr.told.map(|told| (xattrs::pieces(told as usize), u64::from(told) + 4));
            if pieces == Some((xattr.pieces as usize, xattr.bytes))
                && usize::from(xattr.last) + 1 == xattr.pieces as usize
            {
                self.files.object(home).xattrs.insert(name, xattr);
                continue;
            }
            let path = self.path_of(home);
            self.lose(path, format!("the attribute {}", name.escape_ascii()));
            self.delete_range(home.xattr(&name))?;
        }
        Ok(())
    }

    /// Gives ascending labels to names, if theirs are wrong.
    fn relabel(&mut self, home: &Home) -> Result<()> {
        let object = self.files.object(home);
        let Some(Inode { body: Body::Directory { last_label, unordered, .. }, .. }) = object.inode else {
            return Ok(());
        };
        if !object.is_relabelled && has_good_labels(object, last_label, unordered) {
            return Ok(());
        }
        let numbers: Vec<u64> = std::mem::take(&mut object.unordered).into_keys().collect();
        let step = LABELS / (object.names.len() as u64 + 2);
        let mut label = 0;
        for entry in object.names.values_mut() {
            entry.floor = label;
            label += step;
            entry.label = label;
        }
        let names: Vec<(Vec<u8>, Vec<u8>)> =
            object.names.iter().map(|(name, entry)| (name.clone(), entry.encode())).collect();
        if let Some(Inode { body: Body::Directory { last_label, .. }, .. }) = &mut object.inode {
            *last_label = label;
        }
        let inode = object.inode;
        self.tell(format!("the names of inode {} have new labels", home.ino()));
        for number in numbers {
            self.delete(home.unordered_key(number))?;
        }
        for (name, record) in names {
            self.put(home.name_key(&name), record)?;
        }
        inode.map_or(Ok(()), |inode| self.put_inode(home, inode))
    }

    fn count_one(&mut self, home: &Home) -> Result<()> {
        let object = self.files.object(home);
        let Some(old) = object.inode else { return Ok(()) };
        let mut new = old;
        new.links = match () {
            () if object.path.is_none() => 0,
            () if old.is_directory() => 2 + object.directories,
            () => object.names_of,
        };
        new.xattr_pieces = object.xattrs.values().map(|xattr| xattr.pieces).sum();
        new.xattr_bytes = object
            .xattrs
            .iter()
            .map(|(name, xattr)| u64::from(xattr.pieces) * (name.len() as u64 + 3) + xattr.bytes)
            .sum();
        let mut missing = None;
        match &mut new.body {
            Body::File { blocks, .. } => {
                missing = blocks
                    .checked_sub(object.blocks)
                    .filter(|missing| *missing > 0)
                    .map(|missing| format!("{missing} blocks are missing"));
                *blocks = object.blocks;
                if object.blocks > 0 {
                    new.size = new.size.max(object.end);
                }
            }
            Body::Directory { .. } => {
                let names = object.names.len() as u64;
                missing = new
                    .size
                    .checked_sub(names)
                    .filter(|missing| *missing > 0)
                    .map(|missing| format!("{missing} names are missing"));
                new.size = names;
            }
            Body::Symlink => {
                new.size = object.target.unwrap_or(0) as u64;
                missing = (new.size != old.size)
                    .then(|| format!("its target has {} bytes; its inode has {}", new.size, old.size));
            }
            Body::Special { .. } => {}
        }
        let has_xattrs = (old.xattr_pieces, old.xattr_bytes) == (new.xattr_pieces, new.xattr_bytes);
        let path = object.path.clone().unwrap_or_else(|| home.path());
        if let Some(missing) = missing {
            self.lose(path.clone(), missing);
        }
        if !has_xattrs {
            self.lose(path.clone(), "extended attributes");
        }
        if old != new {
            self.tell(format!("the counts of inode {} ({}) are corrected", home.ino(), path.escape_ascii()));
            self.put_inode(home, new)?;
        }
        Ok(())
    }

    pub(super) fn path_of(&self, home: &Home) -> Vec<u8> {
        let path = self.files.objects.get(home).and_then(|object| object.path.clone());
        path.unwrap_or_else(|| home.path())
    }
}

/// An inode for the entries of a home. `None`: there is not enough information.
fn made_up(object: &Object, named: Option<FileKind>) -> Option<Inode> {
    let seen = match object {
        Object { target: Some(_), .. } => Some(FileKind::Symlink),
        object if object.blocks > 0 => Some(FileKind::File),
        object if !object.names.is_empty() => Some(FileKind::Directory),
        _ => named.filter(|kind| *kind == FileKind::Directory),
    };
    let kind = seen.filter(|kind| named.is_none_or(|named| named == *kind))?;
    let (permissions, size, body) = match kind {
        FileKind::Symlink => (0o777, object.target? as u64, Body::Symlink),
        FileKind::File => (0o600, object.end, Body::File { blocks: object.blocks, reserved: 0 }),
        _ => {
            let body = Body::Directory { parent: Ino::ROOT, last_label: 0, unordered: 0 };
            (0o700, object.names.len() as u64, body)
        }
    };
    // Links are counted later.
    Some(Inode { links: 1, size, ..Inode::new(kind, permissions, body, Timestamp::default()) })
}

/// Checks that labels ascend with the names. Each must exceed its floor, and the floor must not be
/// below the previous label. Unordered names need a number.
fn has_good_labels(object: &Object, last_label: u64, unordered: u64) -> bool {
    let (mut before, mut numbers) = (0, 0);
    for (name, entry) in &object.names {
        if let Some(number) = entry.label.checked_sub(LABELS) {
            numbers += 1;
            if number >= unordered || object.unordered.get(&number) != Some(name) {
                return false;
            }
        } else if entry.floor < before || entry.floor >= entry.label {
            return false;
        } else {
            before = entry.label;
        }
    }
    last_label >= before && last_label < LABELS && numbers == object.unordered.len()
}
