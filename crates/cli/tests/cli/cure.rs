//! Plans that cure aged volumes: each tool on its file system, missing tools, and kills in the
//! middle of a cure.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    lab::{Lab, SINGLE, SMALL},
    outputs::cells,
    resume::End,
};

/// The shipped small plan, on another file system with its native tool.
fn small(kind: &str, native: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans/cure-small.toml");
    fs::read_to_string(path).unwrap().replace("\"ext4\"", &format!("{kind:?}")).replace("e4defrag", native)
}

fn table(lab: &Lab, out: &str, name: &str) -> Vec<Value> {
    let export: Value = serde_json::from_str(&lab.run(["export", out, "--json"]).good().stdout).unwrap();
    export[name].as_array().unwrap().clone()
}

fn cures(kind: &str, native: &str) {
    if !root_or_skip("FUSE and volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&small(kind, native));
    let preview = lab.run(["run", "plan.toml", "--dry-run"]).good().stdout;
    assert!(preview.contains(&format!("{kind}-{native}: after the last step, cure by {native}")), "{preview}");
    assert!(preview.contains("checkpoints  2 (0, 24), and 2 after cures"), "{preview}");
    let done = lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    lab.assert_nothing_left();

    let cells = cells(&lab, "out");
    assert!(cells.len() == 3 * 4 + 2 && cells.iter().all(|cell| cell.is_valid), "{cells:?}");
    // A cure leaves the tree, and the cells before it.
    let trees: Vec<&str> = cells.iter().filter(|cell| cell.pulls == 24).map(|cell| cell.tree_hash.as_str()).collect();
    assert!(trees.len() == 8 && trees.iter().all(|tree| *tree == trees[0]), "{cells:?}");
    for name in ["aging", "latency", "steps"] {
        let rows = table(&lab, "out", name);
        let of = |role: &str| rows.iter().filter(|row| row["role"] == role && row["pulls"] == 24).count();
        assert!(of("empty") >= 3 && of("cured-empty") == 0, "{name}");
    }
    for row in table(&lab, "out", "modelled").iter().filter(|row| row["pulls"] == 24) {
        let best = row["best_order_seconds"].as_f64();
        // On a disk, git leaves the files of a directory apart, and the best order has none apart.
        let limit = if row["role"] == "empty" && row["device"] == "model: HDD 7.2K" { 0.8 } else { 1.05 };
        match row["method"].as_str() {
            Some("extents") => {
                assert!(
                    best.is_some_and(|best| best > 0.0 && best < limit * row["seconds"].as_f64().unwrap()),
                    "{row}"
                );
            }
            _ => assert_eq!(best, None, "{row}"),
        }
    }
    let cures = table(&lab, "out", "cures");
    assert_eq!(cures.len(), 2 * 2, "two tools on two modelled devices");
    for row in &cures {
        let number = |column: &str| row[column].as_f64().unwrap_or(f64::NAN);
        let gain = number("read_before_seconds") / number("read_after_seconds");
        println!("{kind} {}: {gain:.2} times as fast; {row}", row["tool"]);
        assert!(
            number("written_bytes") >= 0.0 && number("wall_seconds") > 0.0 && number("disk_seconds") >= 0.0,
            "{row}"
        );
        assert!(number("modelled_before_seconds") > 0.0 && number("modelled_after_seconds") > 0.0, "{row}");
        if row["tool"] == "senesce" {
            assert!(gain > 1.2 && number("moved_files") > 300.0 && number("predicted_seconds") > 0.0, "{row}");
        } else {
            assert!(row["moved_files"].is_null() && row["predicted_seconds"].is_null(), "{row}");
            assert!((0.5..2.0).contains(&gain), "files in one piece stay where they are: {row}");
        }
    }
    let versions = table(&lab, "out", "circumstances");
    let versions: Vec<&Value> = versions.iter().filter(|row| row["key"] == "cure.version").collect();
    let is_version = |text: &str| text.contains(|digit: char| digit.is_ascii_digit()) && text.contains('.');
    assert!(versions.len() == 1 && is_version(versions[0]["value"].as_str().unwrap()), "{versions:?}");
    let lead = done.stdout.lines().find(|line| line.starts_with("After 24 pulls, ")).unwrap_or_default();
    assert!(
        lead.contains(&format!("a cure by senesce makes {kind}-senesce ")),
        "the gain of the cure leads: {}",
        done.stdout
    );
    assert!(done.stdout.contains("Cures: cold read before and after"), "{}", done.stdout);
    let page = fs::read_to_string(lab.path("out/report.html")).unwrap();
    assert!(page.contains("<section id=\"cure-table\">") && page.contains("id=\"cures\""));
}

#[test]
fn each_tool_cures_ext4() {
    cures("ext4", "e4defrag");
}

#[test]
fn each_tool_cures_xfs() {
    cures("xfs", "xfs_fsr");
}

#[test]
fn each_tool_cures_btrfs() {
    cures("btrfs", "btrfs");
}

#[test]
fn cure_after_the_last_step_is_reported() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let cured = "kind = \"ext4\"\ncure = { by = \"senesce\", at = 450 }";
    let plan = SMALL.replace("kind = \"ext4\"", cured).replace("start = 20\npulls = 40", "start = 72\npulls = 500");
    lab.plan(&plan.replace("every = 20", "every = 200"));
    let preview = lab.run(["run", "plan.toml", "--dry-run"]).good().stdout;
    assert!(preview.contains("checkpoints  5 (0, 200, 400, 450, 500), and 1 after cures"), "{preview}");
    assert!(preview.contains("at each of 5 checkpoints") && preview.contains("(1 more checkpoint)"), "{preview}");
    let done = lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    let missed = "the cure by senesce after 450 pulls did not run: the steps ended after ";
    assert!(done.stdout.contains(&format!("warning: ext4-senesce: {missed}")), "{}", done.stdout);
    let rows = table(&lab, "out", "circumstances");
    let row = rows.iter().find(|row| row["key"] == "cure.missed").unwrap();
    assert!(row["arm"] == "ext4-senesce" && row["value"].as_str().unwrap().starts_with(missed), "{row}");
    assert_eq!(table(&lab, "out", "cures"), [Value::Null; 0]);
    lab.assert_nothing_left();
}

#[test]
fn cure_without_its_tool_is_refused_first() {
    if !root_or_skip("a mount name space") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("kind = \"ext4\"", "kind = \"ext4\"\ncure = { by = \"e4defrag\" }"));
    let hide = "mount --bind /dev/null \"$(readlink -f \"$(command -v e4defrag || echo /usr/sbin/e4defrag)\")\"";
    let done = lab.run_apart(&format!("{hide}\nexec \"$SENESCE\" run plan.toml --out out"));
    done.refused(3, &["e4defrag is not installed", "apt-get install e2fsprogs"]);
    assert!(!lab.path("out").exists());
    lab.assert_nothing_left();
}

#[test]
fn failing_tool_makes_its_cell_invalid() {
    if !root_or_skip("a mount name space") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("kind = \"ext4\"", "kind = \"ext4\"\ncure = { by = \"e4defrag\" }"));
    let fake = "printf '#!/bin/sh\\necho first; echo it is too hot >&2; exit 7\\n' > tool\nchmod 755 tool\n\
                mount --bind tool \"$(readlink -f \"$(command -v e4defrag)\")\"";
    let done = lab.run_apart(&format!("{fake}\n\"$SENESCE\" run plan.toml --out out"));
    done.refused(1, &["`e4defrag /", "exit status: 7", "it is too hot"]);
    let cells = cells(&lab, "out");
    let invalid: Vec<&str> = cells.iter().filter(|cell| !cell.is_valid).map(|cell| cell.key.trim_end()).collect();
    assert_eq!(invalid, ["ext4-e4defrag cured-empty      4"], "the cells before it stay: {cells:?}");
    lab.assert_nothing_left();
}

/// Starts a run and kills it as soon as it prints a line with this text.
fn kill_at(lab: &Lab, out: &str, text: &str) {
    let mut child = lab.command().args(["run", "plan.toml", "--out", out]).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_reached = lines.map_while(Result::ok).any(|line| line.contains(text));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_reached, "the run ended before {text:?}");
}

#[test]
fn run_killed_in_a_cure_resumes_before_it() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let cure = "kind = \"ext4\"\ncure = { by = \"senesce\", every = 2 }";
    lab.plan(&SINGLE.replace("kind = \"ext4\"", cure));
    lab.run(["run", "plan.toml", "--quiet", "--out", "reference"]).good();
    let reference = End::of(&lab, "reference");
    let cures = |out: &str| {
        let key = |row: &Value| (row["role"].clone(), row["pulls"].clone(), row["moved_files"].as_u64() > Some(0));
        table(&lab, out, "cures").iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(cures("reference").len(), 2, "after two of four steps, and at the end");
    for (out, text) in [("within", "at 2 pulls: cure by senesce"), ("after", "checkpoint at 2 pulls, after the cure")] {
        kill_at(&lab, out, text);
        let journal = fs::read_to_string(lab.path(out).join("journal.ndjson")).unwrap();
        let was_cured = journal.lines().any(|line| line.contains("\"pulls\":2,") && line.contains("\"cured\":true"));
        let starts = || {
            let events = fs::read_to_string(lab.path(out).join("results/events.ndjson")).unwrap();
            let at_two = |line: &&str| line.contains("\"cure-started\"") && line.contains("\"pulls\":2,");
            events.lines().filter(at_two).count()
        };
        let before = starts();
        assert_eq!(before, 1, "{out}");
        println!("{out}: killed after the cure: {was_cured}");
        lab.run(["run", "--quiet", "--resume", out]).good();
        assert_eq!(starts() - before, usize::from(!was_cured), "{out}: it is done again only if its image is lost");
        let end = End::of(&lab, out);
        assert_eq!(reference.differences(&lab, "reference", &end, out), [""; 0], "{out}");
        assert_eq!(cures(out), cures("reference"), "{out}");
        lab.assert_nothing_left();
    }
}
