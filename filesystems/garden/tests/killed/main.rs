//! A process that changes an aggregate on files is killed (SIGKILL) at a random time. Its
//! acknowledged operations are there, and the check finds nothing. The killed process is this test,
//! started again.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use senesce_block::{BlockDevice, FileDevice, FileOptions};
use senesce_core::{Bytes, Rng, Seed};
use senesce_fsapi::{
    FileSystem, FsError, FsResult, ModelFs,
    conformance::{Draw, Operation, Player, SequenceOptions, Subject, collect_tree, find_difference, set_root},
};
use senesce_garden::{FormatOptions, Garden, Limits, LogDevices, VolumeFs, VolumeOptions, check};

const DRIVES: usize = 4;
const LIMITS: Limits = Limits { cache_bytes: 1 << 20, dirty_bytes: 400 << 10 };

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[1..] {
        [word, dir, seed] if word == "child" => child(Path::new(dir), seed.parse().unwrap()),
        // A filter with names of other tests, or the list of tests that some runners request.
        others
            if others.iter().any(|word| word == "--list" || (!word.starts_with('-') && !"killed".contains(word))) => {}
        _ => {
            for seed in 0..6 {
                parent(seed);
            }
            println!("test killed ... ok");
        }
    }
}

fn operations(seed: u64) -> Vec<Operation> {
    let options = SequenceOptions {
        operations: 4000,
        boundaries: vec![0, 1, 160, 4096, 40_960, 65_536],
        reopen: false,
        ..SequenceOptions::default()
    };
    Draw::new(Seed(seed), &options).take(options.operations).collect()
}

/// Drives, and two copies of the log.
fn devices(dir: &Path, create: bool) -> (Vec<Arc<dyn BlockDevice>>, LogDevices) {
    let open = |name: String, size: Bytes| -> Arc<dyn BlockDevice> {
        let path: PathBuf = dir.join(name);
        let options = FileOptions::default();
        let device =
            if create { FileDevice::create(&path, size, options) } else { FileDevice::open(&path, size, options) };
        Arc::new(device.unwrap())
    };
    let drives = (0..DRIVES).map(|number| open(format!("drive {number}"), Bytes(16 << 20))).collect();
    let logs = ["log", "log 2"].map(|name| open(name.to_owned(), Bytes(2 << 20)));
    (drives, logs.to_vec().into())
}

struct Open(Garden, VolumeFs);

fn open(dir: &Path) -> Open {
    let (drives, log) = devices(dir, false);
    let garden = Garden::open(&drives, log, LIMITS).unwrap();
    let fs = garden.volume(b"home").unwrap();
    Open(garden, fs)
}

impl Subject for Open {
    fn file_system(&self) -> &dyn FileSystem {
        &self.1
    }

    fn reopen(&mut self) -> FsResult<()> {
        Err(FsError::Unsupported)
    }
}

/// Runs operations and prints a line after each.
fn child(dir: &Path, seed: u64) {
    let mut open = open(dir);
    let mut player = Player::default();
    let mut out = std::io::stdout().lock();
    for operation in operations(seed) {
        player.play(&mut open, &operation);
        out.write_all(b".\n").unwrap();
        out.flush().unwrap();
    }
}

fn parent(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (drives, log) = devices(dir.path(), true);
    let options = FormatOptions {
        uuid: [3; 16],
        groups: vec![(DRIVES as u16 - 1, true)],
        media: vec![],
        aa_stripes: vec![256],
        tetris_stripes: 16,
        zeroed: true,
    };
    Garden::format(&options, drives, log).unwrap();
    create_volume(dir.path());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", dir.path().to_str().unwrap(), &seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let wanted = Rng::for_purpose(Seed(seed), "when to kill").between(100, 3000);
    let before = lines.by_ref().take(wanted as usize).count();
    child.kill().unwrap();
    child.wait().unwrap();
    // Lines that it wrote before the kill and that are still unread.
    let done = before + lines.count();
    assert!(done < 4000, "seed {seed}: it ended before the kill");

    let open = open(dir.path());
    let tree = collect_tree(&open.1).unwrap();
    open.0.consistency_point().unwrap();
    drop(open);
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(&model).unwrap();
    let mut player = Player::default();
    let operations = operations(seed);
    operations[..done].iter().for_each(|operation| drop(player.play(&mut model, operation)));
    let first = find_difference(&collect_tree(&model).unwrap(), &tree);
    // The next operation may be done without its line.
    player.play(&mut model, &operations[done]);
    let second = find_difference(&collect_tree(&model).unwrap(), &tree);
    let told = format!("seed {seed}, killed after {done} operations");
    assert!(first.is_none() || second.is_none(), "{told}: {}", first.unwrap_or_default());
    let (drives, log) = devices(dir.path(), false);
    let report = check(&drives, &log).unwrap();
    assert!(report.is_clean(), "{told}: {:?}", report.findings);
}

fn create_volume(dir: &Path) {
    let (drives, log) = devices(dir, false);
    let garden = Garden::open(&drives, log, LIMITS).unwrap();
    garden.create_volume(b"home", &VolumeOptions { blocks: 12_000, inodes: 4096, seed: 1 }).unwrap();
    set_root(&garden.volume(b"home").unwrap()).unwrap();
}
