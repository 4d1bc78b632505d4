//! Real file systems that run full: the operations that were done are recorded and replayed
//! elsewhere.

use std::{fs, path::Path, process::Command};

use senesce_core::{RelPath, Rng, Seed};
use senesce_exec::{
    CheckContents, ExecError, PosixTarget, Target, apply_done, apply_step,
    tree::{collect_tree, compare_trees},
};
use senesce_oplog::{Content, DoneStep, Op, Outcome, Step};
use senesce_testkit::{Volume, root_or_skip, run};

/// A file system in memory with two megabytes, unmounted when dropped.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new() -> Self {
        let at = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", "size=2m", "none", at.path().to_str().unwrap()]);
        Self(at)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // In a failing test, a panic here would abort the process and hide the failure.
        match Command::new("umount").arg(self.0.path()).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprintln!("umount {}: {}", self.0.path().display(), String::from_utf8_lossy(&output.stderr));
            }
            Err(error) => eprintln!("umount cannot be run: {error}"),
        }
    }
}

fn path(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

fn fill(volume: &Path, file_bytes_max: u64) -> Vec<DoneStep> {
    let mut target = PosixTarget::open(volume).unwrap();
    let mut rng = Rng::for_purpose(Seed(1), "fill");
    let mut steps = Vec::new();
    let mut failures = 0;
    for copy in 0.. {
        assert!(copy < 10_000, "the volume never runs full");
        let root = path(&format!("copy-{copy}"));
        let mut ops = vec![Op::Mkdir { path: RelPath::root(), mode: 0o755 }];
        for file in 0..20 {
            let content = Content::Seeded { seed: rng.next_u64(), len: rng.below(file_bytes_max) };
            ops.push(Op::Create { path: path(&format!("f{file}")), mode: 0o644, content });
        }
        let step = Step { label: format!("copy {copy}"), counted: true, root, ops: ops.into() };
        let done = apply_step(&mut target, steps.len() as u64, step, &()).unwrap();
        let full = done.outcome != Outcome::Done;
        steps.push(done);
        if full {
            failures += 1;
            if failures == 3 {
                break;
            }
            // Like the full-disk experiment: remove something and continue.
            let step = Step {
                label: "remove".into(),
                counted: false,
                root: RelPath::root(),
                ops: vec![Op::RemoveTree { path: path(&format!("copy-{}", failures - 1)) }, Op::SyncFs].into(),
            };
            let done = apply_step(&mut target, steps.len() as u64, step, &()).unwrap();
            assert_eq!(done.outcome, Outcome::Done);
            steps.push(done);
        }
    }
    assert!(target.space().unwrap().free < target.space().unwrap().capacity);
    steps
}

fn check(volume: &Path, file_bytes_max: u64) {
    let steps = fill(volume, file_bytes_max);
    let partial = |done: &&DoneStep| matches!(done.outcome, Outcome::NoSpace { written: Some(_), .. });
    let Some(last) = steps.iter().rfind(partial) else { panic!("no write was cut short") };
    let Outcome::NoSpace { failed_op, written: Some(written) } = last.outcome else { unreachable!("found so") };
    let name = format!("{}/f{}", last.step.root, failed_op - 1);
    assert_eq!(fs::metadata(volume.join(name)).unwrap().len(), written, "the record says what the file holds");

    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap();
    steps.iter().for_each(|done| apply_done(&mut target, done, &(), CheckContents::Yes).unwrap());
    let (full, empty) = (collect_tree(volume, 2).unwrap(), collect_tree(dir.path(), 2).unwrap());
    assert_eq!(compare_trees(&full, &empty, 5), []);
    assert!(full.files() > 10);

    // The volume is full, so a replay below another directory fails and names its step.
    let mut again = steps[0].clone();
    again.step.root = path("again");
    let mut target = PosixTarget::open(volume).unwrap();
    let error = (0..100).find_map(|number| {
        again.step.root = path(&format!("again-{number}"));
        apply_done(&mut target, &again, &(), CheckContents::Yes).err()
    });
    assert!(matches!(error, Some(ExecError::TooSmall { .. })), "{error:?}");
}

#[test]
fn full_tmpfs_and_replay_have_equal_trees() {
    if root_or_skip("mounts a tmpfs") {
        check(Tmpfs::new().0.path(), 40_000);
    }
}

#[test]
fn full_ext4_and_replay_have_equal_trees() {
    if root_or_skip("mounts a loop device") {
        // Contents above a chunk, too, so that a write is cut short in a later chunk.
        check(&Volume::new("ext4", 48, &["-m", "0"], "defaults").mountpoint, 2 << 20);
    }
}
