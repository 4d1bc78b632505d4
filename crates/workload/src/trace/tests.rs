//! Traces, read and replayed: hand-made cases and properties.

use std::collections::BTreeMap;

use proptest::prelude::*;
use senesce_core::{Bytes, RelPath, Seed};
use senesce_oplog::{Content, Op, Step};

use super::*;
use crate::{Feedback, Workload, WorkloadError};

const FEEDBACK: Feedback = Feedback { capacity: Bytes(1 << 40), free: Bytes(1 << 40), last: None };

fn replay(text: &str, max_commits: Option<u64>) -> Result<(Vec<Step>, u64), WorkloadError> {
    let mut replay = TraceReplay::new(text.as_bytes(), TraceOptions { seed: Seed(7), max_commits });
    let mut steps = Vec::new();
    while let Some(step) = replay.next_step(&FEEDBACK)? {
        steps.push(step);
    }
    Ok((steps, replay.absent_deletes()))
}

/// An operation in one short line.
fn show(op: &Op) -> String {
    match op {
        Op::Mkdir { path, mode } => format!("mkdir {path} {mode:o}"),
        Op::Rmdir { path } => format!("rmdir {path}"),
        Op::Unlink { path } => format!("unlink {path}"),
        Op::Create { path, mode, content: Content::Seeded { len, .. } } => format!("create {path} {mode:o} {len}"),
        other => panic!("a trace never does {other:?}"),
    }
}

fn shown(step: &Step) -> Vec<String> {
    step.ops.iter().map(show).collect()
}

const HEADING: &str =
    "S a b.txt 3\nS d/e/f 0\nC 1\nW d/e/g 9\nD d/e/f\nC 2\nC 3\nD d/e/g\nW a b.txt 4\nD gone\nC 4\nW d 1\n";

#[test]
fn a_heading_trace_gives_these_operations() {
    let (steps, absent) = replay(HEADING, None).unwrap();
    let labels: Vec<_> = steps.iter().map(|s| (s.label.as_str(), s.counted)).collect();
    let want = [("start tree", false), ("commit 1", true), ("commit 2", true), ("commit 3", true), ("commit 4", true)];
    assert_eq!(labels, want);
    assert_eq!(shown(&steps[0]), ["create a b.txt 644 3", "mkdir d 755", "mkdir d/e 755", "create d/e/f 644 0"]);
    assert_eq!(shown(&steps[1]), ["create d/e/g 644 9", "unlink d/e/f"]);
    assert_eq!(shown(&steps[2]), [""; 0]);
    let want = ["unlink d/e/g", "rmdir d/e", "rmdir d", "unlink a b.txt", "create a b.txt 644 4"];
    assert_eq!(shown(&steps[3]), want);
    assert_eq!(shown(&steps[4]), ["create d 644 1"]);
    assert_eq!(absent, 1);
}

#[test]
fn oversized_lines_and_commits_are_refused() {
    let long = format!("C 1\nW {} 1\n", "a".repeat(9000));
    let error = replay(&long, None).unwrap_err().to_string();
    assert!(error.contains("the line has more than 8192 bytes"), "{error}");
    let many = format!("C 1\n{}", "D a\n".repeat((1 << 20) + 1));
    let error = replay(&many, None).unwrap_err().to_string();
    assert!(error.contains("the limit is 1048576"), "{error}");
}

#[test]
fn the_closing_form_gives_the_same_operations() {
    let closing =
        "S a b.txt 3\nS d/e/f 0\nW d/e/g 9\nD d/e/f\nC 9\nC 0\nD d/e/g\nW a b.txt 4\nD gone\nC 4\nW d 1\nC 1\n";
    assert_eq!(replay(closing, None).unwrap(), replay(HEADING, None).unwrap());
}

#[test]
fn a_closing_trace_may_start_with_an_empty_commit() {
    let (steps, _) = replay("S a 1\nC 0\nW a 2\nC 2\n", None).unwrap();
    assert_eq!(steps.len(), 3);
    assert_eq!(shown(&steps[2]), ["unlink a", "create a 644 2"]);
}

#[test]
fn max_commits_limits_the_replay() {
    assert_eq!(replay(HEADING, Some(2)).unwrap().0.len(), 3);
    assert_eq!(replay(HEADING, Some(0)).unwrap().0.len(), 1);
}

#[test]
fn every_file_version_has_distinct_bytes() {
    let seeds = |text| -> Vec<u64> {
        let (steps, _) = replay(text, None).unwrap();
        let seed_of = |op: &Op| match op.content() {
            Some(Content::Seeded { seed, .. }) => Some(*seed),
            _ => None,
        };
        steps.iter().flat_map(|s| s.ops.iter().filter_map(seed_of)).collect()
    };
    let mut got = seeds("S a 1\nS b 1\nC 1\nW a 1\nW b 1\nC 2\nW a 1\n");
    assert_eq!(got, seeds("S a 1\nS b 1\nC 1\nW a 1\nW b 1\nC 2\nW a 1\n"));
    got.sort_unstable();
    got.dedup();
    assert_eq!(got.len(), 5);
}

#[test]
fn errors_name_their_line() {
    for (text, line, problem) in [
        ("S a 1\nX b 2\n", 2, "no record"),
        ("S a\n", 1, "no size"),
        ("S a 1x\n", 1, "whole number"),
        ("S a +1\n", 1, "whole number"),
        ("S a \n", 1, "whole number"),
        ("S a 99999999999999999999\n", 1, "whole number"),
        ("S  1\n", 1, "empty path"),
        ("S ../a 1\n", 1, "no usable path"),
        ("S a 1\nC 1\nW /b 2\n", 3, "no usable path"),
        ("S a 1\nC 1\nW b 2", 3, "cut off"),
        ("S a 1\nC 1\nC 3\n", 3, "says commit 3 where commit 2 must come"),
        ("S a 1\nC 5\n", 2, "says commit 5 where commit 1 must come"),
        ("S a 1\nC 1\nS b 2\n", 3, "starting tree"),
        ("S a 1\nW b 2\nC 3\n", 3, "with 3 bytes, but it wrote 2"),
        ("S a 1\nW b 2\nC 2\nW b 3\n", 4, "not closed"),
        ("\n", 1, "no record"),
    ] {
        let error = replay(text, None).unwrap_err();
        let chain = format!("{error}");
        assert!(chain.contains(&format!("line {line} ")) && chain.contains(problem), "{text:?} gives {chain}");
    }
}

#[test]
fn a_path_cannot_be_a_file_and_a_directory() {
    for text in ["S a 1\nS a/b 1\n", "S a/b 1\nS a 1\n", "S a 1\nS a 2\n", "S a/b 1\nC 1\nD a\n"] {
        let error = replay(text, None).unwrap_err().to_string();
        assert!(error.contains("path a") && error.contains("before line"), "{text:?} gives {error}");
    }
}

/// Applies the operations to a map from path to length (`None`: a directory), and checks every
/// precondition of the calls.
fn apply(tree: &mut BTreeMap<RelPath, Option<u64>>, op: &Op) {
    let parent_is_there = |tree: &BTreeMap<RelPath, Option<u64>>, path: &RelPath| {
        let parent = path.parent().unwrap();
        assert!(parent.is_root() || tree.get(&parent) == Some(&None), "{path} has no parent directory");
    };
    match op {
        Op::Mkdir { path, .. } => {
            parent_is_there(tree, path);
            assert!(tree.insert(path.clone(), None).is_none(), "{path} was there");
        }
        Op::Rmdir { path } => {
            assert_eq!(tree.remove(path), Some(None));
            assert!(tree.keys().all(|k| k.parent().as_ref() != Some(path)), "{path} is not empty");
        }
        Op::Create { path, content: Content::Seeded { len, .. }, .. } => {
            parent_is_there(tree, path);
            assert!(tree.insert(path.clone(), Some(*len)).is_none(), "{path} was there");
        }
        Op::Unlink { path } => assert!(matches!(tree.remove(path), Some(Some(_))), "{path} is no file"),
        other => panic!("a trace never does {other:?}"),
    }
}

proptest! {
    /// Random edits over a few paths, replayed, give the same files as a plain map. Directories are
    /// exactly the parents.
    #[test]
    fn a_replay_matches_a_map_of_files(
        changes in prop::collection::vec((0usize..12, 0u64..5000, any::<bool>(), prop::bool::weighted(0.3)), 0..80)
    ) {
        let paths: Vec<String> = (0..12).map(|i| format!("f{}/g{}/h{i}", i % 2, i % 3)).collect();
        let (mut text, mut files, mut commits) = (String::from("C 1\n"), BTreeMap::new(), 1);
        for (path, size, write, new_commit) in changes {
            if new_commit {
                commits += 1;
                text.push_str(&format!("C {commits}\n"));
            }
            if write {
                text.push_str(&format!("W {} {size}\n", paths[path]));
                files.insert(RelPath::new(paths[path].as_bytes()).unwrap(), size);
            } else {
                text.push_str(&format!("D {}\n", paths[path]));
                files.remove(&RelPath::new(paths[path].as_bytes()).unwrap());
            }
        }
        let (steps, _) = replay(&text, None).unwrap();
        let mut tree = BTreeMap::new();
        steps.iter().flat_map(|s| s.ops.iter()).for_each(|op| apply(&mut tree, op));
        let got: BTreeMap<_, _> = tree.iter().filter_map(|(p, len)| Some((p.clone(), (*len)?))).collect();
        let directories: Vec<_> = tree.iter().filter(|(_, len)| len.is_none()).map(|(p, _)| p.clone()).collect();
        let mut want: Vec<_> = files.keys().flat_map(|p| [p.parent().unwrap(), p.parent().unwrap().parent().unwrap()]).collect();
        want.sort();
        want.dedup();
        prop_assert_eq!(got, files);
        prop_assert_eq!(directories, want);
        prop_assert_eq!(steps.len() as u64, commits + 1);
    }
}
