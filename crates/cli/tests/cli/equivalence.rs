//! The native replay beside the real git binary.

use senesce_testkit::root_or_skip;

use super::lab::{Lab, SINGLE};

#[test]
fn native_and_git_arms_have_equal_work_trees() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("edition = \"single\"", "edition = \"single\"\nengine = [\"native\", \"git\"]"));
    lab.run(["run", "plan.toml", "--out", "out"]).good();
    let shown = lab.run(["show", "out", "--equivalence"]).good().stdout;
    println!("{shown}");
    assert!(shown.contains("ext4-git") && shown.contains("equal") && !shown.contains("DIFFER"), "{shown}");
    let cells = super::outputs::cells(&lab, "out");
    let tree = |key: &str| &cells.iter().find(|cell| cell.key.starts_with(key)).unwrap().work_tree_hash;
    for role in ["empty      0", "empty      4", "unaged      4"] {
        assert_eq!(tree(&format!("ext4 {role}")), tree(&format!("ext4-git {role}")), "{role}");
    }
    assert_ne!(tree("ext4 empty      0"), tree("ext4 empty      4"), "the pulls changed something");
    lab.assert_nothing_left();
}

#[test]
fn both_engines_synchronise_after_the_same_pulls() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let keys = "edition = \"single\"\nengine = [\"native\", \"git\"]\nsync_every_operations = 60";
    lab.plan(&SINGLE.replace("edition = \"single\"", keys).replace("every = 4", "every = 2"));
    lab.run(["run", "plan.toml", "--out", "out"]).good();
    let csv = lab.run(["export", "out", "--csv", "aging"]).good().stdout;
    lab.run(["export", "out", "--csv", "all"]).refused(2, &["--csv all needs --out"]);
    let listed = lab.run(["export", "out", "--csv", "all", "--out", "tables"]).good().stdout;
    assert!(listed.lines().count() > 10 && listed.contains("tables/cells.csv"), "{listed}");
    assert_eq!(std::fs::read_to_string(lab.path("tables/aging.csv")).unwrap(), csv);
    lab.run(["export", "out", "--csv", "grep", "--out", "tables"]).refused(2, &["has files of another kind"]);
    let mut rows = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let column = |name: &str| names.iter().position(|found| found == name).unwrap();
    let rows: Vec<_> = rows.collect();
    // Each pull is a step, and each synchronisation is a step of its own.
    let steps = |arm: &str| -> Vec<(String, String)> {
        let of_arm = rows.iter().filter(|row| row[column("arm")] == arm);
        of_arm.map(|row| (row[column("pulls")].clone(), row[column("steps")].clone())).collect()
    };
    assert_eq!(steps("ext4"), steps("ext4-git"), "{csv}");
    let all: u64 = steps("ext4").iter().map(|(_, steps)| steps.parse::<u64>().unwrap()).sum();
    assert!(all > 5, "a clone, 4 pulls, and nothing was synchronised: {csv}");
    lab.assert_nothing_left();
}
