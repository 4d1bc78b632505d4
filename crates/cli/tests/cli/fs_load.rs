//! Snapshots of a mounted garden while programs write to it.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
};

use senesce_core::{Rng, Seed};
use senesce_testkit::root_or_skip;

use super::{
    garden_mount::mount,
    lab::{Lab, mount_points},
};

/// Directories that one worker uses; no other worker writes there.
const WORKERS: u64 = 3;
/// Rounds of snapshots.
const ROUNDS: u64 = 6;

/// What a worker does to its directory: fsstress' operations, from a seed.
fn step(dir: &Path, rng: &mut Rng) {
    let name = |rng: &mut Rng| dir.join(format!("d{}", rng.below(4))).join(format!("f{}", rng.below(25)));
    let (one, other) = (name(rng), name(rng));
    let size = |rng: &mut Rng| rng.below(60_000) as usize;
    // What is not there, or is there already, is a failure that the workload wants too.
    let _ = match rng.below(12) {
        0..=3 => fs::write(&one, vec![rng.below(256) as u8; size(rng)]),
        4 => fs::remove_file(&one),
        5 => fs::rename(&one, &other),
        6 => fs::hard_link(&one, &other),
        7 => std::os::unix::fs::symlink("f1", &one),
        8 => fs::OpenOptions::new().write(true).open(&one).and_then(|file| file.set_len(rng.below(80_000))),
        9 => fs::OpenOptions::new().write(true).open(&one).and_then(|file| {
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![rng.below(256) as u8; size(rng)], rng.below(50_000))
        }),
        10 => fs::metadata(&one).and_then(|found| {
            let mode = if found.is_file() { 0o600 + rng.below(64) as u32 } else { 0o700 };
            fs::set_permissions(&one, fs::Permissions::from_mode(mode))
        }),
        _ => fs::create_dir(dir.join(format!("d{}", rng.below(4)))),
    };
}

/// Everything that a tree says of itself but its inode numbers, in the order of paths.
///
/// Without times in write-back: there the engine notes when a page comes, and the kernel when it
/// was written.
fn tree(root: &Path, has_times: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let full = root.join(&path);
        let meta = fs::symlink_metadata(&full).unwrap();
        let content = match meta.file_type() {
            kind if kind.is_dir() => {
                left.extend(fs::read_dir(&full).unwrap().map(|entry| path.join(entry.unwrap().file_name())));
                String::new()
            }
            kind if kind.is_symlink() => fs::read_link(&full).unwrap().display().to_string(),
            _ => blake3(&fs::read(&full).unwrap()),
        };
        let times = has_times.then(|| (meta.mtime(), meta.mtime_nsec()));
        found.push(format!("{path:?} {:o} {} {} {times:?} {content}", meta.mode(), meta.len(), meta.nlink()));
    }
    found.sort();
    found
}

fn blake3(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Workers that write until they are stopped, and pause while the gate is held.
#[derive(Default)]
struct Load {
    steps: AtomicU64,
    stops: AtomicBool,
    gate: std::sync::RwLock<()>,
}

fn work(load: &Load, dir: &Path, seed: u64) {
    (0..4).for_each(|number| fs::create_dir_all(dir.join(format!("d{number}"))).unwrap());
    let mut rng = Rng::for_purpose(Seed(seed), "load");
    while !load.stops.load(Relaxed) {
        let gate = load.gate.read().unwrap();
        step(dir, &mut rng);
        drop(gate);
        load.steps.fetch_add(1, Relaxed);
    }
}

#[track_caller]
fn run(lab: &Lab, words: &str) -> String {
    lab.run(words.split(' ')).good().stdout
}

/// Returns when the workers did some more.
fn let_work(load: &Load, steps: u64) {
    let from = load.steps.load(Relaxed);
    while load.steps.load(Relaxed) < from + steps {
        thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Stops the workers when it goes, also if a test fails.
struct Stop<'a>(&'a Load);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stops.store(true, Relaxed);
    }
}

/// Does something while workers write to the mount.
fn under_load<T>(lab: &Lab, seed: u64, act: impl FnOnce(&Load) -> T) -> T {
    let load = Load::default();
    thread::scope(|scope| {
        let _stop = Stop(&load);
        for worker in 0..WORKERS {
            let (load, dir) = (&load, lab.path(format!("mnt/worker-{worker}")));
            scope.spawn(move || work(load, &dir, seed + worker));
        }
        act(&load)
    })
}

fn snapshots_under(how: &[&str]) {
    let lab = Lab::new();
    let tree = |lab: &Lab| tree(&lab.path("mnt"), !how.contains(&"--write-back"));
    lab.run(["fs", "mkfs", "garden", "g", "--size", "256MiB", "--data-drives", "3", "--seed", "7"]).good();
    let mounted = mount(&lab, &[&["--point-every", "1", "--cache", "8MiB"], how].concat());
    let mut kept: Vec<(String, Vec<String>)> = Vec::new();
    under_load(&lab, 0, |load| {
        for round in 0..ROUNDS {
            let_work(load, 150);
            // One snapshot in the middle of everything, and one while the workers pause, whose tree
            // is known.
            run(&lab, &format!("fs snapshot create g main wild-{round}"));
            let name = format!("still-{round}");
            {
                let _gate = load.gate.write().unwrap();
                kept.push((name.clone(), tree(&lab)));
                run(&lab, &format!("fs snapshot create mnt main {name}"));
            }
            match round % 3 {
                0 => drop(run(&lab, "fs clean g")),
                1 => drop(run(&lab, "fs defrag g")),
                _ => drop(run(&lab, "fs dedup g main")),
            }
            assert!(run(&lab, "fs check g --online").starts_with("as it is: clean"));
            run(&lab, &format!("fs snapshot delete g main wild-{round}"));
            if round == 3 {
                // What it held alone becomes free below the others.
                run(&lab, "fs snapshot delete g main still-1");
                kept.remove(1);
                run(&lab, "fs clone g main still-2 copy");
            }
        }
        let_work(load, 150);
    });
    mounted.unmount();
    for part in run(&lab, "fs check g").lines().filter(|line| line.contains(": ") && !line.starts_with(' ')) {
        assert!(part.ends_with(": clean"), "{part}");
    }
    for (name, known) in &kept {
        let snapshot = mount(&lab, &["--snapshot", name]);
        let found = tree(&lab);
        snapshot.unmount();
        let differs = known.iter().zip(&found).find(|(known, found)| known != found);
        assert!(
            *known == found,
            "{name}: {} entries and {}, the first that differs: {differs:?}",
            known.len(),
            found.len()
        );
    }
    let clone = mount(&lab, &["--volume", "copy"]);
    let found = tree(&lab);
    clone.unmount();
    assert!(kept.iter().any(|(name, known)| name == "still-2" && *known == found), "the clone is another tree");
}

#[test]
fn snapshots_under_load_hold_what_was_there() {
    if root_or_skip("mounting") {
        snapshots_under(&[]);
    }
}

#[test]
fn snapshots_under_load_are_exact_with_write_back() {
    if root_or_skip("mounting") {
        snapshots_under(&["--write-back"]);
    }
}

#[test]
fn snapshots_under_load_are_exact_with_gardening() {
    if root_or_skip("mounting") {
        snapshots_under(&["--gardening", "all"]);
    }
}

#[test]
fn mounted_snapshot_never_changes_while_programs_write() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "256MiB", "--data-drives", "3", "--seed", "7"]).good();
    let mounted = mount(&lab, &["--point-every", "1"]);
    under_load(&lab, 0, |load| {
        for name in ["first", "second"] {
            let_work(load, 400);
            run(&lab, &format!("fs snapshot create g main {name}"));
        }
        let_work(load, 400);
    });
    mounted.unmount();
    let also = ["main/first=first", "main/second=second"];
    let points = ["first", "second"].map(|name| lab.path(name));
    points.iter().for_each(|point| fs::create_dir(point).unwrap());
    let also: Vec<_> = also.iter().flat_map(|also| ["--also", also]).collect();
    let mounted = mount(&lab, &[&["--point-every", "1", "--cache", "8MiB"], &also[..]].concat());
    while points.iter().any(|point| !mount_points().contains(&point.to_string_lossy().into_owned())) {
        thread::sleep(std::time::Duration::from_millis(2));
    }
    let trees = || points.each_ref().map(|point| tree(point, true));
    let before = trees();
    assert!(before.iter().all(|tree| tree.len() > 50) && before[0] != before[1]);
    under_load(&lab, 100, |load| {
        for (name, verb) in [("third", "clean g"), ("fourth", "defrag g"), ("fifth", "dedup g main")] {
            let_work(load, 200);
            run(&lab, &format!("fs snapshot create g main {name}"));
            run(&lab, &format!("fs {verb}"));
            assert!(trees() == before, "a snapshot is another one after {verb}");
        }
        assert!(run(&lab, "fs check g --online").starts_with("as it is: clean"));
    });
    assert!(trees() == before, "a snapshot is another one at the end");
    points.iter().for_each(|point| senesce_testkit::unmount(point));
    mounted.unmount();
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
}
