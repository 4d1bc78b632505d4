//! The plans that are shipped.

use std::{fs, path::Path};

use senesce_experiment::{
    plan::Plan,
    suite::{SUITE_FORMAT, SuitePlan},
};

use super::lab::Lab;

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

#[test]
fn options_for_histories_name_the_workload_of_the_plan() {
    let lab = Lab::new();
    let fsfb = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/hotstorage19-fsfb-small.toml");
    let run = |option: &[&str]| lab.run([&["run", fsfb, "--dry-run"], option].concat());
    run(&["--pulls", "100"])
        .refused(2, &["--pulls is for histories", "is fsfb", "set workload.fsfb.rounds in the plan"]);
    for option in [["--repo", "."], ["--trace", "t.txt"]] {
        run(&option).refused(2, &[option[0], "is for histories", "name a plan with the table history"]);
    }
}
