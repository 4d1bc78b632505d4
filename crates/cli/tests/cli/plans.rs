//! The plans that are shipped.

use std::{fs, path::Path};

use senesce_experiment::{
    plan::Plan,
    suite::{SUITE_FORMAT, SuitePlan},
};

#[test]
fn every_shipped_plan_is_valid_and_described() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let (name, description) = match text.contains(SUITE_FORMAT) {
            true => SuitePlan::read(&path).map(|plan| (plan.name, plan.description)).unwrap(),
            false => Plan::read(&path).map(|plan| (plan.name, plan.description)).unwrap(),
        };
        assert!(!description.is_empty(), "{}", path.display());
        assert_eq!(path.file_stem().unwrap().to_string_lossy(), name, "a plan is named after its file");
        assert!(text.starts_with("# "), "{} begins with a comment", path.display());
        names.push(name);
    }
    assert!(names.len() >= 4 && names.contains(&"quick-start".to_owned()), "{names:?}");
}

/// Plans that repeat a published experiment and measure it.
const PAPERS: [&str; 13] = [
    "atc18-profile",
    "fast17-git-gc",
    "fast17-interfile",
    "fast17-intrafile",
    "fast17-mail",
    "fast17-mail-small",
    "fast19-oltp",
    "fast19-random-overwrite",
    "fast19-streams",
    "hotstorage19-fsfb",
    "hotstorage19-fsfb-small",
    "hotstorage19-full-disk",
    "linux-trace",
];

#[test]
fn paper_plans_have_enough_repetitions_for_intervals() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    for name in PAPERS.into_iter().chain(["quick-start"]) {
        let plan = Plan::read(&dir.join(format!("{name}.toml"))).unwrap();
        assert!(plan.measure.repetitions >= 5, "{name}: {} repetition(s)", plan.measure.repetitions);
    }
}
