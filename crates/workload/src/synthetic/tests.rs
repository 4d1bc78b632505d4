//! The output of the generator against the documented statistics.

use std::collections::{BTreeMap, HashSet};

use senesce_core::{RelPath, Seed};

use super::{reference::tolerance, *};

fn parameters(start_files: u64, commits: u64) -> SyntheticParameters {
    SyntheticParameters { seed: Seed(1), start_files, commits }
}

fn statistics(start_files: u64, commits: u64) -> HistoryStatistics {
    compute_synthetic_statistics(SyntheticHistory::new(parameters(start_files, commits)).expect("in range"))
}

#[test]
fn a_full_length_history_matches_the_statistics() {
    let statistics = statistics(17_360, 34_000);
    let mut outside = Vec::new();
    for reference in REFERENCE {
        let value = statistics.get(reference.group, reference.name).expect("every figure is counted");
        let Some((absolute, percent)) = tolerance(reference.group, reference.name) else { continue };
        let low = (reference.low - absolute).min(reference.low * (1.0 - percent / 100.0));
        let high = (reference.high + absolute).max(reference.high * (1.0 + percent / 100.0));
        if !(low..=high).contains(&value) {
            outside.push(format!("{}, {}: {value} is not in {low}..{high}", reference.group, reference.name));
        }
    }
    assert!(outside.is_empty(), "{}", outside.join("\n"));
}

#[test]
fn small_trees_have_the_shape_of_large_ones() {
    for (files, depth) in [(500, 3.0..4.6), (1_500, 3.0..4.6), (20_000, 3.4..4.8)] {
        let statistics = statistics(files, 0);
        let get = |group, name| statistics.get(group, name).expect("every figure is counted");
        assert_eq!(get("tree", "files at start"), files as f64);
        assert!(depth.contains(&get("tree", "depth mean")), "{files}: {}", get("tree", "depth mean"));
        let mean = get("files per directory", "mean");
        assert!((9.0..20.0).contains(&mean), "{files} files, {mean} in a directory");
        let max = get("files per directory", "max");
        assert!(max <= files as f64 / 12.0 + 1.0, "{files} files, up to {max} in a directory");
    }
}

/// FNV-1a with 64 bits over a stream that is not stored.
struct Hasher(u64, u64);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Length and hash of the stream of `parameters(500, 40)`. If these change, every history changes.
const GOLDEN: (u64, u64) = (14_833_910, 13_376_973_869_780_417_562);

#[test]
fn the_stream_never_changes() {
    let mut hasher = Hasher(0xcbf2_9ce4_8422_2325, 0);
    write_fast_import(SyntheticHistory::new(parameters(500, 40)).expect("in range"), &mut hasher)
        .expect("it takes all");
    assert_eq!((hasher.1, hasher.0), GOLDEN);
}

#[test]
fn out_of_range_parameters_are_refused() {
    for bad in [parameters(499, 1), parameters(1_000_001, 1), parameters(500, 10_000_001)] {
        assert!(SyntheticHistory::new(bad).is_err(), "{bad:?}");
    }
}

type Files = BTreeMap<String, u64>;

/// Applies a commit to the files of its first parent, and checks that every change is possible.
fn apply(files: &mut Files, commit: &SyntheticCommit) {
    let mut seen = HashSet::new();
    for change in &commit.changes {
        match change {
            SyntheticChange::Add { path, file } => {
                assert!(seen.insert(path.clone()), "{path} twice");
                assert!(files.insert(path.clone(), file.blob).is_none(), "{path} was there");
            }
            SyntheticChange::Modify { path, file } => {
                assert!(seen.insert(path.clone()), "{path} twice");
                let old = files.insert(path.clone(), file.blob).expect("what is modified is there");
                assert_ne!(old, file.blob);
            }
            SyntheticChange::Delete { path } => {
                assert!(seen.insert(path.clone()), "{path} twice");
                files.remove(path).expect("what is deleted is there");
            }
            SyntheticChange::Rename { from, to } => {
                assert!(seen.insert(from.clone()) && seen.insert(to.clone()), "{from} or {to} twice");
                let blob = files.remove(from).expect("what is renamed is there");
                assert!(files.insert(to.clone(), blob).is_none(), "{to} was there");
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]

    /// Every commit applies to its parent's tree. A merge's tree is the first parent's tree with
    /// exactly the side branch's changes. No path is a file and a directory.
    #[test]
    fn every_commit_fits_its_parents(seed: u64, start_files in 500u64..900) {
        let parameters = SyntheticParameters { seed: Seed(seed), start_files, commits: 60 };
        let mut trees: Vec<Files> = Vec::new();
        let mut bases: Vec<u64> = Vec::new(); // where the branch of each commit left the main line
        let mut tip = 0;
        for commit in SyntheticHistory::new(parameters).expect("in range") {
            let number = trees.len() as u64;
            proptest::prop_assert_eq!(commit.number, number);
            let mut files = commit.parents.first().map_or(Files::new(), |&parent| trees[parent as usize].clone());
            apply(&mut files, &commit);
            if commit.main_line {
                proptest::prop_assert_eq!(commit.parents.first().copied().unwrap_or(0), tip);
                tip = number;
            }
            if let [first, side] = commit.parents[..] {
                let base = &trees[bases[side as usize] as usize];
                // A three-way merge by hand: the changes of the branch since its base, applied to
                // the first parent.
                let mut merged = trees[first as usize].clone();
                for (path, blob) in &trees[side as usize] {
                    if base.get(path) != Some(blob) {
                        merged.insert(path.clone(), *blob);
                    }
                }
                merged.retain(|path, _| !base.contains_key(path) || trees[side as usize].contains_key(path));
                proptest::prop_assert_eq!(&merged, &files);
            }
            let clash = files.keys().any(|path| {
                let prefix = format!("{path}/");
                files.range(prefix.clone()..).next().is_some_and(|(next, _)| next.starts_with(&prefix))
            });
            proptest::prop_assert!(!clash, "a path is a file and a directory");
            bases.push(match commit.parents[..] {
                _ if commit.main_line => number,
                [parent] => bases[parent as usize],
                _ => unreachable!("a side branch has plain commits only"),
            });
            trees.push(files);
        }
        proptest::prop_assert!(trees.len() > 60);
    }
}

#[test]
fn figures_match_hand_counts() {
    let path = |text: &str| RelPath::new(text.as_bytes()).expect("a path");
    let start = [(path("a/x"), 100), (path("a/y"), 200), (path("z"), 300)];
    let commits = vec![
        HistoryCommit { merge: false, changes: vec![HistoryChange::Modify { path: path("a/x"), size: 1_150 }] },
        HistoryCommit {
            merge: true,
            changes: vec![
                HistoryChange::Modify { path: path("a/x"), size: 1_000 },
                HistoryChange::Add { path: path("b/c/n"), size: 1 },
                HistoryChange::Delete { path: path("z") },
            ],
        },
        HistoryCommit {
            merge: false,
            changes: vec![
                HistoryChange::Rename { from: path("a/x"), to: path("b/x"), size: 1_000 },
                HistoryChange::Modify { path: path("a/y"), size: 200 },
            ],
        },
        HistoryCommit { merge: false, changes: vec![HistoryChange::Modify { path: path("b/x"), size: 1_001 }] },
    ];
    let statistics = compute_history_statistics(start, commits);
    for (group, name, want) in [
        ("files touched, plain", "mean", 4.0 / 3.0),
        ("files touched, plain", "p50", 1.0),
        ("files touched, plain", "p75", 2.0),
        ("files touched, merges", "mean", 3.0),
        ("modified", "mean", 1.0),
        ("renamed", "mean", 0.25),
        ("directories touched", "max", 3.0),
        ("KB written", "p50", 2.0),
        ("kinds, % of commits", "M only", 50.0),
        ("kinds, % of commits", "A+M+D", 25.0),
        ("kinds, % of commits", "M+R", 25.0),
        ("kinds, % of commits", "merges", 25.0),
        ("modifications, %", "grow", 50.0),
        ("modifications, %", "shrink", 25.0),
        ("modifications, %", "same size", 25.0),
        ("sizes, ln of bytes", "added mu", 0.0),
        // a/x, renamed to b/x, has three of four modifications.
        ("share of the hottest files, %", "top 50%", 75.0),
        ("commits until the same file again", "p50", 1.0),
        ("commits until the same file again", "p90", 2.0),
        ("tree", "files at end", 3.0),
        ("tree", "files gained per commit", 0.0),
        ("tree", "adds that make a directory, %", 100.0),
        ("tree", "deletes that empty a directory, %", 100.0),
        ("tree", "lifetime at deletion p50, commits", 2.0),
        ("tree", "depth max", 3.0),
        ("tree", "depth mean", 7.0 / 3.0),
        ("files per directory", "mean", 1.0),
    ] {
        let got = statistics.get(group, name).expect("it is counted");
        assert!((got - want).abs() < 1e-9, "{group}, {name}: {got}, by hand {want}");
    }
    let table = render_statistics(&statistics);
    assert_eq!(table.lines().count(), REFERENCE.len() + 1);
    let merges = table.lines().find(|line| line.trim_start().starts_with("merges ")).expect("there is a line");
    assert!(merges.ends_with("20 |           25"), "{merges}");
}
