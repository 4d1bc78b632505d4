//! Inodes: lookup by name, creation, links, and removal of names.

use bytes::Bytes;
use senesce_fsapi::{Attributes, Caller, FileKind, FsError, FsResult, Ino, MAX_SYMLINK_BYTES, NewNode};

use super::{
    evergreen::EvergreenFs,
    inode_record::{Body, Inode},
    inode_table::Object,
    names::{Target, check_alive, set_left, touch},
};
use crate::{Batch, KeyValue, keys::home_of_key};

/// The most names of one inode.
const MAX_LINKS: u32 = u32::MAX;

impl<S: KeyValue> EvergreenFs<S> {
    pub(super) fn do_lookup(&self, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        let node = self.table.get(directory);
        let object = self.reading(&node)?;
        match name {
            b"." => object.inode.check_directory().map(|()| object.inode.stat(directory)),
            b".." => {
                let parent = object.inode.parent()?;
                check_alive(&object)?;
                drop(object); // a child is never locked before its parent
                Ok(self.reading(&self.table.get(parent))?.inode.stat(parent))
            }
            name => {
                let entry = self.find(&object, name)?.ok_or(FsError::NotFound)?;
                let child = self.node_of(&object.home, name, &entry)?;
                Ok(self.reading(&child)?.inode.stat(entry.ino))
            }
        }
    }

    pub(super) fn make(
        &self,
        caller: &Caller,
        directory: Ino,
        name: &[u8],
        node: &NewNode,
        target: &[u8],
    ) -> FsResult<Attributes> {
        let parent = self.table.get(directory);
        let mut parent = self.writing(&parent)?;
        let found = self.find_place(&parent, name)?;
        if found.entry.is_some() {
            return Err(FsError::Exists);
        }
        check_alive(&parent)?;
        if parent.inode.links == MAX_LINKS {
            return Err(FsError::TooManyLinks { max: MAX_LINKS });
        }
        let ino = self.new_ino()?;
        let home = parent.home.child(self.layout, name, ino.0);
        let inode = new_inode(caller, &parent.inode.stat(directory), node, target);
        let mut batch = Batch::new();
        let mut changed = parent.inode;
        touch(&mut changed, caller.now);
        let made = Target { ino, kind: node.kind, home: &home };
        let label = self.add_name(&mut batch, (&parent, &mut changed), (name, found.next.as_ref()), &made);
        self.change_inode(&mut batch, directory, &parent, &changed);
        batch.put(home.inode_key(), inode.encode());
        batch.put(home_of_key(ino.0), home.bytes().to_vec());
        if !target.is_empty() {
            batch.put(home.target_key(), Bytes::copy_from_slice(target));
        }
        batch.claim.bytes += inode.claim(ino, &home);
        self.store.apply(batch)?;
        parent.inode = changed;
        parent.labels.note_new(label.label, label.between, name);
        self.table.insert(ino, Object::new(home, inode));
        Ok(inode.stat(ino))
    }

    pub(super) fn do_link(&self, caller: &Caller, ino: Ino, directory: Ino, name: &[u8]) -> FsResult<Attributes> {
        let node = self.table.get(ino);
        if self.reading(&node)?.inode.is_directory() {
            return Err(FsError::NotPermitted);
        }
        let parent = self.table.get(directory);
        // Kinds never change: only a directory is locked before what it names.
        let is_directory = self.reading(&parent).and_then(|parent| parent.inode.check_directory());
        if let Err(error) = is_directory {
            return self.reading(&node).and_then(|object| check_alive(&object)).and(Err(error));
        }
        let mut parent = self.writing(&parent)?;
        let mut object = self.writing(&node)?;
        check_alive(&object)?;
        let found = self.find_place(&parent, name)?;
        if found.entry.is_some() {
            return Err(FsError::Exists);
        }
        check_alive(&parent)?;
        let mut inode = object.inode;
        inode.links = inode.links.checked_add(1).ok_or(FsError::TooManyLinks { max: MAX_LINKS })?;
        inode.changed = caller.now;
        let mut batch = Batch::new();
        let mut changed = parent.inode;
        touch(&mut changed, caller.now);
        let target = Target { ino, kind: inode.kind, home: &object.home };
        let label = self.add_name(&mut batch, (&parent, &mut changed), (name, found.next.as_ref()), &target);
        self.change_inode(&mut batch, directory, &parent, &changed);
        self.change_inode(&mut batch, ino, &object, &inode);
        self.store.apply(batch)?;
        parent.inode = changed;
        parent.labels.note_new(label.label, label.between, name);
        object.inode = inode;
        Ok(inode.stat(ino))
    }

    /// Removes a name, of a directory if `is_rmdir`, else of another kind.
    pub(super) fn remove(&self, caller: &Caller, directory: Ino, name: &[u8], is_rmdir: bool) -> FsResult<()> {
        let parent = self.table.get(directory);
        let mut parent = self.writing(&parent)?;
        let found = self.find_place(&parent, name)?;
        let entry = found.entry.ok_or(FsError::NotFound)?;
        match (entry.kind == FileKind::Directory, is_rmdir) {
            (true, false) => return Err(FsError::IsDirectory),
            (false, true) => return Err(FsError::NotDirectory),
            _ => {}
        }
        let node = self.node_of(&parent.home, name, &entry)?;
        let object = self.writing(&node)?;
        if is_rmdir && object.inode.size > 0 {
            return Err(FsError::NotEmpty);
        }
        let mut batch = Batch::new();
        batch.claim.is_removal = true;
        let mut changed = parent.inode;
        touch(&mut changed, caller.now);
        self.strike_name(&mut batch, (&parent, &mut changed), name, &entry, found.next.as_ref());
        let left = self.lose_name(&mut batch, caller, &node, &object);
        self.change_inode(&mut batch, directory, &parent, &changed);
        self.store.apply(batch)?;
        parent.inode = changed;
        set_left(object, left);
        Ok(())
    }
}

/// Errors: an invalid target of a symbolic link.
pub fn check_target(target: &[u8]) -> FsResult<()> {
    match target.len() {
        0 => Err(FsError::NotFound),
        bytes if bytes > MAX_SYMLINK_BYTES => Err(FsError::TooLong { what: "a target", bytes, max: MAX_SYMLINK_BYTES }),
        _ => Ok(()),
    }
}

fn new_inode(caller: &Caller, parent: &Attributes, node: &NewNode, target: &[u8]) -> Inode {
    let (uid, gid, permissions) = node.ownership(caller, parent);
    let is_device = matches!(node.kind, FileKind::CharDevice | FileKind::BlockDevice);
    let body = match node.kind {
        FileKind::File => Body::File { blocks: 0, reserved: 0 },
        FileKind::Directory => Body::Directory { parent: parent.ino, last_label: 0, unordered: 0 },
        FileKind::Symlink => Body::Symlink,
        _ => Body::Special { device: if is_device { node.device } else { 0 } },
    };
    Inode { uid, gid, size: target.len() as u64, ..Inode::new(node.kind, permissions, body, caller.now) }
}
