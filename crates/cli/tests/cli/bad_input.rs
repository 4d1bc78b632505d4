//! Plans, repositories and directories that are not what they should be: what is said, and the exit
//! code.

use std::fs;

use senesce_testkit::root_or_skip;

use super::{
    lab::{Lab, SINGLE},
    repositories::Repository,
};

/// One wrong plan: what is replaced in the good one, the exit code, and what must be said.
struct Wrong {
    what: &'static str,
    from: &'static str,
    to: &'static str,
    says: &'static [&'static str],
}

const PLANS: &[Wrong] = &[
    Wrong {
        what: "an unknown key",
        from: "pulls = 4",
        to: "puls = 4",
        says: &["plan.toml", "line 6", "unknown field `puls`", "did you mean `pulls`?"],
    },
    Wrong {
        what: "an unknown section",
        from: "[measure]",
        to: "[mesure]",
        says: &["unknown field `mesure`", "did you mean `measure`?"],
    },
    Wrong {
        what: "a wrongly typed key",
        from: "pulls = 4",
        to: "pulls = \"four\"",
        says: &["plan.toml", "line 6", "invalid type: string \"four\""],
    },
    Wrong {
        what: "an unknown value",
        from: "\"ext4\"",
        to: "\"ext5\"",
        says: &["unknown variant `ext5`", "did you mean `ext4`?"],
    },
    Wrong {
        what: "a wrong size",
        from: "empty = \"64MiB\"",
        to: "empty = \"32 bananas\"",
        says: &["32 bananas", "line 13"],
    },
    Wrong {
        what: "a later version",
        from: "senesce-plan/1",
        to: "senesce-plan/2",
        says: &["\"senesce-plan/2\"", "this program reads \"senesce-plan/1\"", "newer senesce"],
    },
    Wrong { what: "no TOML", from: "[measure]", to: "[measure", says: &["plan.toml", "line 9"] },
    Wrong {
        what: "a range without commits",
        from: "pulls = 4",
        to: "start = 900",
        says: &["range of commits is empty", "starts at commit 900", "hint: choose a smaller history.start"],
    },
    Wrong {
        what: "no pulls",
        from: "pulls = 4",
        to: "pulls = 0",
        says: &["history.pulls", "the range of commits would be empty"],
    },
];

#[test]
fn wrong_plans_name_key_and_line() {
    let lab = Lab::new();
    for wrong in PLANS {
        assert!(SINGLE.contains(wrong.from), "{}", wrong.what);
        let plan = lab.plan(&SINGLE.replacen(wrong.from, wrong.to, 1));
        let done = lab.run(["run".as_ref(), plan.as_os_str(), "--dry-run".as_ref()]);
        println!("{}: {}", wrong.what, done.stderr);
        done.refused(2, wrong.says);
        lab.assert_nothing_left();
    }
    lab.run(["run", "absent.toml"]).refused(2, &["cannot read the plan \"absent.toml\"", "No such file"]);
    lab.run(["run"]).refused(2, &["--help"]);
    lab.run(["run", "a.toml", "--resme", "x"]).refused(2, &["--resume"]);
}

#[test]
fn unusable_repositories_are_named_with_a_hint() {
    let lab = Lab::new();
    let repository = Repository::with_commits(&lab.path("good"), 4);
    fs::create_dir(lab.path("plain")).unwrap();
    Repository::empty(&lab.path("empty"));
    repository.clone_shallow(&lab.path("shallow"));
    let plan = lab.plan(SINGLE);
    let cases: &[(&str, i32, &[&str])] = &[
        ("absent", 2, &["no repository at absent", "hint: give the path"]),
        ("plain", 2, &["plain is not a git repository", "hint: give the directory that holds `.git`"]),
        ("shallow", 2, &["is a shallow clone", "hint: unshallow it"]),
        ("empty", 2, &["has no commits", "hint: commit something"]),
        ("file:///absent/repository.git", 2, &["no repository at /absent/repository.git"]),
        ("ext::sh -c touch% /tmp/x", 1, &["transport 'ext' not allowed"]),
    ];
    for (repo, code, says) in cases {
        let done = lab.run(["run".as_ref(), plan.as_os_str(), "--dry-run".as_ref(), "--repo".as_ref(), repo.as_ref()]);
        println!("{repo}: {}", done.stderr);
        done.refused(*code, says);
        lab.assert_nothing_left();
    }
    if root_or_skip("a run, not its preview") {
        let done = lab.run(["run", "plan.toml", "--out", "out", "--repo", "absent"]);
        done.refused(2, &["no repository at absent"]);
        assert!(!lab.path("out").exists(), "what could not begin leaves nothing, so the command can be given again");
    }
}

#[test]
fn damaged_object_fails_its_arm() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let repository = Repository::with_commits(&lab.path("damaged"), 6);
    let object = repository.damage_blob("HEAD~2", "file-4");
    lab.plan(SINGLE);
    let done = lab.run(["run", "plan.toml", "--out", "out", "--repo", "damaged"]);
    println!("{}", done.stderr);
    done.refused(1, &["1 arm(s) failed", "ext4: ", &object, "fsck --full"]);
    lab.assert_nothing_left();
    let cells = super::outputs::cells(&lab, "out");
    assert!(cells.iter().any(|cell| cell.is_valid) && cells.iter().any(|cell| !cell.is_valid));
    assert!(cells.iter().filter(|cell| !cell.is_valid).all(|cell| cell.reason.contains(&object)));
}

#[test]
fn directories_without_the_run_are_refused() {
    if !root_or_skip("a run") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    lab.run(["run", "plan.toml", "--out", "out"]).good();
    let report = fs::read(lab.path("out/report.html")).unwrap();

    lab.run(["run", "plan.toml", "--out", "out"]).refused(2, &["out is not empty", "hint: ", "--resume"]);
    lab.run(["run", "--resume", "absent"]).refused(2, &["absent does not exist", "hint: name the directory"]);
    fs::create_dir(lab.path("nothing")).unwrap();
    lab.run(["run", "--resume", "nothing"]).refused(2, &["nothing", "holds no run", "hint: name the directory"]);
    for verb in [&["show", "nothing"][..], &["export", "nothing", "--json"], &["report", "nothing"]] {
        lab.run(verb).refused(2, &["nothing holds no results", "name the directory of a run"]);
    }
    lab.run(["export", "out", "--csv", "gerp"]).refused(2, &["no table \"gerp\"", "cells, grep, load, layout"]);

    let plan = fs::read_to_string(lab.path("out/plan.toml")).unwrap();
    fs::write(lab.path("out/plan.toml"), plan.replacen("seed = 7", "seed = 8", 1)).unwrap();
    lab.run(["run", "--resume", "out"]).refused(2, &["was changed after the run was started", "hint: restore it"]);
    fs::write(lab.path("out/plan.toml"), plan).unwrap();

    let journal = fs::read_to_string(lab.path("out/journal.ndjson")).unwrap();
    fs::write(lab.path("out/journal.ndjson"), journal.replacen("senesce-journal/1", "senesce-journal/2", 1)).unwrap();
    lab.run(["run", "--resume", "out"])
        .refused(2, &["is of format senesce-journal/2", "hint: continue with the version"]);
    fs::write(lab.path("out/journal.ndjson"), journal).unwrap();

    // A finished run has nothing to continue, and keeps its results.
    lab.run(["run", "--resume", "out"]).good();

    let info = fs::read_to_string(lab.path("out/results/run.json")).unwrap();
    assert!(info.contains("senesce-results/3"));
    fs::write(lab.path("out/results/run.json"), info.replace("senesce-results/3", "senesce-results/4")).unwrap();
    for verb in [&["show", "out"][..], &["export", "out", "--json"], &["report", "out"], &["run", "--resume", "out"]] {
        lab.run(verb).refused(2, &["run.json is in format senesce-results/4", "use a newer senesce"]);
    }
    assert_eq!(fs::read(lab.path("out/report.html")).unwrap().len(), report.len());
    lab.assert_nothing_left();
}

/// A gate over two workloads would judge the workloads.
#[test]
fn gate_over_two_workloads_is_refused() {
    const FSFB: &str =
        "format = \"senesce-plan/1\"\nname = \"b\"\n[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n";
    let lab = Lab::new();
    for (run, plan) in [("a", SINGLE), ("b", FSFB)] {
        fs::create_dir_all(lab.path(run).join("results")).unwrap();
        fs::write(lab.path(run).join("plan.toml"), plan).unwrap();
    }
    let says = "a gate needs runs of one workload: A was aged by history and B by fsfb";
    lab.run(["compare", "a", "b", "--fail-if", "+5%"]).refused(2, &[says, "two runs of one workload"]);
    // Without results, the same workload is refused later.
    let done = lab.run(["compare", "a", "a", "--fail-if", "+5%"]);
    assert!(!done.stderr.contains("a gate needs runs"), "{}", done.stderr);
}
