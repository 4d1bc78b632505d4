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
fn figures(lab: &Lab, out: &str) -> Vec<(String, Vec<Value>)> {
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

/// Pages that the kernel scanned because memory was short. It then writes back dirty pages of all
/// file systems, at a time that no plan determines.
fn scanned_pages() -> u64 {
    let counts = fs::read_to_string("/proc/vmstat").unwrap();
    let of = |name: &str| counts.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse::<u64>().unwrap();
    of("pgscan_kswapd ") + of("pgscan_direct ")
}

/// Runs the plan, and up to three times again while other programs leave too little memory.
fn run_undisturbed(lab: &Lab, out: &str) {
    const AGAIN: u32 = 3;
    for attempt in 0..=AGAIN {
        let before = scanned_pages();
        lab.run(["run", "plan.toml", "--quiet", "--out", out]).good();
        if scanned_pages() == before || attempt == AGAIN {
            return;
        }
        fs::remove_dir_all(lab.path(out)).unwrap();
    }
}

/// Runs a plan twice, and compares all figures.
#[track_caller]
fn assert_same_twice(plan: &str) {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&on_disk(plan, "hdd-7200").replace("[measure]", "settle_every_operations = 20\n[measure]"));
    run_undisturbed(&lab, "first");
    run_undisturbed(&lab, "second");
    lab.assert_nothing_left();
    for ((name, first), (_, second)) in figures(&lab, "first").into_iter().zip(figures(&lab, "second")) {
        assert!(!first.is_empty(), "table {name} is empty");
        assert_eq!(first.len(), second.len(), "rows of table {name}");
        for (one, other) in first.iter().zip(&second) {
            assert_eq!(one, other, "table {name}");
        }
    }
    let log = |out: &str| fs::read_dir(lab.path(out).join("arms")).unwrap().next().unwrap().unwrap().path();
    let bytes = |dir: &Path| fs::read(dir.join("oplog.senesce-log")).unwrap();
    assert!(bytes(&log("first")) == bytes(&log("second")), "the operation logs differ");
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
