//! The list of commits matches that of git.

use senesce_gitsource::{History, HistoryOptions};
use tempfile::TempDir;

use crate::fixture::{awkward, git_text, spool};

#[test]
fn commits_have_the_order_of_rev_list() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    awkward(&source);
    let repository = spool(&source);
    let branches = git_text(&source, &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    assert!(branches.lines().count() > 15);
    for tip in branches.lines() {
        for first_parent in [false, true] {
            let mut args = vec!["rev-list", "--topo-order", "--reverse"];
            args.extend(first_parent.then_some("--first-parent"));
            args.extend([tip, "--"]);
            let want = git_text(&source, &args);
            let options = HistoryOptions { tip: Some(tip.into()), first_parent, limit: None };
            let history = History::open(&repository, options).unwrap();
            let got: Vec<String> = history.commits().iter().map(ToString::to_string).collect();
            assert_eq!(got, want.lines().collect::<Vec<_>>(), "{tip}, first parents: {first_parent}");
        }
    }
}

#[test]
fn limit_keeps_the_oldest_commits() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    awkward(&source);
    let repository = spool(&source);
    let all = History::open(&repository, HistoryOptions::default()).unwrap();
    let some = History::open(&repository, HistoryOptions { limit: Some(3), ..Default::default() }).unwrap();
    assert_eq!(some.commits()[..], all.commits()[..3]);
}
