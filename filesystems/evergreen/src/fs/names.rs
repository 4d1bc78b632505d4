//! Names: their records, and their labels.

use std::ops::ControlFlow;

use bytes::Bytes;
use senesce_fsapi::{Caller, FileKind, FsError, FsResult, Ino, Timestamp, check_name};

use super::{
    evergreen::{EvergreenFs, damaged, orphan_bytes},
    inode_record::{Body, Inode},
    inode_table::{Node, Object, Writing},
    labels::LABELS,
    name_record::{Entry, FLOOR_AT},
};
use crate::{
    Batch, KeyValue, Message,
    keys::{Home, Key, orphan_key},
};

/// The entry of a name, and its successor.
pub struct Found {
    pub entry: Option<Entry>,
    pub next: Option<Next>,
}

/// The next name with a place in the order.
#[derive(Clone)]
pub struct Next {
    pub name: Vec<u8>,
    pub label: u64,
    pub floor: u64,
}

/// The inode of a new name: its number, kind and home.
pub struct Target<'a> {
    pub ino: Ino,
    pub kind: FileKind,
    pub home: &'a Home,
}

/// The label of a new name, and the labels around it.
pub struct NewLabel {
    pub label: u64,
    pub between: (u64, u64),
}

pub fn touch(inode: &mut Inode, now: Timestamp) {
    (inode.modified, inode.changed) = (now, now);
}

/// Counts a new or removed name in a directory.
pub fn count_name(directory: &mut Inode, kind: FileKind, sign: i32) {
    directory.size = directory.size.saturating_add_signed(sign.into());
    if kind == FileKind::Directory {
        directory.links = directory.links.saturating_add_signed(sign);
    }
}

impl<S: KeyValue> EvergreenFs<S> {
    pub(super) fn decode_entry(directory: &Home, name: &[u8], record: &[u8]) -> FsResult<Entry> {
        Entry::decode(record).map_err(|what| {
            let at = Key::Name(directory.clone(), name.to_vec());
            damaged(format!("{at:?}"), what).into()
        })
    }

    /// The entry of a name.
    pub(super) fn find(&self, directory: &Object, name: &[u8]) -> FsResult<Option<Entry>> {
        directory.inode.check_directory()?;
        check_name(name)?;
        let record = self.store.get(&directory.home.name_key(name))?;
        record.map(|record| Self::decode_entry(&directory.home, name, &record)).transpose()
    }

    /// The target of a symbolic link. Errors: `Invalid` for other kinds.
    pub(super) fn target(&self, object: &Object) -> FsResult<Bytes> {
        if object.inode.body != Body::Symlink {
            return Err(FsError::Invalid { what: "not a symbolic link" });
        }
        let target = self.store.get(&object.home.target_key())?.unwrap_or_default();
        if target.len() as u64 != object.inode.size {
            let what = format!("its target has {} bytes; expected {}", target.len(), object.inode.size);
            return Err(damaged(format!("{:?}", object.home), what).into());
        }
        Ok(target)
    }

    /// The entry of a name and its successor, for a creation or removal.
    pub(super) fn find_place(&self, directory: &Object, name: &[u8]) -> FsResult<Found> {
        directory.inode.check_directory()?;
        check_name(name)?;
        let mut found = Found { entry: None, next: None };
        self.scan(directory.home.name_key(name)..directory.home.names().end, &mut |key, value| {
            let Key::Name(home, at) = key else { return Ok(ControlFlow::Continue(())) };
            let entry = Self::decode_entry(&home, &at, &value)?;
            if at == name {
                found.entry = Some(entry);
            } else if entry.label < LABELS {
                found.next = Some(Next { name: at, label: entry.label, floor: entry.floor });
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Adds a new name to a batch. `inode` is the new one of the directory. Returns the label to
    /// note.
    pub(super) fn add_name(
        &self,
        batch: &mut Batch,
        (directory, inode): (&Object, &mut Inode),
        (name, next): (&[u8], Option<&Next>),
        target: &Target<'_>,
    ) -> NewLabel {
        count_name(inode, target.kind, 1);
        let Body::Directory { last_label, unordered, .. } = &mut inode.body else {
            unreachable!("checked by the caller")
        };
        let (floor, above) = next.map_or((*last_label, LABELS), |next| (next.floor, next.label));
        let (label, floor) = match directory.labels.choose(floor, above) {
            Some(label) => {
                match next {
                    Some(next) => set_floor(batch, &directory.home, &next.name, label),
                    None => *last_label = label,
                }
                (label, floor)
            }
            None => {
                let number = *unordered;
                *unordered += 1;
                batch.put(directory.home.unordered_key(number), name.to_vec());
                batch.claim.bytes += unordered_bytes(&directory.home, number, name);
                (LABELS + number, 0)
            }
        };
        self.put_entry(batch, &directory.home, name, label, floor, target);
        NewLabel { label, between: (floor, above) }
    }

    /// Adds the record of a name to a batch. The caller frees the claim of a replaced one.
    pub(super) fn put_entry(
        &self,
        batch: &mut Batch,
        directory: &Home,
        name: &[u8],
        label: u64,
        floor: u64,
        target: &Target<'_>,
    ) {
        let home = self.told_home(directory, name, target.ino, target.home);
        let entry = Entry { ino: target.ino, kind: target.kind, label, floor, home };
        batch.claim.bytes += entry_bytes(directory, name, &entry);
        batch.put(directory.name_key(name), entry.encode());
    }

    /// Removes a name; its successor receives its labels. Returns the changed successor.
    pub(super) fn strike_name(
        &self,
        batch: &mut Batch,
        (directory, inode): (&Object, &mut Inode),
        name: &[u8],
        entry: &Entry,
        next: Option<&Next>,
    ) -> Option<Next> {
        count_name(inode, entry.kind, -1);
        batch.delete(directory.home.name_key(name));
        batch.claim.bytes -= entry_bytes(&directory.home, name, entry);
        let Body::Directory { last_label, .. } = &mut inode.body else { unreachable!("checked by the caller") };
        if let Some(number) = entry.label.checked_sub(LABELS) {
            batch.delete(directory.home.unordered_key(number));
            batch.claim.bytes -= unordered_bytes(&directory.home, number, name);
            return next.cloned();
        }
        match next {
            Some(next) => {
                set_floor(batch, &directory.home, &next.name, entry.floor);
                Some(Next { floor: entry.floor, ..next.clone() })
            }
            None => {
                *last_label = entry.floor;
                None
            }
        }
    }

    /// Removes one name of an inode. Returns the new inode if it has another name or is held; else
    /// removes the object.
    pub(super) fn lose_name(&self, batch: &mut Batch, caller: &Caller, node: &Node, object: &Object) -> Option<Inode> {
        let mut inode = object.inode;
        inode.changed = caller.now;
        inode.links = if inode.is_directory() { 0 } else { inode.links.saturating_sub(1) };
        if inode.links == 0 && !node.is_held() {
            self.remove_object(batch, node.ino, object);
            return None;
        }
        if inode.links == 0 {
            batch.put(orphan_key(node.ino.0), vec![1]);
            batch.claim.bytes += orphan_bytes(node.ino);
        }
        self.change_inode(batch, node.ino, object, &inode);
        Some(inode)
    }
}

/// Sets the state of an inode in memory after the batch.
pub fn set_left(mut object: Writing<'_>, left: Option<Inode>) {
    match left {
        Some(inode) => object.inode = inode,
        None => object.set_gone(),
    }
}

/// Errors: `NotFound` for an inode without a name.
pub fn check_alive(object: &Object) -> FsResult<()> {
    if object.inode.links == 0 { Err(FsError::NotFound) } else { Ok(()) }
}

fn set_floor(batch: &mut Batch, directory: &Home, name: &[u8], floor: u64) {
    batch.send(directory.name_key(name), Message::patch(FLOOR_AT, Bytes::copy_from_slice(&floor.to_le_bytes())));
}

/// The claim of a name.
pub fn entry_bytes(directory: &Home, name: &[u8], entry: &Entry) -> i64 {
    (2 + directory.byte_count() + name.len() + entry.encode().len()) as i64
}

/// The claim of the record of an unordered name.
pub fn unordered_bytes(directory: &Home, number: u64, name: &[u8]) -> i64 {
    (directory.unordered_key(number).len() + name.len()) as i64
}
