//! Several threads in the same directories: no deadlocks, and the tree stays consistent.

use std::thread;

use senesce_core::{Rng, Seed};
use senesce_evergreen::disk::KeyOrder;
use senesce_fsapi::{
    Caller, FileSystem, FsError, FsResult, Ino, NewNode, RenameMode,
    conformance::{Subject, collect_tree, resolve},
};

use super::rig::{Rig, large};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A path of one to four names; few names, so that threads meet.
fn path(rng: &mut Rng) -> Vec<&'static str> {
    (0..1 + rng.below(4)).map(|_| NAMES[rng.below(4) as usize]).collect()
}

fn act(fs: &dyn FileSystem, rng: &mut Rng) -> FsResult<()> {
    let caller = Caller::default();
    let (from, to) = (path(rng), path(rng));
    let parent = |path: &[&str]| resolve(fs, path[..path.len() - 1].join("/").as_bytes());
    let name = |path: &[&'static str]| path[path.len() - 1].as_bytes();
    let (from, to) = ((parent(&from)?, name(&from)), (parent(&to)?, name(&to)));
    match rng.below(10) {
        0 | 1 => fs.make_node(&caller, from.0, from.1, &NewNode::directory(0o755)).map(drop),
        2 => fs.make_node(&caller, from.0, from.1, &NewNode::file(0o644)).map(drop),
        3 => fs.link(&caller, fs.lookup(from.0, from.1)?.ino, to.0, to.1).map(drop),
        4 => fs.unlink(&caller, from.0, from.1),
        5 => fs.rmdir(&caller, from.0, from.1),
        6 => {
            let ino = fs.lookup(from.0, from.1)?.ino;
            fs.open(ino)?;
            let written = fs.write(&caller, ino, rng.below(9000), b"bytes");
            fs.release(ino, caller.now)?;
            written.map(drop)
        }
        7 => {
            let (from, to) = (fs.lookup(from.0, from.1)?.ino, fs.lookup(to.0, to.1)?.ino);
            fs.clone_range(&caller, (from, 0), (to, 4096), 1 << 20).map(drop)
        }
        8 => fs.rename(&caller, from, to, RenameMode::Exchange),
        _ => fs.rename(&caller, from, to, RenameMode::Replace),
    }
}

#[test]
fn concurrent_calls_leave_a_consistent_tree() {
    for seed in 0..3 {
        let mut rig = Rig::new(large(), KeyOrder::BirthPath).keeping(if seed == 0 { 1000 } else { 3 });
        thread::scope(|scope| {
            for thread in 0..4 {
                let fs = rig.fs();
                scope.spawn(move || {
                    let mut rng = Rng::for_purpose(Seed(seed * 4 + thread), "threads that meet");
                    for _ in 0..3000 {
                        match act(fs, &mut rng) {
                            Ok(()) => {}
                            Err(error @ (FsError::Io { .. } | FsError::Corrupt { .. })) => panic!("{error}"),
                            Err(_) => {} // another thread was faster
                        }
                    }
                });
            }
        });
        rig.check().unwrap();
        let tree = collect_tree(rig.fs()).unwrap();
        rig.reopen().unwrap();
        assert!(collect_tree(rig.fs()).unwrap() == tree);
    }
}

/// A name that renames replace repeatedly always exists.
#[test]
fn replaced_names_never_vanish() {
    let rig = Rig::new(large(), KeyOrder::BirthPath).keeping(2);
    let (fs, caller) = (rig.fs(), Caller::default());
    fs.make_node(&caller, Ino::ROOT, b"name", &NewNode::file(0o644)).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..2000 {
                fs.make_node(&caller, Ino::ROOT, b"new", &NewNode::file(0o644)).unwrap();
                fs.rename(&caller, (Ino::ROOT, b"new"), (Ino::ROOT, b"name"), RenameMode::Replace).unwrap();
            }
        });
        while !writer.is_finished() {
            fs.lookup(Ino::ROOT, b"name").unwrap();
        }
    });
}
