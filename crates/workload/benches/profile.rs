//! Compares the two schedules of profile-driven aging on real file systems: seconds and aged state.
//! Needs root.
//!
//! Each run ages a fresh volume (an image in memory on a loop device) and then measures it: free
//! extents by size, extents per file, layout score. For each pair of schedules the report compares
//! every figure. It states whether the 95% intervals of the medians over the seeds (bootstrap)
//! overlap.
//!
//! Settings and defaults: `SENESCE_BENCH_PROFILE` (agrawal), `SENESCE_BENCH_FULLNESS` (0.65),
//! `SENESCE_BENCH_FS` (ext4,xfs), `SENESCE_BENCH_SCHEDULES` (classic,virtual:4; the number is the
//! churn), `SENESCE_BENCH_SEEDS` (3), `SENESCE_BENCH_MIB` (1024), `SENESCE_BENCH_DIR` (/dev/shm),
//! `SENESCE_BENCH_CONTENT` (allocate), `SENESCE_BENCH_SIZES` (point), `SENESCE_BENCH_SYNC_EVERY`
//! operations (0: never), `SENESCE_BENCH_FIRST_SEED` (1), `SENESCE_BENCH_THREADS` (1).
//!
//! `SENESCE_BENCH_OUT` is a file to which each run appends a line of figures. `SENESCE_BENCH_FROM`
//! is such a file: the comparison includes its runs of the same case.

mod common;

use std::{collections::BTreeMap, env, fs, io::Write as _, time::Instant};

use senesce_core::{Seed, never};
use senesce_exec::{PosixTarget, Target, apply_step_parallel};
use senesce_oplog::{Op, Outcome};
use senesce_probe::{
    collect::{collect_free_extents, collect_process_times, collect_space, collect_tree_extents},
    score::{LayoutScorer, Spread, compute_free_space, compute_spread},
};
use senesce_workload::{
    Feedback, Workload,
    profile::{Convergence, FileContent, ProfileAging, ProfileOptions, Schedule, Sizes, find_builtin},
};
use serde::{Deserialize, Serialize};

use common::{number, setting, volume};

const BLOCK_BYTES: u64 = 4096;

fn main() {
    // `cargo test` runs benches too, without this argument.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    let profile = setting("PROFILE", "agrawal");
    let fullness: f64 = number("FULLNESS", "0.65");
    let seeds: u64 = number("SEEDS", "3");
    let first: u64 = number("FIRST_SEED", "1");
    println!("profile {profile}, fullness {fullness}, {} MiB, {seeds} seed(s)", number::<u64>("MIB", "1024"));
    for kind in setting("FS", "ext4,xfs").split(',') {
        let mut all = kept(&case(kind));
        for seed in first..first + seeds {
            for schedule in setting("SCHEDULES", "classic,virtual:4").split(',') {
                let options = options(schedule, fullness, seed);
                let figures = run(kind, &profile, options);
                println!("{kind:<5} {schedule:<12} seed {seed:<2} {}", figures.line());
                keep(&Kept { case: case(kind), schedule: schedule.to_owned(), seed, figures: figures.clone() });
                all.entry(schedule.to_owned()).or_default().push(figures);
            }
        }
        report(kind, &all);
    }
}

fn options(schedule: &str, fullness: f64, seed: u64) -> ProfileOptions {
    let (name, churn) = schedule.split_once(':').unwrap_or((schedule, "4"));
    ProfileOptions {
        seed: Seed(seed),
        fullness,
        schedule: if name == "classic" { Schedule::Classic } else { Schedule::Virtual },
        churn: churn.parse().expect("a churn is a number"),
        content: if setting("CONTENT", "allocate") == "write" { FileContent::Write } else { FileContent::Allocate },
        sizes: if setting("SIZES", "point") == "spread" { Sizes::Spread } else { Sizes::Point },
        ..Default::default()
    }
}

/// A run whose figures are stored in a file.
#[derive(Serialize, Deserialize)]
struct Kept {
    case: String,
    schedule: String,
    seed: u64,
    figures: Figures,
}

/// Every setting that influences figures, except schedule and seed. Only runs of the same case are
/// compared.
fn case(kind: &str) -> String {
    let names = [("PROFILE", "agrawal"), ("FULLNESS", "0.65"), ("MIB", "1024"), ("CONTENT", "allocate")];
    let names = names.into_iter().chain([("SIZES", "point"), ("SYNC_EVERY", "0")]);
    names.fold(kind.to_owned(), |case, (name, default)| case + "/" + &setting(name, default))
}

fn keep(run: &Kept) {
    let Ok(path) = env::var("SENESCE_BENCH_OUT") else { return };
    let mut file = fs::File::options().create(true).append(true).open(path).expect("the file of SENESCE_BENCH_OUT");
    writeln!(file, "{}", serde_json::to_string(run).expect("plain figures")).expect("space for a line");
}

fn kept(case: &str) -> BTreeMap<String, Vec<Figures>> {
    let mut all: BTreeMap<String, Vec<Figures>> = BTreeMap::new();
    let Ok(path) = env::var("SENESCE_BENCH_FROM") else { return all };
    for line in fs::read_to_string(path).expect("the file of SENESCE_BENCH_FROM").lines() {
        let run: Kept = serde_json::from_str(line).expect("a line of SENESCE_BENCH_OUT");
        if run.case == case {
            all.entry(run.schedule).or_default().push(run.figures);
        }
    }
    all
}

#[derive(Clone, Serialize, Deserialize)]
struct Figures {
    seconds: f64,
    user: f64,
    system: f64,
    reached: Convergence,
    free_extents: f64,
    extents_per_file: f64,
    layout_score: f64,
    /// Shares of the free bytes, by the power of two of the extent's length in blocks.
    histogram: Vec<f64>,
}

impl Figures {
    fn line(&self) -> String {
        let r = &self.reached;
        format!(
            "{:6.2} s (user {:5.2}, system {:5.2}) {:7} operations, {:5} files, fullness {:.4}, off by size {:.4} depth \
             {:.4} age {:.4} [{}]; {:.0} free extents, {:.4} extents/file, layout score {:.4}, {:.1}% of free bytes in \
             extents of 1 MiB and more",
            self.seconds,
            self.user,
            self.system,
            r.operations,
            r.files,
            r.fullness,
            r.size.total_variation,
            r.depth.total_variation,
            r.age.total_variation,
            r.ended_by.map_or("-", |bound| bound.as_str()),
            self.free_extents,
            self.extents_per_file,
            self.layout_score,
            100.0 * self.histogram[8..].iter().sum::<f64>(),
        )
    }
}

fn run(kind: &str, profile: &str, options: ProfileOptions) -> Figures {
    let profile = find_builtin(profile).expect("a built-in profile");
    let volume = volume(kind);
    let sync_every: u64 = number("SYNC_EVERY", "0");
    let mut aging = ProfileAging::new(profile, options).expect("options in their ranges");
    let open = |_| Box::new(PosixTarget::open(&volume.mountpoint).expect("a mounted volume")) as Box<dyn Target>;
    let mut targets: Vec<_> = (0..number("THREADS", "1")).map(open).collect();
    let (mut last, mut count, mut unsynced) = (None, 0, 0);
    let (began, cpu) = (Instant::now(), collect_process_times());
    loop {
        let space = targets[0].space().expect("a mounted volume");
        let feedback = Feedback { capacity: space.capacity, free: space.free, last };
        let Some(step) = aging.next_step(&feedback).expect("a volume that is large enough") else { break };
        unsynced += step.ops.len() as u64;
        let done = apply_step_parallel(&mut targets, count, step, &()).expect("operations that work");
        if let Outcome::NoSpace { .. } = done.outcome {
            aging.on_partial_step(&done.step.ops);
        }
        last = Some(done.outcome);
        count += 1;
        if sync_every > 0 && unsynced >= sync_every {
            targets[0].apply(&senesce_core::RelPath::root(), &Op::SyncFs, None).expect("a mounted volume");
            unsynced = 0;
        }
        assert!(!matches!(last, Some(Outcome::NoSpace { .. })) || count < 1_000_000, "it does not end");
    }
    let seconds = began.elapsed().as_secs_f64();
    let used = collect_process_times().since(cpu);
    drop(targets);
    let free = collect_free_extents(&volume.mountpoint).expect("ext4 and XFS report free space");
    let lengths = free.iter().map(|extent| extent.length_bytes);
    let space = compute_free_space(lengths.clone());
    let mut histogram = vec![0.0; 40];
    for length in lengths {
        histogram[(length / BLOCK_BYTES).max(1).ilog2() as usize] += length as f64 / space.bytes as f64;
    }
    let mut scorer = LayoutScorer::new(collect_space(&volume.mountpoint).expect("a mounted volume"), BLOCK_BYTES);
    collect_tree_extents(&volume.mountpoint, 2, &never, &mut |file| scorer.add_file(file.size_bytes, &file.extents))
        .expect("ext4 and XFS report extents");
    let layout = scorer.finish();
    Figures {
        seconds,
        user: used.user_seconds,
        system: used.system_seconds,
        reached: aging.convergence(),
        free_extents: space.extents as f64,
        extents_per_file: layout.extents_per_file.unwrap_or(f64::NAN),
        layout_score: layout.layout_score.unwrap_or(f64::NAN),
        histogram,
    }
}

/// A row of the table: its name and its figure.
type Row = (String, Box<dyn Fn(&Figures) -> f64>);

/// Prints medians with 95% intervals, and whether they overlap those of the first schedule.
fn report(kind: &str, all: &BTreeMap<String, Vec<Figures>>) {
    println!("\n{kind}: medians [95% intervals]");
    let spread = |figures: &[Figures], of: &dyn Fn(&Figures) -> f64| {
        let values: Vec<f64> = figures.iter().map(of).collect();
        compute_spread(&values, Seed(1)).expect("at least one run")
    };
    let mut rows: Vec<Row> = vec![
        ("seconds".into(), Box::new(|f| f.seconds)),
        ("user + system".into(), Box::new(|f| f.user + f.system)),
        ("operations".into(), Box::new(|f| f.reached.operations as f64)),
        ("free extents".into(), Box::new(|f| f.free_extents)),
        ("extents per file".into(), Box::new(|f| f.extents_per_file)),
        ("layout score".into(), Box::new(|f| f.layout_score)),
    ];
    for power in 0..20 {
        let used = all.values().flatten().any(|figures| figures.histogram[power] > 0.0);
        if used {
            let name = format!("free, {} KiB", (BLOCK_BYTES << power) / 1024);
            rows.push((name, Box::new(move |f: &Figures| 100.0 * f.histogram[power])));
        }
    }
    let first = all.keys().next().expect("a schedule").clone();
    for (name, of) in &rows {
        let mut line = format!("{name:<18}");
        let base = spread(&all[&first], of);
        for (schedule, figures) in all {
            let found = spread(figures, of);
            let mark = if *schedule == first || overlaps(&base, &found) { ' ' } else { '*' };
            line += &format!(
                "  {schedule}: {:.4} [{:.4}, {:.4}]{mark}",
                found.median, found.interval_low, found.interval_high
            );
        }
        println!("{line}");
    }
    let mean = |figures: &[Figures]| -> Vec<f64> {
        (0..40).map(|at| figures.iter().map(|f| f.histogram[at]).sum::<f64>() / figures.len() as f64).collect()
    };
    let base = mean(&all[&first]);
    for (schedule, figures) in all.iter().filter(|(schedule, _)| **schedule != first) {
        let far: f64 = mean(figures).iter().zip(&base).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
        println!("free-space histogram (bytes) of {schedule}: total variation {far:.4} from that of {first}");
    }
    println!("(* the interval does not overlap that of {first})\n");
}

fn overlaps(a: &Spread, b: &Spread) -> bool {
    a.interval_low <= b.interval_high && b.interval_low <= a.interval_high
}
