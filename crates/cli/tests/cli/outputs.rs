//! What the program prints: results on stdout, progress on stderr, generated texts.

use std::fs;

use senesce_testkit::{check_printed, root_or_skip};
use serde_json::Value;

use super::lab::{Lab, SENESCE, SINGLE, SMALL};

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
fn stdout_has_results_and_stderr_progress() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let preview = lab.run(["run", "plan.toml", "--dry-run"]).good();
    assert!(preview.stdout.contains("cells        4") && preview.stderr.is_empty(), "{}", preview.stderr);
    assert!(!lab.path("senesce-runs").exists());

    let loud = lab.run(["run", "plan.toml", "--out", "loud"]).good();
    for line in [
        "ext4 (1/1): pulls 0 to 4, 4 measurements",
        "ext4 empty at 0 pulls: grep",
        "ext4 unaged at 4 pulls",
        "ext4: done",
    ] {
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
        check_printed(line);
    }
    check_printed(&fs::read_to_string(lab.path("loud/results/run.json")).unwrap());
    let circumstances = lab.run(["export", "loud", "--csv", "circumstances"]).good().stdout;
    for key in ["kernel", "mkfs", "mount", "seed", "plan.hash", "senesce.version", "history.first_commit"] {
        assert!(circumstances.contains(key), "{key} is not in:\n{circumstances}");
    }
    assert!(circumstances.contains(" (commit "), "a run records the commit of the program:\n{circumstances}");
}

#[test]
fn generated_texts_are_made() {
    let lab = Lab::new();
    let schema: Value = serde_json::from_str(&lab.run(["schema"]).good().stdout).unwrap();
    assert!(schema["properties"]["history"].is_object());
    for (shell, mark) in
        [("bash", "_clap_complete_senesce()"), ("zsh", "#compdef senesce"), ("fish", "complete --keep-order")]
    {
        assert!(lab.run(["completions", shell]).good().stdout.contains(mark), "{shell}");
    }
    let man = lab.run(["man"]).good().stdout;
    assert!(man.contains(".TH senesce") && man.contains("EXIT STATUS"), "{man}");
    let page = lab.run(["man", "run"]).good().stdout;
    assert!(page.contains("\\-\\-resume") && page.contains(".SH EXAMPLES"), "{page}");
    lab.run(["man", "--out", "man1"]).good();
    let pages = fs::read_dir(lab.path("man1")).unwrap().count();
    assert!(pages > 60 && lab.path("man1/senesce-fs-snapshot-create.1").is_file(), "{pages} pages");
    let help = lab.run(["--help"]).good().stdout;
    assert!(help.contains("Exit codes: 0 done · 1 failed · 2 usage"), "{help}");
    for verb in ["run", "export", "replay", "log", "grep", "synth", "completions", "man", "clean", "report", "show"] {
        let help = lab.run([verb, "--help"]).good();
        assert!(help.stdout.contains("Example"), "senesce {verb} --help has no example:\n{}", help.stdout);
        assert!(help.stdout.contains("Usage: senesce ") && help.stderr.is_empty());
    }
    let version = lab.run(["--version"]).good().stdout;
    assert!(version.starts_with("senesce ") && version.contains(" (commit "), "{version}");
}

#[test]
fn foreign_files_are_not_replaced() {
    let lab = Lab::new();
    let path = |name: &str| lab.path(name);
    fs::create_dir(path("tree")).unwrap();
    fs::write(path("tree/file"), vec![1; 100_000]).unwrap();
    for (option, name) in [("--html", "page.html"), ("--map", "map.svg")] {
        let inspect = ["inspect", "tree", option, name];
        lab.run(inspect).good();
        // A page of senesce is replaced, as on each run of a CI job.
        lab.run(inspect).good();
        fs::write(path(name), "<!doctype html>\n<title>Thesis</title>").unwrap();
        lab.run(inspect).refused(2, &[name, "exists already, and senesce did not write it", "--force"]);
        assert!(fs::read_to_string(path(name)).unwrap().contains("Thesis"));
        lab.run([&inspect[..], &["--force"]].concat()).good();
        lab.run(inspect).good();
    }
    let plan = fs::read(lab.plan(SMALL)).unwrap();
    lab.run(["inspect", "tree", "--html", "plan.toml"]).refused(2, &["plan.toml exists already", "--force"]);
    let capture = ["profile", "capture", "tree", "--out"];
    lab.run([&capture[..], &["plan.toml"]].concat()).refused(2, &["plan.toml exists already"]);
    assert_eq!(fs::read(path("plan.toml")).unwrap(), plan);
    // A user may have edited a description that senesce wrote.
    let capture = [&capture[..], &["p.toml", "--quiet"]].concat();
    lab.run(&capture).good();
    let captured = fs::read_to_string(path("p.toml")).unwrap();
    fs::write(path("p.toml"), format!("# mine\n{captured}")).unwrap();
    lab.run(&capture).refused(2, &["p.toml exists already, and may have been edited"]);
    assert!(fs::read_to_string(path("p.toml")).unwrap().starts_with("# mine\n"));
    for args in [&["profile", "merge", "p.toml", "p.toml", "--out"][..], &["device", "calibrate", "tree/file", "--out"]]
    {
        lab.run([args, &["p.toml"]].concat()).refused(2, &["p.toml exists already, and may have been edited"]);
    }
    lab.run(["man", "--out", "none/man1"]).refused(2, &["cannot make none/man1 in the directory none"]);
    assert!(!path("none").exists());
    let refused = lab.run(["garden", "reproduce", "E5", "--dry-run", "--out", "tree"]);
    refused.refused(2, &["tree exists already, and has files of another kind"]);
}

/// What became of `senesce ARGS` whose outputs go where `script` says; `$S` is the program.
#[test]
fn reference_of_commands_is_current() {
    let lab = Lab::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
    let current = lab.run(["man", "--markdown"]).good().stdout;
    let is_current = fs::read_to_string(page).unwrap_or_default() == current;
    assert!(is_current, "old; run: senesce man --markdown > docs/reference/commands.md");
}

fn run_script(lab: &Lab, script: &str) -> String {
    let script = format!("{script} 2>said; echo $?");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .env("S", super::lab::SENESCE)
        .current_dir(lab.path(""))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn full_stdout_fails_and_closed_stdout_does_not() {
    let lab = Lab::new();
    let said = || fs::read_to_string(lab.path("said")).unwrap();
    for arguments in ["device list", "device show hdd-7200 --curve", "schema", "man", "completions bash"] {
        assert_eq!(run_script(&lab, &format!("$S {arguments} >/dev/full")), "3", "{arguments}: {}", said());
        assert!(said().contains("cannot write the results to stdout") && said().contains("No space"), "{}", said());
        assert_eq!(run_script(&lab, &format!("$S {arguments} > >(exec true)")), "0", "{arguments}: {}", said());
        assert_eq!(said(), "", "{arguments}");
        // No program reads at all.
        let closed = format!("(exec 3> >(exec true); sleep 0.2; $S {arguments} >&3 2>&3; echo $? >code); cat code; :");
        assert_eq!(run_script(&lab, &closed), "0\n0", "{arguments}");
    }
}

#[test]
fn unread_messages_are_harmless() {
    let lab = Lab::new();
    let to_nobody = |arguments: &str| {
        // The pipe's reader is gone for sure.
        let script = format!("(exec 3> >(exec true); sleep 0.2; $S {arguments} 2>&3; echo $? >code); cat code; :");
        run_script(&lab, &script)
    };
    assert_eq!(to_nobody("device show no-such-device"), "2\n0");
    assert_eq!(to_nobody("inspect no-such-path"), "2\n0");
    assert_eq!(run_script(&lab, "$S device show no-such-device 2>/dev/full; echo $?; :"), "2\n0");
}

#[test]
fn bash_completes_values_after_colons_and_equals() {
    let lab = Lab::new();
    fs::write(lab.path("h.toml"), "").unwrap();
    let complete = |line: &str, words: &str, last: usize| {
        let script = format!(
            "source <(\"$SENESCE\" completions bash); senesce() {{ \"$SENESCE\" \"$@\"; }}
             COMP_LINE='{line}' COMP_POINT={} COMP_WORDS=({words}) COMP_CWORD={last}
             _senesce_joined senesce \"${{COMP_WORDS[{last}]}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            line.len()
        );
        let mut command = std::process::Command::new("bash");
        lab.confine(&mut command);
        let done = command.args(["-c", &script]).env("SENESCE", SENESCE).current_dir(lab.path("")).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    };
    // Bash splits words at colons and at signs of equality.
    assert_eq!(complete("senesce age profile:ag", "senesce age profile : ag", 4), "agrawal");
    assert_eq!(complete("senesce inspect / --device=nv", "senesce inspect / --device = nv", 5), "nvme");
    assert_eq!(complete("senesce age replay:h", "senesce age replay : h", 4), "h.toml");
    assert_eq!(complete("senesce device show hdd-1", "senesce device show hdd-1", 3), "hdd-10k");
}
