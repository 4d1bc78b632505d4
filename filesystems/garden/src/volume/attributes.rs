//! Changes of attributes, lengths and contents, with the rules of POSIX for times.

use senesce_fsapi::{Attributes, Caller, FallocateMode, FileKind, FsError, FsResult, Ino, SetAttributes};

use super::contents::check_end;
use crate::{
    format::{BLOCK, data::Data, inode::Inode},
    store::Store,
};

/// The attributes that `stat` shows.
pub(crate) fn attributes_of(ino: u64, inode: &Inode) -> Attributes {
    Attributes {
        ino: Ino(ino),
        generation: inode.generation.into(),
        kind: inode.kind,
        permissions: inode.permissions.into(),
        links: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        size: inode.size,
        allocated: inode.blocks * BLOCK as u64,
        device: inode.device,
        accessed: inode.accessed,
        modified: inode.modified,
        changed: inode.changed,
    }
}

impl Store {
    /// The inode of a regular file. Errors: `Stale`, `IsDirectory`, `Invalid`.
    pub fn regular(&mut self, space: u32, ino: u64) -> FsResult<Inode> {
        let inode = self.user_inode(space, ino)?;
        match inode.kind {
            FileKind::File => Ok(inode),
            FileKind::Directory => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid { what: "not a regular file" }),
        }
    }

    pub(super) fn set_attributes(
        &mut self,
        space: u32,
        caller: &Caller,
        ino: u64,
        change: &SetAttributes,
    ) -> FsResult<Attributes> {
        self.user_inode(space, ino)?;
        if let Some(size) = change.size {
            self.regular(space, ino)?;
            check_end(0, size)?;
            self.resize(space, ino, size)?;
        }
        let mut inode = self.inode(space, ino)?;
        let sized = change.size.map(|_| caller.now);
        inode.permissions = change.permissions.map_or(inode.permissions, |permissions| (permissions & 0o7777) as u16);
        inode.uid = change.uid.unwrap_or(inode.uid);
        inode.gid = change.gid.unwrap_or(inode.gid);
        inode.accessed = change.accessed.unwrap_or(inode.accessed);
        inode.modified = change.modified.or(sized).unwrap_or(inode.modified);
        inode.changed = change.changed.unwrap_or(caller.now);
        self.put_inode(space, ino, &inode)?;
        Ok(attributes_of(ino, &inode))
    }

    pub(super) fn write(&mut self, space: u32, caller: &Caller, ino: u64, offset: u64, data: Data<'_>) -> FsResult<()> {
        self.regular(space, ino)?;
        check_end(offset, data.bytes.len() as u64)?;
        self.write_file(space, ino, offset, data)?;
        self.stamp_contents(space, caller, ino)
    }

    pub(super) fn allocate(
        &mut self,
        space: u32,
        caller: &Caller,
        ino: u64,
        how: FallocateMode,
        offset: u64,
        len: u64,
    ) -> FsResult<()> {
        let inode = self.regular(space, ino)?;
        if len == 0 {
            return Err(FsError::Invalid { what: "an empty range" });
        }
        let end = check_end(offset, len)?;
        let (zeros, keep_size) = match how {
            FallocateMode::Reserve { keep_size } => (false, keep_size),
            FallocateMode::Punch => (true, true),
            FallocateMode::Zero { keep_size } => (true, keep_size),
        };
        if zeros {
            self.punch(space, ino, offset, len)?;
        }
        if !keep_size && end > inode.size {
            self.resize(space, ino, end)?;
        }
        self.stamp_contents(space, caller, ino)
    }

    pub(super) fn stamp_contents(&mut self, space: u32, caller: &Caller, ino: u64) -> FsResult<()> {
        let mut inode = self.inode(space, ino)?;
        (inode.modified, inode.changed) = (caller.now, caller.now);
        Ok(self.put_inode(space, ino, &inode)?)
    }
}
