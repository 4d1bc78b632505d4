//! The import of synthetic histories, checked by the git binary.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_core::Seed;
use senesce_gitsource::{
    Error, History, HistoryOptions, MainLine, SpoolRepository, import_synthetic, import_synthetic_until,
};
use senesce_workload::synthetic::{
    SyntheticChange, SyntheticHistory, SyntheticParameters, compute_history_statistics, compute_synthetic_statistics,
};

fn git(repository: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("--git-dir").arg(repository).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const SMALL: SyntheticParameters = SyntheticParameters { seed: Seed(1), start_files: 500, commits: 60 };

fn history(parameters: SyntheticParameters) -> SyntheticHistory {
    SyntheticHistory::new(parameters).unwrap()
}

#[test]
fn imported_history_is_complete_and_as_generated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("synthetic.git");
    let made = import_synthetic(history(SMALL), &path).unwrap();
    let fsck = git(&path, &["fsck", "--full", "--strict"]);
    assert!(!fsck.contains("error") && !fsck.contains("missing"), "{fsck}");
    assert_eq!(git(&path, &["symbolic-ref", "HEAD"]).trim(), "refs/heads/main");
    assert_eq!(git(&path, &["rev-parse", "HEAD"]).trim(), made.tip.to_string());
    assert_eq!(git(&path, &["rev-list", "--count", "main"]).trim(), made.commits.to_string());
    assert_eq!(git(&path, &["rev-list", "--count", "--first-parent", "main"]).trim(), "61");
    assert_eq!(made.main_line_commits, 61);

    let history: Vec<_> = SyntheticHistory::new(SMALL).unwrap().collect();
    let merges = history.iter().filter(|commit| commit.parents.len() == 2).count();
    assert!(merges > 0);
    assert_eq!(git(&path, &["rev-list", "--count", "--min-parents=2", "main"]).trim(), merges.to_string());
    // The changes along the main line are those that were generated, commit by commit.
    let log =
        git(&path, &["log", "--first-parent", "-m", "--reverse", "--no-renames", "--format=>%s", "--name-status"]);
    let mut blocks = log.split('>').skip(1);
    for commit in history.iter().filter(|commit| commit.main_line) {
        let mut lines = blocks.next().unwrap().lines().filter(|line| !line.is_empty());
        assert_eq!(lines.next().unwrap(), commit.message.trim());
        let mut seen: Vec<String> = lines.map(str::to_owned).collect();
        let mut want: Vec<String> = Vec::new();
        for change in &commit.changes {
            match change {
                SyntheticChange::Add { path, .. } => want.push(format!("A\t{path}")),
                SyntheticChange::Modify { path, .. } => want.push(format!("M\t{path}")),
                SyntheticChange::Delete { path } => want.push(format!("D\t{path}")),
                SyntheticChange::Rename { from, to } => want.extend([format!("D\t{from}"), format!("A\t{to}")]),
            }
        }
        seen.sort();
        want.sort();
        assert_eq!(seen, want, "{}", commit.message);
    }
    assert!(blocks.next().is_none());
}

#[test]
fn git_merges_side_branches_to_the_same_trees() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("synthetic.git");
    import_synthetic(history(SMALL), &path).unwrap();
    let merges = git(&path, &["rev-list", "--min-parents=2", "--parents", "main"]);
    let mut elsewhere = 0;
    for line in merges.lines() {
        let [merge, first, second] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let tree = git(&path, &["-c", "merge.renames=false", "merge-tree", "--write-tree", first, second]);
        assert_eq!(tree, git(&path, &["rev-parse", &format!("{merge}^{{tree}}")]), "merge {merge}");
        elsewhere += usize::from(git(&path, &["merge-base", first, second]).trim() != first);
    }
    assert!(elsewhere > 0, "no branch left the main line before its last commit");
}

#[test]
fn existing_destination_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "mine").unwrap();
    let error = import_synthetic(history(SMALL), dir.path()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(std::fs::read(dir.path().join("file")).unwrap(), b"mine");
    let bad = SyntheticParameters { start_files: 499, ..SMALL };
    let error = SyntheticHistory::new(bad).unwrap_err().to_string();
    // The key of plans and the option have this name.
    assert!(error.contains("files = 499") && !error.contains("start_files"), "{error}");
}

#[test]
fn stopped_import_leaves_nothing() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let dir = tempfile::tempdir().unwrap();
    // More commits than a test has time to make.
    let endless = SyntheticParameters { commits: 10_000_000, ..SMALL };
    let stop = || CALLS.fetch_add(1, Ordering::SeqCst) >= 20;
    assert!(import_synthetic_until(history(endless), &dir.path().join("new"), stop).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The main line of an imported history has the figures of the generated one.
#[test]
fn main_line_has_the_figures_of_its_history() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("synthetic.git");
    let parameters = SyntheticParameters { commits: 150, ..SMALL };
    import_synthetic(history(parameters), &path).unwrap();
    let options = HistoryOptions { first_parent: true, ..HistoryOptions::default() };
    let opened = History::open(&SpoolRepository::adopt(&path, &path).unwrap(), options).unwrap();
    let mut line = MainLine::open(opened).unwrap();
    assert_eq!((line.start.len(), line.start_number), (500, 0));
    let start = line.start.clone();
    let mut commits = Vec::new();
    while let Some(commit) = line.next_commit().unwrap() {
        commits.push(commit);
    }
    assert_eq!(commits.len(), 150);
    let read = compute_history_statistics(start, commits);
    let made = compute_synthetic_statistics(history(parameters));
    assert_eq!(read.figures(), made.figures());
}
