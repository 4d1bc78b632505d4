//! The mechanisms of a cure: the volume, its fault, and the arguments of `defrag`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::Write,
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FallocateFlags, XattrFlags, fallocate, setxattr};
use senesce_core::Rng;

use super::super::{
    defrag::{ATTRIBUTE, DIRECTORIES, FILES, age, data_ranges, name, state},
    defrag_space::shatter_free_space,
    disk::must,
    lab::Lab,
};

/// The fault of a volume, which decides what moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The order of files.
    Order,
    /// The order of files on a volume with quotas.
    Quotas,
    /// The order of files that are shared with snapshots.
    Snapshots,
    /// Pieces of large files.
    Pieces,
    /// Free space in short extents.
    Space,
}

/// One mechanism on one file system.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: &'static str,
    pub mode: Mode,
    pub mkfs: &'static [&'static str],
    pub mib: u64,
}

pub const fn case(kind: &'static str, mode: Mode, mkfs: &'static [&'static str], mib: u64) -> Case {
    Case { kind, mode, mkfs, mib }
}

/// Bytes of each piece of the large files, whose pieces alternate on the device.
const PIECE_BYTES: u64 = 64 << 10;
const LARGE_BYTES: u64 = 6 << 20;
const LARGE_FILES: usize = 3;

impl Case {
    /// The name of the random choices of this case.
    pub fn purpose(&self) -> String {
        format!("{} {:?} {:?}", self.kind, self.mode, self.mkfs)
    }

    /// Makes the tree on a new volume.
    pub fn make(&self, root: &Path) {
        let tree = root.join("tree");
        match self.kind {
            // A subvolume, so that snapshots contain the tree only.
            "btrfs" => drop(must("btrfs", &["-q", "subvolume", "create", &tree.to_string_lossy()])),
            _ => fs::create_dir(&tree).unwrap(),
        }
        if self.mode == Mode::Quotas {
            must("btrfs", &["quota", "enable", &root.to_string_lossy()]);
            must("btrfs", &["qgroup", "limit", "200M", &tree.to_string_lossy()]);
        }
        let still = tree.join("still");
        fs::create_dir(&still).unwrap();
        age(&still);
        let sparse = File::create(still.join("d00/sparse")).unwrap();
        sparse.write_all_at(&[1; 8192], 0).unwrap();
        sparse.write_all_at(&[2; 9000], 1 << 20).unwrap();
        sparse.set_len(3 << 20).unwrap();
        fs::hard_link(still.join(name(2, 3)), still.join("d05/second-name")).unwrap();
        setxattr(still.join(name(3, 4)), ATTRIBUTE, b"kept", XattrFlags::empty()).unwrap();
        fs::set_permissions(still.join(name(7, 8)), fs::Permissions::from_mode(0o400)).unwrap();
        fs::write(still.join("d04/tiny"), b"inline?").unwrap();
        let reserved = File::create(still.join("d01/reserved")).unwrap();
        fallocate(&reserved, FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
    }

    /// Ages the volume once more, after a cure.
    pub fn disturb(&self, root: &Path, rng: &mut Rng) {
        let still = root.join("tree/still");
        match (self.mode, self.kind) {
            // Each run requests another order, so nothing is needed here.
            (Mode::Order | Mode::Quotas, _) => {}
            (Mode::Snapshots, _) => snapshot(root),
            (Mode::Pieces, _) => shatter(&still, rng),
            (Mode::Space, "btrfs") => empty_block_groups(&still.join("groups")),
            (Mode::Space, _) => {
                for old in ["tree/still/data", "tree/still/reserved"] {
                    let _ = fs::remove_file(root.join(old));
                }
                sync(root);
                shatter_free_space(&still, self.mib as usize * 5 / 8);
            }
        }
        sync(root);
    }

    /// The arguments of the next run.
    pub fn arguments(&self, lab: &Lab, root: &Path, rng: &mut Rng) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["--quiet", "defrag", "--json"].map(OsString::from).to_vec();
        arguments.push(root.join("tree").into());
        let more: &[&str] = match self.mode {
            Mode::Order | Mode::Quotas | Mode::Snapshots => &["--force", "--device", "hdd-7200"],
            Mode::Pieces => &["--force", "--device", "hdd-7200", "--strategy", "pieces"],
            Mode::Space => &["--free-space", "--budget", "1GiB"],
        };
        arguments.extend(more.iter().map(OsString::from));
        if matches!(self.mode, Mode::Order | Mode::Quotas | Mode::Snapshots) {
            let mut names: Vec<String> = (0..DIRECTORIES)
                .flat_map(|directory| (0..FILES).map(move |file| format!("still/{}\n", name(directory, file))))
                .collect();
            rng.shuffle(&mut names);
            fs::write(lab.path("list"), names.concat()).unwrap();
            arguments.extend(["--order".into(), format!("list:{}", lab.path("list").display()).into()]);
        }
        arguments
    }

    /// The trees that no other program changes.
    fn stills(&self) -> &'static [&'static str] {
        match self.mode {
            Mode::Snapshots => &["tree/still", "read-only/still", "snapshot/still"],
            _ => &["tree/still"],
        }
    }
}

pub fn sync(root: &Path) {
    rustix::fs::syncfs(File::open(root).unwrap()).unwrap();
}

/// The state that must not change: entries with their contents, and holes.
#[derive(Debug, PartialEq, Eq)]
pub struct Still {
    entries: BTreeMap<PathBuf, String>,
    holes: Vec<Vec<(u64, u64)>>,
}

impl Still {
    pub fn of(case: &Case, root: &Path) -> Self {
        let trees = || case.stills().iter().map(|tree| root.join(tree));
        let holes = trees().map(|tree| data_ranges(&tree.join("d00/sparse"))).collect();
        let of_tree = |tree: PathBuf| {
            let prefix = tree.strip_prefix(root).unwrap().to_owned();
            state(&tree).into_iter().map(move |(path, text)| (prefix.join(path), text))
        };
        Self { entries: trees().flat_map(of_tree).collect(), holes }
    }

    /// The first five entries that differ, and the holes if they differ.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let paths: std::collections::BTreeSet<&PathBuf> = self.entries.keys().chain(now.entries.keys()).collect();
        let differ = paths.into_iter().filter(|path| self.entries.get(*path) != now.entries.get(*path));
        let text = |path: &PathBuf| {
            format!("{}: {:?} became {:?}", path.display(), self.entries.get(path), now.entries.get(path))
        };
        let mut all: Vec<String> = differ.take(5).map(text).collect();
        if self.holes != now.holes {
            all.push(format!("holes: {:?} became {:?}", self.holes, now.holes));
        }
        all
    }
}

/// Makes a read-only and a writable snapshot of the tree, in place of the last ones.
fn snapshot(root: &Path) {
    for (name, flags) in [("read-only", &["-r"][..]), ("snapshot", &[])] {
        let path = root.join(name).to_string_lossy().into_owned();
        if root.join(name).exists() {
            must("btrfs", &["-q", "subvolume", "delete", "--commit-after", &path]);
        }
        let tree = root.join("tree").to_string_lossy().into_owned();
        must("btrfs", &[&["-q", "subvolume", "snapshot"], flags, &[&tree, &path]].concat());
    }
}

/// Makes large files in short pieces: the pieces are reserved by turns.
fn shatter(still: &Path, rng: &mut Rng) {
    let paths: Vec<PathBuf> = (0..LARGE_FILES).map(|number| still.join(format!("large-{number}"))).collect();
    for path in &paths {
        let _ = fs::remove_file(path);
    }
    sync(still);
    let files: Vec<File> = paths.iter().map(|path| File::create(path).unwrap()).collect();
    for at in (0..LARGE_BYTES).step_by(PIECE_BYTES as usize) {
        for file in &files {
            fallocate(file, FallocateFlags::empty(), at, PIECE_BYTES).unwrap();
        }
    }
    let mut bytes = vec![0; LARGE_BYTES as usize];
    for mut file in &files {
        rng.fill(&mut bytes);
        file.write_all(&bytes).unwrap();
    }
}

/// Makes many files and keeps every third one. So block groups have free space in short extents.
fn empty_block_groups(directory: &Path) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir(directory).unwrap();
    let path = |file: usize| directory.join(format!("{file:04}"));
    for file in 0..1000 {
        fs::write(path(file), vec![file as u8; 160 << 10]).unwrap();
    }
    sync(directory);
    (0..1000).filter(|file| file % 3 != 0).for_each(|file| fs::remove_file(path(file)).unwrap());
}
