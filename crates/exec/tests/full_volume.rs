//! Real file systems that run full: what was done before is recorded and done again elsewhere.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use senesce_core::{RelPath, Rng, Seed};
use senesce_exec::{
    CheckContents, ExecError, PosixTarget, Target, apply_done, apply_step,
    tree::{collect_tree, compare_trees},
};
use senesce_oplog::{Content, DoneStep, Op, Outcome, Step};

/// A mounted file system; unmounted when dropped, also on a panic. The loop device goes with the mount.
struct Mounted {
    at: PathBuf,
    _dir: tempfile::TempDir,
}

impl Mounted {
    fn new(mount: impl FnOnce(&Path, &Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("mount");
        fs::create_dir(&at).unwrap();
        mount(&dir.path().join("image"), &at);
        Self { at, _dir: dir }
    }

    fn tmpfs() -> Self {
        Self::new(|_, at| run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(at)))
    }

    fn ext4() -> Self {
        Self::new(|image, at| {
            fs::File::create(image).unwrap().set_len(48 << 20).unwrap();
            run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(image));
            run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(at));
        })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.at).status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("could not unmount {}", self.at.display());
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
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
            // As the full-disk experiment does: remove something and go on.
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

fn check(volume: &Mounted, file_bytes_max: u64) {
    let steps = fill(&volume.at, file_bytes_max);
    let partial = |done: &&DoneStep| matches!(done.outcome, Outcome::NoSpace { written: Some(_), .. });
    let Some(last) = steps.iter().rfind(partial) else { panic!("no write was cut short") };
    let Outcome::NoSpace { failed_op, written: Some(written) } = last.outcome else { unreachable!("found so") };
    let name = format!("{}/f{}", last.step.root, failed_op - 1);
    assert_eq!(fs::metadata(volume.at.join(name)).unwrap().len(), written, "the record says what the file holds");

    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap();
    steps.iter().for_each(|done| apply_done(&mut target, done, &(), CheckContents::Yes).unwrap());
    let (full, empty) = (collect_tree(&volume.at, 2).unwrap(), collect_tree(dir.path(), 2).unwrap());
    assert_eq!(compare_trees(&full, &empty, 5), []);
    assert!(full.files() > 10);

    // The volume is full: the same again has no place on it, and a replay says which step that was.
    let mut again = steps[0].clone();
    again.step.root = path("again");
    let mut target = PosixTarget::open(&volume.at).unwrap();
    let error = (0..100).find_map(|number| {
        again.step.root = path(&format!("again-{number}"));
        apply_done(&mut target, &again, &(), CheckContents::Yes).err()
    });
    assert!(matches!(error, Some(ExecError::TooSmall { .. })), "{error:?}");
}

#[test]
fn a_full_tmpfs_and_its_replay_hold_the_same_tree() {
    if senesce_testkit::root_or_skip("mounts a tmpfs") {
        check(&Mounted::tmpfs(), 40_000);
    }
}

#[test]
fn a_full_ext4_and_its_replay_hold_the_same_tree() {
    if senesce_testkit::root_or_skip("mounts a loop device") {
        // Contents above a chunk, too, so that a write is cut short in a later chunk.
        check(&Mounted::ext4(), 2 << 20);
    }
}
