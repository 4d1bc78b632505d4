//! A native replay against the bare loop of the same prepared system calls, alternating, on one directory.
//!
//! `SENESCE_BENCH_DIR` is an empty directory of the file system to try (default: a temporary one);
//! `SENESCE_BENCH_TRACE` a size-only trace (`S path size`, `D path`, `W path size`, `C bytes`), uncompressed; without it
//! a small made-up history is used; `SENESCE_BENCH_COMMITS` stops early. One line for each run, ratios at the end.

use std::{
    collections::{HashMap, HashSet},
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use senesce_core::{RelPath, Rng, Seed};
use senesce_exec::{Ahead, PosixTarget, Target, apply_prepared, bare::BareLoop, prepare_step};
use senesce_oplog::{Content, DoneStep, Op, Outcome, Step};

fn main() {
    let commits = env::var("SENESCE_BENCH_COMMITS").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let steps: Arc<[Step]> = match env::var_os("SENESCE_BENCH_TRACE") {
        Some(path) => steps_of_trace(Path::new(&path), commits),
        None => made_up_steps(commits.min(200)),
    }
    .into();
    let temporary = tempfile::tempdir().unwrap();
    let dir = env::var_os("SENESCE_BENCH_DIR").map_or(temporary.path().to_owned(), PathBuf::from);
    let operations: usize = steps.iter().map(|step| step.ops.len()).sum();
    println!("{} steps, {operations} operations, on {}", steps.len(), dir.display());
    let mut ratios = Vec::new();
    for round in 0..3 {
        let at = dir.join("bench");
        let (bare, bare_cpu) = fresh(&at, || run_bare(&steps, &at));
        let (native, native_cpu, cpu) = fresh(&at, || run_native(steps.clone(), &at));
        let ratio = bare.as_secs_f64() / native.as_secs_f64();
        let cpu_ratio = bare_cpu.as_secs_f64() / native_cpu.as_secs_f64();
        println!(
            "round {round}: wall: bare {:.3} s, native {:.3} s, native at {:.1}% of bare's speed; \
             CPU of the thread that applies: bare {:.3} s, native {:.3} s, {:.1}%; \
             native, both threads: user {:.2} s, system {:.2} s",
            bare.as_secs_f64(),
            native.as_secs_f64(),
            100.0 * ratio,
            bare_cpu.as_secs_f64(),
            native_cpu.as_secs_f64(),
            100.0 * cpu_ratio,
            cpu.0,
            cpu.1,
        );
        ratios.push((ratio, cpu_ratio));
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        100.0 * values[values.len() / 2]
    };
    println!(
        "median: wall {:.1}%, CPU of the thread that applies {:.1}% (on a busy machine only the latter says much)",
        median(ratios.iter().map(|r| r.0).collect()),
        median(ratios.iter().map(|r| r.1).collect())
    );
}

/// Runs in a new directory that is gone, on the device too, before the next run begins.
fn fresh<T>(at: &Path, run: impl FnOnce() -> T) -> T {
    fs::create_dir(at).unwrap();
    let result = run();
    fs::remove_dir_all(at).unwrap();
    rustix::fs::syncfs(fs::File::open(at.parent().unwrap()).unwrap()).unwrap();
    result
}

/// Time of the calls alone; preparing them, in parts of 64 MiB, is not counted.
fn run_bare(steps: &[Step], at: &Path) -> (Duration, Duration) {
    let target = PosixTarget::open(at).unwrap();
    let (mut time, mut cpu) = (Duration::ZERO, Duration::ZERO);
    let mut batch = Vec::new();
    let mut held = 0;
    for (number, step) in steps.iter().enumerate() {
        held += step.ops.iter().map(content_len).sum::<u64>();
        batch.push(DoneStep { number: 0, step: step.clone(), outcome: Outcome::Done, contents: vec![] });
        if held > 64 << 20 || number + 1 == steps.len() {
            let bare = BareLoop::compile(&batch, &(), 0o022).unwrap();
            let (start, start_cpu) = (Instant::now(), thread_cpu());
            bare.run(target.root()).unwrap();
            time += start.elapsed();
            cpu += thread_cpu() - start_cpu;
            batch.clear();
            held = 0;
        }
    }
    (time, cpu)
}

fn content_len(op: &Op) -> u64 {
    match op.content() {
        Some(Content::Seeded { len, .. }) => *len,
        _ => 0,
    }
}

/// Everything: growing and hashing contents ahead on a second thread, applying, recording.
fn run_native(steps: Arc<[Step]>, at: &Path) -> (Duration, Duration, (f64, f64)) {
    let mut target = PosixTarget::open(at).unwrap();
    let before = cpu_seconds();
    let (start, start_cpu) = (Instant::now(), thread_cpu());
    let all = steps.clone();
    let prepared = (0..all.len()).map(move |index| prepare_step(all[index].clone(), &()).unwrap());
    for (number, step) in (0..).zip(Ahead::spawn(prepared, 64 << 20, |step| step.held_bytes())) {
        let done = apply_prepared(&mut target as &mut dyn Target, number, step).unwrap();
        assert_eq!(done.outcome, Outcome::Done, "the file system is too small");
    }
    let time = start.elapsed();
    let (after, own) = (cpu_seconds(), thread_cpu() - start_cpu);
    (time, own, (after.0 - before.0, after.1 - before.1))
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap()
}

/// User and system seconds of this process, from /proc (in ticks of 10 ms).
fn cpu_seconds() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() / 100.0, fields[12].parse::<f64>().unwrap() / 100.0)
}

/// The operations that a replay of the trace does: a file is replaced by unlinking it and creating it anew.
struct Maker {
    known: HashMap<RelPath, ()>,
    directories: HashSet<RelPath>,
    ops: Vec<Op>,
    seed: u64,
}

impl Maker {
    fn write(&mut self, path: &RelPath, len: u64) {
        self.make_parents(path);
        if self.known.insert(path.clone(), ()).is_some() {
            self.ops.push(Op::Unlink { path: path.clone() });
        }
        self.seed += 1;
        let content = Content::Seeded { seed: self.seed, len };
        self.ops.push(Op::Create { path: path.clone(), mode: 0o644, content });
    }

    fn make_parents(&mut self, path: &RelPath) {
        let Some(parent) = path.parent() else { return };
        if !parent.is_root() && self.directories.insert(parent.clone()) {
            self.make_parents(&parent);
            self.ops.push(Op::Mkdir { path: parent, mode: 0o755 });
        }
    }

    fn step(&mut self) -> Step {
        let ops = std::mem::take(&mut self.ops).into();
        Step { label: "commit".into(), counted: true, root: RelPath::root(), ops }
    }
}

fn steps_of_trace(path: &Path, commits: usize) -> Vec<Step> {
    let mut maker = Maker { known: HashMap::new(), directories: HashSet::new(), ops: vec![], seed: 0 };
    let mut steps = Vec::new();
    for line in BufReader::new(fs::File::open(path).unwrap()).lines() {
        let line = line.unwrap();
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "S" | "W" => {
                let (path, size) = rest.rsplit_once(' ').unwrap();
                maker.write(&RelPath::try_from(path).unwrap(), size.parse().unwrap());
                // The starting tree in steps too, so that it need not be in memory at once.
                if kind == "S" && maker.ops.len() >= 500 {
                    steps.push(maker.step());
                }
            }
            "D" => {
                let path = RelPath::try_from(rest).unwrap();
                if maker.known.remove(&path).is_some() {
                    maker.ops.push(Op::Unlink { path });
                }
            }
            _ => steps.push(maker.step()),
        }
        if steps.len() >= commits {
            break;
        }
    }
    steps
}

fn made_up_steps(commits: usize) -> Vec<Step> {
    let mut rng = Rng::for_purpose(Seed(1), "bench");
    let mut maker = Maker { known: HashMap::new(), directories: HashSet::new(), ops: vec![], seed: 0 };
    let mut write = |maker: &mut Maker| {
        let path = format!("d{}/e{}/f{}", rng.below(20), rng.below(10), rng.below(15));
        maker.write(&RelPath::try_from(path.as_str()).unwrap(), rng.below(48 << 10));
    };
    (0..commits)
        .map(|_| {
            (0..40).for_each(|_| write(&mut maker));
            maker.step()
        })
        .collect()
}
