//! Reads the tree of a directory.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::MetadataExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use rustix::fs::OFlags;
use senesce_core::{RelPath, Stop, never};

use super::{Entry, Tree};
use crate::ExecError;

/// The tree below `root`. `threads` threads (at least one) read all contents once, as streams.
///
/// Errors: a file cannot be read, or changes at the same time. Cost: reads all data; memory for the
/// names, and 256 KiB per thread. Access times do not change if that is permitted.
pub fn collect_tree(root: &Path, threads: usize) -> Result<Tree, ExecError> {
    collect_tree_until(root, threads, &never)
}

/// Reads the tree below `root`, as [`collect_tree`] does. Calls `stop` for every name, and in every
/// thread before every read.
///
/// Errors: as [`collect_tree`]; [`ExecError::Stopped`] if `stop` returns true.
pub fn collect_tree_until(root: &Path, threads: usize, stop: Stop<'_>) -> Result<Tree, ExecError> {
    let (mut tree, files) = collect_names(root, stop)?;
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let hash_some = || -> Result<Vec<(usize, [u8; 32])>, ExecError> {
        let mut hashes = Vec::new();
        let mut buffer = vec![0; 256 << 10];
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((path, size_bytes)) = files.get(index) else { break };
            let path = root.join(path.as_path());
            let hash = hash_file(&path, *size_bytes, &mut buffer, stop);
            hashes.push((index, hash.inspect_err(|_| failed.store(true, Ordering::Relaxed))?));
        }
        Ok(hashes)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(hash_some)).collect();
        let mut results = vec![hash_some()];
        results.extend(others.into_iter().map(|other| other.join().expect("hashing does not panic")));
        results
    });
    for result in results {
        for (index, found) in result? {
            if let Some(Entry::File { hash, .. }) = tree.entries.get_mut(&files[index].0) {
                *hash = found;
            }
        }
    }
    Ok(tree)
}

/// All names with the fields of their stat, and the files to read with their sizes.
fn collect_names(root: &Path, stop: Stop<'_>) -> Result<(Tree, Vec<(RelPath, u64)>), ExecError> {
    let mut tree = Tree::default();
    let mut files = Vec::new();
    let is_mount = is_mount_root(root).map_err(host("stat", root))?;
    let mut directories = vec![RelPath::root()];
    while let Some(directory) = directories.pop() {
        let at = if directory.is_root() { root.to_owned() } else { root.join(directory.as_path()) };
        for entry in fs::read_dir(&at).map_err(host("list", &at))? {
            if stop() {
                return Err(ExecError::Stopped);
            }
            let entry = entry.map_err(host("list", &at))?;
            let stat = entry.metadata().map_err(host("stat", &entry.path()))?;
            let name = entry.file_name();
            if is_mount && directory.is_root() && is_of_mkfs(&name, &stat) {
                continue;
            }
            let name = RelPath::new(name.as_bytes()).expect("readdir returns one component, without . and ..");
            let path = directory.join(&name);
            let mode = stat.mode() & 0o7777;
            let file_type = stat.file_type();
            let entry = if file_type.is_dir() {
                directories.push(path.clone());
                Entry::Directory { mode }
            } else if file_type.is_file() {
                files.push((path.clone(), stat.len()));
                Entry::File { mode, size_bytes: stat.len(), hash: [0; 32] }
            } else if file_type.is_symlink() {
                let target = fs::read_link(entry.path()).map_err(host("read the link", &entry.path()))?;
                Entry::Symlink { target: target.as_os_str().as_bytes().to_vec() }
            } else {
                Entry::Other { mode: stat.mode() }
            };
            tree.entries.insert(path, entry);
        }
    }
    Ok((tree, files))
}

fn is_mount_root(root: &Path) -> io::Result<bool> {
    let (own, above) = (fs::metadata(root)?, fs::metadata(root.join(".."))?);
    Ok(own.dev() != above.dev() || own.ino() == above.ino())
}

/// `lost+found`, and the file of NILFS2 for its cleaner, which is the first inode of users.
fn is_of_mkfs(name: &OsStr, stat: &Metadata) -> bool {
    const FIRST_NILFS2_INODE: u64 = 11;
    let is_nilfs2 = name == ".nilfs" && stat.is_file() && stat.ino() == FIRST_NILFS2_INODE;
    is_nilfs2 || name == "lost+found" && stat.is_dir() && stat.uid() == 0
}

/// Hashes one file. Calls `stop` before every read, and not again after it returned true.
fn hash_file(path: &Path, size_bytes: u64, buffer: &mut [u8], stop: Stop<'_>) -> Result<[u8; 32], ExecError> {
    let open = |flags: OFlags| {
        let flags = i32::try_from((flags | OFlags::NOFOLLOW).bits()).expect("flags of open fit an int");
        File::options().read(true).custom_flags(flags).open(path)
    };
    // Only the owner and root may prevent an update of the access time.
    let mut file = match open(OFlags::NOATIME) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => open(OFlags::empty()),
        other => other,
    }
    .map_err(host("read", path))?;
    let mut hasher = blake3::Hasher::new();
    let mut read_bytes = 0;
    loop {
        if stop() {
            return Err(ExecError::Stopped);
        }
        match file.read(buffer) {
            Ok(0) => break,
            Ok(n) => {
                hasher.update(&buffer[..n]);
                read_bytes += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(host("read", path)(e)),
        }
    }
    if read_bytes != size_bytes {
        let changed =
            format!("its size was {size_bytes} bytes but {read_bytes} bytes were read; another program changed it");
        return Err(host("read", path)(io::Error::other(changed)));
    }
    Ok(hasher.finalize().into())
}

fn host(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExecError {
    let path: PathBuf = path.to_owned();
    move |source| ExecError::Host { operation, path, source }
}
