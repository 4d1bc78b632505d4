//! Lookup of paths. The trait has no paths, but tests need them.

use crate::{FileSystem, FsError, FsResult, Ino};

/// The inode at a path from the root; symbolic links are not followed.
pub fn resolve(fs: &(impl FileSystem + ?Sized), path: &[u8]) -> FsResult<Ino> {
    let mut ino = Ino::ROOT;
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        ino = fs.lookup(ino, name)?.ino;
    }
    Ok(ino)
}

/// The directory of a path's last name, and that name.
pub fn parent_and_name<'a>(fs: &(impl FileSystem + ?Sized), path: &'a [u8]) -> FsResult<(Ino, &'a [u8])> {
    let (parent, name) = match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[][..], path),
    };
    if name.is_empty() {
        return Err(FsError::Invalid { what: "the root has no name" });
    }
    Ok((resolve(fs, parent)?, name))
}
