//! The order of files restored on real file systems. The whole tree is compared before and after,
//! also after kills.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use senesce_testkit::{root_or_skip, unmount_patiently};
use serde_json::Value;

use super::{
    disk::{Disk, Mount, must, volume},
    lab::Lab,
};

const KINDS: [(&str, &[&str], u64); 4] =
    [("ext4", &[], 256), ("ext4", &["-b", "1024"], 256), ("xfs", &[], 320), ("btrfs", &[], 320)];

pub(super) const DIRECTORIES: usize = 12;
pub(super) const FILES: usize = 60;

/// The content of a file; no other file has it.
pub(super) fn content(directory: usize, file: usize) -> Vec<u8> {
    let length = 3000 + (directory * 7919 + file * 104_729) % 37_000;
    (0..length).map(|at| (at * 31 + directory * 7 + file * 13 + at / 4096) as u8).collect()
}

pub(super) fn name(directory: usize, file: usize) -> String {
    format!("d{directory:02}/f{file:03}")
}

/// Makes a tree whose files are not in the order of their directories.
pub(super) fn age(root: &Path) {
    (0..DIRECTORIES).for_each(|directory| fs::create_dir(root.join(format!("d{directory:02}"))).unwrap());
    let count = DIRECTORIES * FILES;
    for step in 0..count {
        // A step of this length meets every number once.
        let number = step * 367 % count;
        let (directory, file) = (number % DIRECTORIES, number / DIRECTORIES);
        let mut made = File::create(root.join(name(directory, file))).unwrap();
        made.write_all(&content(directory, file)).unwrap();
        if step % 16 == 0 {
            made.sync_all().unwrap();
        }
    }
    must("sync", &["-f", &root.to_string_lossy()]);
}

/// All that a move must keep: of each entry its inode, links, mode, owner, size, times, attributes,
/// and content.
pub(super) fn state(root: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(root: &Path, directory: &Path, all: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = match meta.file_type() {
                kind if kind.is_file() => blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string(),
                kind if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
                _ => String::new(),
            };
            let said = format!(
                "{} {} {:o} {} {} {} {}.{} {}.{} {} {content}",
                meta.ino(),
                meta.nlink(),
                meta.mode(),
                meta.uid(),
                meta.gid(),
                meta.size(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
                attribute(&path),
            );
            all.insert(path.strip_prefix(root).unwrap().to_owned(), said);
            if meta.is_dir() {
                walk(root, &path, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

pub(super) const ATTRIBUTE: &str = "user.senesce";

fn attribute(path: &Path) -> String {
    let mut value = [0u8; 64];
    let length = rustix::fs::lgetxattr(path, ATTRIBUTE, &mut value[..]).unwrap_or(0);
    String::from_utf8_lossy(&value[..length]).into_owned()
}

/// The ranges of a file that are data, as the kernel reports them.
pub(super) fn data_ranges(path: &Path) -> Vec<(u64, u64)> {
    let file = File::open(path).unwrap();
    let seek = |from| rustix::fs::seek(&file, from);
    let (mut ranges, mut at) = (Vec::new(), 0);
    while let Ok(start) = seek(rustix::fs::SeekFrom::Data(at)) {
        at = seek(rustix::fs::SeekFrom::Hole(start)).unwrap();
        ranges.push((start, at));
    }
    ranges
}

pub(super) fn defrag(lab: &Lab, root: &Path, more: &[&str]) -> Value {
    let root = root.to_string_lossy();
    let args = [&["--quiet", "defrag", &root, "--json", "--device", "hdd-7200"], more].concat();
    serde_json::from_str(&lab.run(args).good().stdout).unwrap()
}

/// Checks an unmounted file system with its own program.
pub(super) fn check(kind: &str, device: &str) {
    match kind {
        "ext4" => must("e2fsck", &["-fn", device]),
        "xfs" => must("xfs_repair", &["-n", device]),
        _ => must("btrfs", &["check", device]),
    };
}

/// A file system with an aged tree.
pub(super) struct Aged {
    kind: &'static str,
    pub(super) mount: Option<Mount>,
    disk: Disk,
}

impl Aged {
    pub(super) fn new(lab: &Lab, (kind, mkfs, mib): (&'static str, &[&str], u64)) -> Self {
        let (disk, mount) = volume(kind, mkfs, &lab.path("volume"), mib, lab.path("mnt"));
        fs::create_dir(mount.point.join("tree")).unwrap();
        age(&mount.point.join("tree"));
        Self { kind, mount: Some(mount), disk }
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.mount.as_ref().unwrap().point.join("tree")
    }

    pub(super) fn check(mut self) {
        if let Some(mount) = self.mount.take() {
            assert!(unmount_patiently(&mount.point), "{} stays mounted", mount.point.display());
        }
        check(self.kind, &self.disk.device);
    }
}

#[test]
fn files_move_into_order_and_keep_all_else() {
    if !root_or_skip("mounting") {
        return;
    }
    for case in KINDS {
        let lab = Lab::new();
        let aged = Aged::new(&lab, case);
        let tree = aged.tree();
        let before = state(&tree);

        let advice = defrag(&lab, &tree, &["--dry-run"]);
        let number = |value: &Value| value.as_u64().unwrap();
        assert!(number(&advice["pieces_now"]) > 8 * number(&advice["pieces_after"]), "{case:?}: {advice}");
        assert_eq!(advice["applied"], Value::Null);
        let again = defrag(&lab, &tree, &["--dry-run"]);
        assert_eq!(again["pieces_now"], advice["pieces_now"], "a dry run moves nothing");

        let report = defrag(&lab, &tree, &["--force"]);
        let applied = &report["applied"];
        assert_eq!(applied["files"], report["files"], "{case:?}: {applied}");
        assert_eq!(applied["skipped"], serde_json::json!({}), "{case:?}");
        assert!(number(&applied["written_bytes"]) <= number(&report["live_bytes"]), "{case:?}: {applied}");
        let (now, after) = (&report["gains"][0]["now_seconds"], &applied["after"][0]["now_seconds"]);
        assert!(after.as_f64().unwrap() < 0.6 * now.as_f64().unwrap(), "{case:?}: {now} -> {after}");
        assert_eq!(state(&tree), before, "{case:?}");

        let second = defrag(&lab, &tree, &["--dry-run"]);
        assert!(number(&second["pieces_now"]) <= number(&report["pieces_now"]) / 8, "{case:?}: {second}");
        aged.check();
    }
}

#[test]
fn special_files_stay_as_they_are() {
    if !root_or_skip("mounting") {
        return;
    }
    for case in KINDS {
        let lab = Lab::new();
        let aged = Aged::new(&lab, case);
        let tree = aged.tree();
        // A hole in the middle, reserved blocks, two names, an attribute, an inline file, a link, a
        // program that runs.
        let sparse = tree.join("d00/sparse");
        let file = File::create(&sparse).unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        file.write_all_at(&[2; 9000], 1 << 20).unwrap();
        file.set_len(3 << 20).unwrap();
        file.sync_all().unwrap();
        drop(file);
        must("fallocate", &["-l", "1MiB", &tree.join("d01/reserved").to_string_lossy()]);
        fs::hard_link(tree.join(name(2, 3)), tree.join("d05/second-name")).unwrap();
        rustix::fs::setxattr(tree.join(name(3, 4)), ATTRIBUTE, b"kept", rustix::fs::XattrFlags::empty()).unwrap();
        fs::write(tree.join("d04/tiny"), b"inline?").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tree.join("d06/link")).unwrap();
        fs::set_permissions(tree.join(name(7, 8)), fs::Permissions::from_mode(0o400)).unwrap();
        let program = tree.join("d08/program");
        fs::copy("/bin/sleep", &program).unwrap();
        must("sync", &["-f", &tree.to_string_lossy()]);
        let mut runs = Command::new(&program).arg("1000").spawn().unwrap();
        let immutable = tree.join(name(9, 10)).to_string_lossy().into_owned();
        must("chattr", &["+i", &immutable]);
        let before = state(&tree);
        let ranges = data_ranges(&sparse);

        let report = defrag(&lab, &tree, &["--force"]);
        let after = state(&tree);
        must("chattr", &["-i", &immutable]);
        let _ = runs.kill();
        let _ = runs.wait();
        assert_eq!(after, before, "{case:?}");
        assert_eq!(data_ranges(&sparse), ranges, "{case:?}");
        assert_eq!(report["left"]["reserved"]["files"], 1, "{case:?}: {report}");
        let files = report["applied"]["files"].as_u64().unwrap();
        assert!(files >= (DIRECTORIES * FILES) as u64 - 5, "{case:?}: {report}");
        aged.check();
    }
}

#[test]
fn kills_lose_nothing_and_leave_nothing() {
    if !root_or_skip("mounting") {
        return;
    }
    let kills: u64 = std::env::var("SENESCE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    for case in KINDS {
        let lab = Lab::new();
        let aged = Aged::new(&lab, case);
        let tree = aged.tree();
        let before = state(&tree);
        let used =
            || rustix::fs::statvfs(&tree).map(|space| (space.f_blocks - space.f_bfree) * space.f_frsize).unwrap();
        let used_before = used();
        for kill in 0..kills {
            let order = ["readdir", "sorted", "inode"][kill as usize % 3];
            let mut command = lab.command();
            command.args([OsStr::new("defrag"), tree.as_os_str(), OsStr::new("--force"), OsStr::new("--order")]);
            let mut child = command.arg(order).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // The moment is not a claim: whatever it is, nothing may be lost.
            std::thread::sleep(Duration::from_millis(40 + kill * 97 % 900));
            let _ = child.kill();
            let _ = child.wait();
            assert_eq!(state(&tree), before, "{case:?}, kill {kill}");
        }
        must("sync", &["-f", &tree.to_string_lossy()]);
        assert!(used() <= used_before + (8 << 20), "{case:?}: {} bytes in use before, {} after", used_before, used());
        aged.check();
    }
}

#[test]
fn writers_lose_nothing_beside_it() {
    if !root_or_skip("mounting") {
        return;
    }
    for case in KINDS {
        let lab = Lab::new();
        let aged = Aged::new(&lab, case);
        let tree = aged.tree();
        let (stop, steps) = (AtomicBool::new(false), AtomicUsize::new(0));
        let expected = std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_until(&tree, &stop, &steps));
            let stopped = StopOnDrop(&stop);
            for (turn, order) in ["readdir", "sorted", "inode"].into_iter().enumerate() {
                // The writer is slow to start on a busy machine.
                while steps.load(Ordering::Relaxed) < 20 * (turn + 1) && !writer.is_finished() {
                    std::thread::yield_now();
                }
                defrag(&lab, &tree, &["--force", "--order", order]);
            }
            drop(stopped);
            writer.join().unwrap()
        });
        for (path, content) in expected {
            assert!(fs::read(&path).unwrap() == content, "{case:?}: {}", path.display());
        }
        aged.check();
    }
}

/// Stops a writer, also if a panic leaves the scope.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Overwrites, appends, truncates, renames and replaces files, and remembers what each holds.
/// Counts its steps in `steps`.
fn write_until(tree: &Path, stop: &AtomicBool, steps: &AtomicUsize) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for (directory, file) in (0..DIRECTORIES).flat_map(|directory| (0..FILES).map(move |file| (directory, file))) {
        files.insert(tree.join(name(directory, file)), content(directory, file));
    }
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    let mut step = 0;
    while !stop.load(Ordering::Relaxed) {
        let path = &names[step * 389 % names.len()];
        let Some(held) = files.get_mut(path) else {
            step += 1;
            continue;
        };
        let open = || File::options().read(true).write(true).open(path).unwrap();
        let bytes: Vec<u8> = (0..1500).map(|at| (at * 17 + step) as u8).collect();
        match step % 5 {
            0 => {
                let at = step * 13 % held.len().max(1);
                open().write_all_at(&bytes, at as u64).unwrap();
                held.resize(held.len().max(at + bytes.len()), 0);
                held[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            1 => {
                open().write_all_at(&bytes, held.len() as u64).unwrap();
                held.extend_from_slice(&bytes);
            }
            2 => {
                let length = held.len() / 2;
                open().set_len(length as u64).unwrap();
                held.truncate(length);
            }
            3 => {
                let new = path.with_extension("new");
                fs::write(&new, &bytes).unwrap();
                fs::rename(&new, path).unwrap();
                *held = bytes;
            }
            _ => {
                let file = open();
                file.write_all_at(&bytes, 0).unwrap();
                file.sync_data().unwrap();
                let end = bytes.len().max(held.len());
                held.resize(end, 0);
                held[..bytes.len()].copy_from_slice(&bytes);
            }
        }
        step += 1;
        steps.store(step, Ordering::Relaxed);
    }
    files
}

#[test]
fn shared_files_keep_their_sharing() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("btrfs", &[], 320));
    let tree = aged.tree();
    let root = aged.mount.as_ref().unwrap().point.clone();
    must(
        "btrfs",
        &["-q", "subvolume", "snapshot", "-r", &root.to_string_lossy(), &root.join("snap").to_string_lossy()],
    );
    let (before, snapshot) = (state(&tree), state(&root.join("snap/tree")));
    let report = defrag(&lab, &tree, &["--force"]);
    // The metadata of a snapshot may grow by 2% of the space in use.
    assert!(report["applied"]["files"].as_u64().unwrap() > 100, "{report}");
    assert!(report["left"]["shared"].is_null() && report["applied"]["skipped"]["shared"].is_null(), "{report}");
    assert_eq!(state(&tree), before);
    assert_eq!(state(&root.join("snap/tree")), snapshot);
    aged.check();
}
