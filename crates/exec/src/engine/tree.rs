//! The tree of an engine, for comparisons with other trees.

use std::ops::ControlFlow;

use senesce_core::{Extent, RelPath, StopFn, never};
use senesce_fsapi::{Attributes, FileKind, FileSystem, FsError, FsResult, Ino};

use crate::{
    CHUNK_BYTES,
    tree::{Entry, Tree},
};

/// Reads all names of a file system, with their entries.
///
/// Errors: reading; a file has another size than the bytes that can be read. Cost: reads all data.
pub fn collect_engine_tree(fs: &dyn FileSystem) -> FsResult<Tree> {
    collect_engine_tree_until(fs, never)
}

/// Reads all names of a file system, as [`collect_engine_tree`] does. Fails if `stop` returns true.
pub fn collect_engine_tree_until(fs: &dyn FileSystem, stop: StopFn) -> FsResult<Tree> {
    let mut tree = Tree::default();
    let mut directories = vec![(RelPath::root(), Ino::ROOT)];
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Some((path, ino)) = directories.pop() {
        let mut names = Vec::new();
        fs.read_dir(ino, 0, &mut |entry| {
            names.push((entry.name.to_vec(), entry.ino));
            ControlFlow::Continue(())
        })?;
        for (name, ino) in names {
            check(stop)?;
            let found = fs.attributes(ino)?;
            let name =
                RelPath::new(&name).map_err(|error| FsError::Corrupt { what: format!("a name in {path}: {error}") })?;
            let path = path.join(&name);
            let mode = found.permissions;
            let entry = match found.kind {
                FileKind::Directory => {
                    directories.push((path.clone(), ino));
                    Entry::Directory { mode }
                }
                FileKind::File => {
                    Entry::File { mode, size_bytes: found.size, hash: hash_file(fs, &path, &found, &mut buffer, stop)? }
                }
                FileKind::Symlink => Entry::Symlink { target: fs.read_link(ino)? },
                FileKind::Fifo => Entry::Other { mode: mode | 0o010_000 },
                FileKind::CharDevice => Entry::Other { mode: mode | 0o020_000 },
                FileKind::BlockDevice => Entry::Other { mode: mode | 0o060_000 },
                FileKind::Socket => Entry::Other { mode: mode | 0o140_000 },
            };
            tree.entries.insert(path, entry);
        }
    }
    Ok(tree)
}

/// Calls `each` with the size and the extents of every regular file, once for each of its names.
/// Returns `false` if the engine does not report extents.
///
/// Errors: reading. Cost: reads all maps.
pub fn collect_engine_extents(fs: &dyn FileSystem, each: &mut dyn FnMut(u64, &[Extent])) -> FsResult<bool> {
    let mut directories = vec![Ino::ROOT];
    while let Some(directory) = directories.pop() {
        let mut files = Vec::new();
        fs.read_dir(directory, 0, &mut |entry| {
            match entry.kind {
                FileKind::Directory => directories.push(entry.ino),
                FileKind::File => files.push(entry.ino),
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        for ino in files {
            match fs.extents(ino) {
                Err(FsError::Unsupported) => return Ok(false),
                extents => each(fs.attributes(ino)?.size, &extents?),
            }
        }
    }
    Ok(true)
}

fn check(stop: StopFn) -> FsResult<()> {
    if stop() { Err(FsError::Invalid { what: "the read was stopped" }) } else { Ok(()) }
}

fn hash_file(
    fs: &dyn FileSystem,
    path: &RelPath,
    found: &Attributes,
    buffer: &mut [u8],
    stop: StopFn,
) -> FsResult<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut read_bytes = 0;
    loop {
        check(stop)?;
        match fs.read(found.ino, read_bytes, buffer)? {
            0 if read_bytes == found.size => return Ok(hasher.finalize().into()),
            0 => {
                let what = format!("{path} has {} bytes, but {read_bytes} bytes were read", found.size);
                return Err(FsError::Corrupt { what });
            }
            got => {
                hasher.update(&buffer[..got]);
                read_bytes += got as u64;
            }
        }
    }
}
