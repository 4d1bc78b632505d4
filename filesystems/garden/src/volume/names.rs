//! Names: making, linking, removing, renaming.

use senesce_fsapi::{
    Attributes, Caller, FileKind, FsError, FsResult, MAX_SYMLINK_BYTES, NewNode, RenameMode, check_name,
};

use super::attributes::attributes_of;
use crate::{
    format::{directory::Entry, inode::Inode},
    store::{Store, volume},
};

/// A name in a directory.
type At<'a> = (u64, &'a [u8]);

/// Names of an inode, at most.
const MAX_LINKS: u32 = 1 << 30;

impl Store {
    pub(super) fn make_node(
        &mut self,
        space: u32,
        caller: &Caller,
        at: At<'_>,
        node: &NewNode,
        ino: u64,
    ) -> FsResult<Attributes> {
        if node.kind == FileKind::Symlink {
            return Err(FsError::Invalid { what: "a symbolic link is made with its target" });
        }
        let parent = self.check_free(space, at)?;
        if node.kind == FileKind::Directory {
            check_links(&parent)?;
        }
        self.make_named(space, caller, at, &parent, node, ino)
    }

    pub(super) fn make_symlink(
        &mut self,
        space: u32,
        caller: &Caller,
        at: At<'_>,
        target: &[u8],
        ino: u64,
    ) -> FsResult<Attributes> {
        if target.is_empty() {
            return Err(FsError::NotFound);
        }
        if target.len() > MAX_SYMLINK_BYTES {
            return Err(FsError::TooLong { what: "a target", bytes: target.len(), max: MAX_SYMLINK_BYTES });
        }
        let parent = self.check_free(space, at)?;
        let node = NewNode { kind: FileKind::Symlink, permissions: 0o777, device: 0 };
        self.make_named(space, caller, at, &parent, &node, ino)?;
        self.write_file(space, ino, 0, target)?;
        Ok(attributes_of(ino, &self.inode(space, ino)?))
    }

    pub(super) fn link(&mut self, space: u32, caller: &Caller, ino: u64, at: At<'_>) -> FsResult<Attributes> {
        let inode = self.user_inode(space, ino)?;
        if inode.kind == FileKind::Directory {
            return Err(FsError::NotPermitted);
        }
        self.check_free(space, at)?;
        if inode.links == 0 {
            return Err(FsError::NotFound);
        }
        check_links(&inode)?;
        self.add_name(space, at.0, at.1, ino, inode.kind)?;
        self.stamp_names(space, caller, at.0, 0)?;
        self.count_links(space, caller, ino, 1)?;
        Ok(attributes_of(ino, &self.inode(space, ino)?))
    }

    pub(super) fn unlink(&mut self, space: u32, caller: &Caller, at: At<'_>, held: bool) -> FsResult<()> {
        let entry = self.entry(space, at)?;
        if entry.kind == FileKind::Directory {
            return Err(FsError::IsDirectory);
        }
        self.remove_name(space, at.0, entry.cookie)?;
        self.stamp_names(space, caller, at.0, 0)?;
        self.drop_link(space, caller, entry.ino, held)
    }

    pub(super) fn rmdir(&mut self, space: u32, caller: &Caller, at: At<'_>, held: bool) -> FsResult<()> {
        let entry = self.entry(space, at)?;
        if entry.kind != FileKind::Directory {
            return Err(FsError::NotDirectory);
        }
        if !self.is_empty_directory(space, entry.ino)? {
            return Err(FsError::NotEmpty);
        }
        self.remove_name(space, at.0, entry.cookie)?;
        self.stamp_names(space, caller, at.0, -1)?;
        self.drop_directory(space, caller, entry.ino, held)
    }

    pub(super) fn rename(
        &mut self,
        space: u32,
        caller: &Caller,
        from: At<'_>,
        to: At<'_>,
        how: RenameMode,
        held: bool,
    ) -> FsResult<()> {
        let old = self.entry(space, from)?;
        check_name(to.1)?;
        let to_parent = self.directory(space, to.0)?;
        if to_parent.links == 0 {
            return Err(FsError::NotFound);
        }
        let target = self.find_name(space, to.0, to.1)?;
        match (how, &target) {
            (RenameMode::NoReplace, Some(_)) => return Err(FsError::Exists),
            (RenameMode::Exchange, None) => return Err(FsError::NotFound),
            _ => {}
        }
        if target.as_ref().is_some_and(|new| new.ino == old.ino) {
            return Ok(());
        }
        if old.kind == FileKind::Directory && self.is_below(space, to.0, old.ino)? {
            return Err(LOOP);
        }
        if let (RenameMode::Exchange, Some(new)) = (how, &target)
            && new.kind == FileKind::Directory
            && self.is_below(space, from.0, new.ino)?
        {
            return Err(LOOP);
        }
        let moved_directory = |entry: &Entry| i32::from(entry.kind == FileKind::Directory);
        match target {
            Some(new) if how == RenameMode::Exchange => {
                let change = moved_directory(&new) - moved_directory(&old);
                if from.0 != to.0 {
                    check_links(&to_parent)?;
                    check_links(&self.inode(space, from.0)?)?;
                }
                self.redirect_name(space, from.0, &old, new.ino, new.kind)?;
                self.redirect_name(space, to.0, &new, old.ino, old.kind)?;
                let change = if from.0 == to.0 { 0 } else { change };
                self.stamp_names(space, caller, from.0, change)?;
                self.stamp_names(space, caller, to.0, -change)?;
                self.stamp_moved(space, caller, new.ino, from.0)?;
            }
            target => {
                if let Some(new) = &target {
                    self.check_replace(space, &old, new)?;
                }
                let came = moved_directory(&old) - target.as_ref().map_or(0, moved_directory);
                if came > 0 && from.0 != to.0 {
                    check_links(&to_parent)?;
                }
                self.remove_name(space, from.0, old.cookie)?;
                match &target {
                    Some(new) => self.redirect_name(space, to.0, new, old.ino, old.kind)?,
                    None => self.add_name(space, to.0, to.1, old.ino, old.kind)?,
                }
                self.stamp_names(space, caller, from.0, -moved_directory(&old))?;
                self.stamp_names(space, caller, to.0, came)?;
                match target {
                    Some(new) if new.kind == FileKind::Directory => {
                        self.drop_directory(space, caller, new.ino, held)?;
                    }
                    Some(new) => self.drop_link(space, caller, new.ino, held)?,
                    None => {}
                }
            }
        }
        self.stamp_moved(space, caller, old.ino, to.0)
    }

    /// The entry of an existing name. Errors: `NotFound`, `NotDirectory`.
    pub fn entry(&mut self, space: u32, at: At<'_>) -> FsResult<Entry> {
        check_name(at.1)?;
        self.directory(space, at.0)?;
        self.find_name(space, at.0, at.1)?.ok_or(FsError::NotFound)
    }

    /// The directory of a name to be made. Errors: `Exists`, those of the directory.
    fn check_free(&mut self, space: u32, at: At<'_>) -> FsResult<Inode> {
        check_name(at.1)?;
        let parent = self.directory(space, at.0)?;
        if parent.links == 0 {
            return Err(FsError::NotFound);
        }
        match self.find_name(space, at.0, at.1)? {
            Some(_) => Err(FsError::Exists),
            None => Ok(parent),
        }
    }

    fn check_replace(&mut self, space: u32, old: &Entry, new: &Entry) -> FsResult<()> {
        match (old.kind == FileKind::Directory, new.kind == FileKind::Directory) {
            (true, false) => Err(FsError::NotDirectory),
            (false, true) => Err(FsError::IsDirectory),
            (true, true) if !self.is_empty_directory(space, new.ino)? => Err(FsError::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Whether a directory is `above`, or is below it.
    fn is_below(&mut self, space: u32, directory: u64, above: u64) -> FsResult<bool> {
        let mut at = directory;
        for _ in 0..=self.volume(space)?.record.inodes_used {
            if at == above {
                return Ok(true);
            }
            if at == volume::ROOT {
                return Ok(false);
            }
            at = self.inode(space, at)?.parent;
        }
        Err(FsError::Corrupt { what: format!("the parents of directory {directory} go in a circle") })
    }

    fn make_named(
        &mut self,
        space: u32,
        caller: &Caller,
        at: At<'_>,
        parent: &Inode,
        node: &NewNode,
        ino: u64,
    ) -> FsResult<Attributes> {
        let mut inode = self.make_inode(space, caller, Some(parent), node, ino)?;
        let is_directory = node.kind == FileKind::Directory;
        inode.links = if is_directory { 2 } else { 1 };
        inode.parent = if is_directory { at.0 } else { 0 };
        self.put_inode(space, ino, &inode)?;
        self.add_name(space, at.0, at.1, ino, node.kind)?;
        self.stamp_names(space, caller, at.0, i32::from(is_directory))?;
        Ok(attributes_of(ino, &inode))
    }

    /// Sets the times of a directory whose names changed, and adjusts the number of its
    /// subdirectories.
    fn stamp_names(&mut self, space: u32, caller: &Caller, directory: u64, directories: i32) -> FsResult<()> {
        let mut inode = self.inode(space, directory)?;
        (inode.modified, inode.changed) = (caller.now, caller.now);
        inode.links = inode.links.saturating_add_signed(directories);
        Ok(self.put_inode(space, directory, &inode)?)
    }

    fn stamp_moved(&mut self, space: u32, caller: &Caller, ino: u64, parent: u64) -> FsResult<()> {
        let mut inode = self.inode(space, ino)?;
        inode.changed = caller.now;
        if inode.kind == FileKind::Directory {
            inode.parent = parent;
        }
        Ok(self.put_inode(space, ino, &inode)?)
    }

    fn count_links(&mut self, space: u32, caller: &Caller, ino: u64, more: i32) -> FsResult<u32> {
        let mut inode = self.inode(space, ino)?;
        inode.changed = caller.now;
        inode.links = inode.links.saturating_add_signed(more);
        self.put_inode(space, ino, &inode)?;
        Ok(inode.links)
    }

    fn drop_link(&mut self, space: u32, caller: &Caller, ino: u64, held: bool) -> FsResult<()> {
        if self.count_links(space, caller, ino, -1)? == 0 {
            self.lose_last_name(space, ino, held)?;
        }
        Ok(())
    }

    fn drop_directory(&mut self, space: u32, caller: &Caller, ino: u64, held: bool) -> FsResult<()> {
        self.count_links(space, caller, ino, -2)?;
        Ok(self.lose_last_name(space, ino, held)?)
    }
}

const LOOP: FsError = FsError::Invalid { what: "a directory cannot come below itself" };

fn check_links(inode: &Inode) -> FsResult<()> {
    if inode.links >= MAX_LINKS { Err(FsError::TooManyLinks { max: MAX_LINKS }) } else { Ok(()) }
}
