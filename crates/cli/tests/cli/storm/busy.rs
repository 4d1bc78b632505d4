//! Programs that use the tree during a cure. Each has files of its own, and records their contents.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::ErrorKind,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use memmap2::MmapMut;
use rustix::fs::OFlags;
use senesce_core::{Rng, Seed};

use super::case::{Case, Mode};

/// The contents that the files of the programs must have. `None`: the file must not exist.
pub type Held = BTreeMap<PathBuf, Option<Vec<u8>>>;

const BLOCK: usize = 4096;
const BLOCKS: usize = 64;
/// `edit` no longer extends a file of this length, bytes.
const MOST_BYTES: usize = 128 << 10;

/// The pause of a program between two steps.
const PAUSE: Duration = Duration::from_micros(500);

type Program = fn(&Path, &mut Rng, &AtomicBool) -> Held;

/// All programs. They need free space.
const ALL: [(&str, Program); 5] =
    [("edit", edit), ("churn", churn), ("blocks", write_blocks), ("direct", write_direct), ("mapped", write_mapped)];
/// The programs that only overwrite blocks, for volumes without free space.
const IN_PLACE: [(&str, Program); 2] = [("blocks", write_blocks), ("direct", write_direct)];

/// Makes the files of all programs.
pub fn make(root: &Path) {
    let busy = root.join("tree/busy");
    fs::create_dir(&busy).unwrap();
    for (name, _) in ALL {
        fs::create_dir(busy.join(name)).unwrap();
    }
    for (name, count) in [("edit", 24), ("blocks", 3), ("direct", 2), ("mapped", 2)] {
        for number in 0..count {
            let length = if name == "edit" { 2000 + number * 700 } else { BLOCK * BLOCKS };
            fs::write(busy.join(name).join(number.to_string()), vec![number as u8; length]).unwrap();
        }
    }
}

/// How the programs run.
pub struct Beside<'a> {
    pub seed: u64,
    /// Whether the volume is nearly full. The programs then only overwrite blocks.
    pub is_full: bool,
    /// Stops the programs. It is set when the work is done; the caller may set it earlier.
    pub stop: &'a AtomicBool,
}

/// Runs the programs beside `work`. Returns the contents that their files must have.
pub fn run_beside<T>(case: &Case, root: &Path, how: &Beside<'_>, work: impl FnOnce() -> T) -> (T, Held) {
    let Beside { seed, is_full, stop } = *how;
    // Btrfs needs free space for each block that it overwrites.
    let programs: &[(&str, Program)] = match (is_full || case.mode == Mode::Space, case.kind) {
        (true, "btrfs") => &[],
        (true, _) => &IN_PLACE,
        (false, _) => &ALL,
    };
    std::thread::scope(|scope| {
        let run = |(name, program): &(&'static str, Program)| {
            let (name, program, directory) = (*name, *program, root.join("tree/busy").join(name));
            scope.spawn(move || program(&directory, &mut Rng::for_purpose(Seed(seed), name), stop))
        };
        let threads: Vec<_> = programs.iter().map(run).collect();
        let snapshots =
            (case.mode == Mode::Snapshots && !is_full).then(|| scope.spawn(move || send_snapshots(root, stop)));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        let held = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        if let Some(thread) = snapshots {
            thread.join().unwrap();
        }
        (done, held)
    })
}

/// Describes the files whose contents are not those that their program wrote.
pub fn differences(held: &Held) -> Vec<String> {
    let differs = |(path, bytes): (&PathBuf, &Option<Vec<u8>>)| {
        let (now, path) = (fs::read(path), path.display());
        match (now, bytes) {
            (Ok(now), Some(bytes)) if now == *bytes => None,
            (Err(error), None) if error.kind() == ErrorKind::NotFound => None,
            (Ok(now), Some(bytes)) => {
                let at = now.iter().zip(bytes).position(|(a, b)| a != b);
                Some(format!(
                    "{path}: {} bytes, {} were written, the first other one at {at:?}",
                    now.len(),
                    bytes.len()
                ))
            }
            (now, bytes) => Some(format!("{path}: {:?}, {} written", now.map(|now| now.len()), bytes.is_some())),
        }
    };
    held.iter().filter_map(differs).collect()
}

fn read_all(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let path = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().path();
    fs::read_dir(directory).unwrap().map(path).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn held(files: BTreeMap<PathBuf, Vec<u8>>) -> Held {
    files.into_iter().map(|(path, bytes)| (path, Some(bytes))).collect()
}

fn until(stop: &AtomicBool, mut step: impl FnMut()) {
    while !stop.load(Ordering::Relaxed) {
        step();
        // The cure and the checks need the processor, too.
        std::thread::sleep(PAUSE);
    }
}

/// Overwrites, extends and truncates files, and replaces them by a rename.
fn edit(directory: &Path, rng: &mut Rng, stop: &AtomicBool) -> Held {
    let mut files = read_all(directory);
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    until(stop, || {
        let path = &names[rng.below(names.len() as u64) as usize];
        let held = files.get_mut(path).unwrap();
        let mut bytes = vec![0; rng.between(1, 6000) as usize];
        rng.fill(&mut bytes);
        let file = || OpenOptions::new().write(true).open(path).unwrap();
        match rng.below(if held.len() < MOST_BYTES { 5 } else { 3 }) {
            0 => {
                let length = held.len() / 2;
                file().set_len(length as u64).unwrap();
                held.truncate(length);
            }
            1 => {
                let new = path.with_extension("new");
                fs::write(&new, &bytes).unwrap();
                fs::rename(&new, path).unwrap();
                *held = bytes;
            }
            choice => {
                let at = if choice == 3 { held.len() } else { rng.below(held.len() as u64 + 1) as usize };
                let file = file();
                file.write_all_at(&bytes, at as u64).unwrap();
                if choice == 4 {
                    file.sync_data().unwrap();
                }
                held.resize(held.len().max(at + bytes.len()), 0);
                held[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
    });
    held(files)
}

/// Creates, renames and removes files.
fn churn(directory: &Path, rng: &mut Rng, stop: &AtomicBool) -> Held {
    let mut all = held(read_all(directory));
    until(stop, || {
        let path = directory.join(rng.below(40).to_string());
        let is_there = all.get(&path).is_some_and(Option::is_some);
        match (is_there, rng.chance(1, 3)) {
            (true, true) => {
                let to = directory.join(rng.below(40).to_string());
                fs::rename(&path, &to).unwrap();
                let bytes = all.insert(path, None).unwrap();
                all.insert(to, bytes);
            }
            (true, false) => {
                fs::remove_file(&path).unwrap();
                all.insert(path, None);
            }
            (false, _) => {
                let mut bytes = vec![0; rng.below(30_000) as usize];
                rng.fill(&mut bytes);
                fs::write(&path, &bytes).unwrap();
                all.insert(path, Some(bytes));
            }
        }
    });
    all
}

/// Overwrites whole blocks through the page cache. Without space, a block stays as it is.
fn write_blocks(directory: &Path, rng: &mut Rng, stop: &AtomicBool) -> Held {
    let mut files = read_all(directory);
    until(stop, || {
        let number = rng.below(files.len() as u64) as usize;
        let (path, held) = files.iter_mut().nth(number).unwrap();
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let at = rng.below(BLOCKS as u64) as usize * BLOCK;
        let mut bytes = [0; BLOCK];
        rng.fill(&mut bytes);
        if is_written(file.write_all_at(&bytes, at as u64)) {
            held[at..at + BLOCK].copy_from_slice(&bytes);
        }
        if rng.chance(1, 8) {
            file.sync_data().unwrap();
        }
    });
    held(files)
}

fn is_written(result: std::io::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::StorageFull => false,
        Err(error) => panic!("{error}"),
    }
}

/// Overwrites whole blocks past the page cache.
fn write_direct(directory: &Path, rng: &mut Rng, stop: &AtomicBool) -> Held {
    let mut files = read_all(directory);
    let mut buffer = MmapMut::map_anon(BLOCK).unwrap();
    until(stop, || {
        let number = rng.below(files.len() as u64) as usize;
        let (path, held) = files.iter_mut().nth(number).unwrap();
        let file = OpenOptions::new().write(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).unwrap();
        let at = rng.below(BLOCKS as u64) as usize * BLOCK;
        rng.fill(&mut buffer);
        if is_written(file.write_all_at(&buffer, at as u64)) {
            held[at..at + BLOCK].copy_from_slice(&buffer);
        }
    });
    held(files)
}

/// Writes through mappings that stay open.
fn write_mapped(directory: &Path, rng: &mut Rng, stop: &AtomicBool) -> Held {
    let mut files = read_all(directory);
    let map = |path: &PathBuf| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        // SAFETY: no other program changes or truncates the file.
        unsafe { MmapMut::map_mut(&file).unwrap() }
    };
    let mut maps: Vec<MmapMut> = files.keys().map(map).collect();
    until(stop, || {
        let number = rng.below(maps.len() as u64) as usize;
        let at = rng.below((BLOCK * BLOCKS - 100) as u64) as usize;
        let bytes = &mut maps[number][at..at + 100];
        rng.fill(bytes);
        files.values_mut().nth(number).unwrap()[at..at + 100].copy_from_slice(bytes);
        if rng.chance(1, 64) {
            maps[number].flush().unwrap();
        }
    });
    held(files)
}

/// Makes snapshots, sends them, and removes them.
fn send_snapshots(root: &Path, stop: &AtomicBool) {
    let path = root.join("sent");
    let btrfs = |args: &[&str]| {
        let output = Command::new("btrfs").args(args).output().unwrap();
        assert!(output.status.success(), "btrfs {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let (tree, sent) = (root.join("tree").to_string_lossy().into_owned(), path.to_string_lossy().into_owned());
    until(stop, || {
        btrfs(&["-q", "subvolume", "snapshot", "-r", &tree, &sent]);
        btrfs(&["-q", "send", "--no-data", "-f", "/dev/null", &sent]);
        btrfs(&["-q", "subvolume", "delete", &sent]);
    });
}
