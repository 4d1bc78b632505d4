//! The native replay beside the real git binary.

use senesce_testkit::root_or_skip;

use super::lab::{Lab, SINGLE};

#[test]
fn native_and_git_arms_end_with_the_same_work_trees() {
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
