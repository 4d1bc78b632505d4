//! Repositories that another user prepared: no program that they name runs as root.

use std::{fs, os::unix::fs::chown, path::Path};

use senesce_testkit::root_or_skip;

use super::{
    lab::{Lab, SINGLE},
    repositories::Repository,
};

const NOBODY: u32 = 65534;

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

#[test]
fn a_lazy_fetch_of_a_stranger_runs_nothing() {
    if !root_or_skip("volumes, and a repository of another user") {
        return;
    }
    let lab = Lab::new();
    let repository = Repository::with_commits(&lab.path("theirs"), 6);
    Repository::with_commits(&lab.path("remote"), 1);
    let marker = lab.path("marker");
    let blob = repository.git(&["rev-parse", "HEAD~5:file-1"]);
    fs::remove_file(lab.path(format!("theirs/.git/objects/{}/{}", &blob[..2], &blob[2..]))).unwrap();
    let promisor = format!(
        "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tpartialClone = origin\n\
         [remote \"origin\"]\n\tpromisor = true\n\turl = {}\n\tuploadpack = \"touch {}; git-upload-pack\"\n",
        lab.path("remote").display(),
        marker.display()
    );
    let config = lab.path("theirs/.git/config");
    fs::write(&config, &promisor).unwrap();
    give_away(&lab.path("theirs"));
    let plan = SINGLE.replace("pulls = 4", "start = 2\npulls = 2");
    let git = lab.plan(&plan.replace("[measure]", "engine = [\"git\"]\n[measure]"));
    fs::rename(git, lab.path("git.toml")).unwrap();
    lab.plan(&plan);
    fs::create_dir(lab.path("place")).unwrap();
    let attempts: [&[&str]; 3] = [
        &["run", "plan.toml", "--out", "out", "--repo", "theirs"],
        &["run", "git.toml", "--out", "out", "--repo", "theirs"],
        &["age", "git:theirs", "--on", "place", "--until", "steps=2"],
    ];
    for attempt in attempts {
        lab.run(attempt).refused(2, &["belongs to user 65534", "--trust-repo"]);
        let trusted: Vec<&str> = attempt.iter().copied().chain(["--trust-repo"]).collect();
        lab.run(&trusted).refused(2, &["is a partial clone"]);
    }
    // The configuration itself does not show it: git would follow the included file.
    fs::write(lab.path("theirs/.git/evil"), &promisor).unwrap();
    fs::write(&config, "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[include]\n\tpath = evil\n").unwrap();
    for attempt in attempts {
        let trusted: Vec<&str> = attempt.iter().copied().chain(["--trust-repo"]).collect();
        lab.run(&trusted).refused(1, &[&blob]);
    }
    assert!(!marker.exists(), "the repository ran a program");
    lab.assert_nothing_left();
}
