//! The POSIX target on a temporary directory: modes, links, removal, and no access outside the
//! root.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    sync::Arc,
};

use senesce_core::RelPath;
use senesce_exec::{ExecError, PosixTarget, Target, apply_step};
use senesce_oplog::{Content, DoneStep, Op, Outcome, Step};

fn path(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

fn create(at: &str, mode: u32, bytes: &[u8]) -> Op {
    Op::Create { path: path(at), mode, content: Content::Inline(bytes.into()) }
}

fn apply(target: &mut PosixTarget, root: &str, ops: Vec<Op>) -> Result<DoneStep, ExecError> {
    let step = Step { label: "test".into(), counted: true, root: path(root), ops: ops.into() };
    apply_step(target, 0, step, &())
}

fn mode(at: &Path) -> u32 {
    fs::symlink_metadata(at).unwrap().permissions().mode() & 0o7777
}

#[test]
fn modes_are_exact_with_any_umask() {
    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap();
    let modes = [0o644, 0o755, 0o666, 0o777, 0o444, 0o4755, 0o2755, 0o600];
    let mut ops = Vec::new();
    for bits in modes {
        ops.push(create(&format!("f{bits:o}"), bits, b"x"));
        ops.push(Op::Mkdir { path: path(&format!("d{bits:o}")), mode: bits | 0o700 });
        ops.push(Op::Mkdir { path: path(&format!("d{bits:o}/below")), mode: 0o755 });
    }
    apply(&mut target, "", ops).unwrap();
    for bits in modes {
        assert_eq!(mode(&dir.path().join(format!("f{bits:o}"))), bits, "file {bits:o}");
        assert_eq!(mode(&dir.path().join(format!("d{bits:o}"))), bits | 0o700, "directory {bits:o}");
        // A directory below one with the set-group-ID bit does not inherit it.
        assert_eq!(mode(&dir.path().join(format!("d{bits:o}/below"))), 0o755, "below {bits:o}");
    }
}

#[test]
fn every_operation_does_what_its_call_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap();
    let seeded = Content::Seeded { seed: 3, len: (3 << 20) + 5 };
    let ops = vec![
        Op::Mkdir { path: path("copy"), mode: 0o755 },
        Op::Mkdir { path: path("copy/a"), mode: 0o755 },
        create("copy/a/one", 0o644, b"hello"),
        Op::Write { path: path("copy/a/one"), offset: 3, content: Content::Inline((*b"PHEW").into()) },
        Op::Truncate { path: path("copy/a/one"), len: 6 },
        Op::Create { path: path("copy/a/big"), mode: 0o644, content: seeded },
        create("copy/a/empty", 0o644, b""),
        Op::Rename { from: path("copy/a"), to: path("copy/b") },
        Op::Link { existing: path("copy/b/one"), path: path("copy/two") },
        Op::Symlink { path: path("copy/link"), target: Arc::from(&b"no\xffwhere"[..]) },
        Op::Chmod { path: path("copy/two"), mode: 0o600 },
        Op::Fsync { path: path("copy/two") },
        Op::SyncFs,
        Op::Unlink { path: path("copy/b/empty") },
        Op::Mkdir { path: path("copy/gone"), mode: 0o700 },
        Op::Rmdir { path: path("copy/gone") },
        Op::Allocate { path: path("copy/reserved"), mode: 0o640, len: 10_000 },
        Op::Allocate { path: path("copy/none"), mode: 0o640, len: 0 },
        Op::SetModified { path: path("copy/reserved"), unix_seconds: 1_000_000_007 },
    ];
    let done = apply(&mut target, "", ops).unwrap();
    assert_eq!(done.outcome, Outcome::Done);
    assert_eq!(done.contents.iter().map(|c| c.0).collect::<Vec<_>>(), [5, 4, (3 << 20) + 5, 0]);
    let at = |name: &str| dir.path().join("copy").join(name);
    assert_eq!(fs::read(at("b/one")).unwrap(), b"helPHE");
    assert_eq!(fs::read(at("two")).unwrap(), b"helPHE");
    assert_eq!(mode(&at("two")), 0o600);
    let mut want = vec![0; (3 << 20) + 5];
    senesce_oplog::seeded_bytes(3, 0, &mut want);
    assert!(fs::read(at("b/big")).unwrap() == want);
    assert!(!at("b/empty").exists() && !at("a").exists() && !at("gone").exists());
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(fs::read(at("reserved")).unwrap(), [0; 10_000]);
    let reserved = fs::metadata(at("reserved")).unwrap();
    assert!(reserved.blocks() * 512 >= 10_000, "only {} blocks are reserved", reserved.blocks());
    assert_eq!((reserved.mtime(), reserved.mode() & 0o7777), (1_000_000_007, 0o640));
    assert_eq!(fs::metadata(at("none")).unwrap().len(), 0);

    // A removal leaves the targets of symbolic links.
    fs::write(dir.path().join("kept"), "kept").unwrap();
    let ops = vec![
        Op::Symlink { path: path("b/out"), target: Arc::from(&b"../../kept"[..]) },
        Op::RemoveTree { path: RelPath::root() },
    ];
    apply(&mut target, "copy", ops).unwrap();
    assert!(!dir.path().join("copy").exists());
    assert!(dir.path().join("kept").exists());
}

#[test]
fn direct_and_cached_io_have_equal_bytes() {
    // Not in memory: tmpfs does not support direct I/O.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let long = Content::Seeded { seed: 5, len: (5 << 20) + 4096 };
    for (name, direct) in [("through", false), ("past", true)] {
        let mut target = PosixTarget::open(dir.path()).unwrap().with_direct_io(direct);
        let ops = vec![
            Op::Create { path: path(name), mode: 0o644, content: Content::Seeded { seed: 4, len: 8 << 20 } },
            Op::Write { path: path(name), offset: 4096, content: long.clone() },
            Op::Write { path: path(name), offset: 8192, content: Content::Seeded { seed: 6, len: 4096 } },
            // Not aligned, so through the cache in any case.
            Op::Write { path: path(name), offset: 100, content: Content::Inline((*b"here").into()) },
            Op::Read { path: path(name), offset: 0, len: 8 << 20 },
            Op::Read { path: path(name), offset: 4096, len: 4096 },
            Op::Read { path: path(name), offset: 77, len: 5000 },
        ];
        assert_eq!(apply(&mut target, "", ops).unwrap().outcome, Outcome::Done);
        let beyond = Op::Read { path: path(name), offset: 4096, len: 8 << 20 };
        assert!(apply(&mut target, "", vec![beyond]).is_err());
    }
    let at = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(at("through") == at("past"));
    assert_eq!(&at("past")[100..104], b"here");
}

#[test]
fn symbolic_link_cannot_leave_the_root() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("victim"), "v").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap();
    let link: Arc<[u8]> = Arc::from(outside.path().as_os_str().as_encoded_bytes());
    apply(&mut target, "", vec![Op::Symlink { path: path("out"), target: link.clone() }]).unwrap();
    let hostile = [
        create("out/new", 0o644, b"x"),
        Op::Unlink { path: path("out/victim") },
        Op::Mkdir { path: path("out/new"), mode: 0o755 },
        Op::Chmod { path: path("out/victim"), mode: 0o777 },
        Op::Chmod { path: path("out"), mode: 0o777 },
        Op::Rename { from: path("out/victim"), to: path("stolen") },
        Op::Truncate { path: path("out/victim"), len: 0 },
        Op::RemoveTree { path: path("out") },
    ];
    for op in hostile {
        let text = op.to_string();
        assert!(matches!(apply(&mut target, "", vec![op]), Err(ExecError::Operation { .. })), "{text}");
    }
    // A real directory that was checked before a link replaced it.
    let swapped = vec![
        Op::Mkdir { path: path("d"), mode: 0o755 },
        create("d/f", 0o644, b"x"),
        Op::Rename { from: path("d"), to: path("e") },
        Op::Symlink { path: path("d"), target: link },
        Op::Unlink { path: path("d/victim") },
    ];
    assert!(matches!(apply(&mut target, "", swapped), Err(ExecError::Operation { .. })));
    assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"v");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(target.space().unwrap().capacity.0 > 0);
}
