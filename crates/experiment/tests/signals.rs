//! A signal in the middle of every phase of the first checkpoint stops the run, which leaves no
//! resource.
//!
//! A process cannot resume its own run. The tests of the command line resume interrupted runs.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use senesce_core::{Clock, Nanos};
use senesce_experiment::{EngineTeller, Event, KernelLoad, Observer, Run, World, plan::Plan};
use senesce_gitsource::TrustedOwners;
use senesce_inspect::Told;
use senesce_testkit::root_or_skip;
use senesce_volume::LinuxHost;

/// Threads of the tree hash, and the thread that waits for them.
const MOST_THREADS: u64 = 8 + 1;
const SIGTERM: i32 = 15;

/// A file system and its twin, in images in memory.
const PLAN: &str = r#"format = "senesce-plan/1"
name = "signals"
seed = 7
[history]
synthetic = { model = "linux-like", files = 500, commits = 40 }
start = 20
pulls = 2
[workload]
edition = "full-disk-paper"
fill_percent = 20
[measure]
every = 2
repeat_disturbed = 0
[volumes]
full = "64MiB"
empty = "64MiB"
unaged = "64MiB"
backend = "memory"
dir = "MEMORY"
[[file_system]]
kind = "ext4"
"#;

/// Counts the polls for a signal. From a chosen poll on, the answer is yes.
static ASKED: AtomicU64 = AtomicU64::new(0);
static SIGNAL_AT: AtomicU64 = AtomicU64::new(u64::MAX);

fn interrupted() -> Option<i32> {
    let asked = ASKED.fetch_add(1, Ordering::SeqCst) + 1;
    (asked >= SIGNAL_AT.load(Ordering::SeqCst)).then_some(SIGTERM)
}

struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
    }
}

struct NoEngines;

impl EngineTeller for NoEngines {
    fn collect_told(&self, _device: &Path) -> Result<Told, String> {
        Err("there is none".to_owned())
    }
}

fn world(registry: &Path) -> World {
    World {
        clock: Arc::new(TestClock(Instant::now())),
        load: Arc::new(KernelLoad),
        host: Arc::new(LinuxHost::default()),
        engines: Arc::new(NoEngines),
        registry_dir: registry.to_owned(),
        owners: TrustedOwners::new(0, None),
        senesce_version: "test".to_owned(),
        threads: 2,
        interrupted,
    }
}

/// Records the number of the poll at which each phase of the first checkpoint started, and the
/// events after the signal.
#[derive(Default)]
struct Watcher {
    phases: Vec<(String, u64)>,
    cells: u64,
    after_signal: Vec<Event>,
}

impl Observer for Watcher {
    fn on_event(&mut self, event: &Event) {
        let asked = ASKED.load(Ordering::SeqCst);
        if asked >= SIGNAL_AT.load(Ordering::SeqCst) {
            self.after_signal.push(event.clone());
        }
        match event {
            Event::Doing { what, role, .. } if self.cells == 0 => {
                self.phases.push((format!("{what} {}", role.map_or("", |role| role.name())), asked));
            }
            Event::CellDone { .. } => {
                if self.cells == 0 {
                    self.phases.push(("the end".to_owned(), asked));
                }
                self.cells += 1;
            }
            _ => {}
        }
    }
}

fn mounts_below(dir: &Path) -> usize {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains(dir.to_str().unwrap())).count()
}

#[test]
fn a_signal_in_each_phase_stops_the_run() {
    if !root_or_skip("file systems on loop devices") {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let registry = temp.path().join("registry");
    let text = PLAN.replace("MEMORY", memory.path().to_str().unwrap());
    let begin = |name: &str| {
        let plan = Plan::parse(Path::new("signals.toml"), &text).unwrap();
        ASKED.store(0, Ordering::SeqCst);
        SIGNAL_AT.store(u64::MAX, Ordering::SeqCst);
        Run::create(plan, Path::new("signals.toml"), &temp.path().join(name), false, world(&registry)).unwrap()
    };
    let mut whole = Watcher::default();
    assert_eq!(begin("whole").execute(&mut whole).unwrap().failed_arms, []);
    assert_eq!(whole.cells, 6);
    // These phases are calls of the kernel, which do not poll for signals. Every other phase has a
    // middle.
    const IN_KERNEL: [&str; 5] = ["mkfs full", "mkfs empty", "remounting", "writing back", "umount and removal"];
    let phases: Vec<(String, u64, u64)> = whole
        .phases
        .windows(2)
        .map(|pair| (pair[0].0.clone(), pair[0].1, pair[1].1))
        .filter(|(what, ..)| !IN_KERNEL.iter().any(|name| what.starts_with(name)))
        .collect();
    assert_eq!(phases.len(), 10, "maps, grep tests and hashes of three volumes, and the copy: {phases:?}");
    for (number, (what, from, to)) in phases.into_iter().enumerate() {
        assert!(to - from > 20, "{what} asks {} times", to - from);
        let name = format!("run-{number}");
        let mut run = begin(&name);
        let signal_at = from.midpoint(to);
        SIGNAL_AT.store(signal_at, Ordering::SeqCst);
        let mut watcher = Watcher::default();
        let error = run.execute(&mut watcher).unwrap_err();
        let asked_after = ASKED.load(Ordering::SeqCst) - signal_at;
        assert_eq!(error.interrupted().map(|interrupted| interrupted.signal), Some(SIGTERM), "{what}: {error}");
        // No other phase starts, no cell is written, no thread continues.
        assert_eq!((watcher.after_signal, watcher.cells), (vec![], 0), "{what}");
        assert!(asked_after <= MOST_THREADS + 2, "{what}: {asked_after} questions after the signal");
        drop(run);
        let dir = temp.path().join(&name);
        assert_eq!(mounts_below(&dir), 0, "{what}");
        assert_eq!(fs::read_dir(memory.path()).unwrap().count(), 0, "{what}: images are left");
    }
}
