//! Plans that settle: two runs have the same figures.

use std::{fs, path::Path, process::Command};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    lab::{Lab, SMALL},
    virtual_disk::{assert_only_snapshots, longer, on_disk, start_and_wait},
};

/// Columns that can differ: times, and bytes written, because the kernel chooses when it writes
/// metadata to its place.
const UNSETTLED: [&str; 7] = [
    "wall_seconds",
    "user_seconds",
    "system_seconds",
    "operation_seconds",
    "sync_seconds",
    "disk_seconds",
    "device_written_bytes",
];

/// The tables without times. Rows of virtual time are left out, because it also depends on other
/// readers of the device and on the memory of the machine.
pub(super) fn figures(lab: &Lab, out: &str) -> Vec<(String, Vec<Value>)> {
    let export: Value = serde_json::from_str(&lab.run(["export", out, "--json"]).good().stdout).unwrap();
    let names = ["cells", "layout", "free_space", "maps", "modelled", "aging", "steps"];
    let rows = |name: &str| {
        let rows = export[name].as_array().unwrap().iter().filter(|row| row["method"] != "virtual-time");
        rows.cloned().map(without_unsettled).collect::<Vec<_>>()
    };
    names.iter().map(|&name| (name.to_owned(), rows(name))).collect()
}

fn without_unsettled(mut row: Value) -> Value {
    let columns = row.as_object_mut().unwrap();
    UNSETTLED.iter().for_each(|&column| drop(columns.remove(column)));
    row
}

/// Runs a plan until two runs have equal figures, at most four times. Other programs can start
/// writeback at a time that no plan determines. The third and the fourth run are for this.
#[track_caller]
fn assert_same_twice(plan: &str) {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&on_disk(plan, "hdd-7200").replace("[measure]", "settle_every_operations = 20\n[measure]"));
    let mut runs = Vec::new();
    for out in ["first", "second", "third", "fourth"] {
        lab.run(["run", "plan.toml", "--quiet", "--out", out]).good();
        lab.assert_nothing_left();
        let run = figures(&lab, out);
        run.iter().for_each(|(name, rows)| assert!(!rows.is_empty(), "table {name} is empty"));
        let log = fs::read_dir(lab.path(out).join("arms")).unwrap().next().unwrap().unwrap().path();
        let log = fs::read(log.join("oplog.senesce-log")).unwrap();
        assert!(runs.iter().all(|(_, earlier)| *earlier == log), "the operation logs differ");
        if runs.iter().any(|(earlier, _)| *earlier == run) {
            return;
        }
        runs.push((run, log));
    }
    let last = runs.pop().unwrap().0;
    for (name, rows) in &last {
        let earlier = &runs[0].0.iter().find(|(other, _)| other == name).unwrap().1;
        let different = rows.iter().zip(earlier).find(|(one, other)| one != other);
        eprintln!("{name}: {} and {} rows, the first difference: {different:?}", rows.len(), earlier.len());
    }
    panic!("no two of four runs have equal figures");
}

#[test]
fn settled_full_ext4_has_equal_figures() {
    assert_same_twice(SMALL);
}

#[test]
fn settled_xfs_has_equal_figures() {
    assert_same_twice(&longer().replace("64MiB", "320MiB").replace("\"ext4\"", "\"xfs\""));
}

#[test]
fn settled_btrfs_has_equal_figures() {
    assert_same_twice(&longer().replace("64MiB", "320MiB").replace("\"ext4\"", "\"btrfs\""));
}

/// The nearly full volume has little space for metadata.
#[test]
fn settled_full_btrfs_has_equal_figures() {
    let plan = SMALL.replace("34MiB", "128MiB").replace("96MiB", "320MiB").replace("\"ext4\"", "\"btrfs\"");
    assert_same_twice(&plan);
}

#[test]
fn clean_removes_a_frozen_volume() {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&on_disk(&longer(), "hdd-7200"));
    let mut child = start_and_wait(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let volumes = lab.path("out/volumes");
    let is_volume = |point: &&str| Path::new(point).starts_with(&volumes) && !point.ends_with(".disk");
    let point = points.find(is_volume).expect("a killed run leaves its mount");
    assert!(Command::new("fsfreeze").args(["-f", point]).status().unwrap().success());
    let cleaned = lab.run(["clean"]).good().stdout;
    assert!(!cleaned.contains("STILL THERE") && !cleaned.contains("detached"), "{cleaned}");
    assert_only_snapshots(&lab, "out");
}
