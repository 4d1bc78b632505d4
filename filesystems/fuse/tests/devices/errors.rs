//! A device that fails requests below a mount. For every byte that is not kept, write, fsync,
//! msync, close or the unmount returns an error. No read returns other bytes.
//!
//! Each case reads the state after a loss of power when the mount has ended, because the page cache
//! serves bytes that no device has. `SENESCE_FAULTS=40` draws that number of faults for each way,
//! engine and mode.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::io::Errno;
use senesce_block::{BlockDevice, BlockOperation, CrashPlan, FaultDevice, MemoryDevice, RecordedDevice, Recording};
use senesce_core::{Rng, Seed};
use senesce_fsapi::{FileSystem, FsResult, Ino};
use senesce_testkit::root_or_skip;
use tempfile::TempDir;

use super::{
    program::Program,
    rig::{KINDS, Kind, MODES, Mode, Serving, share},
    syscalls::WAYS,
};

/// An offset in the middle of a block.
const PATCH: u64 = 4096 * 100 + 5;

type Faulty = Arc<FaultDevice<RecordedDevice>>;
fn contents(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 4096 * 7 + at) as u8 ^ salt).collect()
}

/// A mounted engine on devices that can fail.
struct Bench {
    kind: Kind,
    recording: Recording,
    devices: Vec<Faulty>,
    serving: Option<Serving>,
    dir: TempDir,
}

impl Bench {
    fn new(kind: Kind, made: &[MemoryDevice], mode: Mode) -> Self {
        let (recording, recorded) = Recording::new(made.iter().map(MemoryDevice::fork).collect());
        let devices: Vec<Faulty> = recorded.into_iter().map(|device| Arc::new(FaultDevice::new(device))).collect();
        let opened = kind.open(&share(devices.iter().cloned()), mode).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let serving = Some(Serving::start(&opened, mode, dir.path()));
        Self { kind, recording, devices, serving, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn serving(&self) -> &Serving {
        self.serving.as_ref().unwrap()
    }

    fn end(&mut self) -> Result<(), String> {
        self.serving.take().unwrap().end()
    }

    /// Injects a drawn fault: a request of some kind within the next few, alone or with all later
    /// ones.
    fn inject(&self, rng: &mut Rng) -> String {
        let number = rng.below(self.devices.len() as u64) as usize;
        let (word, operation) =
            [("write", BlockOperation::Write), ("flush", BlockOperation::Flush), ("read", BlockOperation::Read)]
                [rng.weighted(&[45, 45, 10])];
        let first = self.devices[number].requests(operation) + [1, 1, 2, 3, 6, 12][rng.below(6) as usize];
        let fault = format!("fail {word} {first}{}", if rng.chance(2, 3) { ".." } else { "" });
        self.devices[number].inject(&fault).unwrap();
        format!("device {number}: {fault}")
    }

    fn heal(&self) {
        self.devices.iter().for_each(|device| device.heal());
    }

    fn struck(&self) -> u64 {
        self.devices.iter().map(|device| device.struck()).sum()
    }

    /// The contents of the devices, and their contents if the power fails now and loses all
    /// unflushed writes.
    fn left(&self) -> [Vec<MemoryDevice>; 2] {
        let all = || self.devices.iter().map(|device| device.inner().fork()).collect();
        let plan = CrashPlan { exhaustive_up_to: 0, samples: 0, tears: 0, seed: Seed(0) };
        let (events, mut lost) = (self.recording.events(), None);
        self.recording.for_each_crash(&plan, |crash| {
            if crash.events == events && !crash.lost.is_empty() {
                lost = Some(crash.devices);
            }
        });
        [all(), lost.unwrap_or_else(all)]
    }
}

/// Reads a whole file of an engine that is opened again.
pub fn read_whole(fs: &dyn FileSystem, name: &str) -> FsResult<Vec<u8>> {
    let found = fs.lookup(Ino::ROOT, name.as_bytes())?;
    let mut bytes = vec![0; found.size as usize];
    let len = fs.read(found.ino, 0, &mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Fails unless files have these contents on devices that are opened again, and the check is clean
/// then.
fn assert_kept(kind: Kind, devices: &[MemoryDevice], files: &[(&str, &[u8])], case: &str) {
    let devices = share(devices.iter().map(MemoryDevice::fork));
    // Only the superblock after a failed superblock write records the failed drive.
    let findings = kind.findings(&devices);
    assert!(findings.iter().all(|finding| finding.starts_with("superblock ")), "{case}: {findings:?}");
    let opened = kind.open(&devices, Mode::Durable).unwrap_or_else(|error| panic!("{case}: {error}"));
    for (name, wanted) in files {
        let found = read_whole(opened.fs.as_ref(), name).unwrap_or_else(|error| panic!("{case}: {name}: {error}"));
        let same = found.iter().zip(*wanted).take_while(|(a, b)| a == b).count();
        assert!(
            found == *wanted,
            "{case}: {name} was confirmed with {} bytes; {} are kept, the first {same} of them right",
            wanted.len(),
            found.len()
        );
    }
    opened.engine.point().unwrap();
    drop(opened);
    assert_eq!(kind.findings(&devices), [""; 0], "{case}: after opening");
}

/// The errors that a failed request can cause.
fn assert_is_of_device(error: &io::Error, case: &str) {
    let expected = [Errno::IO, Errno::UCLEAN, Errno::FAULT, Errno::ROFS].map(|errno| Some(errno.raw_os_error()));
    assert!(expected.contains(&error.raw_os_error()), "{case}: {error}");
}

fn faults() -> u64 {
    std::env::var("SENESCE_FAULTS").map_or(2, |text| text.parse().expect("SENESCE_FAULTS is a number"))
}

#[test]
fn confirmed_contents_survive_failing_devices() {
    if !root_or_skip("mounting") {
        return;
    }
    let program = Program::start();
    let (old, new) = (contents(300_001, 1), contents(700_003, 2));
    let (mut struck, mut refused) = (0, 0);
    for kind in KINDS {
        let made = kind.made();
        for mode in MODES {
            for (way, _) in WAYS {
                let mut rng = Rng::for_purpose(Seed(1), &format!("{kind:?} {mode:?} {way}"));
                for number in 0..faults() {
                    let mut bench = Bench::new(kind, &made, mode);
                    program.put("write", &bench.path("old"), &old).unwrap();
                    let fault = bench.inject(&mut rng);
                    let case = format!("{kind:?}, {mode:?}, {way}, fault {number}: {fault}");
                    let done = program.put(way, &bench.path("new"), &new);
                    // The timer of the mount.
                    let timer = bench.serving().engine.sync();
                    if rng.chance(1, 2) {
                        bench.heal();
                    }
                    let ended = bench.end();
                    let [all, durable] = bench.left();
                    if let Err(error) = &done {
                        assert_is_of_device(error, &case);
                        assert!(bench.struck() > 0, "{case}: {error}");
                        refused += 1;
                    }
                    struck += u64::from(bench.struck() > 0);
                    let mut kept: Vec<(&str, &[u8])> = vec![("old", &old)];
                    let is_promised = way != "close" || kind.is_durable_at_once(mode);
                    if done.is_ok() && (is_promised || ended.is_ok() || (timer.is_ok() && mode.writes_through())) {
                        kept.push(("new", &new));
                    }
                    for devices in [all, durable] {
                        assert_kept(bench.kind, &devices, &kept, &case);
                    }
                }
            }
        }
    }
    println!("{struck} faults struck, {refused} calls failed");
    assert!(refused > 0 && struck > refused, "{struck} faults struck, {refused} calls failed");
}

/// The timer of a mount gets the error, and the device works again before the program calls fsync.
#[test]
fn fsync_after_a_failed_timer_confirms_kept_data() {
    if !root_or_skip("mounting") {
        return;
    }
    let program = Program::start();
    let (old, new) = (contents(100_001, 3), contents(200_003, 4));
    let (mut failed, mut confirmed) = (0, 0);
    for kind in KINDS {
        let made = kind.made();
        for mode in MODES {
            for fault in ["fail write", "fail flush"] {
                for device in 0..made.len() {
                    let case = format!("{kind:?}, {mode:?}, device {device}: {fault}");
                    let mut bench = Bench::new(kind, &made, mode);
                    program.put("write", &bench.path("old"), &old).unwrap();
                    program.open(&bench.path("new")).unwrap();
                    let operation = if fault == "fail write" { BlockOperation::Write } else { BlockOperation::Flush };
                    let next = bench.devices[device].requests(operation) + 1;
                    bench.devices[device].inject(&format!("{fault} {next}..")).unwrap();
                    let written = program.write_at(0, &new);
                    let timer = bench.serving().engine.sync();
                    let point = bench.serving().engine.point();
                    failed += u64::from(timer.is_err() || point.is_err());
                    bench.heal();
                    let synced = program.sync();
                    let closed = program.close();
                    // The error of an unmount may be missed.
                    let _ = bench.end();
                    let [_, durable] = bench.left();
                    let mut kept: Vec<(&str, &[u8])> = vec![("old", &old)];
                    if written.and(synced).and(closed).is_ok() {
                        kept.push(("new", &new));
                        confirmed += 1;
                    }
                    assert_kept(kind, &durable, &kept, &case);
                }
            }
        }
    }
    println!("{failed} timers failed, {confirmed} files confirmed");
    assert!(failed > 0 && confirmed > 0, "{failed} timers failed, {confirmed} files confirmed");
}

#[test]
fn failing_reads_are_errors_and_never_other_bytes() {
    if !root_or_skip("mounting") {
        return;
    }
    let program = Program::start();
    let old = contents(900_001, 5);
    let (mut refused, mut served) = (0, 0);
    for kind in KINDS {
        let mut bench = Bench::new(kind, &kind.made(), Mode::Durable);
        program.put("write", &bench.path("old"), &old).unwrap();
        bench.end().unwrap();
        let [_, filled] = bench.left();
        for mode in MODES {
            for device in 0..filled.len() {
                for later in [0, 1, 3, 9] {
                    let mut bench = Bench::new(kind, &filled, mode);
                    let first = bench.devices[device].requests(BlockOperation::Read) + 1 + later;
                    bench.devices[device].inject(&format!("fail read {first}..")).unwrap();
                    let case = format!("{kind:?}, {mode:?}, device {device}: fail read {first}..");
                    for read in [program.read(&bench.path("old")), program.read_by_mapping(&bench.path("old"))] {
                        match read {
                            Ok(found) => {
                                assert!(found == old, "{case}");
                                served += 1;
                            }
                            Err(error) => {
                                assert_is_of_device(&error, &case);
                                refused += 1;
                            }
                        }
                    }
                    // A write into the middle of a block has to read the rest of it.
                    let written = patch(&program, &bench.path("old"));
                    let mut wanted = old.clone();
                    if written.is_ok() {
                        wanted[PATCH as usize..][..5].copy_from_slice(b"patch");
                    }
                    bench.heal();
                    // An unreadable block may exclude a drive, or stop the engine.
                    let _ = bench.end();
                    let [_, durable] = bench.left();
                    match written {
                        Ok(()) => assert_kept(kind, &durable, &[("old", &wanted)], &case),
                        Err(error) => {
                            assert_is_of_device(&error, &case);
                            assert_old_or_patched(kind, &durable, &old, &case);
                        }
                    }
                }
            }
        }
    }
    println!("{refused} reads failed, {served} were served");
    assert!(refused > 0 && served > 0, "{refused} reads failed, {served} were served");
}

fn patch(program: &Program, path: &Path) -> io::Result<()> {
    program.open(path)?;
    let written = program.write_at(PATCH, b"patch").and_then(|()| program.sync());
    let closed = program.close();
    written.and(closed)
}

/// A failed write may have happened or not; nothing else has changed.
fn assert_old_or_patched(kind: Kind, devices: &[MemoryDevice], old: &[u8], case: &str) {
    let devices: Vec<Arc<dyn BlockDevice>> = share(devices.iter().map(MemoryDevice::fork));
    assert_eq!(kind.findings(&devices), [""; 0], "{case}");
    let opened = kind.open(&devices, Mode::Durable).unwrap();
    let mut found = read_whole(opened.fs.as_ref(), "old").unwrap();
    if found[PATCH as usize..].starts_with(b"patch") {
        found[PATCH as usize..][..5].copy_from_slice(&old[PATCH as usize..][..5]);
    }
    assert!(found == old, "{case}");
}
