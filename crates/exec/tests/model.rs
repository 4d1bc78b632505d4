//! Random operations on the model and on a real directory end with the same tree, and so do their
//! replays.

use std::sync::Arc;

use proptest::prelude::*;
use senesce_core::{Bytes, ManualClock, RelPath, Rng, Seed};
use senesce_exec::{
    CheckContents, EngineTarget, ExecError, ModelTarget, OpFailure, PosixTarget, Target, apply_done, apply_prepared,
    apply_step, collect_engine_tree, prepare_step,
    syscall_baseline::SyscallBaseline,
    tree::{collect_tree, compare_trees},
};
use senesce_fsapi::ModelFs;
use senesce_oplog::{
    Content, ContentError, ContentSource, DoneStep, FileTime, LogHeader, LogReader, LogWriter, Op, Outcome, Payload,
    SpaceChange, Step,
};

/// Makes bytes from a key that is a number.
struct Numbers;

impl ContentSource for Numbers {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        let seed: u64 = key.parse().unwrap();
        let mut bytes = vec![0; (seed % 20_000) as usize];
        senesce_oplog::seeded_bytes(seed, 0, &mut bytes);
        Ok(Payload::Bytes(bytes.into()))
    }
}

/// A path of at most three components from a small pool, so that operations meet.
fn any_path(rng: &mut Rng) -> RelPath {
    const NAMES: [&[u8]; 5] = [b"a", b"b", b"c.d", b"\xff", b"a!"];
    let depth = rng.between(1, 3);
    let parts: Vec<&[u8]> = (0..depth).map(|_| NAMES[rng.below(5) as usize]).collect();
    RelPath::new(&parts.join(&b'/')).unwrap()
}

fn any_content(rng: &mut Rng, most: u64) -> Content {
    match rng.below(3) {
        0 => Content::Inline(vec![b'x'; rng.below(50) as usize].into()),
        1 => Content::Seeded { seed: rng.next_u64(), len: rng.below(most) },
        _ => Content::derived(rng.below(1 << 40).to_string()),
    }
}

fn any_op(rng: &mut Rng, most: u64) -> Op {
    const MODES: [u32; 5] = [0o644, 0o755, 0o600, 0o700, 0o777];
    let path = any_path(rng);
    let mode = MODES[rng.below(5) as usize];
    match rng.below(26) {
        0..4 => Op::Mkdir { path, mode: mode | 0o700 },
        4..9 => Op::Create { path, mode, content: any_content(rng, most) },
        9..11 => Op::Write { path, offset: rng.below(9000), content: any_content(rng, most) },
        11 => Op::Truncate { path, len: rng.below(most) },
        12..14 => Op::Rename { from: path, to: any_path(rng) },
        14 => Op::Unlink { path },
        15 => Op::Symlink { path, target: Arc::from(any_path(rng).as_bytes()) },
        16 => Op::Link { existing: path, path: any_path(rng) },
        17 => Op::Chmod { path, mode: mode | 0o700 },
        18 => match rng.below(6) {
            0 => Op::RemoveTree { path },
            1 => Op::SyncFs,
            2 => Op::Fsync { path },
            3..5 => Op::Read { path, offset: rng.below(most / 4), len: 1 + rng.below(most / 4) },
            _ => Op::Unlink { path },
        },
        19 => Op::Allocate { path, mode, len: rng.below(most) },
        22 | 23 => {
            let how = match rng.below(5) {
                0 => SpaceChange::Reserve,
                1 => SpaceChange::ReserveKeepSize,
                2 => SpaceChange::Punch,
                3 => SpaceChange::Zero,
                _ => SpaceChange::ZeroKeepSize,
            };
            Op::Fallocate { path, how, offset: rng.below(most), len: 1 + rng.below(most) }
        }
        24 => Op::Exchange { first: path, second: any_path(rng) },
        25 => match rng.below(4) {
            0 => Op::Mknod { path, mode: 0o010_000 | mode, device: 0 },
            1 => Op::Chown { path, uid: None, gid: None },
            2 => Op::Mknod { path, mode: 0o140_000 | mode, device: 0 },
            _ => {
                let time = FileTime { unix_seconds: rng.below(2_000_000_000) as i64, nanoseconds: 999_999_999 };
                Op::SetTimes { path, accessed: None, modified: Some(time) }
            }
        },
        20 => Op::SetModified { path, unix_seconds: rng.below(2_000_000_000) },
        _ => Op::Rmdir { path },
    }
}

/// An engine in memory.
fn engine(bytes: u64) -> EngineTarget {
    EngineTarget::new(Arc::new(ModelFs::new(Bytes(bytes))), Arc::new(ManualClock::default()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn model_and_directory_agree_on_every_operation(seed: u64) {
        let mut rng = Rng::for_purpose(Seed(seed), "operations");
        let dir = tempfile::tempdir().unwrap();
        let mut posix = PosixTarget::open(dir.path()).unwrap();
        let mut model = ModelTarget::default();
        let mut engine = engine(64 << 20);
        for _ in 0..150 {
            let op = match any_op(&mut rng, 30_000) {
                // It flushes a file system of the host, and does not change the tree.
                Op::SyncFs => continue,
                op => op,
            };
            let payload = op.content().map(|content| content.payload(&Numbers).unwrap());
            let before = model.clone();
            let modelled = model.apply(&RelPath::root(), &op, payload.as_ref());
            let real = posix.apply(&RelPath::root(), &op, payload.as_ref());
            prop_assert_eq!(modelled.is_ok(), real.is_ok(), "{}: {:?} {:?}", op, modelled, real);
            let engines = engine.apply(&RelPath::root(), &op, payload.as_ref());
            prop_assert_eq!(modelled.is_ok(), engines.is_ok(), "{}: {:?} {:?}", op, modelled, engines);
            // Hashing both trees takes longer than the operations, so only some states are
            // compared.
            if modelled.is_err() && rng.chance(1, 16) {
                prop_assert_eq!(before.tree(), model.tree(), "{} failed and changed the model", op);
            }
        }
        let (modelled, real) = (model.tree(), collect_tree(dir.path(), 2).unwrap());
        prop_assert_eq!(compare_trees(&modelled, &real, 5), []);
        prop_assert_eq!(modelled.hash(), real.hash());
        let engines = collect_engine_tree(engine.file_system().as_ref()).unwrap();
        prop_assert_eq!(compare_trees(&modelled, &engines, 5), []);
    }

    #[test]
    fn operations_on_a_full_volume_replay_on_others(seed: u64) {
        let mut rng = Rng::for_purpose(Seed(seed), "full volume");
        let mut full = ModelTarget::new(Some(Bytes(64 << 10)));
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut writer = LogWriter::create(&log, &LogHeader::recorded("test".into(), Seed(seed))).unwrap();
        for number in 0..12 {
            let step = fitting_step(&mut rng, &full);
            let done = if rng.chance(1, 2) {
                apply_step(&mut full, number, step, &Numbers).unwrap()
            } else {
                apply_prepared(&mut full, number, prepare_step(step, &Numbers).unwrap()).unwrap()
            };
            writer.append(&done).unwrap();
        }
        writer.finish().unwrap();

        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut posix = PosixTarget::open(&root).unwrap();
        let mut other = ModelTarget::default();
        for done in LogReader::open(&log).unwrap() {
            let done = done.unwrap();
            apply_done(&mut posix, &done, &Numbers, CheckContents::Yes).unwrap();
            apply_done(&mut other, &done, &Numbers, CheckContents::LengthOnly).unwrap();
        }
        prop_assert_eq!(compare_trees(&full.tree(), &other.tree(), 5), []);
        prop_assert_eq!(compare_trees(&full.tree(), &collect_tree(&root, 1).unwrap(), 5), []);
    }
}

/// A step whose operations are possible on `volume`, except for lack of space, which may end it
/// anywhere.
fn fitting_step(rng: &mut Rng, volume: &ModelTarget) -> Step {
    let mut trial = volume.clone();
    let mut ops = Vec::new();
    for _ in 0..20 {
        let op = any_op(rng, 30_000);
        let payload = op.content().map(|content| content.payload(&Numbers).unwrap());
        match trial.apply(&RelPath::root(), &op, payload.as_ref()) {
            Ok(()) => ops.push(op),
            Err(OpFailure::Io(_)) => {}
            Err(OpFailure::NoSpace { .. }) => {
                ops.push(op);
                // Operations that are not done because of the failed one.
                ops.push(Op::Rmdir { path: RelPath::try_from("never").unwrap() });
                ops.push(Op::Create { path: any_path(rng), mode: 0o600, content: any_content(rng, 100) });
                break;
            }
        }
    }
    Step { label: "random".into(), counted: true, root: RelPath::root(), ops: ops.into() }
}

fn fill_step(len: u64) -> Step {
    let path = |text| RelPath::try_from(text).unwrap();
    let ops = vec![
        Op::Mkdir { path: path("d"), mode: 0o755 },
        Op::Create { path: path("d/f"), mode: 0o644, content: Content::Seeded { seed: 1, len } },
        Op::Unlink { path: path("d/f") },
    ];
    Step { label: "fill".into(), counted: true, root: RelPath::root(), ops: ops.into() }
}

#[test]
fn full_volume_keeps_the_part_that_fits() {
    let mut full = ModelTarget::new(Some(Bytes(3 * 4096)));
    let done = apply_step(&mut full, 7, fill_step(10_000), &()).unwrap();
    // One block is the directory's, two are left for the file.
    assert_eq!(done.outcome, Outcome::NoSpace { failed_op: 1, written: Some(8192) });
    assert_eq!(done.step.ops.len(), 2);
    assert_eq!(done.contents.len(), 1);
    assert_eq!(full.space().unwrap().free, Bytes(0));
    assert_eq!(full.tree().content_bytes(), 8192);
    assert_eq!((full.tree().files(), full.tree().directories()), (1, 1));
}

#[test]
fn failing_replay_names_its_problem() {
    let mut large = ModelTarget::default();
    let done = apply_step(&mut large, 7, fill_step(10_000), &()).unwrap();
    assert_eq!(done.outcome, Outcome::Done);

    let mut small = ModelTarget::new(Some(Bytes(8192)));
    let error = apply_done(&mut small, &done, &(), CheckContents::Yes).unwrap_err();
    assert!(matches!(error, ExecError::TooSmall { .. }));
    assert_eq!(
        error.to_string(),
        "step 7 (fill), operation 1 (create d/f 0644 seeded 10000 B from 0x1): no space left on the volume that \
         replays the log; it is too small for the recording: make it larger"
    );

    let mut other = DoneStep { contents: vec![(10_000, 0)], ..done.clone() };
    let replay = |done: &DoneStep, check| apply_done(&mut ModelTarget::default(), done, &(), check);
    assert!(matches!(replay(&other, CheckContents::Yes), Err(ExecError::ContentDiffers { .. })));
    assert!(replay(&other, CheckContents::LengthOnly).is_ok());
    other.contents.clear();
    assert!(matches!(replay(&other, CheckContents::Yes), Err(ExecError::Record { .. })));
    let mut lacking = done;
    lacking.step.ops =
        vec![Op::Create { path: RelPath::try_from("f").unwrap(), mode: 0o644, content: Content::derived("a key") }]
            .into();
    assert!(matches!(replay(&lacking, CheckContents::Yes), Err(ExecError::Content { .. })));
}

#[test]
fn bare_loop_and_target_have_equal_trees() {
    let mut rng = Rng::for_purpose(Seed(5), "bare");
    let mut full = ModelTarget::new(Some(Bytes(96 << 10)));
    let steps: Vec<DoneStep> = (0..30)
        .map(|number| {
            let step = fitting_step(&mut rng, &full);
            apply_step(&mut full, number, step, &Numbers).unwrap()
        })
        .collect();
    assert!(steps.iter().any(|done| done.outcome != Outcome::Done), "no step met a full volume");
    let dir = tempfile::tempdir().unwrap();
    let target = PosixTarget::open(dir.path()).unwrap();
    // As if every mode needed to be set again, whatever the umask of this process is.
    SyscallBaseline::compile(&steps, &Numbers, 0o777).unwrap().run(target.root()).unwrap();
    assert_eq!(compare_trees(&full.tree(), &collect_tree(dir.path(), 1).unwrap(), 5), []);
}
