//! Replays of malicious logs: they get no rights, and no number in them is trusted.

use std::{
    io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use senesce_core::{Bytes, RelPath};
use senesce_exec::{
    CHUNK_BYTES, CheckContents, ExecError, Guard, ModelTarget, OpFailure, PosixTarget, Replay, SpaceLeft, Target,
    Withheld, apply_done, apply_parallel, apply_step, apply_step_parallel,
    tree::{collect_tree, compare_trees},
};
use senesce_oplog::{Content, DoneStep, Op, Outcome, Payload, Step};

fn path(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

fn done(ops: Vec<Op>, contents: Vec<(u64, u64)>, outcome: Outcome) -> DoneStep {
    let step = Step { label: "hostile".into(), counted: true, root: RelPath::root(), ops: ops.into() };
    DoneStep { number: 0, step, outcome, contents, began: None }
}

fn seeded(at: &str, len: u64) -> Op {
    Op::Create { path: path(at), mode: 0o644, content: Content::Seeded { seed: 1, len } }
}

/// Operations through which the author of a log could get the rights of root, and later operations
/// on the same names.
fn dangerous() -> DoneStep {
    let attribute = |name: &str| Op::SetXattr {
        path: path("tool"),
        name: Arc::from(name.as_bytes()),
        value: Arc::from(&[1, 0, 0, 2][..]),
    };
    let node = |at: &str, mode| Op::Mknod { path: path(at), mode, device: 254 << 8 };
    let content = Content::Inline(Arc::from(&b"#!"[..]));
    let ops = vec![
        Op::Create { path: path("tool"), mode: 0o4755, content },
        Op::Chmod { path: path("tool"), mode: 0o6777 },
        Op::Mkdir { path: path("dir"), mode: 0o3777 },
        Op::Allocate { path: path("dir/reserved"), mode: 0o2755, len: 4096 },
        attribute("security.capability"),
        attribute("trusted.overlay.opaque"),
        Op::RemoveXattr { path: path("tool"), name: Arc::from(&b"security.capability"[..]) },
        node("disk", 0o060_666),
        node("terminal", 0o020_666),
        node("pipe", 0o010_600),
        Op::Chmod { path: path("disk"), mode: 0o640 },
        Op::Rename { from: path("disk"), to: path("dir/disk") },
        Op::Link { existing: path("terminal"), path: path("console") },
        Op::Unlink { path: path("terminal") },
    ];
    done(ops, vec![(2, xxhash_rust::xxh3::xxh3_64(b"#!"))], Outcome::Done)
}

#[test]
fn an_untrusted_log_gets_no_rights() {
    for threads in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let guard = Guard::new(false);
        let open = || guard.over(PosixTarget::open(dir.path()).unwrap());
        if threads == 1 {
            apply_done(&mut open(), &dangerous(), &(), CheckContents::Yes).unwrap();
        } else {
            let targets = (0..threads).map(|_| Box::new(open()) as Box<dyn Target>).collect();
            let mut steps = vec![dangerous()];
            apply_parallel(targets, &(), CheckContents::Yes, || Ok::<_, ExecError>(steps.pop())).unwrap();
        }
        assert_eq!(guard.withheld(), Withheld { set_id: 4, attributes: 3, devices: 2 });
        let stat = |name: &str| dir.path().join(name).symlink_metadata().unwrap();
        for (name, mode) in [("tool", 0o777), ("dir", 0o1777), ("dir/reserved", 0o755), ("dir/disk", 0o640)] {
            assert_eq!(stat(name).permissions().mode() & 0o7777, mode, "{name}");
        }
        assert!(stat("dir/disk").is_file() && stat("console").is_file() && stat("pipe").file_type().is_fifo());
        assert_eq!(xattr(&dir.path().join("tool")), "");
        // The model receives the same operations.
        let mut model = Guard::new(false).over(ModelTarget::default());
        apply_done(&mut model, &dangerous(), &(), CheckContents::LengthOnly).unwrap();
        let (model, tree) = (model.into_inner().tree(), collect_tree(dir.path(), 1).unwrap());
        assert_eq!(compare_trees(&model, &tree, 10).iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    }
}

/// Names of the extended attributes of a file, without those of the machine's security module.
fn xattr(path: &std::path::Path) -> String {
    let mut names = vec![0; 4096];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap_or(0);
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    names.split('\0').filter(|name| *name != "security.selinux").collect()
}

#[test]
fn trusted_log_is_replayed_unchanged() {
    let guard = Guard::new(true);
    let mut model = guard.over(ModelTarget::default());
    apply_done(&mut model, &dangerous(), &(), CheckContents::Yes).unwrap();
    assert!(guard.withheld().is_nothing());
    let mut plain = ModelTarget::default();
    apply_done(&mut plain, &dangerous(), &(), CheckContents::Yes).unwrap();
    assert_eq!(model.into_inner().tree().hash(), plain.tree().hash());
}

/// Counts the operations and bytes that reach it, on a volume of 64 MiB.
#[derive(Default)]
struct Counting {
    flushes: u64,
    operations: u64,
    bytes: u64,
}

impl Target for Counting {
    fn apply(&mut self, _: &RelPath, op: &Op, payload: Option<&Payload>) -> Result<(), OpFailure> {
        self.operations += 1;
        self.flushes += u64::from(matches!(op, Op::SyncFs));
        self.bytes += payload.map_or(0, Payload::len);
        Ok(())
    }

    fn space(&mut self) -> io::Result<SpaceLeft> {
        Ok(SpaceLeft { capacity: Bytes(64 << 20), free: Bytes(1 << 20) })
    }
}

#[test]
fn a_clean_file_system_is_not_flushed_again() {
    let mut target = Guard::new(false).over(Counting::default());
    let change = || Op::Truncate { path: path("f"), len: 1 };
    for ops in [
        vec![Op::SyncFs; 1_000_000],
        vec![change(), Op::SyncFs, Op::SyncFs, Op::Fsync { path: path("f") }, Op::SyncFs],
        vec![change(), change(), Op::SyncFs],
    ] {
        apply_done(&mut target, &done(ops, vec![], Outcome::Done), &(), CheckContents::Yes).unwrap();
    }
    assert_eq!(target.into_inner().flushes, 2);
}

#[test]
fn lengths_beyond_the_volume_are_refused_early() {
    let write = |len| Op::Write { path: path("f"), offset: 0, content: Content::Seeded { seed: 1, len } };
    for len in [1 << 62, u64::MAX, (64 << 20) + 1] {
        for op in [seeded("f", len), write(len)] {
            let mut target = Counting::default();
            let done = done(vec![op], vec![(len, 0)], Outcome::Done);
            let error = apply_done(&mut target, &done, &(), CheckContents::Yes).unwrap_err();
            assert!(matches!(error, ExecError::TooSmall { .. }), "{error}");
            assert_eq!((target.operations, target.bytes), (0, 0));
        }
    }
    // The length in the record differs from that of the content.
    let mut target = Counting::default();
    let lying = done(vec![seeded("f", 1 << 62)], vec![(10, 0)], Outcome::Done);
    let error = apply_done(&mut target, &lying, &(), CheckContents::Yes).unwrap_err();
    assert!(matches!(error, ExecError::ContentDiffers { .. }), "{error}");
    // The recorded volume was full after 10 bytes, which fit.
    let outcome = Outcome::NoSpace { failed_op: 0, written: Some(10) };
    let cut = done(vec![seeded("f", 1 << 62)], vec![(1 << 62, 7)], outcome);
    apply_done(&mut target, &cut, &(), CheckContents::Yes).unwrap();
    assert_eq!((target.operations, target.bytes), (1, 10));
    let read = done(vec![Op::Read { path: path("f"), offset: 0, len: 1 << 62 }], vec![], Outcome::Done);
    let error = apply_done(&mut target, &read, &(), CheckContents::Yes).unwrap_err();
    assert!(matches!(error, ExecError::Operation { .. }), "{error}");
}

#[test]
fn sizes_of_sparse_files_are_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let ops = vec![seeded("f", 10), Op::Truncate { path: path("f"), len: 1 << 40 }];
    let mut target = PosixTarget::open(dir.path()).unwrap();
    let mut bytes = [0; 10];
    senesce_oplog::seeded_bytes(1, 0, &mut bytes);
    let done = done(ops, vec![(10, xxhash_rust::xxh3::xxh3_64(&bytes))], Outcome::Done);
    apply_done(&mut target, &done, &(), CheckContents::Yes).unwrap();
    assert_eq!(dir.path().join("f").metadata().unwrap().len(), 1 << 40);
}

#[test]
fn path_longer_than_system_calls_accept_is_refused() {
    let deep = "d/".repeat(500_000) + "d";
    let step = || done(vec![Op::Mkdir { path: path(&deep), mode: 0o755 }], vec![], Outcome::Done);
    let error = apply_done(&mut ModelTarget::default(), &step(), &(), CheckContents::Yes).unwrap_err();
    assert!(matches!(error, ExecError::Operation { .. }));
    let mut steps = vec![step()];
    let targets: Vec<Box<dyn Target>> = vec![Box::new(Counting::default()), Box::new(Counting::default())];
    let error = apply_parallel(targets, &(), CheckContents::Yes, || Ok::<_, ExecError>(steps.pop())).unwrap_err();
    assert!(matches!(error, ExecError::Operation { .. }));
}

/// A counter for each test, because a stop is a plain function.
static CALLS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

fn stop_after_100<const TEST: usize>() -> bool {
    CALLS[TEST].fetch_add(1, Ordering::SeqCst) >= 100
}

#[test]
fn a_stop_ends_a_step_between_its_operations() {
    let mut target = Counting::default();
    let ops = vec![Op::Truncate { path: path("f"), len: 1 }; 100_000];
    let how = Replay { check: CheckContents::Yes, stop: stop_after_100::<0> };
    let error = apply_done(&mut target, &done(ops.clone(), vec![], Outcome::Done), &(), how).unwrap_err();
    assert!(matches!(error, ExecError::Stopped), "{error}");
    assert_eq!(target.operations, 100);
    let mut steps = vec![done(ops, vec![], Outcome::Done)];
    let how = Replay { check: CheckContents::Yes, stop: stop_after_100::<1> };
    let targets: Vec<Box<dyn Target>> = vec![Box::new(target), Box::new(Counting::default())];
    let error = apply_parallel(targets, &(), how, || Ok::<_, ExecError>(steps.pop())).unwrap_err();
    assert!(matches!(error, ExecError::Stopped), "{error}");
}

#[test]
fn a_stop_ends_an_operation_between_its_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap().with_stop(stop_after_100::<2>);
    let payload = Payload::Seeded { seed: 1, len: 1 << 40 };
    let failed = target.apply(&RelPath::root(), &seeded("f", 1 << 40), Some(&payload)).unwrap_err();
    assert!(matches!(&failed, OpFailure::Io(error) if error.kind() == io::ErrorKind::Interrupted), "{failed}");
    assert_eq!(dir.path().join("f").metadata().unwrap().len(), 100 * CHUNK_BYTES as u64);
    // The hash of a content that would fit is also computed in pieces.
    let how = Replay { check: CheckContents::Yes, stop: stop_after_100::<3> };
    let large = done(vec![seeded("g", 64 << 40)], vec![(64 << 40, 0)], Outcome::Done);
    let error = apply_done(&mut senesce_exec::NullTarget::default(), &large, &(), how).unwrap_err();
    assert!(matches!(error, ExecError::Stopped), "{error}");
}

#[test]
fn stop_ends_the_hash_of_new_content() {
    let dir = tempfile::tempdir().unwrap();
    let open = |stop| PosixTarget::open(dir.path()).unwrap().with_stop(stop);
    let step = |name| done(vec![seeded(name, 64 << 40)], vec![], Outcome::Done).step;
    let error = apply_step(&mut open(stop_after_100::<4>), 0, step("f"), &()).unwrap_err();
    assert!(matches!(error, ExecError::Stopped), "{error}");
    // The targets of `senesce age`: timed, guarded, and several.
    let guard = Guard::new(false);
    let targets = || -> Box<dyn Target> { Box::new(guard.over(open(stop_after_100::<5>))) };
    let error = apply_step_parallel(&mut [targets(), targets()], 0, step("g"), &()).unwrap_err();
    assert!(matches!(error, ExecError::Stopped), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_stop_ends_the_hashing_of_a_hole() {
    let mut model = ModelTarget::default();
    let payload = Payload::Bytes(Arc::from(&b""[..]));
    model.apply(&RelPath::root(), &seeded("f", 0), Some(&payload)).unwrap();
    model.apply(&RelPath::root(), &Op::Truncate { path: path("f"), len: 1 << 62 }, None).unwrap();
    assert!(matches!(model.tree_until(|| true), Err(ExecError::Stopped)));
}

#[test]
fn forged_lengths_do_not_overflow_the_model() {
    let mut model = ModelTarget::default();
    let root = RelPath::root();
    let empty = Payload::Bytes(Arc::from(&b""[..]));
    for number in 0..10_000 {
        let name = format!("f{number}");
        model.apply(&root, &seeded(&name, 0), Some(&empty)).unwrap();
        // Fails as soon as the sum of all lengths is beyond any volume. The sum must never wrap.
        let _ = model.apply(&root, &Op::Truncate { path: path(&name), len: i64::MAX as u64 }, None);
        assert!(model.apply(&root, &Op::Truncate { path: path(&name), len: u64::MAX }, None).is_err());
    }
    assert_eq!(model.used(), Bytes(u64::MAX));
}
