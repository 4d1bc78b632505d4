//! Losses of power below a mount. Programs write, map, rename, remove and sync files while all
//! writes and flushes of the devices are recorded. Each state that a loss of power may leave is
//! checked, opened and read.
//!
//! `SENESCE_POWER_STATES=5000` sets the number of states over all engines and modes.
//! `SENESCE_POWER_SEED` draws other programs and states.

use std::{
    fs::{self, File},
    path::Path,
};

use senesce_block::{Crash, CrashPlan, MemoryDevice, Recording};
use senesce_core::{Rng, Seed};
use senesce_fsapi::{FileSystem, FsError, Ino};
use senesce_testkit::root_or_skip;

use super::{
    program,
    promises::{Change, Promises},
    rig::{Engine, KINDS, Kind, MODES, Mode, Opened, Serving, share},
    syscalls,
};

/// The number of simultaneous programs, and the steps of each.
const PROGRAMS: u64 = 2;
const STEPS: u64 = 45;
const BLOCK: usize = 4096;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// A program that changes files in its own directory.
struct Program<'a> {
    kind: Kind,
    mode: Mode,
    mount: &'a Path,
    /// The name of its directory.
    own: String,
    /// The process that executes it.
    process: program::Program,
    promises: &'a Promises,
    engine: Engine,
    rng: Rng,
    /// Existing files with their contents. All are synced.
    files: Vec<(String, Vec<u8>)>,
    made: u64,
}

impl Program<'_> {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.mount.join(&self.own).join(name)
    }

    fn tracked(&self, name: &str) -> String {
        format!("{}/{name}", self.own)
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = match self.rng.below(8) {
            0 => 0,
            1..5 => self.rng.between(1, 9000),
            5..7 => self.rng.between(9000, 90_000),
            _ => self.rng.between(90_000, 400_000),
        };
        let mut bytes = vec![0; len as usize];
        self.rng.fill(&mut bytes);
        bytes
    }

    /// A sync of a file also syncs all earlier changes of the program that reached the engine. In
    /// write-back through the kernel's pages, it syncs only this file.
    fn synced(&self, name: &str) {
        let (own, all) = (self.tracked(name), format!("{}/", self.own));
        let is_all = self.mode.writes_through();
        self.promises.keep(|path| path == own || (is_all && path.starts_with(&all)));
    }

    /// An operation has returned.
    fn returned(&self) {
        if self.kind.is_durable_at_once(self.mode) {
            let all = format!("{}/", self.own);
            self.promises.keep(|path| path.starts_with(&all));
        }
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("f{}", self.made)
    }

    fn run(&mut self) {
        fs::create_dir(self.mount.join(&self.own)).unwrap();
        syscalls::sync_directory(self.mount).unwrap();
        for _ in 0..STEPS {
            self.step();
        }
    }

    fn step(&mut self) {
        match self.rng.weighted(&[20, 10, 14, 14, 8, 8, 8, 6, 4, 4, 4]) {
            0 => self.make("write"),
            1 => self.make("msync"),
            2 => self.replace(),
            3 => self.overwrite(false),
            4 => self.overwrite(true),
            5 => self.unlink(),
            6 => self.rename(),
            7 => self.write_without_sync(),
            // Neither promises anything: FUSE handles sync(2) and syncfs(2) only as write-back of
            // pages.
            8 => rustix::fs::syncfs(File::open(self.mount).unwrap()).unwrap(),
            9 => {
                self.engine.sync().unwrap();
                if self.mode.writes_through() {
                    let all = format!("{}/", self.own);
                    self.promises.keep(|path| path.starts_with(&all));
                }
            }
            _ => self.engine.point().unwrap(),
        }
    }

    fn make(&mut self, way: &str) {
        let (name, mut bytes) = (self.new_name(), self.bytes());
        if bytes.is_empty() {
            bytes.push(1); // an empty file cannot be mapped
        }
        let change = if way == "msync" { Change::Store } else { Change::Write };
        self.promises.begin(&self.tracked(&name), change, Some(bytes.clone()));
        self.process.put(way, &self.path(&name), &bytes).unwrap();
        self.synced(&name);
        self.files.push((name, bytes));
    }

    fn replace(&mut self) {
        let bytes = self.bytes();
        self.promises.begin(&self.tracked("current"), Change::Replace, Some(bytes.clone()));
        self.process.put("rename", &self.path("current"), &bytes).unwrap();
        self.synced("current");
    }

    /// Overwrites some blocks of a file or appends, and syncs it.
    fn overwrite(&mut self, by_mapping: bool) {
        if self.files.is_empty() {
            return;
        }
        let at = self.rng.below(self.files.len() as u64) as usize;
        let (name, mut bytes) = self.files[at].clone();
        self.process.open(&self.path(&name)).unwrap();
        let mut block = [0; BLOCK];
        let places: Vec<usize> = (0..self.rng.between(1, 6))
            .map(|_| self.rng.below((bytes.len() / BLOCK + 1) as u64) as usize * BLOCK)
            .filter(|place| !by_mapping || place + BLOCK <= bytes.len())
            .collect();
        for place in places {
            self.rng.fill(&mut block);
            if bytes.len() < place + BLOCK {
                bytes.resize(place + BLOCK, 0);
            }
            bytes[place..place + BLOCK].copy_from_slice(&block);
            // Each state between two writes is a version.
            let change = if by_mapping { Change::Store } else { Change::Write };
            self.promises.begin(&self.tracked(&name), change, Some(bytes.clone()));
            if by_mapping {
                self.process.store_at(place as u64, &block).unwrap();
            } else {
                self.process.write_at(place as u64, &block).unwrap();
                self.returned();
            }
        }
        self.process.sync().unwrap();
        self.process.close().unwrap();
        self.synced(&name);
        self.files[at].1 = bytes;
    }

    fn take(&mut self) -> Option<(String, Vec<u8>)> {
        let count = self.files.len() as u64;
        (count > 0).then(|| self.files.swap_remove(self.rng.below(count) as usize))
    }

    fn unlink(&mut self) {
        let Some((name, _)) = self.take() else { return };
        self.promises.begin(&self.tracked(&name), Change::Write, None);
        fs::remove_file(self.path(&name)).unwrap();
        self.returned();
        syscalls::sync_directory(&self.path("")).unwrap();
        self.synced(&name);
    }

    fn rename(&mut self) {
        let Some((name, bytes)) = self.take() else { return };
        let other = self.new_name();
        self.promises.begin(&self.tracked(&other), Change::Replace, Some(bytes.clone()));
        self.promises.begin(&self.tracked(&name), Change::Write, None);
        fs::rename(self.path(&name), self.path(&other)).unwrap();
        self.returned();
        syscalls::sync_directory(&self.path("")).unwrap();
        let names = [self.tracked(&name), self.tracked(&other)];
        self.promises.keep(|path| names.iter().any(|name| name == path));
        // The new name starts another history, because the file may later be written in place.
        let third = self.new_name();
        self.promises.begin(&self.tracked(&third), Change::Write, Some(bytes.clone()));
        fs::hard_link(self.path(&other), self.path(&third)).unwrap();
        self.returned();
        self.promises.begin(&self.tracked(&other), Change::Replace, None);
        fs::remove_file(self.path(&other)).unwrap();
        self.returned();
        syscalls::sync_directory(&self.path("")).unwrap();
        let names = [self.tracked(&other), self.tracked(&third)];
        self.promises.keep(|path| names.iter().any(|name| name == path));
        self.files.push((third, bytes));
    }

    fn write_without_sync(&mut self) {
        let (name, bytes) = (self.new_name(), self.bytes());
        self.promises.begin(&self.tracked(&name), Change::Write, Some(bytes.clone()));
        self.process.put("close", &self.path(&name), &bytes).unwrap();
        self.returned();
    }
}

/// A file by its path in a file system that was opened again.
fn read(fs: &dyn FileSystem, path: &str) -> Result<Option<Vec<u8>>, String> {
    let mut ino = Ino::ROOT;
    let mut size = 0;
    for name in path.split('/') {
        match fs.lookup(ino, name.as_bytes()) {
            Ok(found) => (ino, size) = (found.ino, found.size),
            Err(FsError::NotFound) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
    }
    let mut bytes = vec![0; size as usize];
    let len = fs.read(ino, 0, &mut bytes).map_err(|error| error.to_string())?;
    (len == bytes.len()).then_some(Some(bytes)).ok_or_else(|| format!("{len} of {size} bytes could be read"))
}

/// Records what `act` does on a mount.
fn record(
    kind: Kind,
    mode: Mode,
    made: &[MemoryDevice],
    act: impl FnOnce(&Path, &Engine, &Promises),
) -> (Recording, Promises) {
    let (recording, devices) = Recording::new(made.iter().map(MemoryDevice::fork).collect());
    let devices = share(devices);
    let opened = kind.open(&devices, mode).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&opened, mode, dir.path());
    let promises = Promises::new(recording.clone());
    act(dir.path(), &serving.engine, &promises);
    serving.end().unwrap();
    (recording, promises)
}

/// Runs the programs on a mount.
fn record_programs(kind: Kind, mode: Mode, made: &[MemoryDevice], seed: Seed) -> (Recording, Promises) {
    record(kind, mode, made, |mount, engine, promises| {
        std::thread::scope(|scope| {
            for number in 0..PROGRAMS {
                let mut program = Program {
                    kind,
                    mode,
                    mount,
                    own: format!("p{number}"),
                    process: program::Program::start(),
                    promises,
                    engine: engine.clone(),
                    rng: Rng::for_purpose(seed, &format!("program {number} on {kind:?} {mode:?}")),
                    files: Vec::new(),
                    made: 0,
                };
                scope.spawn(move || program.run());
            }
        });
    })
}

/// Fails unless a state can be opened, keeps all promises and is clean.
fn assert_kept(kind: Kind, promises: &Promises, crash: &Crash, is_thorough: bool, case: &str) {
    let devices = share(crash.devices.iter().map(MemoryDevice::fork));
    // A superblock that was being written on some drives stays damaged on one of them until the
    // next superblock.
    let findings = kind.findings(&devices);
    assert!(findings.iter().all(|finding| finding.starts_with("superblock ")), "{case}: {crash}: {findings:?}");
    let opened = kind.open(&devices, Mode::Durable).unwrap_or_else(|error| panic!("{case}: {crash}: {error}"));
    if let Some(broken) = promises.broken(crash.mark, |path| read(opened.fs.as_ref(), path)) {
        panic!("{case}: {crash}: {broken}");
    }
    if is_thorough || !findings.is_empty() {
        let Opened { fs, engine } = opened;
        engine.point().unwrap();
        drop((fs, engine));
        assert_eq!(kind.findings(&devices), [""; 0], "{case}, recovered: {crash}");
    }
}

#[test]
fn losses_of_power_below_mounts_keep_synced_data() {
    if !root_or_skip("mounting") {
        return;
    }
    let seed = Seed(number("SENESCE_POWER_SEED", 1));
    let wanted = number("SENESCE_POWER_STATES", 240).div_ceil((KINDS.len() * MODES.len()) as u64);
    let mut all = 0;
    for kind in KINDS {
        let made = kind.made();
        for mode in MODES {
            let case = format!("{kind:?}, {mode:?}, seed {}", seed.0);
            let (recording, promises) = record_programs(kind, mode, &made, seed);
            assert!(promises.kept() > 20, "{case}: {} promises", promises.kept());
            let plan = CrashPlan { exhaustive_up_to: 3, samples: 6, tears: 1, seed };
            let mut possible = 0;
            recording.for_each_crash(&plan, |_| possible += 1);
            // The same number, evenly over the whole recording.
            let (mut at, mut tried) = (0, 0);
            recording.for_each_crash(&plan, |crash| {
                if at * wanted / possible != (at + 1) * wanted / possible {
                    assert_kept(kind, &promises, &crash, tried % 8 == 0, &case);
                    tried += 1;
                }
                at += 1;
            });
            println!("{case}: {tried} of {possible} states, {} promises", promises.kept());
            all += tried;
        }
    }
    assert!(all > 0);
    println!("{all} states");
}

/// The kernel writes a page back when a program has stored its last bytes, but not its first ones.
/// memcpy(3) of glibc stores in this order.
#[test]
fn losses_of_power_during_stores_leave_parts_of_pages() {
    if !root_or_skip("mounting") {
        return;
    }
    const LATE: usize = 64;
    let mut bytes = vec![0; 2 * BLOCK];
    Rng::for_purpose(Seed(1), "a stored file").fill(&mut bytes);
    let torn = [&[0; LATE], &bytes[LATE..]].concat();
    let kind = Kind::Evergreen;
    let made = kind.made();
    for mode in MODES {
        let (recording, promises) = record(kind, mode, &made, |mount, engine, promises| {
            let (path, process) = (mount.join("file"), program::Program::start());
            promises.begin("file", Change::Store, Some(bytes.clone()));
            File::create(&path).unwrap().set_len(bytes.len() as u64).unwrap();
            process.open(&path).unwrap();
            process.store_at(LATE as u64, &bytes[LATE..]).unwrap();
            engine.sync().unwrap();
            process.store_at(0, &bytes[..LATE]).unwrap();
            process.close().unwrap();
            promises.keep(|path| path == "file");
        });
        let (mut states, mut are_torn) = (0, 0);
        recording.for_each_crash(&CrashPlan { exhaustive_up_to: 3, samples: 6, tears: 1, seed: Seed(1) }, |crash| {
            assert_kept(kind, &promises, &crash, true, &format!("{mode:?}"));
            let devices = share(crash.devices.iter().map(MemoryDevice::fork));
            let opened = kind.open(&devices, Mode::Durable).unwrap();
            are_torn += u64::from(read(opened.fs.as_ref(), "file").unwrap().as_ref() == Some(&torn));
            states += 1;
        });
        assert!(0 < are_torn && are_torn < states, "{mode:?}: {are_torn} of {states} states");
    }
}
