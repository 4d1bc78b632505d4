//! Campaigns on one machine: grids, tasks that are killed and repeated, merges.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use senesce_store::{CellResults, CellRow, ResultStore};
use senesce_testkit::{found_or_skip, root_or_skip};
use serde_json::Value;

use super::{
    lab::{Lab, SENESCE, SINGLE},
    settled::figures,
};

/// The longest wait for a condition, under any load. `.ci/watch` ends tests after 600 s of silence.
pub(super) const LIMIT: Duration = Duration::from_secs(500);

/// Waits until `found` returns a value.
#[track_caller]
pub(super) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(began.elapsed() < LIMIT, "no {what} within {} s", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A lab with a grid of small plans on modelled disks: 12 tasks.
pub(super) fn lab_of_twelve() -> Lab {
    let lab = Lab::new();
    let plan = SINGLE
        .replace("[volumes]", "[volumes]\ndevice = \"hdd-7200\"")
        .replace("[measure]", "settle_every_operations = 20\n[measure]\nsnapshots = false");
    let plan = lab.plan(&plan);
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(lab.path("eight.toml"), &text).unwrap();
    fs::write(lab.path("six.toml"), text.replace("commits = 8", "commits = 6")).unwrap();
    let grid = "format = \"senesce-grid/1\"\nname = \"twelve\"\nseeds = [1, 2, 3]\n\
                devices = [\"hdd-7200\", \"sata-ssd\"]\n[[plan]]\npath = \"eight.toml\"\n[[plan]]\npath = \"six.toml\"\n";
    fs::write(lab.path("grid.toml"), grid).unwrap();
    lab
}

/// A lab without root: directories instead of volumes, three tasks.
pub(super) fn lab_of_directories() -> Lab {
    let lab = Lab::new();
    for dir in ["volume", "out"] {
        fs::create_dir(lab.path(dir)).unwrap();
    }
    lab.plan(
        "format = \"senesce-plan/1\"\nname = \"d\"\n[workload]\nkind = \"interfile\"\n[workload.interfile]\nfiles = 4\n\
         [volumes]\nempty = { directory = \"LAB/volume\" }\nunaged = \"none\"\n[[file_system]]\nkind = \"host\"\n",
    );
    let grid = "format = \"senesce-grid/1\"\nname = \"three\"\nseeds = [1, 2, 3]\n[[plan]]\npath = \"plan.toml\"\n";
    fs::write(lab.path("grid.toml"), grid).unwrap();
    lab
}

/// The figures of the merged run, and the operation logs of the tasks.
pub(super) struct Outcome {
    figures: Vec<(String, Vec<Value>)>,
    logs: Vec<Vec<u8>>,
}

/// The tables that the layout of a file system cannot change.
const LOGICAL: [&str; 3] = ["cells", "aging", "steps"];

impl Outcome {
    pub(super) fn of(lab: &Lab, campaign: &str, tasks: u64) -> Self {
        let merged = format!("{campaign}/merged");
        let log = |number: u64| {
            let arms = lab.path(campaign).join(format!("tasks/{number}/arms"));
            let arm = fs::read_dir(arms).unwrap().next().unwrap().unwrap().path();
            fs::read(arm.join("oplog.senesce-log")).unwrap()
        };
        Self { figures: figures(lab, &merged), logs: (0..tasks).map(log).collect() }
    }

    /// Returns the tasks whose figures differ. The logs and the tables of logical trees must be
    /// equal.
    #[track_caller]
    pub(super) fn differing(&self, other: &Self, names: &[String]) -> Vec<usize> {
        assert!(self.logs == other.logs, "the operation logs differ");
        let mut found = Vec::new();
        for ((table, rows), (other_table, other_rows)) in self.figures.iter().zip(&other.figures) {
            assert_eq!(table, other_table);
            if rows == other_rows {
                continue;
            }
            assert!(!LOGICAL.contains(&table.as_str()) || table == "cells", "table {table} differs");
            for (number, name) in names.iter().enumerate() {
                let of = |rows: &[Value]| -> Vec<Value> {
                    rows.iter().filter(|row| row["arm"].as_str() == Some(name)).cloned().collect()
                };
                if of(rows) != of(other_rows) && !found.contains(&number) {
                    found.push(number);
                }
            }
        }
        found
    }
}

/// The arms of merged results, by task.
pub(super) fn arms(lab: &Lab, campaign: &str) -> Vec<String> {
    let export: Value =
        serde_json::from_str(&lab.run(["export", &format!("{campaign}/merged"), "--json"]).good().stdout).unwrap();
    let rows = export["circumstances"].as_array().unwrap().iter();
    let tasks = rows.filter(|row| row["key"] == "campaign.task");
    let mut arms: Vec<(u64, String)> = tasks
        .map(|row| (row["value"].as_str().unwrap().parse().unwrap(), row["arm"].as_str().unwrap().to_owned()))
        .collect();
    arms.sort();
    arms.into_iter().map(|(_, arm)| arm).collect()
}

/// The runs of an undisturbed task whose figures a disturbed one may have.
const CALM_RUNS: usize = 4;

/// Compares the merged figures of an undisturbed campaign and a disturbed one, whose results stay
/// as they are. Other programs can start writeback at a time that no plan determines, and an
/// undisturbed task may then have another layout. So the figures of each disturbed task must be
/// those of one of a few undisturbed runs.
#[track_caller]
pub(super) fn assert_same(lab: &Lab, calm: &str, disturbed: &str, tasks: u64) {
    let expected = Outcome::of(lab, disturbed, tasks);
    let names = arms(lab, disturbed);
    assert_eq!(names, arms(lab, calm));
    let mut open: Vec<usize> = (0..names.len()).collect();
    for run in 1..=CALM_RUNS {
        let differing = Outcome::of(lab, calm, tasks).differing(&expected, &names);
        open.retain(|number| differing.contains(number));
        if open.is_empty() {
            return;
        }
        println!("tasks {open:?} differ from {run} undisturbed runs");
        if run == CALM_RUNS {
            break;
        }
        for number in &open {
            fs::remove_dir_all(lab.path(calm).join(format!("tasks/{number}"))).unwrap();
            lab.run(["campaign", "task", calm, &number.to_string(), "-q"]).good();
        }
        lab.run(["campaign", "merge", calm]).good();
    }
    panic!("disturbed tasks {open:?} have figures that no undisturbed run has");
}

/// The states of the tasks of a campaign whose processes are alive.
pub(super) fn running(campaign: &Path) -> Vec<Value> {
    let states = fs::read_dir(campaign.join("state")).into_iter().flatten().flatten();
    let running = states.filter(|entry| entry.file_name().to_string_lossy().ends_with(".running.json"));
    let states = running.filter_map(|entry| serde_json::from_slice::<Value>(&fs::read(entry.path()).ok()?).ok());
    states.filter(is_alive).collect()
}

/// Whether the process of a state is alive: another one of its number began at another time.
pub(super) fn is_alive(state: &Value) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", state["pid"])).unwrap_or_default();
    // The name of the program, in brackets, may have blanks.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let (status, ticks) = (fields.next(), fields.nth(18));
    !matches!(status, None | Some("Z" | "X")) && ticks == Some(&state["start_ticks"].to_string())
}

/// Whether the journal of a task's unfinished run has an arm.
pub(super) fn has_begun(campaign: &Path, number: u64) -> bool {
    let works = fs::read_dir(campaign.join("work")).into_iter().flatten().flatten();
    let mut works = works.filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{number}.")));
    works.any(|entry| {
        let journal = fs::read_to_string(entry.path().join("journal.ndjson")).unwrap_or_default();
        journal.contains("arm-started")
    })
}

#[test]
fn campaign_needs_neither_root_nor_scheduler() {
    let lab = lab_of_directories();
    let dry = lab.run(["campaign", "plan", "grid.toml", "--out", "c", "--dry-run"]).good().stdout;
    assert!(dry.starts_with("3 tasks would be listed in c/tasks.tsv") && !lab.path("c").exists(), "{dry}");
    for words in [["plan", "none.toml", "--out", "c"], ["plan", "grid.toml", "--out", "."]] {
        let real = lab.run([&["campaign"][..], &words].concat());
        let dry = lab.run([&["campaign"][..], &words, &["--dry-run"]].concat());
        assert!(real.code == 2 && (dry.code, dry.stderr) == (real.code, real.stderr), "{words:?}");
    }
    let planned = lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good().stdout;
    assert!(planned.starts_with("3 tasks in c/tasks.tsv") || planned.contains("/c/tasks.tsv"), "{planned}");
    lab.run(["campaign", "merge", "c"])
        .refused(1, &["3 of 3 tasks have no result: 0 (host, plan, seed 1); 1 (host", "campaign status"]);
    for number in ["2", "0"] {
        lab.run(["campaign", "task", "c", number, "-q"]).good();
    }
    let status: Value = serde_json::from_str(&lab.run(["campaign", "status", "c", "--json"]).good().stdout).unwrap();
    assert_eq!((&status["done"], &status["waiting"], &status["tasks"]), (&2.into(), &1.into(), &3.into()));
    assert_eq!(status["invalid"], Value::Array(Vec::new()));
    // All verbs name the missing task in the same words.
    let missing = "1 of 3 tasks has no result: 1 (host, plan, seed 2)\n";
    let status = lab.run(["campaign", "status", "c"]).good().stdout;
    assert!(status.contains(&format!("\n\n{missing}")), "{status}");
    lab.run(["campaign", "merge", "c"]).refused(1, &[missing.trim_end()]);
    let partial = lab.run(["campaign", "merge", "c", "--partial"]).good().stdout;
    assert!(partial.contains(&format!("{missing}2 tasks are merged in ")), "{partial}");
    lab.run(["campaign", "report", "c"]).good();
    let page = fs::read_to_string(lab.path("c/merged/campaign.html")).unwrap();
    assert!(
        page.contains(
            "1 of 3 tasks has no result: host, plan, seed 2. A task without a result may have the largest slowdown."
        ),
        "{page}"
    );
    // A finished task stays as it is.
    let first = lab.path("c/tasks/0/task.json");
    let before = fs::read(&first).unwrap();
    let again = lab.run(["campaign", "task", "c", "0"]).good().stdout;
    assert_eq!(again, "task 0 is finished already\n");
    assert_eq!(fs::read(&first).unwrap(), before);
    lab.run(["campaign", "task", "c", "1", "-q"]).good();
    assert!(!lab.run(["campaign", "status", "c"]).good().stdout.contains("no result"));
    let old = lab.run(["campaign", "report", "c"]).good().stderr;
    assert!(old.contains("1 of the missing tasks finished after the merge; merge again: "), "{old}");
    lab.run(["campaign", "merge", "c"]).good();
    assert_eq!(lab.run(["campaign", "report", "c"]).good().stderr, "");
    for command in [&["show", "c/merged"][..], &["report", "c/merged"], &["export", "c/merged", "--csv", "cells"]] {
        lab.run(command).good();
    }
    let cells = lab.run(["export", "c/merged", "--csv", "cells"]).good().stdout;
    assert!(["host.s1", "host.s2", "host.s3"].iter().all(|arm| cells.contains(arm)), "{cells}");
    // No work is left.
    assert_eq!(fs::read_dir(lab.path("c/work")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(lab.path("c/state")).unwrap().count(), 0);
}

#[test]
fn finished_task_with_invalid_cells_is_counted() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    for number in ["0", "2"] {
        lab.run(["campaign", "task", "c", number, "-q"]).good();
    }
    // A state file of an earlier version has no count, so `status` counts the invalid cells.
    let state = lab.path("c/tasks/2/task.json");
    let mut task: Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    assert_eq!(task.as_object_mut().unwrap().remove("invalid_cells"), Some(0.into()));
    fs::write(&state, task.to_string()).unwrap();
    let mut store = ResultStore::open(&lab.path("c/tasks/2/results")).unwrap();
    let cell = store.read_cells().unwrap().remove(0);
    let cell = CellRow::without_figures(cell.key, "the disk is gone");
    store.append_cell(&CellResults::of(cell)).unwrap();
    let shown = lab.run(["campaign", "status", "c"]).good().stdout;
    assert!(shown.starts_with("campaign three: 2 of 3 tasks done, 1 with invalid results\n"), "{shown}");
    assert!(shown.contains("  2  1 cell  senesce show ") && shown.contains("/c/tasks/2\n"), "{shown}");
    let status: Value = serde_json::from_str(&lab.run(["campaign", "status", "c", "--json"]).good().stdout).unwrap();
    assert_eq!(status["invalid"], serde_json::json!([{ "task": 2, "cells": 1 }]));
}

#[test]
fn scratch_on_another_file_system_is_empty_afterwards() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    lab.run(["campaign", "task", "c", "0", "-q", "--scratch", &lab.memory().to_string_lossy()]).good();
    assert_eq!(fs::read_dir(lab.memory()).unwrap().count(), 0);
    assert!(lab.path("c/tasks/0/results/run.json").exists());
    let names: Vec<_> = fs::read_dir(lab.path("c/tasks")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["0"]);
}

#[test]
fn wrong_uses_of_a_campaign_are_refused() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).refused(2, &["is not empty"]);
    lab.run(["campaign", "task", "c", "3"]).refused(2, &["has no task 3; its tasks are 0 to 2"]);
    lab.run(["campaign", "task", "nowhere", "0"]).refused(2, &["nowhere does not exist"]);
    lab.run(["campaign", "status", "tmp"]).refused(2, &["holds no campaign"]);
    lab.run(["campaign", "plan", "nothing.toml", "--out", "d"]).refused(2, &["nothing.toml"]);
    let list = fs::read_to_string(lab.path("c/tasks.tsv")).unwrap();
    fs::write(lab.path("c/tasks.tsv"), list.replace("\t3\n", "\t4\n")).unwrap();
    for command in [&["task", "c", "0"][..], &["merge", "c"], &["status", "c"], &["submit", "--slurm", "c"]] {
        let command = ["campaign"].iter().chain(command);
        lab.run(command).refused(2, &["tasks.tsv differs from the grid in line 4: it was changed by hand"]);
    }
}

#[test]
fn missing_slurm_is_named_with_its_package() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    for verb in ["submit", "resume"] {
        let mut command = lab.command();
        let output = command.args(["campaign", verb, "--slurm", "c"]).env("PATH", lab.path("tmp")).output().unwrap();
        super::lab::Done::of(output).refused(3, &["scontrol", "slurm-client"]);
    }
}

/// Programs of a Slurm that accepts one array of two tasks, refuses the next one, and has a job of
/// this campaign in its queue.
fn short_slurm(lab: &Lab, id: &str) -> PathBuf {
    let dir = lab.path("slurm");
    fs::create_dir(&dir).unwrap();
    let sbatch = "echo \"$@\" >> calls\ncase \"$*\" in *tasks-0.sh) echo 11;; *merge.sh) echo 12;; \
                  *) echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1;; esac";
    for (name, script) in [
        ("scontrol", "echo 'MaxArraySize = 2'"),
        ("squeue", &*format!("echo 'senesce-{id}-merge|10|N/A|PENDING'")),
        ("sbatch", sbatch),
    ] {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    dir
}

#[test]
fn a_refusal_of_slurm_leaves_a_merge_and_a_number_of_tasks() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    let description: Value = serde_json::from_slice(&fs::read(lab.path("c/campaign.json")).unwrap()).unwrap();
    let slurm = short_slurm(&lab, description["id"].as_str().unwrap());
    let mut command = lab.command();
    command.args(["campaign", "submit", "--slurm", "c", "--sbatch=--partition=p"]).env("PATH", slurm);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.starts_with("job 11: tasks 0 + [0-1]\njob 12: merge\n1 tasks remain: senesce campaign resume"),
        "{said}"
    );
    super::lab::Done::of(output).refused(1, &["QOSMaxSubmitJobPerUserLimit"]);
    let calls = fs::read_to_string(lab.path("calls")).unwrap();
    let merge = calls.lines().last().unwrap();
    assert!(merge.contains("--dependency=afterany:10:11 ") && merge.ends_with("/logs/merge.sh"), "{calls}");
    let script = fs::read_to_string(lab.path("c/logs/merge.sh")).unwrap();
    assert!(script.contains("#SBATCH --partition=p\n"), "{script}");
}

#[test]
fn what_lost_attempts_left_goes_when_their_task_is_finished() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    lab.run(["campaign", "task", "c", "0", "-q"]).good();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let boot: String = boot.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    let leave = |work: &Path, name: &str| {
        fs::create_dir_all(work.join(name).join("volumes")).unwrap();
        fs::write(work.join(name).join("volumes/image"), "x").unwrap();
        fs::write(work.join(format!("{name}.toml")), "x").unwrap();
        fs::write(work.join(format!("{name}.lock")), "").unwrap();
    };
    let names = |dir: &Path| {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // On this machine, in the campaign and in a scratch directory.
    let work = lab.path("c/work");
    leave(&work, &format!("0.{boot}"));
    assert_eq!(lab.run(["campaign", "task", "c", "0"]).good().stdout, "task 0 is finished already\n");
    assert_eq!(names(&work), [""; 0]);
    let description: Value = serde_json::from_slice(&fs::read(lab.path("c/campaign.json")).unwrap()).unwrap();
    let name = format!("senesce-{}-0.{boot}", description["id"].as_str().unwrap());
    leave(lab.memory(), &name);
    fs::remove_file(lab.memory().join(format!("{name}.lock"))).unwrap();
    lab.run([
        "campaign".as_ref(),
        "task".as_ref(),
        "c".as_ref(),
        "0".as_ref(),
        "--scratch".as_ref(),
        lab.memory().as_os_str(),
    ])
    .good();
    assert_eq!(names(lab.memory()), [""; 0]);
    // On other machines: that of a finished task goes with a merge, unless its attempt runs.
    for name in ["0.aaaaaaaaaaaa", "0.bbbbbbbbbbbb", "1.aaaaaaaaaaaa"] {
        leave(&work, name);
    }
    leave(&work, &format!("0.{boot}"));
    let held = fs::File::open(work.join("0.bbbbbbbbbbbb.lock")).unwrap();
    held.lock().unwrap();
    lab.run(["campaign", "merge", "c", "--partial"]).good();
    let of = |name: &str| ["", ".lock", ".toml"].map(|ending| format!("{name}{ending}"));
    assert_eq!(names(&work), [of("0.bbbbbbbbbbbb"), of("1.aaaaaaaaaaaa")].concat());
}

#[test]
fn a_task_without_its_scratch_is_recorded_as_failed() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    assert_ne!(lab.run(["campaign", "task", "c", "1", "-q", "--scratch", "nowhere"]).code, 0);
    let text = lab.run(["campaign", "status", "c"]).good().stdout;
    assert!(text.contains("failed tasks:\n  1 on ") && text.contains("nowhere"), "{text}");
}

#[test]
fn a_failed_task_is_recorded_and_repeated() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    fs::rename(lab.path("volume"), lab.path("elsewhere")).unwrap();
    let failed = lab.run(["campaign", "task", "c", "1", "-q"]);
    assert_ne!(failed.code, 0);
    let text = lab.run(["campaign", "status", "c"]).good().stdout;
    assert!(text.contains("failed tasks:\n  1 on ") && text.contains("volume"), "{text}");
    fs::rename(lab.path("elsewhere"), lab.path("volume")).unwrap();
    lab.run(["campaign", "task", "c", "1", "-q"]).good();
    let status: Value = serde_json::from_str(&lab.run(["campaign", "status", "c", "--json"]).good().stdout).unwrap();
    assert_eq!((&status["done"], status["failed"].as_array().map(Vec::len)), (&1.into(), Some(0)));
}

#[test]
fn a_task_runs_in_one_process_at_a_time() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = lab_of_twelve();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    let mut child = lab.command().args(["campaign", "task", "c", "0", "-q"]).stdout(Stdio::null()).spawn().unwrap();
    let campaign = lab.path("c");
    wait_for("running task", || running(&campaign).into_iter().find(|state| state["task"] == 0));
    lab.run(["campaign", "task", "c", "0", "-q"]).refused(3, &["process"]);
    assert!(child.wait().unwrap().success());
    lab.assert_nothing_left();
}

#[test]
fn killed_tasks_have_the_figures_of_undisturbed_ones() {
    if !root_or_skip("volumes") {
        return;
    }
    let Some(parallel) = found_or_skip(find("parallel"), "GNU parallel") else { return };
    let lab = lab_of_twelve();
    for out in ["calm", "killed"] {
        lab.run(["campaign", "plan", "grid.toml", "--out", out]).good();
    }
    // The same command as `campaign plan` prints.
    let mut command = Command::new("sh");
    let line = format!("seq 0 11 | {} --will-cite --jobs 2 {SENESCE} --quiet campaign task calm", parallel.display());
    lab.confine(command.args(["-c", &line]).env("HOME", lab.path("tmp")));
    super::lab::Done::of(command.output().unwrap()).good();
    fs::remove_dir_all(lab.path("tmp")).unwrap();
    fs::create_dir(lab.path("tmp")).unwrap();
    lab.run(["campaign", "merge", "calm"]).good();
    // The tasks run in reverse order. Every second one is killed in the middle of its arm.
    let campaign = lab.path("killed");
    for number in (0..12).rev() {
        let word = number.to_string();
        if number % 2 == 0 {
            let mut child =
                lab.command().args(["campaign", "task", "killed", &word, "-q"]).stdout(Stdio::null()).spawn().unwrap();
            wait_for("arm that began", || {
                (has_begun(&campaign, number) || child.try_wait().unwrap().is_some()).then_some(())
            });
            if child.try_wait().unwrap().is_none() {
                kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
                child.wait().unwrap();
            }
        }
        lab.run(["campaign", "task", "killed", &word, "-q"]).good();
    }
    lab.run(["campaign", "merge", "killed"]).good();
    assert_same(&lab, "calm", "killed", 12);
    lab.assert_nothing_left();
}

/// Finds a program in PATH, or in the directories of programs for root.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}
