//! The plans that are shipped.

use std::{fs, path::Path};

use senesce_experiment::{
    plan::Plan,
    suite::{SUITE_FORMAT, SuitePlan},
};

use senesce_testkit::root_or_skip;

use super::lab::{Lab, SINGLE};

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
        .refused(2, &["--pulls is for histories", "is fsfb", "write --set workload.fsfb.rounds=N instead"]);
    for option in [["--repo", "."], ["--trace", "t.txt"]] {
        run(&option).refused(2, &[option[0], "is for histories", "name a plan with the table history"]);
    }
}

#[test]
fn set_overrides_a_key_in_a_dry_run() {
    let lab = Lab::new();
    let fsfb = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/hotstorage19-fsfb-small.toml");
    let rounds = ["--set", "workload.fsfb.rounds=100"];
    let xfs = ["--set", "file_system=[{kind=\"xfs\"}]"];
    let done = lab.run([&["run", fsfb, "--dry-run"][..], &rounds, &xfs].concat()).good().stdout;
    for line in ["rounds       100 per arm, at most", "Changed: workload.fsfb.rounds=100, file_system=[{", "1 (xfs)"] {
        assert!(done.contains(line), "{line}: {done}");
    }
    lab.run(["run", fsfb, "--dry-run", "--set", "workload.rounds=100"])
        .refused(2, &["cannot use --set workload.rounds=100", "did you mean `--set workload.fsfb.rounds=100`?"]);
}

#[test]
fn a_run_keeps_the_changed_plan() {
    if !root_or_skip("runs of plans") {
        return;
    }
    let lab = Lab::new();
    let plan = lab.plan(SINGLE);
    let plan = plan.to_str().unwrap();
    let set = ["--set", "history.pulls=2", "--set=measure.every=2", "--set=name=short"];
    lab.run([&["run", plan, "--out", "changed", "-q"][..], &set].concat()).good();
    let kept = Plan::read_kept(&lab.path("changed/plan.toml")).unwrap();
    let edited = [("pulls = 4", "pulls = 2"), ("every = 4", "every = 2"), ("\"single\"\nseed", "\"short\"\nseed")]
        .into_iter()
        .fold(fs::read_to_string(plan).unwrap(), |text, (from, to)| text.replace(from, to));
    let description = "Changed: history.pulls=2, measure.every=2, name=short.".to_owned();
    let edited = Plan { description, ..Plan::parse(Path::new("p"), &edited).unwrap() };
    assert_eq!(kept, edited);
    let shown = lab.run(["show", "changed"]).good().stdout;
    assert!(shown.contains("After 2 pulls"), "{shown}");
    assert!(fs::read_to_string(lab.path("changed/report.html")).unwrap().contains(&kept.description));
    lab.run(["run", "--resume", "changed", "--set", "history.pulls=3"]).refused(2, &["--resume", "--set"]);
    lab.run(["gate", "changed", "--baseline", "changed", "--set", "history.pulls=3"])
        .refused(2, &["is a run, and `gate` does not run it again"]);
}
