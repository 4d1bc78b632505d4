//! The native replay and the git binary on the difficult history, checked after every pull.

use std::{path::Path, sync::Arc};

use senesce_core::Bytes;
use senesce_exec::{CheckContents, ModelTarget, PosixTarget, Target, apply_done, apply_step};
use senesce_gitsource::{GitContents, History, HistoryOptions, RealGit};
use senesce_oplog::{ContentSource, Outcome, Payload};
use senesce_workload::{
    Feedback, Workload,
    git::{Filling, FullDiskOptions, GitFullDisk, GitReplay, PlannerOptions, PullPlanner},
};
use tempfile::TempDir;

use crate::{
    fixture::{awkward, git_text, spool},
    judge::judge,
};

struct Replay {
    dir: TempDir,
    history: History,
    contents: Arc<GitContents>,
    options: PlannerOptions,
}

impl Replay {
    fn new(history_options: HistoryOptions, options: PlannerOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let source = dir.path().join("source");
        awkward(&source);
        let repository = spool(&source);
        // Neither engine reads the source again.
        std::fs::remove_dir_all(&source).unwrap();
        let history = History::open(&repository, history_options).unwrap();
        let contents = Arc::new(GitContents::new(&history, &dir.path().join("spool")).unwrap());
        Self { dir, history, contents, options }
    }

    fn planner(&self) -> PullPlanner {
        PullPlanner::new(Box::new(self.history.clone()), self.contents.clone(), self.history.commits(), self.options)
    }

    /// Replays everything. Calls `after` after every step with the directory of the copy and the id
    /// of the commit.
    fn run(&self, mut after: impl FnMut(&Path, &str)) {
        let volume = self.dir.path().join("volume");
        std::fs::create_dir(&volume).unwrap();
        let mut target = PosixTarget::open(&volume).unwrap();
        let mut workload = GitReplay::new(Box::new(self.planner()), 1000);
        let mut feedback = Feedback { capacity: Bytes(1 << 40), free: Bytes(1 << 40), last: None };
        let commits = self.history.commits();
        let mut at = self.options.start;
        while let Some(step) = workload.next_step(&feedback).unwrap() {
            let done = apply_step(&mut target, 0, step, &*self.contents).unwrap();
            assert_eq!(done.outcome, Outcome::Done);
            feedback.last = Some(done.outcome);
            after(&volume.join("repo"), &commits[at].to_string());
            at += 1;
        }
        assert_eq!(at, commits.len());
    }
}

fn objects(dir: &Path, what: &str) -> u64 {
    let counts = git_text(dir, &["count-objects", "-v"]);
    let line = counts.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
    line.unwrap().parse().unwrap()
}

#[test]
fn every_pull_leaves_a_valid_clean_repository() {
    let replay = Replay::new(HistoryOptions::default(), PlannerOptions::default());
    let mut most_packs = 0;
    replay.run(|dir, commit| {
        judge(dir, commit);
        most_packs = most_packs.max(objects(dir, "packs"));
    });
    assert_eq!(most_packs, 2, "the clone's and that of the pull with many files");
}

#[test]
fn first_parents_bring_side_branches() {
    let options = HistoryOptions { first_parent: true, ..Default::default() };
    Replay::new(options, PlannerOptions::default()).run(judge);
}

#[test]
fn replay_may_start_in_the_middle() {
    for start in [4, 9, 17] {
        Replay::new(HistoryOptions::default(), PlannerOptions { start, ..Default::default() }).run(judge);
    }
}

#[test]
fn too_many_packs_become_one() {
    let options = PlannerOptions { gc: true, gc_auto_pack_limit: 2, unpack_limit: 4, ..Default::default() };
    let mut packs = Vec::new();
    Replay::new(HistoryOptions::default(), options).run(|dir, commit| {
        judge(dir, commit);
        packs.push(objects(dir, "packs"));
    });
    assert!(packs.iter().all(|&packs| (1..=2).contains(&packs)), "{packs:?}");
    assert!(packs.windows(2).any(|pair| pair[1] < pair[0]), "{packs:?}");
}

#[test]
fn too_many_loose_objects_are_packed() {
    // A threshold of 0 means "any object in objects/17" here; git itself takes it for "never".
    let options = PlannerOptions { gc: true, gc_auto: 0, unpack_limit: 1000, ..Default::default() };
    let mut loose = Vec::new();
    Replay::new(HistoryOptions::default(), options).run(|dir, commit| {
        judge(dir, commit);
        loose.push(objects(dir, "count"));
    });
    assert!(loose.windows(2).any(|pair| pair[0] > 0 && pair[1] == 0), "{loose:?}");
}

#[test]
fn plans_and_contents_are_deterministic() {
    let replay = Replay::new(HistoryOptions::default(), PlannerOptions::default());
    let first: Vec<_> = replay.planner().map(Result::unwrap).collect();
    let second: Vec<_> = replay.planner().map(Result::unwrap).collect();
    assert_eq!(first, second);
    // The order of requests does not matter: an index is made from any other one.
    let spool = replay.dir.path().join("other-spool");
    let other = GitContents::new(&replay.history, &spool).unwrap();
    for number in [17, 3, 9, 0] {
        let key = format!("index {number}");
        let bytes = |source: &GitContents| match source.payload(&key).unwrap() {
            Payload::Bytes(bytes) => bytes,
            other => panic!("an index is not {other:?}"),
        };
        assert_eq!(bytes(&replay.contents), bytes(&other), "{key}");
    }
}

#[test]
fn git_binary_has_the_same_trees() {
    let replay = Replay::new(HistoryOptions::default(), PlannerOptions::default());
    let dir = replay.dir.path().join("real");
    let mut real = RealGit::init(&dir, &replay.history, &replay.options).unwrap();
    for (number, commit) in replay.history.commits().iter().enumerate() {
        if number > 0 {
            real.pull(number).unwrap();
        }
        judge(&dir, &commit.to_string());
    }
    let mut native = None;
    replay.run(|dir, _| native = Some(dir.to_owned()));
    let native = native.unwrap();
    assert_eq!(objects(&native, "packs"), objects(&dir, "packs"));
    assert_eq!(objects(&native, "count"), objects(&dir, "count"));
}

#[test]
fn full_and_empty_disks_have_the_same_trees() {
    let replay = Replay::new(HistoryOptions::default(), PlannerOptions::default());
    let mut full = ModelTarget::new(Some(Bytes(3 << 20)));
    let mut empty = ModelTarget::new(None);
    let options = FullDiskOptions { filling: Filling::Percent(75), pulls: 1000, keep_free: None };
    let run = |options, full: &mut ModelTarget, empty: &mut ModelTarget| {
        let mut workload = GitFullDisk::new(Box::new(replay.planner()), options);
        let (mut labels, mut last) = (Vec::new(), None);
        loop {
            let space = full.space().unwrap();
            let feedback = Feedback { capacity: space.capacity, free: space.free, last };
            let Some(step) = workload.next_step(&feedback).unwrap() else { return labels };
            let done = apply_step(full, labels.len() as u64, step, &*replay.contents).unwrap();
            apply_done(empty, &done, &*replay.contents, CheckContents::Yes).unwrap();
            assert_eq!(full.tree().hash(), empty.tree().hash(), "after {}", done.step.label);
            last = Some(done.outcome);
            labels.push(format!("{} {:?}", done.step.label, done.outcome));
        }
    };
    let labels = run(options, &mut full, &mut empty);
    let count = |start: &str| labels.iter().filter(|label| label.starts_with(start)).count();
    assert!(count("clone") > 2 && count("delete") > 0 && count("pull 17") > 0, "{labels:#?}");
    let clones = Filling::Copies(count("clone") as u64);
    let mut full = ModelTarget::new(Some(Bytes(3 << 20)));
    let again = run(FullDiskOptions { filling: clones, ..options }, &mut full, &mut ModelTarget::new(None));
    assert_eq!(again, labels);
}
