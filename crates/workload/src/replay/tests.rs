//! A log as a workload against the model: one and several repetitions, with and without enough
//! space.

use std::collections::BTreeSet;

use proptest::prelude::*;
use senesce_core::{Bytes, RelPath, Rng, Seed};
use senesce_exec::{CheckContents, ModelTarget, Target, apply_done, apply_step};
use senesce_oplog::{Content, DoneStep, Op, Outcome, Step};

use super::*;
use crate::{Feedback, Workload, WorkloadError, generated_paths::path};

fn done(number: u64, label: &str, counted: bool, ops: Vec<Op>) -> DoneStep {
    let length = |op: &Op| op.content().map(|content| (crate::measured_volume::length(content), 0));
    let contents = ops.iter().filter_map(length).collect();
    let step = Step { label: label.into(), counted, root: RelPath::root(), ops: ops.into() };
    DoneStep { number, step, outcome: Outcome::Done, contents, began: None }
}

fn create(name: &str, len: u64) -> Op {
    Op::Create { path: path(name), mode: 0o644, content: Content::Seeded { seed: len, len } }
}

/// A program that writes `files` files of `bytes` beside an existing one, rewrites each, and
/// removes every other one.
fn recording(files: u64, bytes: u64) -> Vec<DoneStep> {
    let mut out = vec![done(0, "found", true, vec![create("there", 5_000)])];
    let mut add = |op: Op| out.push(done(out.len() as u64, "cc", true, vec![op]));
    for n in 0..files {
        let name = format!("f{n}");
        add(create(&name, 0));
        add(Op::Write { path: path(&name), offset: 0, content: Content::Seeded { seed: n, len: bytes } });
        add(Op::Fsync { path: path(&name) });
    }
    for n in (0..files).step_by(2) {
        add(Op::Unlink { path: path(&format!("f{n}")) });
    }
    out
}

fn pieces(records: &[DoneStep], options: ReplayOptions) -> Vec<Piece> {
    let open = || Ok(records.iter().cloned().map(Ok));
    plan_pieces(options, open).map(Result::unwrap).collect()
}

fn options(operations: u64, repeat: u64, keep: u64) -> ReplayOptions {
    ReplayOptions { operations, repeat, keep }
}

fn workload(records: &[DoneStep], options: ReplayOptions, needed: u64) -> Result<LogReplay, WorkloadError> {
    LogReplay::new(options, Bytes(needed), Box::new(pieces(records, options).into_iter().map(Ok)))
}

/// The result of a workload. The trees of both targets are equal after every step.
struct End {
    steps: Vec<(Step, Outcome)>,
    tree: BTreeSet<String>,
    most_copies: u64,
}

fn run(workload: &mut dyn Workload, capacity: Option<u64>) -> Result<End, WorkloadError> {
    let (mut leader, mut follower) = (ModelTarget::new(capacity.map(Bytes)), ModelTarget::default());
    let mut end = End { steps: Vec::new(), tree: BTreeSet::new(), most_copies: 0 };
    loop {
        let space = leader.space().unwrap();
        let last = end.steps.last().map(|(_, outcome)| *outcome);
        let feedback = Feedback { capacity: space.capacity, free: space.free, last };
        let Some(step) = workload.next_step(&feedback)? else { break };
        end.most_copies = end.most_copies.max(workload.copies());
        let done = apply_step(&mut leader, end.steps.len() as u64, step.clone(), &()).unwrap();
        apply_done(&mut follower, &done, &(), CheckContents::Yes).unwrap();
        assert_eq!(leader.tree().hash(), follower.tree().hash());
        end.steps.push((step, done.outcome));
    }
    end.tree = leader.tree().entries.keys().map(ToString::to_string).collect();
    Ok(end)
}

#[test]
fn small_steps_are_joined_and_initial_files_uncounted() {
    let records = recording(4, 100);
    let steps: Vec<Step> = pieces(&records, options(5, 1, 1)).into_iter().map(|piece| piece.step).collect();
    let sizes: Vec<_> = steps.iter().map(|step| (step.counted, step.ops.len())).collect();
    assert_eq!(sizes, [(false, 1), (true, 5), (true, 5), (true, 4)]);
    assert_eq!(steps[0].label, "found (step 0 of the log)");
    assert_eq!(steps[1].label, "cc (steps 1 to 5 of the log)");
    let all: Vec<Op> = steps.iter().flat_map(|step| step.ops.to_vec()).collect();
    assert_eq!(all, records.iter().flat_map(|done| done.step.ops.to_vec()).collect::<Vec<_>>());
    // Steps stay as they are.
    assert_eq!(pieces(&records, options(0, 1, 1)).len(), records.len());
    // Joined steps stay below a few megabytes, and a large one stays whole.
    let large = vec![
        done(0, "dd", true, vec![create("a", STEP_BYTES / 2)]),
        done(1, "dd", true, vec![create("b", STEP_BYTES / 2)]),
        done(2, "dd", true, vec![create("c", 2 * STEP_BYTES)]),
        done(3, "rm", true, (0..9).map(|n| create(&n.to_string(), 1)).collect()),
    ];
    let sizes: Vec<_> = pieces(&large, options(5, 1, 1)).iter().map(|piece| piece.step.ops.len()).collect();
    assert_eq!(sizes, [2, 1, 9]);
}

#[test]
fn the_completed_part_of_a_failed_step_repeats() {
    let inline = |text: &str| Content::Inline(text.as_bytes().into());
    let ops = |content: Content| {
        vec![create("a", 9), Op::Write { path: path("a"), offset: 2, content: content.clone() }, create("b", 3)]
            .into_iter()
            .chain([Op::Create { path: path("c"), mode: 0o600, content }])
            .collect::<Vec<_>>()
    };
    let failed = |content: Content, failed_op, written| {
        ops_done(&DoneStep { outcome: Outcome::NoSpace { failed_op, written }, ..done(0, "s", true, ops(content)) })
    };
    assert_eq!(
        failed(inline("abcdef"), 1, Some(4)),
        [create("a", 9), Op::Write { path: path("a"), offset: 2, content: inline("abcd") }]
    );
    assert_eq!(failed(inline("abcdef"), 2, None).len(), 2);
    let seeded = |len| Content::Seeded { seed: 7, len };
    let last = |content| Op::Create { path: path("c"), mode: 0o600, content };
    assert_eq!(failed(seeded(100), 3, Some(60))[3], last(seeded(60)));
    let Some(Content::Derived(derived)) = failed(Content::derived("blob 1f 99"), 3, Some(5))[3].content().cloned()
    else {
        panic!("it stays derived")
    };
    assert_eq!(parse_beginning(&derived.key), Some((5, "blob 1f 99")));
    assert_eq!(parse_beginning("blob 1f"), None);
}

#[test]
fn repetitions_are_separate_and_the_oldest_is_removed() {
    let records = recording(3, 10_000);
    let end = run(&mut workload(&records, options(1_000, 1, 1), 0).unwrap(), None).unwrap();
    assert_eq!(end.tree, ["f1", "there"].map(str::to_owned).into());
    let end = run(&mut workload(&records, options(1_000, 3, 3), 0).unwrap(), None).unwrap();
    let names = |numbers: &[u64]| {
        let below = |n: &u64| ["", "/f1", "/there"].map(|name| format!("repeat-{n}{name}"));
        numbers.iter().flat_map(below).collect::<BTreeSet<_>>()
    };
    assert_eq!(end.tree, names(&[1, 2, 3]));
    assert_eq!(end.steps.iter().filter(|(step, _)| step.counted).count(), 3);
    let end = run(&mut workload(&records, options(1_000, 5, 2), 0).unwrap(), None).unwrap();
    assert_eq!((end.tree, end.most_copies), (names(&[4, 5]), 2));
    for options in [options(1, 0, 1), options(1, 1, 0)] {
        assert!(matches!(workload(&records, options, 0), Err(WorkloadError::Parameter { .. })));
    }
}

#[test]
fn many_repetitions_keep_a_volume_full() {
    // One repetition uses 16 blocks at its peak and 9 at the end.
    let records = recording(6, 8192);
    let (blocks, repeat) = (64, 20);
    let end = run(&mut workload(&records, options(4, repeat, repeat), 0).unwrap(), Some(blocks * 4096)).unwrap();
    let failed = end.steps.iter().filter(|(_, outcome)| *outcome != Outcome::Done).count();
    let removed = end.steps.iter().filter(|(step, _)| step.label.ends_with("to make room")).count();
    assert!(failed >= 10 && removed == failed, "{failed} {removed}");
    // After all failures, the last repetitions are complete.
    assert!(end.tree.contains("repeat-20/f5") && !end.tree.contains("repeat-20/f4"), "{:?}", end.tree);
    assert!(!end.tree.contains("repeat-1"));
    let wanted = pieces(&records, options(4, 1, 1)).iter().filter(|piece| piece.step.counted).count() as u64 * repeat;
    assert_eq!(end.steps.iter().filter(|(step, _)| step.counted).count() as u64, wanted);
}

#[test]
fn a_too_small_volume_is_refused_first() {
    let records = recording(6, 8192);
    let error = run(&mut workload(&records, options(4, 2, 2), 60_000).unwrap(), Some(59_000)).err().unwrap();
    assert!(error.to_string().contains("58.6 KiB at their peak"), "{error}");
    // Without a known need, the error comes when nothing is left to remove.
    let error = run(&mut workload(&records, options(4, 2, 2), 0).unwrap(), Some(40_960)).err().unwrap();
    assert!(matches!(error, WorkloadError::VolumeTooSmall { .. }), "{error}");
}

#[test]
fn a_read_error_is_reported_once() {
    let unreadable = || WorkloadError::Source { what: "the log".into(), problem: "gone".into(), source: None };
    let records = recording(2, 10);
    let open = || {
        let good = records.clone().into_iter().take(3).map(Ok);
        Ok(good.chain([Err(unreadable()), Err(unreadable())]))
    };
    let found: Vec<_> = plan_pieces(options(0, 3, 3), open).collect();
    assert_eq!(found.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    let never = || Err::<std::iter::Empty<_>, _>(unreadable());
    assert_eq!(plan_pieces(options(0, 3, 3), never).count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_last_repetition_has_the_logs_tree(
        seed: u64, operations in 0u64..12, repeat in 1u64..6, keep in 1u64..6, spare in 0u64..200,
    ) {
        let mut rng = Rng::for_purpose(Seed(seed), "log");
        let mut model = ModelTarget::default();
        let (mut records, mut peak) = (Vec::new(), 0);
        for _ in 0..rng.between(1, 60) {
            let name = format!("f{}", rng.below(6));
            let content = Content::Seeded { seed: rng.next_u64(), len: rng.below(30_000) };
            let op = match rng.below(4) {
                0 => Op::Create { path: path(&name), mode: 0o644, content },
                1 => Op::Write { path: path(&name), offset: rng.below(20_000), content },
                2 => Op::Truncate { path: path(&name), len: rng.below(20_000) },
                _ => Op::Unlink { path: path(&name) },
            };
            let payload = op.content().map(|content| content.payload(&()).unwrap());
            if model.apply(&RelPath::root(), &op, payload.as_ref()).is_ok() {
                records.push(done(records.len() as u64, "p", true, vec![op]));
            }
            peak = peak.max(model.used().0);
        }
        let wanted: BTreeSet<_> = model.tree().entries.keys().map(ToString::to_string).collect();
        // With a whole repetition beside it there is always one to remove.
        let capacity = 2 * peak + 3 * 4096 + spare * 4096;
        let mut workload = workload(&records, options(operations, repeat, keep), peak).unwrap();
        let end = run(&mut workload, Some(capacity)).unwrap();
        let prefix = if repeat > 1 { format!("repeat-{repeat}/") } else { String::new() };
        let last: BTreeSet<_> = end.tree.iter().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect();
        prop_assert!(end.most_copies <= keep.min(repeat));
        if records.is_empty() {
            prop_assert!(end.steps.is_empty());
        } else {
            prop_assert_eq!(last, wanted);
        }
    }
}
