//! A log applied by any number of threads ends with the same tree.

use std::sync::Arc;

use proptest::prelude::*;
use senesce_core::{RelPath, Rng, Seed};
use senesce_exec::{
    CheckContents, ExecError, ModelTarget, PosixTarget, Target, apply_parallel, apply_step,
    tree::{collect_tree, compare_trees},
};
use senesce_oplog::{Content, DoneStep, Op, SpaceChange, Step};

fn any_path(rng: &mut Rng) -> RelPath {
    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let parts: Vec<&str> = (0..rng.between(1, 3)).map(|_| NAMES[rng.below(6) as usize]).collect();
    RelPath::try_from(parts.join("/").as_str()).unwrap()
}

fn any_op(rng: &mut Rng) -> Op {
    let path = any_path(rng);
    let content = |rng: &mut Rng| Content::Seeded { seed: rng.next_u64(), len: rng.below(5000) };
    match rng.below(20) {
        0..4 => Op::Mkdir { path, mode: 0o755 },
        4..8 => Op::Create { path, mode: 0o644, content: content(rng) },
        8..12 => Op::Write { path, offset: rng.below(5000), content: content(rng) },
        12 => Op::Truncate { path, len: rng.below(9000) },
        13..15 => Op::Rename { from: path, to: any_path(rng) },
        15 => Op::Link { existing: path, path: any_path(rng) },
        16 => Op::Exchange { first: path, second: any_path(rng) },
        17 => match rng.below(4) {
            0 => Op::RemoveTree { path },
            1 => Op::Symlink { path, target: Arc::from(any_path(rng).as_bytes()) },
            2 => Op::Chmod { path, mode: 0o700 + rng.below(64) as u32 },
            _ => Op::Rmdir { path },
        },
        18 => Op::Fallocate { path, how: SpaceChange::Punch, offset: rng.below(5000), len: 1 + rng.below(3000) },
        _ => Op::Unlink { path },
    }
}

/// Steps that are possible, and the volume that they make.
fn any_log(seed: u64, steps: u64) -> (Vec<DoneStep>, ModelTarget) {
    let mut rng = Rng::for_purpose(Seed(seed), "parallel");
    let mut model = ModelTarget::default();
    let mut log = Vec::new();
    for number in 0..steps {
        let mut trial = model.clone();
        let mut ops = Vec::new();
        for _ in 0..20 {
            let op = any_op(&mut rng);
            let payload = op.content().map(|content| content.payload(&()).unwrap());
            if trial.apply(&RelPath::root(), &op, payload.as_ref()).is_ok() {
                ops.push(op);
            }
        }
        let step = Step { label: "random".into(), counted: true, root: RelPath::root(), ops: ops.into() };
        log.push(apply_step(&mut model, number, step, &()).unwrap());
    }
    (log, model)
}

fn run(log: &[DoneStep], threads: usize) -> Result<tempfile::TempDir, ExecError> {
    let dir = tempfile::tempdir().unwrap();
    let target = || Box::new(PosixTarget::open(dir.path()).unwrap()) as Box<dyn Target>;
    let targets = (0..threads).map(|_| target()).collect();
    let mut steps = log.iter().cloned();
    let done = apply_parallel::<ExecError>(targets, &(), CheckContents::Yes, || Ok(steps.next()))?;
    assert_eq!(done, log.len() as u64);
    Ok(dir)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tree_does_not_depend_on_threads(seed: u64) {
        let (log, model) = any_log(seed, 25);
        for threads in [1, 2, 3, 8] {
            let dir = run(&log, threads).unwrap();
            let tree = collect_tree(dir.path(), 1).unwrap();
            prop_assert_eq!(compare_trees(&model.tree(), &tree, 5), [], "{} threads", threads);
        }
    }
}

#[test]
fn impossible_operation_ends_a_parallel_replay() {
    let (mut log, _) = any_log(7, 10);
    let nothing = Op::Unlink { path: RelPath::try_from("never/made").unwrap() };
    log[5].step.ops = log[5].step.ops.iter().cloned().chain([nothing]).collect();
    for threads in [1, 4] {
        let error = run(&log, threads).unwrap_err();
        assert!(error.to_string().contains("never/made"), "{error}");
    }
}

#[test]
fn error_of_the_log_ends_a_parallel_replay() {
    let (log, _) = any_log(7, 3);
    let dir = tempfile::tempdir().unwrap();
    let targets: Vec<Box<dyn Target>> =
        (0..3).map(|_| Box::new(PosixTarget::open(dir.path()).unwrap()) as Box<dyn Target>).collect();
    let mut steps = log.into_iter();
    let torn = || ExecError::Record { number: 3, label: "torn".into(), problem: "torn" };
    let error = apply_parallel(targets, &(), CheckContents::Yes, || steps.next().map(Some).ok_or_else(torn));
    assert!(matches!(error, Err(ExecError::Record { .. })));
}
