//! Compares profile-driven aging with a bare loop of the same system calls. Needs root.
//!
//! The operations come from an aging of the model. The benchmark applies them to two fresh file
//! systems in memory. It alternates between the two every few thousand operations, so that a busy
//! machine slows both, and reports one ratio per turn.
//!
//! *Ours* includes the whole path of aging: it plans the steps, reads the free space and applies
//! the steps. The bare loop only issues prepared calls. Its threads divide the directories in
//! advance and never wait for each other.
//!
//! Settings and defaults: `SENESCE_BENCH_PROFILE` (agrawal), `SENESCE_BENCH_FULLNESS` (0.65),
//! `SENESCE_BENCH_FS` (ext4,xfs), `SENESCE_BENCH_THREADS` (1,2), `SENESCE_BENCH_CHURN` (4),
//! `SENESCE_BENCH_CONTENT` (allocate), `SENESCE_BENCH_MIB` (1024), `SENESCE_BENCH_DIR` (/dev/shm),
//! `SENESCE_BENCH_TURN` (4000 operations), `SENESCE_BENCH_ROUNDS` (1).

mod common;

use std::{collections::HashMap, env, thread, time::Instant};

use senesce_core::{Bytes, RelPath};
use senesce_exec::{
    ModelTarget, PosixTarget, Target, apply_step, apply_step_parallel, syscall_baseline::SyscallBaseline,
};
use senesce_oplog::{DoneStep, Op, Outcome, Step};
use senesce_testkit::Volume;
use senesce_workload::{
    Feedback, Workload,
    profile::{FileContent, ProfileAging, ProfileOptions, Sizes, find_builtin},
};

use common::{number, setting, volume};

fn main() {
    // `cargo test` runs benches too, without this argument.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    let (told, steps) = record();
    let operations: usize = steps.iter().map(|step| step.ops.len()).sum();
    println!("profile {}, {operations} operations in {} steps", setting("PROFILE", "agrawal"), steps.len());
    for kind in setting("FS", "ext4,xfs").split(',') {
        for threads in setting("THREADS", "1,2").split(',') {
            let threads = threads.parse().expect("a number of threads");
            let (mut ratios, mut bare, mut ours) = (Vec::new(), 0.0, 0.0);
            for round in 0..number("ROUNDS", "1") {
                for (bare_seconds, our_seconds) in run(kind, threads, &told, &steps, round) {
                    ratios.push(bare_seconds / our_seconds);
                    bare += bare_seconds;
                    ours += our_seconds;
                }
            }
            ratios.sort_by(f64::total_cmp);
            let quartile = |n: usize| 100.0 * ratios[ratios.len() * n / 4];
            let rate = (ratios.len() * number::<usize>("TURN", "4000")) as f64;
            println!(
                "{kind:<5} {threads} thread(s), {} turns: ours at {:.1}% of the bare loop's speed (median; quartiles {:.1}% \
                 and {:.1}%); {:.0} and {:.0} operations/s",
                ratios.len(),
                quartile(2),
                quartile(1),
                quartile(3),
                rate / ours,
                rate / bare,
            );
        }
    }
}

fn aging() -> ProfileAging {
    let options = ProfileOptions {
        fullness: number("FULLNESS", "0.65"),
        churn: number("CHURN", "4"),
        content: if setting("CONTENT", "allocate") == "write" { FileContent::Write } else { FileContent::Allocate },
        sizes: Sizes::Point,
        ..Default::default()
    };
    let profile = find_builtin(&setting("PROFILE", "agrawal")).expect("a built-in profile");
    ProfileAging::new(profile, options).expect("options in their ranges")
}

/// The feedback of an aging of the model, and the steps that the workload returned.
fn record() -> (Vec<Feedback>, Vec<Step>) {
    // A real file system uses a part of the device for metadata.
    let mib = number::<u64>("MIB", "1024") * 15 / 16;
    let (mut aging, mut model) = (aging(), ModelTarget::new(Some(Bytes(mib << 20))));
    let (mut told, mut steps, mut last) = (Vec::new(), Vec::new(), None);
    loop {
        let space = model.space().expect("the model knows");
        let feedback = Feedback { capacity: space.capacity, free: space.free, last };
        let Some(step) = aging.next_step(&feedback).expect("a volume that is large enough") else { break };
        told.push(feedback);
        steps.push(step.clone());
        last = Some(apply_step(&mut model, 0, step, &()).expect("operations that work").outcome);
        assert_eq!(last, Some(Outcome::Done), "a volume with enough space");
    }
    (told, steps)
}

/// Seconds of each turn: the bare loop, then ours.
fn run(kind: &str, threads: usize, told: &[Feedback], steps: &[Step], round: usize) -> Vec<(f64, f64)> {
    let (for_bare, for_ours) = (volume(kind), volume(kind));
    let open = |volume: &Volume| PosixTarget::open(&volume.mountpoint).expect("a mounted volume");
    let bare_root = open(&for_bare);
    let mut targets: Vec<Box<dyn Target>> =
        (0..threads).map(|_| Box::new(open(&for_ours)) as Box<dyn Target>).collect();
    let (mut aging, mut turns, mut from) = (aging(), Vec::new(), 0);
    while from < steps.len() {
        let mut operations = 0;
        let mut to = from;
        while to < steps.len() && operations < number("TURN", "4000") {
            operations += steps[to].ops.len();
            to += 1;
        }
        let (before, lists) = share_out(&steps[from..to], threads);
        let mut pair = (0.0, 0.0);
        // The order alternates, so that the state a turn leaves favours neither side.
        let ours_first = (turns.len() + round).is_multiple_of(2);
        for is_ours in [ours_first, !ours_first] {
            let began = Instant::now();
            if is_ours {
                for (at, told) in told[from..to].iter().enumerate() {
                    targets[0].space().expect("a mounted volume");
                    let step = aging.next_step(told).expect("as before").expect("as many steps");
                    apply_step_parallel(&mut targets, (from + at) as u64, step, &()).expect("operations that work");
                }
                targets[0].apply(&RelPath::root(), &Op::SyncFs, None).expect("a mounted volume");
                pair.1 = began.elapsed().as_secs_f64();
            } else {
                before.run(bare_root.root()).expect("operations that work");
                thread::scope(|scope| {
                    for list in &lists {
                        scope.spawn(|| list.run(bare_root.root()).expect("operations that work"));
                    }
                });
                rustix::fs::syncfs(bare_root.root()).expect("a mounted volume");
                pair.0 = began.elapsed().as_secs_f64();
            }
        }
        // The last turn is shorter than the others.
        if to < steps.len() {
            turns.push(pair);
        }
        from = to;
    }
    turns
}

/// Converts the operations to prepared calls: first the directories, then one list per thread. Each
/// thread has directories of its own.
fn share_out(steps: &[Step], threads: usize) -> (SyscallBaseline, Vec<SyscallBaseline>) {
    let (mut first, mut lists): (Vec<Op>, Vec<Vec<Op>>) = (Vec::new(), vec![Vec::new(); threads]);
    let mut places: HashMap<Option<RelPath>, usize> = HashMap::new();
    for op in steps.iter().flat_map(|step| step.ops.iter()) {
        let path = match op {
            Op::Create { path, .. } | Op::Allocate { path, .. } => path,
            Op::Unlink { path } | Op::SetModified { path, .. } => path,
            Op::Mkdir { .. } => {
                first.push(op.clone());
                continue;
            }
            _ => {
                lists[0].push(op.clone());
                continue;
            }
        };
        let shortest = (0..threads).min_by_key(|&list| lists[list].len()).expect("at least one thread");
        lists[*places.entry(path.parent()).or_insert(shortest)].push(op.clone());
    }
    let compile = |ops: Vec<Op>| {
        let step = Step { label: String::new(), counted: false, root: RelPath::root(), ops: ops.into() };
        let done = DoneStep { number: 0, step, outcome: Outcome::Done, contents: Vec::new(), began: None };
        SyscallBaseline::compile([&done], &(), 0o022).expect("contents of seeds")
    };
    (compile(first), lists.into_iter().map(compile).collect())
}
