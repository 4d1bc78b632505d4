//! Shared by the tests: a run's directory with a custodian, small volumes, and the traces on the
//! machine.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::{Bytes, Seed};
use senesce_volume::{Backend, Custodian, FileSystemKind, Host, LinuxHost, Slot, Uuid, VolumeSpec};

/// A run with its custodian and directory.
pub struct Bench {
    // Dropped before the directory it works in.
    pub custodian: Custodian,
    pub temp: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_host(LinuxHost::default())
    }

    pub fn with_host(host: LinuxHost) -> Self {
        let temp = tempfile::Builder::new().prefix("senesce-volume-test-").tempdir_in("/tmp").unwrap();
        let custodian = Custodian::open(Arc::new(host), temp.path()).unwrap();
        Self { custodian, temp }
    }

    pub fn dir(&self) -> &Path {
        self.temp.path()
    }

    pub fn spec(&self, kind: FileSystemKind) -> VolumeSpec {
        spec_in(self.dir(), kind)
    }

    pub fn slot(&self, name: &str) -> Slot {
        slot_in(self.dir(), name)
    }
}

pub fn size_of(kind: FileSystemKind) -> Bytes {
    Bytes(match kind {
        FileSystemKind::Ext4 => 64 * Bytes::MIB,
        FileSystemKind::Xfs => 300 * Bytes::MIB,
        FileSystemKind::Btrfs | FileSystemKind::F2fs => 128 * Bytes::MIB,
        FileSystemKind::Nilfs2 => 160 * Bytes::MIB,
        FileSystemKind::Jfs | FileSystemKind::Reiserfs => 64 * Bytes::MIB,
        FileSystemKind::Garden | FileSystemKind::Evergreen => 32 * Bytes::MIB,
    })
}

pub fn spec_in(dir: &Path, kind: FileSystemKind) -> VolumeSpec {
    VolumeSpec::new(Backend::Image { dir: dir.to_owned(), size: size_of(kind), memory: false }, kind)
}

pub fn slot_in(dir: &Path, name: &str) -> Slot {
    // Parallel tests and parallel runs of them must not share a UUID.
    let seed = Seed(u64::from(std::process::id())).derive(&dir.join(name).to_string_lossy());
    Slot { name: name.to_owned(), uuid: Uuid::from_seed(seed), mount_dir: dir.to_owned(), needed: Bytes(1 << 20) }
}

/// Mount points and loop backing files whose paths are in `dir`.
pub fn traces_of(dir: &Path) -> Vec<PathBuf> {
    let host = LinuxHost::default();
    let dir = fs::canonicalize(dir).unwrap();
    let mut found: Vec<PathBuf> = host.mounts().unwrap().into_iter().map(|mount| mount.point).collect();
    for entry in fs::read_dir("/sys/block").unwrap() {
        let backing = entry.unwrap().path().join("loop/backing_file");
        found.extend(fs::read_to_string(backing).ok().map(|path| PathBuf::from(path.trim())));
    }
    found.retain(|path| path.starts_with(&dir));
    found
}

/// Path, type and mode, size or target, modification time, and contents of everything in a tree.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, u32, i64, Vec<u8>)> {
    fn walk(root: &Path, dir: &Path, all: &mut BTreeMap<PathBuf, (u32, u32, i64, Vec<u8>)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if name == Path::new("lost+found") {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).unwrap();
            let contents = match metadata.file_type() {
                kind if kind.is_symlink() => {
                    use std::os::unix::ffi::OsStrExt;
                    fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
                }
                kind if kind.is_file() => fs::read(&path).unwrap(),
                _ => Vec::new(),
            };
            let mtime = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
            all.insert(name, (metadata.mode(), metadata.uid(), mtime, contents));
            if metadata.is_dir() {
                walk(root, &path, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

/// Creates 4 directories with 16 files each.
pub fn fill(root: &Path) {
    for dir in 0..4 {
        let dir = root.join(format!("dir-{dir}"));
        fs::create_dir(&dir).unwrap();
        for file in 0..16usize {
            fs::write(dir.join(format!("file-{file}")), vec![file as u8; 1 + file * 3000]).unwrap();
        }
    }
}
