//! A step applied by several threads is the step of its record.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use senesce_core::{Bytes, RelPath, Rng, Seed};
use senesce_exec::{CheckContents, ModelTarget, Target, apply_done, apply_step_parallel, tree::compare_trees};
use senesce_oplog::{Content, Op, Outcome, Step};

/// Directories first, then files that are made and removed in them.
fn any_step(seed: u64, operations: u64) -> Step {
    let mut rng = Rng::for_purpose(Seed(seed), "team");
    let path = |text: String| RelPath::try_from(text.as_str()).unwrap();
    let mut ops: Vec<Op> = (0..6).map(|at| Op::Mkdir { path: path(format!("d{at}")), mode: 0o755 }).collect();
    let mut live: Vec<RelPath> = Vec::new();
    for serial in 0..operations {
        match rng.below(8) {
            0..2 if !live.is_empty() => {
                let gone = live.swap_remove(rng.below(live.len() as u64) as usize);
                ops.push(Op::Unlink { path: gone });
            }
            2 if !live.is_empty() => {
                let touched = live[rng.below(live.len() as u64) as usize].clone();
                ops.push(Op::SetModified { path: touched, unix_seconds: serial });
            }
            3 if serial % 40 == 0 => ops.push(Op::SyncFs),
            kind => {
                let path = path(format!("d{}/f{serial}", rng.below(6)));
                live.push(path.clone());
                let len = rng.below(20_000);
                ops.push(match kind % 2 {
                    0 => Op::Allocate { path, mode: 0o644, len },
                    _ => Op::Create { path, mode: 0o644, content: Content::Seeded { seed: serial, len } },
                });
            }
        }
    }
    Step { label: "random".into(), counted: true, root: RelPath::root(), ops: ops.into() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn record_replays_to_the_same_tree(seed: u64, kib in 40u64..4_000, threads in 1usize..6) {
        let step = any_step(seed, 300);
        let model = Arc::new(Mutex::new(ModelTarget::new(Some(Bytes(kib << 10)))));
        let mut targets: Vec<Box<dyn Target>> =
            (0..threads).map(|_| Box::new(model.clone()) as Box<dyn Target>).collect();
        let done = apply_step_parallel(&mut targets, 3, step.clone(), &()).unwrap();
        match done.outcome {
            Outcome::Done => prop_assert_eq!(&done.step.ops, &step.ops),
            Outcome::NoSpace { failed_op, .. } => prop_assert_eq!(failed_op + 1, done.step.ops.len()),
        }
        let mut again = ModelTarget::default();
        apply_done(&mut again, &done, &(), CheckContents::Yes).unwrap();
        let tree = model.lock().unwrap().tree();
        prop_assert_eq!(compare_trees(&again.tree(), &tree, 5), []);
    }
}

#[test]
fn impossible_operation_is_named() {
    let mut step = any_step(1, 100);
    let nothing = Op::Unlink { path: RelPath::try_from("d1/never").unwrap() };
    step.ops = step.ops.iter().cloned().chain([nothing]).collect();
    let model = Arc::new(Mutex::new(ModelTarget::default()));
    let mut targets: Vec<Box<dyn Target>> = (0..3).map(|_| Box::new(model.clone()) as Box<dyn Target>).collect();
    let error = apply_step_parallel(&mut targets, 0, step, &()).unwrap_err();
    assert!(error.to_string().contains("d1/never"), "{error}");
}
