//! Removes a directory and everything below it, in the order of readdir.

use std::{
    ffi::{CStr, CString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags},
    io::Errno,
};
use senesce_core::StopFn;

use crate::{OpFailure, content::check_stop};

/// A directory on the path down: its name in its parent, its descriptor, its listing.
struct Level {
    name: CString,
    fd: OwnedFd,
    listing: Dir,
}

/// Removes `path` below `root` and everything in it. Symbolic links are removed, never followed.
///
/// Errors: `NoSpace` (a copy-on-write file system may need space to remove) only as long as nothing
/// is removed. Later it is an I/O error, because the record of a step cannot express a partly
/// removed tree. Cost: two descriptors for each level of depth.
pub(crate) fn remove_tree(root: BorrowedFd<'_>, path: &CStr, stop: StopFn) -> Result<(), OpFailure> {
    let mut removed = false;
    let mut levels = vec![open_level(root, path.to_owned())?];
    while let Some(level) = levels.last_mut() {
        check_stop(stop)?;
        match level.listing.read() {
            Some(entry) => {
                let entry = entry.map_err(std::io::Error::from)?;
                let name = entry.file_name();
                if name == c"." || name == c".." {
                    continue;
                }
                let file_type = match entry.file_type() {
                    FileType::Unknown => {
                        let stat = rustix::fs::statat(&level.fd, name, AtFlags::SYMLINK_NOFOLLOW);
                        FileType::from_raw_mode(stat.map_err(std::io::Error::from)?.st_mode)
                    }
                    known => known,
                };
                if file_type == FileType::Directory {
                    let below = open_level(level.fd.as_fd(), name.to_owned())?;
                    levels.push(below);
                } else {
                    remove(level.fd.as_fd(), name, AtFlags::empty(), &mut removed)?;
                }
            }
            None => {
                let done = levels.pop().expect("the loop runs while there is a level");
                let parent = levels.last().map_or(root, |level| level.fd.as_fd());
                remove(parent, &done.name, AtFlags::REMOVEDIR, &mut removed)?;
            }
        }
    }
    Ok(())
}

fn open_level(parent: BorrowedFd<'_>, name: CString) -> Result<Level, OpFailure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, &name, flags, Mode::empty()).map_err(std::io::Error::from)?;
    let listing = Dir::read_from(&fd).map_err(std::io::Error::from)?;
    Ok(Level { name, fd, listing })
}

fn remove(parent: BorrowedFd<'_>, name: &CStr, flags: AtFlags, removed: &mut bool) -> Result<(), OpFailure> {
    let mut result = rustix::fs::unlinkat(parent, name, flags);
    if result == Err(Errno::NOSPC) && *removed {
        // The next commit frees the space of the entries that are removed so far.
        rustix::fs::syncfs(parent).map_err(std::io::Error::from)?;
        result = rustix::fs::unlinkat(parent, name, flags);
    }
    match result {
        Ok(()) => {
            *removed = true;
            Ok(())
        }
        Err(Errno::NOSPC | Errno::DQUOT) if !*removed => Err(OpFailure::NoSpace { written: None }),
        Err(errno) => Err(std::io::Error::from(errno).into()),
    }
}
