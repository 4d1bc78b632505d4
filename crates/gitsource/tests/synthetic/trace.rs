//! The trace in the source tree, read and replayed.

use std::{
    collections::BTreeMap,
    io::{BufRead, Read},
    path::{Path, PathBuf},
};

use senesce_core::{Bytes, Seed};
use senesce_exec::{ModelTarget, apply_step};
use senesce_gitsource::{Error, open_trace};
use senesce_oplog::{Content, Op};
use senesce_workload::{
    Feedback, Workload,
    trace::{TraceOptions, TraceReplay},
};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux-1000.trace.xz")
}

/// The files that the lines leave, by the simplest interpretation.
fn files_by_hand() -> BTreeMap<Vec<u8>, u64> {
    let mut files = BTreeMap::new();
    for line in open_trace(&fixture()).unwrap().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "S" | "W" => drop(files.insert(words[1].into(), words[2].parse().unwrap())),
            "D" => drop(files.remove(words[1].as_bytes())),
            _ => {}
        }
    }
    files
}

#[test]
fn linux_trace_replays_to_the_tree_it_names() {
    let options = TraceOptions { seed: Seed(1), max_commits: None };
    let mut replay = TraceReplay::new(open_trace(&fixture()).unwrap(), options);
    let feedback = Feedback { capacity: Bytes(1 << 40), free: Bytes(1 << 40), last: None };
    let mut model = ModelTarget::default();
    let (mut files, mut counted, mut start_files) = (BTreeMap::new(), 0, 0);
    let mut number = 0;
    while let Some(mut step) = replay.next_step(&feedback).unwrap() {
        for op in step.ops.iter() {
            match op {
                Op::Create { path, content: Content::Seeded { len, .. }, .. } => {
                    assert!(files.insert(path.as_bytes().to_vec(), *len).is_none(), "{path} was there");
                }
                Op::Unlink { path } => assert!(files.remove(path.as_bytes()).is_some(), "{path} was not there"),
                _ => {}
            }
        }
        counted += u64::from(step.counted);
        if !step.counted {
            start_files = files.len();
        }
        // The model checks every precondition of the calls. The bytes do not matter to it and cost
        // time.
        let empty = |op: &Op| match op {
            Op::Create { path, mode, .. } => {
                Op::Create { path: path.clone(), mode: *mode, content: Content::Inline([].into()) }
            }
            other => other.clone(),
        };
        step.ops = step.ops.iter().map(empty).collect();
        apply_step(&mut model, number, step, &()).unwrap();
        number += 1;
    }
    assert_eq!((start_files, counted), (17_360, 1_000));
    assert_eq!(replay.absent_deletes(), 25);
    assert_eq!(files, files_by_hand());
    let tree = model.tree();
    assert_eq!(tree.files(), files.len() as u64);
    assert_eq!(replay.live_paths() as u64, tree.files() + tree.directories());
}

#[test]
fn reads_plain_or_compressed_trace_and_reports_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut plain = Vec::new();
    open_trace(&fixture()).unwrap().read_to_end(&mut plain).unwrap();
    assert!(plain.starts_with(b"S COPYING 18691\n"));
    let path = dir.path().join("plain");
    std::fs::write(&path, &plain).unwrap();
    let mut again = Vec::new();
    open_trace(&path).unwrap().read_to_end(&mut again).unwrap();
    assert_eq!(plain, again);

    let mut damaged = std::fs::read(fixture()).unwrap();
    damaged.truncate(damaged.len() / 2);
    std::fs::write(&path, damaged).unwrap();
    assert!(open_trace(&path).unwrap().read_to_end(&mut Vec::new()).is_err());
    let error = open_trace(&dir.path().join("none")).err().unwrap();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("none"), "{error}");
}
