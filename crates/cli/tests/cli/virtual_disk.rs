//! Whole experiments on disks in virtual time: their figures, and what is left when a process is
//! killed.

use std::{fs, path::Path, process::Child, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use senesce_testkit::root_or_skip;
use senesce_vdisk::{Footprint, ProcessRef};
use serde_json::Value;

use super::{
    lab::{Lab, SINGLE},
    outputs::cells,
};

/// A plan whose volumes are modelled disks.
pub(super) fn on_disk(plan: &str, device: &str) -> String {
    plan.replace("[volumes]", &format!("[volumes]\ndevice = {device:?}"))
}

/// A single plan of some length: four checkpoints.
pub(super) fn longer() -> String {
    SINGLE.replace("commits = 8", "commits = 60").replace("pulls = 4", "pulls = 45").replace("every = 4", "every = 15")
}

/// The disks that a run has served so far, with their processes, in the order of their making.
fn disks(run: &Path) -> Vec<Footprint> {
    let text = fs::read_to_string(run.join("resources.ndjson")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let amended = lines.filter(|line| line["event"] == "amend");
    amended.map(|line| serde_json::from_value(line["resource"]["footprint"].clone()).unwrap()).collect()
}

fn processes(run: &Path) -> Vec<ProcessRef> {
    disks(run).iter().flat_map(|disk| [disk.server, disk.guard]).map(|process| process.unwrap()).collect()
}

/// Nothing of the lab, and none of the processes of its disks.
#[track_caller]
fn assert_nothing_left(lab: &Lab, out: &str) {
    lab.assert_nothing_left();
    let living: Vec<_> = processes(&lab.path(out)).into_iter().filter(ProcessRef::is_alive).collect();
    assert!(living.is_empty(), "{living:?}");
}

/// What must be gone after a clean-up, while the snapshots stay.
#[track_caller]
pub(super) fn assert_only_snapshots(lab: &Lab, out: &str) {
    let mut left = lab.leftovers();
    left.retain(|path| !Path::new(path).starts_with(lab.path(out).join("arms")));
    assert_eq!(left, [""; 0]);
    assert!(processes(&lab.path(out)).iter().all(|process| !process.is_alive()));
}

fn table(lab: &Lab, out: &str, name: &str) -> Vec<Value> {
    let export: Value = serde_json::from_str(&lab.run(["export", out, "--json"]).good().stdout).unwrap();
    export[name].as_array().unwrap().clone()
}

/// Rows of table `modelled` by their method.
fn modelled(lab: &Lab, out: &str, method: &str) -> Vec<Value> {
    table(lab, out, "modelled").into_iter().filter(|row| row["method"] == method).collect()
}

fn runs_on(kind: &str, size: &str) {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    let plan = on_disk(SINGLE, "hdd-7200").replace("every = 4", "every = 4\nsync_steps = true");
    lab.plan(&plan.replace("64MiB", size).replace("\"ext4\"", &format!("{kind:?}")));
    let preview = lab.run(["run", "plan.toml", "--dry-run"]).good().stdout;
    assert!(preview.contains("hdd-7200 of ") && preview.contains("modelled in virtual time"), "{preview}");
    lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    assert_nothing_left(&lab, "out");
    assert_eq!(disks(&lab.path("out")).len(), 3, "the aged volume and two fresh copies");

    let cells = cells(&lab, "out");
    assert!(cells.len() == 4 && cells.iter().all(|cell| cell.is_valid), "{cells:?}");
    let (virtual_time, extents) = (modelled(&lab, "out", "virtual-time"), modelled(&lab, "out", "extents"));
    assert_eq!((virtual_time.len(), extents.len()), (4, 4), "one grep test of each cell");
    for (row, grep) in virtual_time.iter().zip(table(&lab, "out", "grep")) {
        println!(
            "{kind} {} {}: {} s modelled, {} s wall",
            row["role"], row["pulls"], row["seconds"], grep["wall_seconds"]
        );
        assert_eq!(row["device"], extents[0]["device"], "both are figures of one device");
        let number = |key: &str| row[key].as_f64().unwrap();
        // Some hundred files cost a disk more than ten milliseconds in any layout, and less than a
        // full stroke each.
        assert!(number("seconds") > 0.01 && number("seconds") < number("requests") * 0.05, "{row}");
        assert_eq!(row["requests"], grep["device_read_requests"], "what the block layer asked for, one to one");
        assert_eq!(row["read_bytes"], grep["device_read_bytes"]);
        assert!(grep["cache"].as_str().unwrap().contains("virtual time"), "{grep}");
    }
    let steps = table(&lab, "out", "steps");
    let pulls: Vec<_> = steps.iter().filter(|row| row["counted"] == true).collect();
    assert_eq!(pulls.len(), 4);
    for row in pulls {
        let seconds = row["disk_seconds"].as_f64().unwrap();
        // Each is written before the next: at least a stroke to the journal, and far from a stroke
        // for every block.
        assert!(seconds > 0.001 && seconds < 0.05 * row["written_bytes"].as_f64().unwrap() / 4096.0 + 1.0, "{row}");
    }
    let circumstances = lab.run(["export", "out", "--csv", "circumstances"]).good().stdout;
    for key in ["volumes.device", "empty.virtual_device", "unaged.virtual_disk_server"] {
        assert!(circumstances.contains(key), "{key} is not in:\n{circumstances}");
    }
    let report = fs::read_to_string(lab.path("out/report.html")).unwrap();
    assert!(report.contains(", virtual time"), "the report shows it beside the prediction");
}

#[test]
fn ext4_on_virtual_disk_has_modelled_seconds() {
    runs_on("ext4", "64MiB");
}

#[test]
fn xfs_on_virtual_disk_has_modelled_seconds() {
    runs_on("xfs", "320MiB");
}

#[test]
fn btrfs_on_virtual_disk_has_modelled_seconds() {
    runs_on("btrfs", "320MiB");
}

/// Starts the run of the lab's plan and waits until its first checkpoint is kept and it works
/// again.
pub(super) fn start_and_wait(lab: &Lab) -> Child {
    let mut command = lab.command();
    command.args(["run", "plan.toml", "--quiet", "--out", "out"]);
    command.stdout(fs::File::create(lab.path("stdout")).unwrap());
    command.stderr(fs::File::create(lab.path("stderr")).unwrap());
    let mut child = command.spawn().unwrap();
    let journal = || fs::read_to_string(lab.path("out/journal.ndjson")).unwrap_or_default();
    while !journal().contains("checkpoint-done") {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first checkpoint");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn killed_run_on_virtual_disks_resumes() {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&longer());
    lab.run(["run", "plan.toml", "--quiet", "--out", "reference"]).good();
    lab.plan(&on_disk(&longer(), "hdd-7200"));
    let mut child = start_and_wait(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(processes(&lab.path("out")).iter().any(ProcessRef::is_alive), "the kill leaves its disk's server");
    let cleaned = lab.run(["clean"]).good().stdout;
    println!("{cleaned}");
    assert!(cleaned.contains("virtual disk at ") && !cleaned.contains("STILL THERE"), "{cleaned}");
    assert_only_snapshots(&lab, "out");

    lab.run(["run", "--resume", "out", "--quiet"]).good();
    assert_nothing_left(&lab, "out");
    let trees = |out: &str| -> Vec<_> {
        cells(&lab, out).into_iter().map(|cell| (cell.key, cell.is_valid, cell.tree_hash)).collect()
    };
    assert_eq!(trees("out"), trees("reference"));
    assert_eq!(modelled(&lab, "out", "virtual-time").len(), 8, "of the cells from before the kill too");
}

#[test]
fn run_killed_with_its_servers_resumes() {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&on_disk(&longer(), "hdd-7200"));
    let mut child = start_and_wait(&lab);
    // The run first, or it would take down what its server's death leaves.
    child.kill().unwrap();
    for process in processes(&lab.path("out")) {
        // One that is gone already needs no signal: guards exit with their run.
        let killed = kill_process(Pid::from_raw(process.pid as i32).unwrap(), Signal::KILL);
        assert!(matches!(killed, Ok(()) | Err(rustix::io::Errno::SRCH)), "{killed:?}");
    }
    child.wait().unwrap();
    let begin = std::time::Instant::now();
    while processes(&lab.path("out")).iter().any(ProcessRef::is_alive) {
        assert!(begin.elapsed() < Duration::from_secs(20), "a killed process is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    let left = lab.leftovers();
    assert!(left.iter().any(|what| what.contains("loop")), "the loop device stays on a dead disk: {left:?}");
    let cleaned = lab.run(["clean"]).good().stdout;
    println!("{cleaned}");
    for said in ["mount at ", "loop device of ", "virtual disk at "] {
        assert!(cleaned.contains(said), "{said} is not in {cleaned}");
    }
    assert!(!cleaned.contains("STILL THERE") && !cleaned.contains("not removed"), "{cleaned}");
    assert_only_snapshots(&lab, "out");
    assert!(lab.run(["clean"]).good().stdout.starts_with("nothing to clean: "), "a second time there is nothing");
    lab.run(["run", "--resume", "out", "--quiet"]).good();
    assert_nothing_left(&lab, "out");
}

#[test]
fn run_fails_when_its_disk_server_dies() {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&on_disk(&longer(), "hdd-7200"));
    let mut child = start_and_wait(&lab);
    let server = disks(&lab.path("out"))[0].server.unwrap();
    assert!(server.is_alive(), "the aged volume's server serves until the end");
    kill_process(Pid::from_raw(server.pid as i32).unwrap(), Signal::KILL).unwrap();
    let status = child.wait().unwrap();
    let said = fs::read_to_string(lab.path("stderr")).unwrap();
    println!("{said}");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("arm(s) failed") && !said.contains("panicked"), "{said}");
    let cells = cells(&lab, "out");
    let invalid: Vec<_> = cells.iter().filter(|cell| !cell.is_valid).collect();
    let says_why = |reason: &str| reason.contains("the server of the virtual disk is gone");
    assert!(!invalid.is_empty() && invalid.iter().all(|cell| says_why(&cell.reason)), "{cells:?}");
    assert!(
        cells.iter().filter(|cell| cell.pulls == 0).all(|cell| cell.is_valid),
        "what was measured stays: {cells:?}"
    );
    assert_nothing_left(&lab, "out");
}

#[test]
fn grep_in_real_time_lasts_the_modelled_time() {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("pulls = 4", "pulls = 2"));
    lab.run(["run", "plan.toml", "--real-time"]).refused(2, &["volumes.real_time", "needs volumes.device"]);
    let run = ["run", "plan.toml", "--device", "hdd-7200", "--real-time", "--quiet", "--out", "out"];
    lab.run(run).good();
    assert_nothing_left(&lab, "out");
    let (modelled, grep) = (modelled(&lab, "out", "virtual-time"), table(&lab, "out", "grep"));
    assert_eq!(modelled.len(), 4);
    for (row, grep) in modelled.iter().zip(&grep) {
        let (modelled, wall) = (row["seconds"].as_f64().unwrap(), grep["wall_seconds"].as_f64().unwrap());
        assert!(modelled > 0.0 && wall >= 0.9 * modelled, "{wall} s for {modelled} modelled s");
    }
    let plan = fs::read_to_string(lab.path("out/plan.toml")).unwrap();
    assert!(plan.contains("device = \"hdd-7200\"") && plan.contains("real_time = true"), "{plan}");
}

#[test]
fn an_unknown_device_is_refused_before_any_work() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let done = lab.run(["run", "plan.toml", "--device", "hdd-7201", "--out", "out"]);
    done.refused(2, &["volumes.device", "hdd-7201", "hdd-7200"]);
    assert!(!lab.path("out").exists());
}
