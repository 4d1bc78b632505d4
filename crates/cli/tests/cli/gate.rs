//! `gate` as a CI job and `git bisect run` call it.

use std::{collections::BTreeMap, fs};

use senesce_store::{CellKey, CellResults, CellRow, CircumstanceRow, ResultStore, Role, RunInfo};
use senesce_testkit::{check_json, check_printed, root_or_skip};
use serde_json::Value;

use super::{
    lab::{Lab, SENESCE, SINGLE},
    rows::{layout_row, modelled_row},
};

/// An arm whose name has a command of GitHub, the end of a table cell, the end of a text in XML, a
/// mention and a terminal escape.
const HOSTILE: &str = "evil\n::error::pwned|x]]>&<b>@team ##[error]`$(id)` \u{1b}[31m";

/// The figures of a run with one arm.
pub struct Made<'a> {
    pub arm: &'a str,
    pub checkpoints: &'a [u64],
    pub requests: u64,
    pub layout_score: f64,
    pub circumstances: &'a [(&'a str, &'a str)],
}

pub const PLAIN: Made<'_> = Made {
    arm: "ext4",
    checkpoints: &[40],
    requests: 10_000,
    layout_score: 0.9,
    circumstances: &[("plan.seed", "1"), ("history.last_commit", "aa"), ("kernel_release", "6.1")],
};

/// Writes a run with two volumes of one arm.
pub fn make(lab: &Lab, dir: &str, made: &Made<'_>) {
    fs::create_dir(lab.path(dir)).unwrap();
    let mut store = ResultStore::create(&lab.path(dir).join("results"), dir).unwrap();
    let info = RunInfo { plan_name: "small|plan".into(), plan_hash: "ab".into(), ..store.run_info().clone() };
    store.put_run_info(&info).unwrap();
    let cells = made.checkpoints.iter().flat_map(|pulls| [Role::Full, Role::Unaged].map(|role| (role, *pulls)));
    for (role, pulls) in cells {
        let key = CellKey { arm: made.arm.into(), file_system: "ext4".into(), role, pulls };
        let cell = CellRow {
            key: key.clone(),
            valid: true,
            reason: String::new(),
            tree_hash: String::new(),
            work_tree_hash: String::new(),
            files: 1,
            directories: 1,
            content_bytes: 1,
            capacity_bytes: 2,
            used_bytes: 1,
        };
        let mut results = CellResults::of(cell);
        results.layout = Some(layout_row(key.clone(), made.layout_score));
        results.modelled = vec![modelled_row(key, 100.0, made.requests)];
        store.append_cell(&results).unwrap();
    }
    let row = |(key, value): &(&str, &str)| CircumstanceRow {
        arm: String::new(),
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    };
    store.put_circumstances(&made.circumstances.iter().map(row).collect::<Vec<_>>()).unwrap();
}

#[test]
fn baseline_passes_its_run_and_fails_a_regression() {
    let lab = Lab::new();
    make(&lab, "one", &PLAIN);
    make(&lab, "worse", &Made { requests: 10_200, ..PLAIN });
    make(&lab, "better", &Made { requests: 9_000, ..PLAIN });
    let saved = lab.run(["gate", "one", "--save-baseline", "b.json"]).good();
    assert!(saved.stderr.contains("baseline: b.json (8 figures)"), "{}", saved.stderr);
    check_printed(&fs::read_to_string(lab.path("b.json")).unwrap());
    for base in ["b.json", "one"] {
        let same = lab.run(["gate", "one", "--baseline", base]).good().stdout;
        assert!(same.contains("4 figures judged: 4 equal") && same.contains("no regression in 4 figures"), "{same}");
        let worse = lab.run(["gate", "worse", "--baseline", base]);
        worse.refused(5, &["regression: 1 of 4 figures worse: ext4 full 40 model: HDD 7.2K (extents) requests +2.00%"]);
        assert!(worse.stdout.contains("REGRESSED"), "{}", worse.stdout);
        lab.run(["gate", "worse", "--baseline", base, "--tolerance", "3%"]).good();
        let better = lab.run(["gate", "better", "--baseline", base]).good().stdout;
        assert!(better.contains("1 improved: ext4 full 40") && better.contains("-10.00%"), "{better}");
    }
    // The gate judges a fresh copy only if `--role` names it.
    let both = lab.run(["gate", "worse", "-b", "b.json", "--role", "full,unaged", "--json"]);
    assert_eq!(both.code, 5);
    let json: Value = serde_json::from_str(&both.stdout).unwrap();
    assert_eq!((&json["schema"], &json["gate"]["regressed"]), (&"senesce-gate/2".into(), &2.into()));
    // A failing gate keeps the baseline; a passing one replaces it, and keeps its tolerances.
    let before = fs::read_to_string(lab.path("b.json")).unwrap();
    fs::write(lab.path("b.json"), before.replace("\"percent\":0.5", "\"percent\":0.25")).unwrap();
    let tuned = fs::read_to_string(lab.path("b.json")).unwrap();
    lab.run(["gate", "worse", "-b", "b.json", "-s", "b.json"]).refused(5, &["regression"]);
    assert_eq!(fs::read_to_string(lab.path("b.json")).unwrap(), tuned);
    lab.run(["gate", "better", "-b", "b.json", "-s", "b.json"]).good();
    let after = fs::read_to_string(lab.path("b.json")).unwrap();
    assert!(after.contains("\"percent\":0.25") && after.contains("[9000.0]"), "{after}");
}

#[test]
fn a_baseline_of_several_runs_accepts_their_range() {
    let lab = Lab::new();
    for (name, requests) in [("one", 10_000), ("two", 10_150), ("three", 10_060), ("worse", 10_300)] {
        make(&lab, name, &Made { requests, ..PLAIN });
    }
    let save = ["gate", "one", "--also", "two", "-s", "b.json", "--tolerance", "0"];
    lab.run(save).good();
    lab.run(["gate", "three", "-b", "b.json"]).good();
    lab.run(["gate", "worse", "-b", "b.json"]).refused(5, &["+"]);
    make(&lab, "other", &Made { arm: "xfs", ..PLAIN });
    lab.run(["gate", "one", "--also", "other", "-s", "c.json"]).refused(2, &["--also other: only one of the runs"]);
}

#[test]
fn incomplete_run_is_no_baseline() {
    let lab = Lab::new();
    make(&lab, "one", &PLAIN);
    make(&lab, "holed", &PLAIN);
    lab.run(["gate", "one", "-s", "b.json"]).good();
    let mut store = ResultStore::open(&lab.path("holed/results")).unwrap();
    let key = CellKey { arm: "ext4".into(), file_system: "ext4".into(), role: Role::Full, pulls: 20 };
    let mut cell = store.read_all().unwrap().cells[0].clone();
    (cell.key, cell.valid, cell.reason) = (key, false, "it broke".into());
    store.append_cell(&CellResults::of(cell)).unwrap();
    let problem = "the run has invalid cells, so it cannot be a baseline";
    lab.run(["gate", "holed", "-s", "c.json"]).refused(2, &[problem, "senesce show RUN"]);
    lab.run(["gate", "one", "--also", "holed", "-s", "c.json"]).refused(2, &[problem]);
    assert!(!lab.path("c.json").exists());
    // A figure that the run lacks stays in the baseline, also if the gate passes.
    let text = fs::read_to_string(lab.path("b.json")).unwrap();
    let line = text.lines().find(|line| line.contains("\"full\"") && line.contains("layout score")).unwrap();
    let more = text.replacen(line, &format!("{line}\n{}", line.replace("layout score", "new score")), 1);
    let more = more.replace("}\n{", "},\n{");
    fs::write(lab.path("b.json"), &more).unwrap();
    lab.run(["gate", "one", "-b", "b.json", "-s", "b.json", "--on-undecided", "pass"]).good();
    assert_eq!(fs::read_to_string(lab.path("b.json")).unwrap(), more);
}

#[test]
fn exit_codes_are_those_of_git_bisect() {
    let lab = Lab::new();
    make(&lab, "one", &PLAIN);
    make(&lab, "worse", &Made { requests: 10_200, ..PLAIN });
    make(&lab, "lost", &Made { arm: "xfs", ..PLAIN });
    let code = |words: &[&str]| lab.run([&["gate"], words].concat()).code;
    assert_eq!(code(&["one", "-b", "one", "--bisect"]), 0);
    assert_eq!(code(&["worse", "-b", "one", "--bisect"]), 1);
    for skipped in
        [&["nowhere", "-b", "one"][..], &["one", "-b", "nowhere"], &["lost", "-b", "one"], &["one", "--nope"]]
    {
        let done = lab.run([&["gate"], skipped, &["--bisect"]].concat());
        assert_eq!(done.code, 125, "{skipped:?} {}", done.stderr);
        assert!(!done.stderr.is_empty());
    }
    assert_eq!(code(&["one", "--nope"]), 2);
}

#[test]
fn run_of_another_question_is_refused_with_values() {
    let lab = Lab::new();
    make(&lab, "one", &PLAIN);
    lab.run(["gate", "one", "-s", "b.json"]).good();
    let with = |dir: &str, circumstances: &[(&str, &str)]| make(&lab, dir, &Made { circumstances, ..PLAIN });
    with("seed", &[("plan.seed", "2"), ("history.last_commit", "aa"), ("kernel_release", "6.1")]);
    with("history", &[("plan.seed", "1"), ("history.last_commit", "bb"), ("kernel_release", "6.1")]);
    with("kernel", &[("plan.seed", "1"), ("history.last_commit", "aa"), ("kernel_release", "6.2")]);
    for base in ["b.json", "one"] {
        let hint = "write a new baseline with --save-baseline";
        let seed = "plan.seed is 1 in the baseline, 2 in the run";
        lab.run(["gate", "seed", "-b", base]).refused(2, &[seed, hint]);
        let history = "history.last_commit is aa in the baseline, bb in the run";
        lab.run(["gate", "history", "-b", base]).refused(2, &[history, hint]);
        // A difference that is under test is listed, not refused.
        let kernel = lab.run(["gate", "kernel", "-b", base]).good().stdout;
        assert!(kernel.contains("unlike: kernel: kernel_release is 6.1 in the baseline, 6.2 in the run"), "{kernel}");
    }
    // A run that does not settle does not record the key.
    with("settled", &[("plan.seed", "1"), ("workload.settle_every_operations", "20")]);
    let settle = |a, b| format!("workload.settle_every_operations is {a} in the baseline, {b} in the run");
    lab.run(["gate", "settled", "-b", "b.json"]).refused(2, &[&settle(0, 20)]);
    lab.run(["gate", "one", "-b", "settled"]).refused(2, &[&settle(20, 0)]);
    // Another checkout has its input files in another directory.
    let replay = |log: &'static str| [("workload.replay", log), ("volumes.device", "/a/x.toml")];
    with("here", &replay("{\"log\":\"/here/w.log\"}"));
    with("there", &[("workload.replay", "{\"log\":\"/there/w.log\"}"), ("volumes.device", "x.toml")]);
    with("other", &replay("{\"log\":\"/here/v.log\"}"));
    let same = lab.run(["gate", "there", "-b", "here"]).good().stdout;
    assert!(!same.contains("unlike"), "{same}");
    lab.run(["gate", "other", "-b", "here"]).refused(2, &["workload.replay is"]);
    make(&lab, "lost", &Made { arm: "xfs", ..PLAIN });
    lab.run(["gate", "lost", "-b", "b.json"]).refused(2, &["no figure in common"]);
    let damaged = fs::read_to_string(lab.path("b.json")).unwrap().replace("baseline/1", "baseline/9");
    fs::write(lab.path("b.json"), damaged).unwrap();
    lab.run(["gate", "one", "-b", "b.json"]).refused(2, &["this version reads \"senesce-baseline/1\""]);
}

#[test]
fn outputs_escape_a_hostile_arm() {
    let lab = Lab::new();
    let hostile = Made { arm: HOSTILE, ..PLAIN };
    make(&lab, "one", &hostile);
    make(&lab, "worse", &Made { requests: 10_200, layout_score: 0.8, ..hostile });
    lab.run(["gate", "one", "-s", "b.json"]).good();
    let words = ["gate", "worse", "-b", "b.json", "--junit", "j.xml", "--markdown", "m.md", "--bmf", "bmf.json"];
    let mut command = lab.command();
    command.args(words).args(["--small-is-better", "s.json", "--github"]);
    fs::write(lab.path("summary.md"), "before\n").unwrap();
    let done = senesce_testkit::Done::of(command.env("GITHUB_STEP_SUMMARY", lab.path("summary.md")).output().unwrap());
    assert_eq!(done.code, 5, "{}", done.stderr);
    // GitHub executes lines that start with `::`, and `##[` at any place of a line.
    let commands: Vec<&str> = done.stdout.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    assert_eq!(commands.len(), 2, "{}", done.stdout);
    assert!(commands.iter().all(|line| line.starts_with("::error title=evil")), "{commands:?}");
    assert!(!done.stdout.contains("##[") && !done.stdout.contains('\u{1b}'), "{}", done.stdout);
    // GitHub reads stderr, too.
    let assert_harmless = |stderr: &str| {
        let is_command = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
        assert!(!stderr.is_empty() && !stderr.lines().any(is_command), "{stderr}");
    };
    assert_harmless(&done.stderr);
    make(&lab, "named", &Made { arm: "##[stop-commands]x", ..PLAIN });
    make(&lab, "lost", &PLAIN);
    let of_baseline = fs::read_to_string(lab.path("b.json")).unwrap();
    fs::write(lab.path("key.json"), of_baseline.replacen("\"plan\"", "\"x\\n::error::##[pwned\"", 1)).unwrap();
    lab.run(["gate", "lost", "-s", "two.json"]).good();
    let two = fs::read_to_string(lab.path("two.json")).unwrap();
    let (head, figures) = two.split_once("\"figures\": [\n").unwrap();
    let added = figures.replace("\n]\n}", ",").replace("\"arm\":\"ext4\"", "\"arm\":\"##[stop-commands]x\"");
    fs::write(lab.path("two.json"), format!("{head}\"figures\": [\n{}\n{figures}", added.trim_end())).unwrap();
    for (base, code) in [("named", 2), ("b.json", 2), ("key.json", 2), ("two.json", 6)] {
        let refused = lab.run(["gate", "lost", "-b", base, "--github"]);
        assert_eq!(refused.code, code, "{base} {}", refused.stderr);
        assert_harmless(&refused.stderr);
        let commands = refused.stdout.lines().filter(|line| line.trim_start().starts_with("::")).count();
        assert!(code == 6 || commands == 1, "{base} {}", refused.stdout);
        assert!(!refused.stdout.contains("##["), "{base} {}", refused.stdout);
    }
    // Names of files, in notes, in errors of the system, and in errors of the command line.
    let foreign = ["##[stop-commands]x", "a\n::error::x", "##[add-path]x"];
    for (more, code) in [
        (["-b", "one", "-s", foreign[0]], 2),
        (["-b", foreign[1], "-s", foreign[0]], 2),
        (["-b", "one", "-t", foreign[1]], 2),
        (["-b", "one", foreign[2], foreign[1]], 2),
        (["-b", "lost", "-s", foreign[0]], 0),
    ] {
        let done = lab.run(["gate", "lost", "--github"].iter().chain(&more));
        assert_eq!(done.code, code, "{more:?} {}", done.stderr);
        assert_harmless(&done.stderr);
        assert!(!done.stdout.contains("##["), "{more:?} {}", done.stdout);
    }

    let read = |name: &str| fs::read_to_string(lab.path(name)).unwrap();
    let junit = quick_junit::Report::deserialize_from_str(&read("j.xml")).unwrap();
    assert_eq!((junit.tests, junit.failures, junit.errors), (4, 2, 0));
    let markdown = read("m.md");
    assert!(read("summary.md").starts_with("before\n") && read("summary.md").ends_with(&markdown));
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| REGRESSED")).collect();
    assert_eq!(rows.len(), 2, "{markdown}");
    assert!(rows.iter().all(|row| row.matches('|').count() == 7), "{rows:?}");
    for hazard in ["@team", "<b>", "]]>", "\n::", "`"] {
        assert!(!markdown.contains(hazard), "{hazard} in {markdown}");
    }
    check_json("bmf", &serde_json::from_str(&read("bmf.json")).unwrap());
    check_json("small-is-better", &serde_json::from_str(&read("s.json")).unwrap());
    let bmf: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(&read("bmf.json")).unwrap();
    assert_eq!(bmf.len(), 2);
    let full = bmf.iter().find(|(name, _)| name.ends_with("/full/40")).unwrap().1;
    assert_eq!(full["model: HDD 7.2K (extents) requests"]["value"], 10_200.0);
    assert!(full.keys().all(|measure| measure.chars().count() <= 64));
    let small: Vec<Value> = serde_json::from_str(&read("s.json")).unwrap();
    let score = small.iter().find(|row| row["name"].as_str().unwrap().ends_with("distance from 1")).unwrap();
    assert!((score["value"].as_f64().unwrap() - 0.2).abs() < 1e-12 && score["unit"] == "ratio", "{score}");
}

#[test]
fn only_figures_for_services_are_replaced() {
    let lab = Lab::new();
    make(&lab, "one", &PLAIN);
    for (option, theirs) in [("--bmf", r#"{"scripts": {"test": "vite"}}"#), ("--small-is-better", r#"[{"name": "x"}]"#)]
    {
        let gate = ["gate", "one", "-s", "b.json", option, "figures.json"];
        fs::write(lab.path("figures.json"), theirs).unwrap();
        lab.run(gate).refused(2, &["figures.json exists already, and senesce did not write it"]);
        assert_eq!(fs::read_to_string(lab.path("figures.json")).unwrap(), theirs);
        fs::remove_file(lab.path("figures.json")).unwrap();
        lab.run(gate).good();
        let ours = fs::read_to_string(lab.path("figures.json")).unwrap();
        lab.run(gate).good();
        assert_eq!(fs::read_to_string(lab.path("figures.json")).unwrap(), ours);
    }
}

#[test]
fn a_failed_run_is_in_every_output() {
    if !root_or_skip("the run of a plan") {
        return;
    }
    let lab = Lab::new();
    make(&lab, "one", &PLAIN);
    lab.plan(&SINGLE.replacen("kind = \"ext4\"", "kind = \"ext4\"\nmkfs = [\"-I\", \"64\"]", 1));
    let gate = |more: &[&str]| {
        let mut command = lab.command();
        command.args([
            "gate",
            "plan.toml",
            "-b",
            "one",
            "-o",
            "out",
            "--junit",
            "j.xml",
            "--markdown",
            "m.md",
            "--github",
        ]);
        let summary = lab.path("summary.md");
        senesce_testkit::Done::of(command.args(more).env("GITHUB_STEP_SUMMARY", summary).output().unwrap())
    };
    let failed = gate(&["--seed", "1"]);
    assert_eq!(failed.code, 2, "{}", failed.stderr);
    let problem = "invalid inode size 64";
    assert!(failed.stderr.contains(problem), "{}", failed.stderr);
    let read = |name: &str| fs::read_to_string(lab.path(name)).unwrap();
    let junit = quick_junit::Report::deserialize_from_str(&read("j.xml")).unwrap();
    assert_eq!((junit.tests, junit.failures, junit.errors), (1, 0, 1));
    assert!(read("j.xml").contains(problem));
    assert!(read("m.md").starts_with("### senesce gate: no verdict") && read("m.md").contains(problem));
    assert_eq!(read("summary.md"), read("m.md"));
    assert!(failed.stdout.contains("::error title=senesce gate::") && failed.stdout.contains(problem));
    assert!(!lab.path("out").exists(), "the run started");
    // The changed seed is that of the plan, which the baseline does not allow.
    let refused = gate(&["--seed", "7"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("plan.seed is 1 in the baseline, 7 in plan.toml"), "{}", refused.stderr);
}

#[test]
fn plan_with_an_input_file_is_gated_in_its_directory() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    lab.run(["run", "plan.toml", "--out", "source", "-q"]).good();
    fs::copy(lab.path("source/arms/ext4/oplog.senesce-log"), lab.path("w.senesce-log")).unwrap();
    let (before, after) = SINGLE.split_once("[history]").unwrap();
    let measure = after.split_once("[measure]").unwrap().1;
    let workload = "[workload]\nkind = \"replay\"\n[workload.replay]\nlog = \"w.senesce-log\"\n";
    lab.plan(&format!("{before}{workload}[measure]{measure}"));
    lab.run(["gate", "plan.toml", "-s", "b.json", "--out", "out", "-q"]).good();
    let saved = fs::read_to_string(lab.path("b.json")).unwrap();
    assert!(saved.contains("\"workload.replay\"") && saved.contains("/w.senesce-log"), "{saved}");
    lab.run(["gate", "plan.toml", "-b", "b.json", "--dry-run"]).good();
    lab.run(["gate", "out", "-b", "b.json"]).good();
    lab.assert_nothing_left();
}

/// A file of `contrib/`.
fn contrib(name: &str) -> (String, Value) {
    let text = fs::read_to_string(format!("{}/../../contrib/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let parsed = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    (text, parsed)
}

/// The shell text and the variables of the step `Gate` of the workflow for GitHub.
fn github_step() -> (String, Value) {
    let (_, workflow) = contrib("github/senesce-gate.yml");
    assert!(workflow["on"].get("pull_request").is_some(), "{workflow}");
    assert_eq!(workflow["permissions"]["contents"], "read");
    let job = &workflow["jobs"]["gate"];
    let steps = job["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "Gate").unwrap();
    let opening = steps.iter().position(|step| step["run"].as_str().is_some_and(|run| run.contains("chmod"))).unwrap();
    assert_eq!(steps[opening]["if"], "always()");
    assert_eq!(
        steps.iter().position(|step| step.get("with").is_some_and(|with| with["name"] == "aging")),
        Some(opening + 1)
    );
    (step["run"].as_str().unwrap().to_owned(), job["env"].clone())
}

/// The shell text and the variables of the job for GitLab.
fn gitlab_job() -> (String, Value) {
    let (_, template) = contrib("gitlab/senesce-gate.yml");
    let job = &template["aging"];
    assert_eq!(job["artifacts"]["reports"]["junit"], "aging.xml");
    assert_eq!(job["allow_failure"]["exit_codes"][0], 6);
    let lines = job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    (lines.collect::<Vec<_>>().join("\n"), job["variables"].clone())
}

/// Runs a script of a template as its service does. `dir` is the repository.
fn run_script(lab: &Lab, dir: &str, (script, variables): &(String, Value)) -> senesce_testkit::Done {
    let mut command = std::process::Command::new("bash");
    lab.confine(&mut command);
    for (name, value) in variables.as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    // The test is root already, and sudo may not be installed.
    let bin = lab.path("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("sudo"), "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nexec \"$@\"\n")
            .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join("sudo"), mode).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("SENESCE", SENESCE).env("GITHUB_STEP_SUMMARY", lab.path("summary.md"));
    let command = command.args(["-e", "-o", "pipefail", "-c", script]).current_dir(lab.path(dir));
    senesce_testkit::Done::of(command.output().unwrap())
}

#[test]
fn templates_are_yaml_and_name_their_files() {
    for (script, variables) in [github_step(), gitlab_job()] {
        assert_eq!(variables["PLAN"], "ci/aging.toml");
        assert_eq!(variables["BASELINE"], "ci/aging-baseline.json");
        assert!(script.contains("gate \"$PLAN\" --baseline \"$BASELINE\""), "{script}");
    }
}

#[test]
fn templates_run_a_plan_and_find_a_changed_mkfs() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    fs::create_dir_all(lab.path("repository/ci")).unwrap();
    let write = |text: &str| fs::rename(lab.plan(text), lab.path("repository/ci/aging.toml")).unwrap();
    write(SINGLE);
    let save = "gate repository/ci/aging.toml -s repository/ci/aging-baseline.json --out before -q";
    lab.run(save.split(' ')).good();
    let own =
        ["gate", "before", "-b", "repository/ci/aging-baseline.json", "--role", "empty,unaged", "--all", "--json"];
    let own: Value = serde_json::from_str(&lab.run(own).good().stdout).unwrap();
    assert!(own["gate"]["figures"].as_u64().unwrap() > 9, "{own}");
    assert_eq!(own["gate"]["equal"], own["gate"]["figures"], "{own}");
    let same = run_script(&lab, "repository", &github_step());
    assert_eq!(same.code, 0, "{} {}", same.stdout, same.stderr);
    let junit = fs::read_to_string(lab.path("repository/aging.xml")).unwrap();
    assert_eq!(quick_junit::Report::deserialize_from_str(&junit).unwrap().failures, 0);
    assert!(fs::read_to_string(lab.path("summary.md")).unwrap().starts_with("### senesce gate: no regression"));
    for output in ["aging.md", "aging-bmf.json", "aging-small.json", "aging-run/report.html"] {
        assert!(lab.path("repository").join(output).is_file(), "{output}");
    }
    fs::rename(lab.path("repository/aging-run"), lab.path("same")).unwrap();
    // Blocks of 1 KiB without extents need more requests. The gate accepts another mkfs.
    write(&format!("{SINGLE}mkfs = [\"-b\", \"1024\", \"-O\", \"^extent,^64bit\"]\n"));
    let other = run_script(&lab, "repository", &gitlab_job());
    assert_eq!(other.code, 5, "{} {}", other.stdout, other.stderr);
    assert!(other.stdout.contains("REGRESSED") && other.stdout.contains("mkfs_command has "), "{}", other.stdout);
    // Another seed is refused before the run.
    write(&SINGLE.replace("seed = 7", "seed = 8"));
    let seed = ["gate", "repository/ci/aging.toml", "-b", "repository/ci/aging-baseline.json", "--out", "seed"];
    lab.run(seed).refused(2, &["plan.seed is 7 in the baseline, 8"]);
    assert!(!lab.path("seed").exists());
    lab.assert_nothing_left();
}
