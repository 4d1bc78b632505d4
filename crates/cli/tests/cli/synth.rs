//! Synthetic histories that follow models.

use std::fs;

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::lab::{Lab, SINGLE};

fn repository(lab: &Lab) {
    lab.run(["synth", "h.git", "--files", "500", "--commits", "120", "--seed", "3"]).good();
}

#[test]
fn model_is_fitted_written_and_followed() {
    let lab = Lab::new();
    repository(&lab);
    let dir = lab.path("tmp");
    let dir = dir.to_str().unwrap();
    let fit = ["-q", "synth", "--like", "h.git", "--out", "m.toml", "--dir", dir];
    let fitted = lab.run(fit).good();
    assert_eq!(fitted.stderr, "");
    let last = fitted.stdout.lines().find(|line| line.ends_with("figures are alike")).expect("there is a last line");
    let numbers: Vec<u32> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] * 10 >= numbers[1] * 7, "{}", fitted.stdout);
    // Neither paths nor contents are in the model.
    let model = fs::read_to_string(lab.path("m.toml")).unwrap();
    assert_eq!(model.matches('/').count(), 1, "only the name of the format has a slash: {model}");
    assert!(!model.contains("Makefile"), "{model}");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "the copy of the repository is removed");
    lab.run(fit).refused(2, &["m.toml exists already"]);

    let tip = |name: &str| {
        let made = lab.run(["synth", name, "--model", "m.toml", "--commits", "60"]).good().stdout;
        made.split("tip ").nth(1).expect("a tip is printed").trim().to_owned()
    };
    assert_eq!(tip("one.git"), tip("other.git"));
    let said = lab.run(["synth", "new.git", "--model", "m.toml", "--dry-run"]).good().stdout;
    assert!(said.contains("500 files and 120 more would be written"), "{said}");
    assert!(!lab.path("new.git").exists());
}

#[test]
fn models_and_repositories_that_do_not_fit_are_refused() {
    let lab = Lab::new();
    lab.run(["synth", "short.git", "--files", "500", "--commits", "20"]).good();
    let dir = lab.path("tmp");
    let dir = dir.to_str().unwrap();
    let short = ["-q", "synth", "--like", "short.git", "--out", "m.toml", "--dir", dir];
    lab.run(short).refused(2, &["20 commits with changes follow its first tree"]);
    assert!(!lab.path("m.toml").exists());
    fs::write(lab.path("bad.toml"), "format = \"senesce-history-model/1\"\nfiles = 1\n").unwrap();
    lab.run(["synth", "new.git", "--model", "bad.toml"]).refused(2, &["bad.toml: "]);
    assert!(!lab.path("new.git").exists());
}

#[test]
fn plan_follows_a_model_and_its_log_replays_without_it() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    repository(&lab);
    let dir = lab.path("tmp");
    let dir = dir.to_str().unwrap();
    lab.run(["-q", "synth", "--like", "h.git", "--out", "m.toml", "--dir", dir]).good();
    lab.plan(&SINGLE.replace("synthetic = { model = \"linux-like\", files = 500, commits = 8 }", "like = \"m.toml\""));
    lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    let log = lab.path("out/arms/ext4/oplog.senesce-log");
    let shown = lab.run(["log", "show", log.to_str().unwrap(), "-n", "1"]).good().stdout;
    let header: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(header["workload"]["source"]["synthetic"]["like"]["files"], 500, "{header}");
    // The log has the model: the replay needs neither the file nor the run.
    let kept = lab.path("kept.senesce-log");
    fs::copy(&log, &kept).unwrap();
    fs::remove_file(lab.path("m.toml")).unwrap();
    fs::remove_dir_all(lab.path("out")).unwrap();
    fs::create_dir(lab.path("place")).unwrap();
    let replayed = lab.run(["replay", kept.to_str().unwrap(), "--on", "place", "--dir", dir]).good();
    assert!(replayed.stdout.contains("equals the one that the log describes"), "{}", replayed.stdout);
    lab.assert_nothing_left();
}
