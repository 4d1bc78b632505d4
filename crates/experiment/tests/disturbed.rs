//! Cells that other work disturbs are read again, up to the plan's limit, and all repetitions are
//! recorded.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

use senesce_core::{Clock, Nanos};
use senesce_experiment::{EngineTeller, Event, LoadMeter, Observer, Run, TrustedOwners, World, plan::Plan};
use senesce_inspect::Told;
use senesce_probe::score::{LoadSample, ProcessorTimes};
use senesce_store::{EVENTS_FILE, ResultStore, Results};
use senesce_volume::LinuxHost;

struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

/// A hypervisor that runs another machine during some grep tests, by their numbers from 0.
struct Hypervisor {
    takes: fn(u64) -> bool,
    samples: Mutex<(u64, f64)>,
}

impl LoadMeter for Hypervisor {
    fn sample(&self) -> LoadSample {
        let mut samples = self.samples.lock().unwrap();
        // Each test has two samples. Events between them are in the second.
        let (test, is_end) = (samples.0 / 2, samples.0 % 2 == 1);
        samples.0 += 1;
        if is_end && (self.takes)(test) {
            samples.1 += 1e6;
        }
        let processors = ProcessorTimes { count: 2, steal_seconds: samples.1, ..ProcessorTimes::default() };
        LoadSample { processors: Some(processors), ..LoadSample::default() }
    }
}

struct NoEngines;

impl EngineTeller for NoEngines {
    fn collect_told(&self, _: &Path) -> Result<Told, String> {
        Err("there are none".into())
    }
}

#[derive(Default)]
struct Warnings(Vec<String>);

impl Observer for Warnings {
    fn on_event(&mut self, event: &Event) {
        if let Event::Warning { message, .. } = event {
            self.0.push(message.clone());
        }
    }
}

/// Runs a small plan; returns the results and the warnings.
fn run(measure: &str, takes: fn(u64) -> bool) -> (Results, Vec<String>) {
    let mut warnings = Warnings::default();
    let (results, _) = run_watched(measure, takes, &mut warnings);
    (results, warnings.0)
}

/// Runs a small plan in a directory: one arm, one volume, three checkpoints. Returns the results
/// and the events.
fn run_watched(measure: &str, takes: fn(u64) -> bool, observer: &mut dyn Observer) -> (Results, String) {
    let home = tempfile::tempdir().unwrap();
    let scratch = home.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let text = format!(
        "format = \"senesce-plan/1\"\nname = \"t\"\n[workload]\nkind = \"mail\"\n[workload.mail]\nusers = 1\n\
         mailboxes = 2\nmessages = 5\nlargest = \"4KiB\"\noperations = 10\ncycles = 2\n[measure]\nevery = 1\ndevices = []\n\
         {measure}\n[volumes]\nempty = {{ directory = {scratch:?} }}\nunaged = \"none\"\n[[file_system]]\nkind = \"host\"\n"
    );
    let path = Path::new("plan.toml");
    let plan = Plan::parse(path, &text).unwrap();
    let world = World {
        clock: Arc::new(RealClock(Instant::now())),
        load: Arc::new(Hypervisor { takes, samples: Mutex::default() }),
        host: Arc::new(LinuxHost::default()),
        engines: Arc::new(NoEngines),
        registry_dir: home.path().join("registry"),
        owners: TrustedOwners::new(0, None),
        senesce_version: "test".into(),
        threads: 1,
        interrupted: || None,
    };
    let out: PathBuf = home.path().join("out");
    let end = Run::create(plan, path, &out, false, world).unwrap().execute(observer).unwrap();
    assert_eq!(end.failed_arms, []);
    let results = ResultStore::open_read_only(&out.join("results")).unwrap().read_all().unwrap();
    assert!(results.cells.iter().all(|cell| cell.valid), "{:?}", results.cells);
    let events = std::fs::read_to_string(out.join("results").join(EVENTS_FILE)).unwrap();
    (results, events)
}

/// Numbers of repetitions of a checkpoint: all, disturbed, and those that figures are computed
/// from.
fn repetitions(results: &Results, pulls: u64) -> (usize, usize, usize) {
    let numbers = results.grep.iter().filter(|row| row.key.pulls == pulls).map(|row| row.repetition);
    let loads: Vec<_> = results.load.iter().filter(|row| row.key.pulls == pulls).collect();
    assert!(numbers.eq(loads.iter().map(|row| row.repetition)), "every repetition has its load");
    let disturbed = loads.iter().filter(|row| !row.disturbance.is_empty()).count();
    (loads.len(), disturbed, results.counted_grep().filter(|row| row.key.pulls == pulls).count())
}

#[test]
fn a_disturbed_cell_is_read_again() {
    // The second and the third test belong to the first checkpoint.
    let (results, warnings) = run("repetitions = 2", |test| test == 1 || test == 2);
    assert_eq!(repetitions(&results, 0), (4, 2, 2));
    assert_eq!(repetitions(&results, 1), (2, 0, 2));
    let disturbed = results.load.iter().find(|row| !row.disturbance.is_empty()).unwrap();
    assert_eq!((disturbed.repetition, disturbed.steal_seconds, disturbed.processors), (1, 1e6, 2));
    assert!(disturbed.disturbance.starts_with("the hypervisor took "), "{}", disturbed.disturbance);
    assert_eq!(warnings.iter().filter(|text| text.contains("disturbed")).count(), 0, "{warnings:?}");
}

#[test]
fn lasting_disturbance_stops_at_the_limit() {
    let (results, warnings) = run("repetitions = 2\nrepeat_disturbed = 1", |_| true);
    for pulls in 0..3 {
        // If every repetition is disturbed, figures use all of them.
        assert_eq!(repetitions(&results, pulls), (3, 3, 3));
    }
    let said = "other work disturbed all 3 grep test(s) of the empty volume at 2 cycles: the hypervisor took ";
    assert!(warnings.iter().any(|text| text.starts_with(said)), "{warnings:?}");
}

#[test]
fn repeat_disturbed_0_adds_no_repetitions() {
    let (results, _) = run("repeat_disturbed = 0", |_| true);
    assert_eq!(repetitions(&results, 0), (1, 1, 1));
}

#[test]
fn first_and_last_reads_only_these_checkpoints() {
    let (results, warnings) = run("repetitions = 3\nread_at = \"first-and-last\"", |_| false);
    let read = [0, 1, 2].map(|pulls| repetitions(&results, pulls));
    assert_eq!(read, [(3, 0, 3), (0, 0, 0), (3, 0, 3)]);
    assert_eq!(results.cells.len(), 3);
    // The trees of all checkpoints are hashed.
    assert!(results.cells.iter().all(|cell| cell.tree_hash.len() == 64));
    assert_eq!(warnings.iter().filter(|text| text.contains("read_at")).count(), 0, "{warnings:?}");
}

#[test]
fn once_between_reads_the_checkpoints_between_once() {
    let (results, _) = run("repetitions = 3\nread_at = \"once-between\"", |_| false);
    let read = [0, 1, 2].map(|pulls| repetitions(&results, pulls));
    assert_eq!(read, [(3, 0, 3), (1, 0, 1), (3, 0, 3)]);
    // The fourth test, of the second checkpoint, is repeated.
    let (results, _) = run("repetitions = 3\nread_at = \"once-between\"", |test| test == 3);
    assert_eq!(repetitions(&results, 1), (2, 1, 1));
}

#[test]
fn each_checkpoint_reports_the_seconds_of_its_phases() {
    #[derive(Default)]
    struct Phases(Vec<(u64, Vec<String>)>);
    impl Observer for Phases {
        fn on_event(&mut self, event: &Event) {
            if let Event::CheckpointDone { pulls, phases, .. } = event {
                assert!(phases.iter().all(|phase| phase.seconds >= 0.0));
                self.0.push((*pulls, phases.iter().map(|phase| phase.what.clone()).collect()));
            }
        }
    }
    let mut seen = Phases::default();
    let (_, events) = run_watched("repetitions = 2", |_| false, &mut seen);
    let phases: Vec<_> =
        ["aging", "writing back", "remounting", "mapping extents", "grep test", "hashing the tree"].into();
    let between = phases.iter().map(|what| (*what).to_owned()).collect::<Vec<_>>();
    assert_eq!(seen.0[1..], [(1, between.clone()), (2, between)]);
    let done = events.lines().filter(|line| line.contains("\"event\":\"checkpoint-done\"")).count();
    assert_eq!(done, 3, "{events}");
}
