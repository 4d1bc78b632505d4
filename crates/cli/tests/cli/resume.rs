//! Runs that are killed at random moments and gone on with end as if nothing had happened.
//!
//! `SENESCE_KILLS=20 SENESCE_PLAN=plans/quick-start.toml` makes the long version of it: 20
//! kills, of that plan.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use senesce_core::{Rng, Seed};
use senesce_testkit::root_or_skip;

use super::{
    lab::{Lab, SINGLE, SMALL},
    outputs::{Cell, cells},
};

/// In turn: no time to clean, and two polite requests.
const SIGNALS: [Signal; 3] = [Signal::KILL, Signal::INT, Signal::TERM];

/// What a run ends with.
pub struct End {
    cells: Vec<Cell>,
    /// The operation logs, by arm.
    logs: Vec<(String, Vec<u8>)>,
}

impl End {
    pub fn of(lab: &Lab, out: &str) -> Self {
        let mut logs = Vec::new();
        for entry in fs::read_dir(lab.path(out).join("arms")).unwrap() {
            let entry = entry.unwrap();
            let log = fs::read(entry.path().join("oplog.senesce-log")).unwrap();
            logs.push((entry.file_name().to_string_lossy().into_owned(), log));
        }
        logs.sort();
        Self { cells: cells(lab, out), logs }
    }

    /// What is unlike in another run's end, in words.
    ///
    /// When a volume runs out of space is the file system's answer, and XFS and Btrfs answer
    /// differently from run to run, interrupted or not. Where two logs part over such an answer,
    /// both are right from there on: it is reported, and only what came before must be equal.
    pub fn differences(&self, lab: &Lab, out: &str, other: &End, other_out: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut equal_up_to = BTreeMap::new();
        for ((arm, log), (other_arm, other_log)) in self.logs.iter().zip(&other.logs) {
            assert_eq!(arm, other_arm);
            if log != other_log {
                match parting(lab, arm, out, other_out) {
                    Parting::OverSpace { pulls, step } => {
                        println!("{other_out}: {arm}: another answer about space after {pulls} pulls: {step}");
                        equal_up_to.insert(arm.clone(), pulls);
                    }
                    Parting::Wrong(text) => found.push(format!("{arm}: {text}")),
                }
            }
        }
        let keys = |end: &End| end.cells.iter().map(|cell| cell.key.clone()).collect::<Vec<_>>();
        if keys(self) != keys(other) {
            found.push(format!("the cells are {:?} and {:?}", keys(self), keys(other)));
        }
        for (one, other) in self.cells.iter().zip(&other.cells) {
            let is_before = equal_up_to.get(&one.arm).is_none_or(|&pulls| one.pulls <= pulls);
            if (is_before && one != other) || !other.is_valid {
                found.push(format!("{}: {one:?} and {other:?}", one.key));
            }
        }
        // Whatever happened, all volumes of a checkpoint hold the same tree.
        let mut trees = BTreeMap::new();
        for cell in &other.cells {
            let tree = trees.entry((&cell.arm, cell.pulls)).or_insert(&cell.tree_hash);
            if *tree != &cell.tree_hash {
                found.push(format!("{}: its tree is not that of the other volumes", cell.key));
            }
        }
        found
    }
}

/// How two logs part.
enum Parting {
    /// The same step found space in one run and none in the other, or found it elsewhere.
    OverSpace { pulls: u64, step: String },
    /// In any other way.
    Wrong(String),
}

/// Where the logs of an arm in two runs part.
fn parting(lab: &Lab, arm: &str, out: &str, other_out: &str) -> Parting {
    let steps = |out: &str| {
        let log = lab.path(out).join("arms").join(arm).join("oplog.senesce-log");
        lab.run(["log", "show", log.to_str().unwrap()]).good().stdout
    };
    // A step's first line ends with its outcome; the operations that were done follow.
    let (one, other) = (steps(out), steps(other_out));
    let mut pulls = 0;
    for (line, other_line) in one.lines().zip(other.lines()) {
        if line != other_line {
            let step = |line: &str| line.split(" [no space").next().unwrap_or_default().to_owned();
            let is_outcome = !line.starts_with(' ') && step(line) == step(other_line);
            // The operation that failed, and how much of its content was still written.
            let is_part = [line, other_line].iter().all(|line| line.ends_with(" B written]"));
            let is_answer = is_outcome || is_part;
            return match is_answer {
                true => Parting::OverSpace { pulls, step: format!("{line:?} and {other_line:?}") },
                false => Parting::Wrong(format!("after {pulls} pulls: {line:?} and {other_line:?}")),
            };
        }
        pulls += u64::from(!line.starts_with(' ') && line.contains(" [counted]"));
    }
    Parting::Wrong("one log is the other's beginning, or only the bytes differ".into())
}

/// Waits; kills when it is time. Gives the end, and whether the kill came first.
pub fn wait_or_kill(child: &mut Child, after: Option<Duration>, signal: Signal) -> (ExitStatus, bool) {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status, false);
        }
        if after.is_some_and(|after| began.elapsed() >= after) {
            // Still ours: it was not waited for.
            kill_process(Pid::from_child(child), signal).unwrap();
            return (child.wait().unwrap(), true);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A plan that is run uninterrupted, and then with kills.
pub struct Trial {
    pub lab: Lab,
    plan: PathBuf,
    pub reference: End,
    pub took: Duration,
}

impl Trial {
    /// Runs the plan without interruption, in a lab of its own.
    pub fn new(lab: Lab, plan: PathBuf) -> Self {
        let began = Instant::now();
        lab.run(["run".as_ref(), plan.as_os_str(), "--quiet".as_ref(), "--out".as_ref(), "reference".as_ref()]).good();
        let took = began.elapsed();
        lab.assert_nothing_left();
        let reference = End::of(&lab, "reference");
        Self { lab, plan, reference, took }
    }

    pub fn start(&self, out: &str, begun: bool) -> Child {
        let mut command = self.lab.command();
        command.arg("run").arg("--quiet");
        match begun {
            true => command.arg("--resume").arg(out),
            false => command.arg(&self.plan).arg("--out").arg(out),
        };
        command.stdout(fs::File::create(self.lab.path("stdout")).unwrap());
        command.stderr(fs::File::create(self.lab.path("stderr")).unwrap());
        command.spawn().unwrap()
    }

    pub fn said(&self) -> String {
        fs::read_to_string(self.lab.path("stderr")).unwrap()
    }

    /// Kills runs of the plan `kills` times in all, at seeded moments; gives the differences of
    /// those that ended.
    ///
    /// A run is killed at most `most_a_run` times, at points that are spread over its whole length.
    pub fn kill(&self, seed: Seed, kills: usize, most_a_run: usize) -> Vec<String> {
        let mut rng = Rng::for_purpose(seed, "moments of kills");
        let mut differences = Vec::new();
        let (mut killed, mut run) = (0, 0);
        while killed < kills {
            run += 1;
            let out = format!("run-{run}");
            let (mut begun, mut of_this_run) = (false, 0);
            loop {
                let is_to_be_killed = killed < kills && of_this_run < most_a_run;
                let millis = rng.below(2 * self.took.as_millis() as u64 / (most_a_run as u64 + 1));
                let after = is_to_be_killed.then(|| Duration::from_millis(millis));
                let signal = SIGNALS[killed % SIGNALS.len()];
                let mut child = self.start(&out, begun);
                let (status, was_killed) = wait_or_kill(&mut child, after, signal);
                if !was_killed || status.success() {
                    assert!(status.success(), "{out}: {status}: {}", self.said());
                    break;
                }
                killed += 1;
                of_this_run += 1;
                let where_ = last_journal_line(&self.lab.path(&out));
                println!("{out}: kill {killed} ({signal:?}) after {millis} ms; journal: {where_}");
                if signal != Signal::KILL && status.code().is_some() {
                    // An orderly end: its own code, and everything was released by the process
                    // itself.
                    assert_eq!(status.code(), Some(128 + signal.as_raw()), "{}", self.said());
                    self.assert_only_snapshots(&out);
                }
                // Before its first line in the journal a run is none that could be gone on with.
                begun = self.lab.path(&out).join("journal.ndjson").metadata().is_ok_and(|file| file.len() > 0);
                if !begun && self.lab.path(&out).exists() {
                    self.lab.run(["clean", &out]).good();
                    fs::remove_dir_all(self.lab.path(&out)).unwrap();
                }
            }
            let end = End::of(&self.lab, &out);
            let unlike = self.reference.differences(&self.lab, "reference", &end, &out);
            println!("{out}: ended after {of_this_run} kill(s); {} difference(s)", unlike.len());
            differences.extend(unlike.into_iter().map(|text| format!("{out}: {text}")));
            self.lab.assert_nothing_left();
            fs::remove_dir_all(self.lab.path(&out)).unwrap();
        }
        differences
    }

    /// Of an interrupted run only the snapshots may remain, from which it continues.
    fn assert_only_snapshots(&self, out: &str) {
        let snapshots = self.lab.path(out).join("arms");
        let mut left = self.lab.leftovers();
        left.retain(|path| !Path::new(path).starts_with(&snapshots));
        assert_eq!(left, [""; 0], "{}", self.said());
    }
}

pub fn last_journal_line(run: &Path) -> String {
    let text = fs::read_to_string(run.join("journal.ndjson")).unwrap_or_default();
    text.lines().last().unwrap_or("(none)").chars().take(90).collect()
}

#[test]
fn killed_run_resumes_to_equal_results() {
    if !root_or_skip("volumes") {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let kills = number("SENESCE_KILLS").unwrap_or(4) as usize;
    let seed = Seed(number("SENESCE_KILL_SEED").unwrap_or(1));
    let lab = Lab::new();
    let plan = match std::env::var_os("SENESCE_PLAN") {
        // Taken from the workspace, where a user would stand.
        Some(path) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path),
        None => lab.plan(SMALL),
    };
    let trial = Trial::new(lab, plan);
    assert!(trial.reference.cells.iter().all(|cell| cell.is_valid), "{:?}", trial.reference.cells);
    println!("uninterrupted: {:.1} s, {} cells", trial.took.as_secs_f64(), trial.reference.cells.len());
    let differences = trial.kill(seed, kills, kills.max(1));
    // How much of a write fits a volume that runs full is the file system's answer, and no two runs
    // need get the same: delayed allocation depends on when the kernel wrote back. Everything that
    // is ours to decide must be the same.
    let (physical, ours): (Vec<String>, Vec<String>) =
        differences.into_iter().partition(|text| text.matches(" B written]").count() == 2);
    println!("{} answer(s) of a full volume differed: {physical:?}", physical.len());
    assert!(ours.is_empty(), "{}", ours.join("\n"));
}

#[test]
fn run_resumes_from_another_directory() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/presets/hdd-7200.toml");
    fs::copy(preset, lab.path("slow.toml")).unwrap();
    lab.plan(&SMALL.replace("[measure]", "[measure]\ndevices = [\"slow.toml\"]"));
    let mut child = lab.command().args(["run", "plan.toml", "--quiet", "--out", "out"]).spawn().unwrap();
    while !fs::read_to_string(lab.path("out/journal.ndjson")).unwrap_or_default().contains("checkpoint-done") {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first checkpoint");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut elsewhere = lab.command();
    let done = elsewhere.current_dir("/").args(["run", "--quiet", "--resume"]).arg(lab.path("out")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(super::outputs::cells(&lab, "out").iter().all(|cell| cell.is_valid));
}

#[test]
fn answers_before_the_first_checkpoint_are_kept() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SMALL);
    let mut child = lab.command().args(["run", "plan.toml", "--quiet", "--out", "out"]).spawn().unwrap();
    let journal = || fs::read_to_string(lab.path("out/journal.ndjson")).unwrap_or_default();
    while !journal().contains("checkpoint-done") {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first checkpoint");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let line = journal().lines().find(|line| line.contains("checkpoint-done")).unwrap().to_owned();
    let checkpoint: serde_json::Value = serde_json::from_str(&line).unwrap();
    let number = |key: &str| checkpoint[key].as_u64().unwrap();
    assert_eq!(number("pulls"), 0);
    let told = fs::read(lab.path("out/arms/ext4/feedback.ndjson")).unwrap();
    let told = &told[..number("feedback_bytes") as usize];
    // The first pull was decided upon before the checkpoint, and with it the end of the filling.
    let log = lab.path("out/arms/ext4/oplog.senesce-log");
    let shown = lab.run(["log", "show", log.to_str().unwrap(), "-n", &number("steps").to_string()]).good().stdout;
    let steps = shown.lines().filter(|line| line.contains(" in copy-")).count();
    assert_eq!(told.iter().filter(|&&byte| byte == b'\n').count(), steps + 1, "{shown}");

    lab.run(["run", "--resume", "out", "--quiet"]).good();
    assert!(fs::read(lab.path("out/arms/ext4/feedback.ndjson")).unwrap().starts_with(told));
    lab.assert_nothing_left();
}

#[test]
fn links_in_a_run_are_not_followed() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    fs::write(lab.path("precious"), "precious").unwrap();
    fs::remove_file(lab.path("out/report.html")).unwrap();
    std::os::unix::fs::symlink("../precious", lab.path("out/report.html")).unwrap();
    lab.run(["report", "out"]).refused(2, &["report.html is not a regular file", "hint: name another file"]);
    lab.run(["report", "out", "--baseline", "out", "--out", "other.html"]).good();
    let page = fs::read_to_string(lab.path("other.html")).unwrap();
    assert!(page.contains("Change since out") && page.contains("No figure changed beyond the limits ("), "{page}");
    lab.run(["run", "--resume", "out"]).refused(3, &["report.html is a symbolic link, and a run makes none"]);
    assert_eq!(fs::read_to_string(lab.path("precious")).unwrap(), "precious");
    fs::remove_file(lab.path("out/report.html")).unwrap();
    lab.run(["run", "--resume", "out", "--quiet"]).good();
    assert!(lab.path("out/report.html").is_file());
}
