//! Renames.

use super::state::State;
use crate::{Caller, FsError, FsResult, Ino, RenameMode};

type Name<'a> = (Ino, &'a [u8]);

impl State {
    pub(super) fn rename(&mut self, caller: &Caller, from: Name<'_>, to: Name<'_>, how: RenameMode) -> FsResult<()> {
        let moved = self.named(from.0, from.1)?;
        let there = self.find(to.0, to.1)?;
        self.check_alive(to.0)?;
        match (how, there) {
            (RenameMode::NoReplace, Some(_)) => return Err(FsError::Exists),
            (RenameMode::Exchange, None) => return Err(FsError::NotFound),
            _ if there == Some(moved) => return Ok(()),
            _ => {}
        }
        self.check_no_loop(moved, to.0)?;
        match there {
            Some(there) if how == RenameMode::Exchange => {
                self.check_no_loop(there, from.0)?;
                self.remove_name(caller, from.0, from.1)?;
                self.remove_name(caller, to.0, to.1)?;
                self.add_name(caller, from.0, from.1, there)?;
                self.inode_mut(there)?.attributes.changed = caller.now;
            }
            Some(there) => {
                self.check_replaceable(moved, there)?;
                self.remove_name(caller, from.0, from.1)?;
                self.remove_name(caller, to.0, to.1)?;
                self.lose_name(caller, there)?;
            }
            None => self.remove_name(caller, from.0, from.1)?,
        }
        self.add_name(caller, to.0, to.1, moved)?;
        self.inode_mut(moved)?.attributes.changed = caller.now;
        Ok(())
    }

    /// Refuses to move an inode into itself or a directory below it.
    fn check_no_loop(&self, moved: Ino, mut directory: Ino) -> FsResult<()> {
        loop {
            if directory == moved {
                return Err(FsError::Invalid { what: "a directory cannot come below itself" });
            }
            if directory == Ino::ROOT {
                return Ok(());
            }
            directory = self.directory(directory)?.parent;
        }
    }

    fn check_replaceable(&self, moved: Ino, there: Ino) -> FsResult<()> {
        match (self.is_directory(moved), self.is_directory(there)) {
            (true, true) if self.directory(there)?.names.is_empty() => Ok(()),
            (true, true) => Err(FsError::NotEmpty),
            (true, false) => Err(FsError::NotDirectory),
            (false, true) => Err(FsError::IsDirectory),
            (false, false) => Ok(()),
        }
    }
}
