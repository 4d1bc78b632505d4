//! Removes a directory of an engine and everything below it, in the order of its listing.

use std::{io, ops::ControlFlow};

use rustix::io::Errno;
use senesce_core::StopFn;
use senesce_fsapi::{Caller, FileKind, FileSystem, FsError, FsResult, Ino};

use crate::{OpFailure, content::check_stop};

/// Removes the directory `name` and everything below it.
///
/// Errors: `NoSpace` only as long as nothing is removed. After that, a lack of space frees the
/// removed space with a sync and retries once; if that fails too, it is another error.
pub(super) fn remove_tree(
    fs: &dyn FileSystem,
    caller: &Caller,
    directory: Ino,
    name: &[u8],
    stop: StopFn,
) -> Result<(), OpFailure> {
    let other = |error: FsError| match error {
        FsError::NoSpace => OpFailure::NoSpace { written: None },
        error => OpFailure::Io(io::Error::from_raw_os_error(error.errno())),
    };
    let root = fs.lookup(directory, name).map_err(other)?;
    if root.kind != FileKind::Directory {
        return Err(OpFailure::Io(Errno::NOTDIR.into()));
    }
    let mut removed = false;
    // The directories from the root down: the inode of the parent, the name, the own inode.
    let mut levels = vec![(directory, name.to_vec(), root.ino)];
    while let Some(&(above, ref name, ino)) = levels.last() {
        check_stop(stop)?;
        let below = remove_files(fs, caller, ino, &mut removed, stop).map_err(other)?;
        if let Some((name, child)) = below {
            levels.push((ino, name, child));
            continue;
        }
        check_stop(stop)?;
        remove(fs, &mut removed, || fs.rmdir(caller, above, name)).map_err(other)?;
        levels.pop();
    }
    Ok(())
}

/// Removes all entries up to the first directory, and returns that directory. `None` if no entries
/// are left.
fn remove_files(
    fs: &dyn FileSystem,
    caller: &Caller,
    directory: Ino,
    removed: &mut bool,
    stop: StopFn,
) -> FsResult<Option<(Vec<u8>, Ino)>> {
    const AT_ONCE: usize = 128;
    loop {
        let mut files: Vec<Vec<u8>> = Vec::new();
        let mut below = None;
        fs.read_dir(directory, 0, &mut |entry| {
            if entry.kind == FileKind::Directory {
                below = Some((entry.name.to_vec(), entry.ino));
                return ControlFlow::Break(());
            }
            files.push(entry.name.to_vec());
            if files.len() < AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        for name in &files {
            remove(fs, removed, || fs.unlink(caller, directory, name))?;
        }
        // The caller calls `stop` before its next operation.
        if below.is_some() || files.len() < AT_ONCE || stop() {
            return Ok(below);
        }
    }
}

fn remove(fs: &dyn FileSystem, removed: &mut bool, attempt: impl Fn() -> FsResult<()>) -> FsResult<()> {
    let mut done = attempt();
    if *removed && matches!(done, Err(FsError::NoSpace)) {
        fs.sync_all()?;
        done = attempt();
        if matches!(done, Err(FsError::NoSpace)) {
            return Err(FsError::Invalid { what: "no space in the middle of removing a tree" });
        }
    }
    *removed |= done.is_ok();
    done
}
