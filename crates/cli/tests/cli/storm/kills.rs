//! Kills of cures.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use senesce_core::Rng;
use senesce_testkit::{root_or_skip, unmount_patiently};
use serde_json::Value;

use super::{
    super::{
        defrag::check,
        disk::{Disk, Mount, must},
        lab::Lab,
    },
    busy,
    case::{Case, Mode, Still, case, sync},
    number, seed,
};

/// Kills between two checks of the unmounted file system.
const KILLS_OF_A_ROUND: u64 = 5;

/// Space that stays free on a nearly full volume, bytes.
const NEARLY_FULL_BYTES: u64 = 6 << 20;

/// The longest wait until the space of killed runs is free again, seconds.
const LONGEST_SECONDS: u64 = 300;

/// The space that the programs beside the cure may allocate meanwhile, bytes.
const BUSY_BYTES: u64 = 24 << 20;

struct Storm {
    case: Case,
    lab: Lab,
    disk: Disk,
    rng: Rng,
    /// The upper bound of the random time before a kill. It follows the duration of a run.
    took: Duration,
    kills: u64,
    /// Runs that finished before their kill.
    complete: u64,
    held: busy::Held,
}

impl Storm {
    fn new(case: Case) -> Self {
        let lab = Lab::new();
        let disk = Disk::new(&lab.memory().join("volume"), case.mib);
        must(&format!("mkfs.{}", case.kind), &[&["-q"], case.mkfs, &[&disk.device]].concat());
        let rng = Rng::for_purpose(seed(), &case.purpose());
        let took = Duration::from_millis(800);
        Self { case, lab, disk, rng, took, kills: 0, complete: 0, held: busy::Held::new() }
    }

    fn mount(&self) -> Mount {
        Mount::new(&[&self.disk.device], self.lab.path("mnt"))
    }

    /// Fails if a file or hole changed that the cure must not change.
    #[track_caller]
    fn compare(&self, before: &Still, root: &Path, when: &str) {
        let mut differences = before.differences(&Still::of(&self.case, root));
        differences.extend(busy::differences(&self.held));
        let (case, kills) = (&self.case, self.kills);
        assert!(differences.is_empty(), "{case:?}, {:?}, kill {kills}, {when}: {differences:#?}", seed());
    }

    fn start(&mut self, root: &Path) -> Child {
        let arguments = self.case.arguments(&self.lab, root, &mut self.rng);
        let mut command = self.lab.command();
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Runs a cure beside other programs and kills it. Returns whether it still ran at the kill.
    fn kill(&mut self, root: &Path, is_full: bool) -> bool {
        let after = Duration::from_micros(self.rng.below(self.took.as_micros() as u64));
        let mut child = self.start(root);
        let work = || {
            std::thread::sleep(after);
            let _ = child.kill();
            child.wait().unwrap()
        };
        let how = busy::Beside { seed: self.rng.next_u64(), is_full, stop: &AtomicBool::new(false) };
        let (status, held) = busy::run_beside(&self.case, root, &how, work);
        self.held.extend(held);
        let was_killed = status.signal() == Some(9);
        self.kills += u64::from(was_killed);
        self.complete += u64::from(!was_killed);
        // About 70% of the attempts then kill a run, at moments that are spread over all of it.
        self.took = if was_killed { self.took * 11 / 10 } else { self.took * 4 / 5 };
        self.took = self.took.clamp(Duration::from_millis(30), Duration::from_secs(20));
        was_killed
    }

    /// Kills a few runs, lets one finish, and checks the file system.
    fn round(&mut self, most: u64) {
        let mount = self.mount();
        let root = mount.point.clone();
        let _ = std::fs::remove_file(root.join("filler"));
        let mut rng = Rng::for_purpose(senesce_core::Seed(self.rng.next_u64()), "disturb");
        self.case.disturb(&root, &mut rng);
        let is_full = self.case.mode != Mode::Space && self.rng.chance(1, 4);
        if is_full {
            let space = rustix::fs::statvfs(&root).unwrap();
            let bytes = (space.f_bavail * space.f_frsize).saturating_sub(NEARLY_FULL_BYTES).max(4096).to_string();
            must("fallocate", &["-l", &bytes, &root.join("filler").to_string_lossy()]);
        }
        sync(&root);
        let before = Still::of(&self.case, &root);
        let used_before = used_bytes(&root);
        for _ in 0..most {
            let was_killed = self.kill(&root, is_full);
            self.compare(&before, &root, "after the kill");
            let cleaned = self.lab.run(["clean"]).good().stdout;
            assert!(cleaned.starts_with("nothing to clean"), "{cleaned}");
            if !was_killed && matches!(self.case.mode, Mode::Pieces | Mode::Space) {
                break;
            }
        }
        // The blocks of a killed run can become free only after a commit.
        let begin = Instant::now();
        loop {
            sync(&root);
            let used = used_bytes(&root);
            if used <= used_before + BUSY_BYTES {
                break;
            }
            let waited = begin.elapsed().as_secs();
            assert!(waited < LONGEST_SECONDS, "{:?}: {used_before} bytes in use before, {used} after", self.case);
        }
        self.run_to_the_end(&root);
        self.compare(&before, &root, "after the next run");
        assert!(unmount_patiently(&root));
        drop(mount);
        check(self.case.kind, &self.disk.device);
        // A new mount reads the device instead of the page cache.
        let mount = self.mount();
        self.compare(&before, &mount.point, "after a mount");
        assert!(unmount_patiently(&mount.point));
    }

    /// Runs the same command without a kill.
    fn run_to_the_end(&mut self, root: &Path) {
        let arguments = self.case.arguments(&self.lab, root, &mut self.rng);
        let done = self.lab.run(&arguments);
        // On a full volume it may have no space to move a file.
        assert!(matches!(done.code, 0 | 3) && !done.stderr.contains("panicked"), "{}\n{}", done.stdout, done.stderr);
        if done.code == 0 {
            let report: Value = serde_json::from_str(&done.stdout).unwrap();
            assert!(report["applied"]["skipped"]["failed"].is_null(), "{:?}: {report}", self.case);
        }
    }
}

fn used_bytes(root: &Path) -> u64 {
    let space = rustix::fs::statvfs(root).unwrap();
    (space.f_blocks - space.f_bfree) * space.f_frsize
}

fn storm(case: Case) {
    if !root_or_skip("mounting") {
        return;
    }
    let kills = number("SENESCE_CURE_KILLS").unwrap_or(5);
    let mut storm = Storm::new(case);
    let mount = storm.mount();
    case.make(&mount.point);
    busy::make(&mount.point);
    assert!(unmount_patiently(&mount.point));
    drop(mount);
    let mut rounds = 0;
    // A limit: if each cure finished before its kill, the test would not stop.
    while storm.kills < kills && rounds < 4 + kills {
        storm.round((kills - storm.kills).min(KILLS_OF_A_ROUND));
        rounds += 1;
        println!("{case:?}: {} kills, {} runs complete before, {rounds} rounds", storm.kills, storm.complete);
    }
    assert!(storm.kills > 0, "no kill came in time");
}

#[test]
fn kills_of_order_on_ext4() {
    storm(case("ext4", Mode::Order, &[], 192));
}

#[test]
fn kills_of_order_on_ext4_with_pages_as_blocks() {
    // By default, small volumes have blocks of 1 KiB.
    storm(case("ext4", Mode::Order, &["-b", "4096"], 192));
}

#[test]
fn kills_of_pieces_on_ext4() {
    storm(case("ext4", Mode::Pieces, &[], 192));
}

#[test]
fn kills_of_free_space_on_ext4() {
    storm(case("ext4", Mode::Space, &[], 128));
}

#[test]
fn kills_of_order_on_xfs() {
    storm(case("xfs", Mode::Order, &[], 320));
}

#[test]
fn kills_of_pieces_on_xfs() {
    storm(case("xfs", Mode::Pieces, &[], 320));
}

#[test]
fn kills_of_free_space_on_xfs() {
    storm(case("xfs", Mode::Space, &[], 320));
}

#[test]
fn kills_of_order_on_btrfs() {
    storm(case("btrfs", Mode::Order, &[], 512));
}

#[test]
fn kills_of_order_on_btrfs_with_quotas() {
    storm(case("btrfs", Mode::Quotas, &[], 512));
}

#[test]
fn kills_of_order_on_btrfs_with_snapshots() {
    storm(case("btrfs", Mode::Snapshots, &[], 512));
}

#[test]
fn kills_of_pieces_on_btrfs() {
    storm(case("btrfs", Mode::Pieces, &[], 512));
}

#[test]
fn kills_of_balance_on_btrfs() {
    storm(case("btrfs", Mode::Space, &[], 512));
}
