//! An engine as a target: operations on a full engine are replayed elsewhere, and trees are
//! removed.

use std::sync::Arc;

use senesce_core::{Bytes, ManualClock, Nanos, RelPath};
use senesce_exec::{
    CheckContents, EngineTarget, ModelTarget, OpFailure, Target, apply_done, apply_step, collect_engine_tree,
    tree::compare_trees,
};
use senesce_fsapi::{FileSystem, Ino, ModelFs};
use senesce_oplog::{Content, Op, Outcome, Step};

fn path(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

fn engine(pages: u64) -> (Arc<ModelFs>, EngineTarget) {
    let fs = Arc::new(ModelFs::new(Bytes(pages * 4096)));
    let clock = ManualClock::default();
    clock.set(Nanos(86_400_000_000_000));
    (fs.clone(), EngineTarget::new(fs, Arc::new(clock)))
}

fn create(name: &str, len: u64) -> Op {
    Op::Create { path: path(name), mode: 0o640, content: Content::Seeded { seed: len, len } }
}

fn step(ops: Vec<Op>) -> Step {
    Step { label: "test".into(), counted: true, root: RelPath::root(), ops: ops.into() }
}

#[test]
fn operations_on_a_full_engine_are_replayed() {
    let (_, mut full) = engine(600);
    let mut model = ModelTarget::default();
    let mut outcomes = Vec::new();
    for (number, ops) in [
        vec![Op::Mkdir { path: path("d"), mode: 0o755 }, create("d/small", 5000), create("d/large", 1_500_000)],
        vec![create("too-large", 2_000_000), create("never", 1)],
        vec![create("nothing-fits", 1)],
        vec![Op::Mkdir { path: path("nor-this"), mode: 0o700 }],
        vec![Op::Allocate { path: path("nor-that"), mode: 0o600, len: 4096 }],
        vec![Op::RemoveTree { path: path("d") }, Op::Symlink { path: path("s"), target: Arc::from(&b"gone"[..]) }],
    ]
    .into_iter()
    .enumerate()
    {
        let done = apply_step(&mut full, number as u64, step(ops), &()).unwrap();
        apply_done(&mut model, &done, &(), CheckContents::Yes).unwrap();
        outcomes.push(done.outcome);
    }
    let no_space = |written| Outcome::NoSpace { failed_op: 0, written };
    // The root, d, two files and their 2 and 367 pages. One inode for the file that is too large,
    // and the other pages are its content.
    let rest = (600 - 4 - 2 - 367 - 1) * 4096;
    let want = [Outcome::Done, no_space(Some(rest)), no_space(None), no_space(None), no_space(None), Outcome::Done];
    assert_eq!(outcomes, want);
    let tree = collect_engine_tree(full.file_system().as_ref()).unwrap();
    assert_eq!(compare_trees(&tree, &model.tree(), 5), []);
    assert_eq!(tree.hash(), model.tree().hash());
    assert_eq!(full.space().unwrap().free, Bytes((4 - 1 + 2 + 367 - 1) * 4096));
}

#[test]
fn deep_tree_with_many_names_is_removed() {
    let (fs, mut target) = engine(5000);
    let before = fs.space().unwrap();
    let mut ops = vec![Op::Mkdir { path: path("t"), mode: 0o755 }];
    for directory in 0..20 {
        ops.push(Op::Mkdir { path: path(&format!("t/{directory}")), mode: 0o2755 });
        ops.extend((0..150).map(|file| create(&format!("t/{directory}/{file}"), 0)));
    }
    let deep: Vec<String> = (1..40).map(|depth| format!("t{}", "/down".repeat(depth))).collect();
    ops.extend(deep.iter().map(|name| Op::Mkdir { path: path(name), mode: 0o755 }));
    apply_step(&mut target, 0, step(ops), &()).unwrap();
    assert_eq!(fs.lookup(Ino::ROOT, b"t").unwrap().modified.seconds, 86_400);
    let removed = Op::RemoveTree { path: path("t") };
    target.apply(&RelPath::root(), &removed, None).unwrap();
    assert_eq!(fs.space().unwrap(), before);
    assert!(matches!(target.apply(&RelPath::root(), &removed, None), Err(OpFailure::Io(_))));
}

#[test]
fn moved_directories_are_not_found_at_old_paths() {
    let (_, mut target) = engine(100);
    let mkdir = |name: &str| Op::Mkdir { path: path(name), mode: 0o755 };
    let ops = vec![mkdir("a"), mkdir("a/b"), create("a/b/f", 1), create("x", 3)];
    apply_step(&mut target, 0, step(ops), &()).unwrap();
    let mut apply = |op: Op| target.apply(&RelPath::root(), &op, None);
    apply(Op::Rename { from: path("a"), to: path("c") }).unwrap();
    assert!(apply(Op::Unlink { path: path("a/b/f") }).is_err());
    apply(Op::Exchange { first: path("c/b"), second: path("x") }).unwrap();
    assert!(apply(Op::Unlink { path: path("c/b/f") }).is_err());
    apply(Op::Unlink { path: path("x/f") }).unwrap();
    apply(Op::Rmdir { path: path("x") }).unwrap();
    assert!(apply(create("x/f", 0)).is_err());
}
