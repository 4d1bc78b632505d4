//! Plans on the garden: our own file system ages as others do, under the same operations, and goes
//! away as they do.

use std::{fs, process::Command};

use senesce_testkit::root_or_skip;

use super::lab::{Lab, SMALL};

/// A full volume that runs out of space, on ext4 and on gardens with and without gardening.
fn plan(lab: &Lab) -> std::path::PathBuf {
    let gardens = "kind = \"ext4\"\n[[file_system]]\nkind = \"garden\"\n[[file_system]]\nkind = \"garden\"\n\
                   gardening = \"all\"\n";
    lab.plan(&SMALL.replace("34MiB", "40MiB").replace("kind = \"ext4\"\n", gardens))
}

pub fn table(lab: &Lab, name: &str) -> Vec<Vec<String>> {
    let done = lab.run(["export", "out", "--csv", name]).good();
    done.stdout.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The values of a column in the rows of an arm.
pub fn column(rows: &[Vec<String>], arm: &str, name: &str) -> Vec<String> {
    let at =
        |name: &str| rows[0].iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}"));
    let (of_arm, at) = (at("arm"), at(name));
    rows[1..].iter().filter(|row| row[of_arm] == arm).map(|row| row[at].clone()).collect()
}

fn servers(lab: &Lab) -> Vec<String> {
    let listed = Command::new("ps").args(["-eo", "pid,args"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let ours = lab.path("");
    listed
        .lines()
        .filter(|line| line.contains("fs serve") && line.contains(&*ours.to_string_lossy()))
        .map(str::to_owned)
        .collect()
}

/// All nine cells of an arm are there, hold the trees that they should, and have all figures.
pub fn assert_measured(lab: &Lab, arm: &str, is_fuse: bool) {
    let cells = table(lab, "cells");
    let valid = column(&cells, arm, "valid");
    assert_eq!(valid, vec!["true"; 9], "{arm}: {:?}", column(&cells, arm, "reason"));
    // The roles of a checkpoint hold one tree.
    let hashes = column(&cells, arm, "tree_hash");
    let (first, others) = hashes.split_at(3);
    assert!(others.chunks(3).all(|role| role == first), "{arm}: {hashes:?}");
    assert!(first[0] != first[1] && first[1] != first[2], "{arm}: {hashes:?}");
    for (name, column_name, rows) in
        [("layout", "layout_score", 9), ("modelled", "seconds", 9), ("grep", "device_read_bytes", 9)]
    {
        let values = column(&table(lab, name), arm, column_name);
        let is_some = |value: &String| value.parse::<f64>().is_ok_and(|value| value > 0.0);
        assert!(values.len() == rows && values.iter().all(is_some), "{arm} {name}: {values:?}");
    }
    let floors = column(&table(lab, "grep"), arm, "fuse_floor_seconds");
    let has_floor = |text: &String| text.parse::<f64>().is_ok_and(|seconds| seconds > 0.0);
    assert!(floors.iter().all(|text| has_floor(text) == is_fuse), "{arm}: {floors:?}");
    assert!(!column(&table(lab, "free_space"), arm, "bytes").is_empty());
    assert!(!column(&table(lab, "maps"), arm, "used_bytes").is_empty());
}

#[test]
fn plan_ages_gardens_beside_ext4_and_resumes() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let plan = plan(&lab);
    let mut run = lab.command().args(["-q", "run", "--out", "out"]).arg(&plan).spawn().unwrap();
    // In the middle of the second arm, after its first checkpoint.
    let journal = lab.path("out/journal.ndjson");
    let is_there = || {
        let text = fs::read_to_string(&journal).unwrap_or_default();
        text.lines().any(|line| line.contains("checkpoint-done") && line.contains("\"garden\""))
    };
    for look in 0.. {
        if is_there() {
            break;
        }
        assert!(run.try_wait().unwrap().is_none(), "it ended early");
        assert!(look < 30_000, "the second arm has no checkpoint in ten minutes");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let cleaned = lab.run(["clean", "out"]).good();
    assert!(cleaned.stdout.contains("engine at "), "{}", cleaned.stdout);
    assert_eq!(servers(&lab), [""; 0]);
    let left: Vec<String> = lab.leftovers().into_iter().filter(|path| !path.contains("/snapshot-")).collect();
    assert_eq!(left, [""; 0]);
    lab.run(["-q", "run", "--resume", "out"]).good();
    assert_eq!(servers(&lab), [""; 0]);
    lab.assert_nothing_left();

    for arm in ["ext4", "garden", "garden-all"] {
        assert_measured(&lab, arm, arm != "ext4");
    }
    let page = fs::read_to_string(lab.path("out/report.html")).unwrap();
    assert!(page.contains("FUSE floor") && page.contains("FUSE alone takes"), "the report shows what FUSE costs");
    let circumstances = table(&lab, "circumstances").concat().join(" ");
    assert!(circumstances.contains("gardening=all"), "what was done for a volume is written down");
}
