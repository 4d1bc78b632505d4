//! What the program prints: results on stdout, progress on stderr, generated texts.

use std::fs;

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::lab::{Lab, SINGLE};

/// A row of table `cells`.
#[derive(Debug, PartialEq)]
pub struct Cell {
    /// Arm, role and pulls.
    pub key: String,
    pub arm: String,
    pub pulls: u64,
    pub is_valid: bool,
    pub reason: String,
    pub tree_hash: String,
    pub work_tree_hash: String,
}

/// The cells of a run, in the order of their keys.
#[track_caller]
pub fn cells(lab: &Lab, run: &str) -> Vec<Cell> {
    let export: Value = serde_json::from_str(&lab.run(["export", run, "--json"]).good().stdout).unwrap();
    let text =
        |row: &Value, column: &str| row[column].as_str().unwrap_or_else(|| panic!("{column} of {row}")).to_owned();
    let mut cells: Vec<Cell> = Vec::new();
    for row in export["cells"].as_array().unwrap() {
        cells.push(Cell {
            arm: text(row, "arm"),
            pulls: row["pulls"].as_u64().unwrap(),
            key: format!("{} {} {:>6}", text(row, "arm"), text(row, "role"), row["pulls"].as_u64().unwrap()),
            is_valid: row["valid"].as_bool().unwrap(),
            reason: text(row, "reason"),
            tree_hash: text(row, "tree_hash"),
            work_tree_hash: text(row, "work_tree_hash"),
        });
    }
    cells.sort_by(|a, b| a.key.cmp(&b.key));
    cells
}

#[test]
fn results_go_to_stdout_progress_to_stderr_and_exports_parse() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let preview = lab.run(["run", "plan.toml", "--dry-run"]).good();
    assert!(preview.stdout.contains("cells        4") && preview.stderr.is_empty(), "{}", preview.stderr);
    assert!(!lab.path("senesce-runs").exists());

    let loud = lab.run(["run", "plan.toml", "--out", "loud"]).good();
    for line in ["ext4 (1/1): from pull 0 to 4", "ext4 empty at 0 pulls: grep", "ext4 unaged at 4 pulls", "ext4: done"]
    {
        assert!(loud.stderr.contains(line) && !loud.stdout.contains(line), "{line}: {}", loud.stderr);
    }
    assert!(loud.stdout.contains("slowdown") && !loud.stderr.contains("slowdown"), "{}", loud.stdout);
    let report = loud.stdout.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    assert!(fs::read_to_string(report).unwrap().starts_with("<!"), "{report}");

    let quiet = lab.run(["run", "plan.toml", "--out", "quiet", "--quiet"]).good();
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("slowdown"));
    lab.assert_nothing_left();

    let shown = lab.run(["show", "loud"]).good();
    assert!(loud.stdout.starts_with(&shown.stdout) && shown.stderr.is_empty(), "{}", shown.stdout);
    assert_eq!(cells(&lab, "loud").len(), 4);
    for table in ["cells", "grep", "layout", "free_space", "aging", "circumstances"] {
        let csv = lab.run(["export", "loud", "--csv", table]).good().stdout;
        let mut lines = csv.lines();
        let columns = lines.next().unwrap().split(',').count();
        assert!(columns >= 3 && lines.next().is_some(), "{table}: {csv}");
        if ["grep", "layout", "free_space", "aging"].contains(&table) {
            assert!(csv.lines().all(|line| line.split(',').count() == columns), "{table}: {csv}");
        }
    }
    for line in fs::read_to_string(lab.path("loud/results/events.ndjson")).unwrap().lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap().is_object(), "{line}");
    }
    let circumstances = lab.run(["export", "loud", "--csv", "circumstances"]).good().stdout;
    for key in ["kernel", "mkfs", "mount", "seed", "plan.hash", "senesce.version", "history.first_commit"] {
        assert!(circumstances.contains(key), "{key} is not in:\n{circumstances}");
    }
}

#[test]
fn generated_texts_are_made() {
    let lab = Lab::new();
    let schema: Value = serde_json::from_str(&lab.run(["schema"]).good().stdout).unwrap();
    assert!(schema["properties"]["history"].is_object());
    for (shell, mark) in [("bash", "_senesce()"), ("zsh", "#compdef senesce"), ("fish", "complete -c senesce")] {
        assert!(lab.run(["completions", shell]).good().stdout.contains(mark), "{shell}");
    }
    let man = lab.run(["man"]).good().stdout;
    assert!(man.contains(".TH senesce") && man.contains("\\-\\-resume"), "{man}");
    let help = lab.run(["--help"]).good().stdout;
    assert!(help.contains("Exit codes: 0 done · 1 failed · 2 usage"), "{help}");
    for verb in ["run", "export", "replay", "log", "grep", "synth", "completions", "man", "clean", "report", "show"] {
        let help = lab.run([verb, "--help"]).good();
        assert!(help.stdout.contains("Example"), "senesce {verb} --help has no example:\n{}", help.stdout);
        assert!(help.stdout.contains("Usage: senesce ") && help.stderr.is_empty());
    }
    assert!(lab.run(["--version"]).good().stdout.starts_with("senesce "));
}
