//! Trees: every difference is found and named, and contents are resolved once.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use senesce_core::RelPath;
use senesce_exec::{
    NullTarget, apply_step, resolve_ops,
    tree::{Tree, collect_tree, collect_tree_until, compare_trees},
};
use senesce_oplog::{Content, ContentError, ContentSource, Op, Payload, Step};

fn make(at: &Path, names: &[(&str, &str)]) {
    for (name, content) in names {
        let path = at.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None => {
                fs::write(&path, content).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            }
        }
    }
}

fn tree(names: &[(&str, &str)], also: impl FnOnce(&Path)) -> Tree {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), names);
    also(dir.path());
    collect_tree(dir.path(), 3).unwrap()
}

const NAMES: [(&str, &str); 6] =
    [("a/one", "1"), ("a/two", "22"), ("b", "same"), ("c", "-> a/one"), ("d", "x"), ("lost+found/kept", "not a mount")];

#[test]
fn every_difference_is_named() {
    let a = tree(&NAMES, |_| {});
    assert_eq!(a.hash(), tree(&NAMES, |_| {}).hash());
    assert_eq!((a.files(), a.directories(), a.content_bytes()), (5, 2, 1 + 2 + 4 + 1 + 11));
    let b = tree(&NAMES, |root| {
        fs::rename(root.join("a/one"), root.join("a/uno")).unwrap();
        fs::write(root.join("a/two"), "222").unwrap();
        fs::write(root.join("b"), "diff").unwrap();
        fs::remove_file(root.join("c")).unwrap();
        symlink("a/two", root.join("c")).unwrap();
        fs::remove_file(root.join("d")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::set_permissions(root.join("lost+found/kept"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    assert_ne!(a.hash(), b.hash());
    let said: Vec<String> = compare_trees(&a, &b, 100).iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "a/one: only in the first tree",
            "a/two: 2 bytes in the first tree, 3 in the second tree",
            "a/uno: only in the second tree",
            "b: same size, other content",
            "c: a symbolic link to another target",
            "d: a file in the first tree, a directory in the second tree",
            "lost+found/kept: mode 0644 in the first tree, 0755 in the second tree",
        ]
    );
    assert_eq!(compare_trees(&a, &b, 2).len(), 2);
    assert_eq!(compare_trees(&a, &a, 100), []);
}

#[test]
fn unreadable_file_is_an_error_with_its_path() {
    let error = collect_tree(Path::new("/no/such/tree"), 1).unwrap_err();
    assert!(error.to_string().contains("/no/such/tree"), "{error}");
}

#[test]
fn a_stopped_hash_reads_nothing_more() {
    const THREADS: usize = 3;
    let dir = tempfile::tempdir().unwrap();
    make(dir.path(), &NAMES);
    fs::write(dir.path().join("large"), vec![7; 4 << 20]).unwrap();
    let mut ended = false;
    for at in 1..200 {
        let asked = AtomicU64::new(0);
        let found = collect_tree_until(dir.path(), THREADS, &|| asked.fetch_add(1, Ordering::SeqCst) + 1 >= at);
        let asked = asked.into_inner();
        ended = asked < at;
        if ended {
            assert_eq!(found.unwrap(), collect_tree(dir.path(), 1).unwrap());
            // Nine names, 16 reads of the large file, and the ends of six files.
            assert!(asked >= 9 + 16 + 6, "{asked}");
            break;
        }
        assert!(found.is_err(), "stopped at question {at}");
        assert!(asked - at < THREADS as u64, "{} questions after the signal", asked - at);
    }
    assert!(ended);
}

struct Counted(AtomicU64);

impl ContentSource for Counted {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Payload::Bytes(key.as_bytes().into()))
    }
}

#[test]
fn resolved_contents_are_not_requested_again() {
    let source = Counted(AtomicU64::new(0));
    let create = |name: &str, content| Op::Create { path: RelPath::try_from(name).unwrap(), mode: 0o644, content };
    let ops: Arc<[Op]> = vec![
        create("a", Content::derived("four")),
        create("b", Content::derived("sixsix")),
        create("c", Content::Seeded { seed: 1, len: 100 }),
    ]
    .into();
    let step = |copy: &str| Step {
        label: copy.into(),
        counted: true,
        root: RelPath::try_from(copy).unwrap(),
        ops: ops.clone(),
    };
    let mut target = NullTarget::default();
    let before = apply_step(&mut target, 0, step("copy-1"), &source).unwrap();
    assert_eq!(source.0.load(Ordering::SeqCst), 2);
    assert_eq!(resolve_ops(&ops, &source, 4).unwrap(), 4, "stops at the bound");
    assert_eq!(source.0.load(Ordering::SeqCst), 3);
    assert_eq!(resolve_ops(&ops, &source, u64::MAX).unwrap(), 10);
    assert_eq!(source.0.load(Ordering::SeqCst), 4);
    let after = apply_step(&mut target, 1, step("copy-2"), &source).unwrap();
    assert_eq!(source.0.load(Ordering::SeqCst), 4, "kept since resolve_ops");
    assert_eq!(before.contents, after.contents);
    assert_eq!(target, NullTarget { operations: 6, content_bytes: 220 });
}
