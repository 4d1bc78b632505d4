//! The plans that are shipped.

use std::{fs, path::Path};

use senesce_experiment::plan::Plan;

#[test]
fn every_shipped_plan_is_one_and_says_what_it_is_for() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let plan = Plan::read(&path).unwrap();
        assert!(!plan.description.is_empty(), "{}", path.display());
        assert_eq!(path.file_stem().unwrap().to_string_lossy(), plan.name, "a plan is named after its file");
        assert!(fs::read_to_string(&path).unwrap().starts_with("# "), "{} begins with a comment", path.display());
        names.push(plan.name);
    }
    assert!(names.len() >= 4 && names.contains(&"quick-start".to_owned()), "{names:?}");
}
