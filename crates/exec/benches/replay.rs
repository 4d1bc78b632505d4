//! A native replay against a loop of the same prepared system calls, on one file system.
//!
//! The history is cut into parts of about 128 MiB. Both sides apply each part in a tree of their
//! own, one right after the other. So every part gives a ratio, and a busy machine disturbs both
//! sides. Both sync the file system after every 2,000 operations and after each part.
//!
//! Environment:
//!
//! - `SENESCE_BENCH_DIR`: an empty directory of the file system to try (default: a temporary one).
//! - `SENESCE_BENCH_TRACE`: a size-only trace (`S path size`, `D path`, `W path size`, `C bytes`),
//!   uncompressed. Without it, a small generated history is used.
//! - `SENESCE_BENCH_COMMITS`: the number of commits after which the bench stops.
//! - `SENESCE_BENCH_ROUNDS`: the number of rounds (default: 1).

use std::{
    collections::{HashMap, HashSet},
    env, fmt, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use senesce_core::{RelPath, Rng, Seed};
use senesce_exec::{PosixTarget, Target, apply_step, prefetch_contents, syscall_baseline::SyscallBaseline};
use senesce_oplog::{Content, DoneStep, LogHeader, LogWriter, Op, Outcome, Step};

/// The same values as in an experiment.
const AHEAD_BYTES: u64 = 16 << 20;
const SYNC_EVERY_OPERATIONS: usize = 2_000;

fn main() {
    let commits = env::var("SENESCE_BENCH_COMMITS").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let rounds = env::var("SENESCE_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let steps: Arc<[Step]> = match env::var_os("SENESCE_BENCH_TRACE") {
        Some(path) => steps_of_trace(Path::new(&path), commits),
        None => made_up_steps(commits.min(200)),
    };
    let temporary = tempfile::tempdir().unwrap();
    let dir = env::var_os("SENESCE_BENCH_DIR").map_or(temporary.path().to_owned(), PathBuf::from);
    let operations: usize = steps.iter().map(|step| step.ops.len()).sum();
    println!("{} steps, {operations} operations, on {}", steps.len(), dir.display());
    let mut speeds = Vec::new();
    for round in 0..rounds {
        let (bare_at, native_at) = (dir.join("bare"), dir.join("native"));
        let (mut bare, mut native) = (Times::default(), Times::default());
        fs::create_dir(&bare_at).unwrap();
        fs::create_dir(&native_at).unwrap();
        let mut log = LogWriter::create(&temporary.path().join(format!("log-{round}")), &header()).unwrap();
        let mut number = 0;
        for (part_number, part) in parts(&steps).into_iter().enumerate() {
            // The order alternates, so that the state that a part leaves favours neither side.
            let mut pair = (None, None);
            for native_turn in [part_number % 2 == 0, part_number % 2 == 1] {
                if native_turn {
                    pair.1 = Some(run_native(part.clone(), &native_at, &mut log, &mut number));
                } else {
                    pair.0 = Some(run_bare(&part, &bare_at));
                }
            }
            let (bare_part, native_part) = (pair.0.expect("it ran"), pair.1.expect("it ran"));
            speeds.push(bare_part.wall / native_part.wall);
            bare.add(bare_part);
            native.add(native_part);
        }
        log.finish().unwrap();
        println!(
            "round {round}: bare {bare}; native {native}; native at {:.1}% of bare's speed; applying thread in user mode \
             for {:.1}% of its wall time",
            100.0 * bare.wall / native.wall,
            100.0 * native.thread_user / native.wall,
        );
        fs::remove_dir_all(&bare_at).unwrap();
        fs::remove_dir_all(&native_at).unwrap();
        rustix::fs::syncfs(fs::File::open(&dir).unwrap()).unwrap();
    }
    speeds.sort_by(f64::total_cmp);
    let quartile = |n: usize| 100.0 * speeds[speeds.len() * n / 4];
    let peak = fs::read_to_string("/proc/self/status").unwrap();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?").trim();
    println!(
        "{} pairs: native at {:.1}% of bare's speed (median; quartiles {:.1}% and {:.1}%); peak resident memory {peak}, the \
         bare loop's prepared calls included",
        speeds.len(),
        quartile(2),
        quartile(1),
        quartile(3),
    );
}

/// Seconds of wall time, of the applying thread, and of all threads.
#[derive(Clone, Copy, Default)]
struct Times {
    wall: f64,
    thread_user: f64,
    thread_system: f64,
    all_user: f64,
    all_system: f64,
}

impl Times {
    fn of(work: impl FnOnce()) -> Self {
        let (thread, all, start) =
            (cpu_seconds("/proc/thread-self/stat"), cpu_seconds("/proc/self/stat"), Instant::now());
        work();
        let wall = start.elapsed().as_secs_f64();
        let (thread_after, all_after) = (cpu_seconds("/proc/thread-self/stat"), cpu_seconds("/proc/self/stat"));
        Self {
            wall,
            thread_user: thread_after.0 - thread.0,
            thread_system: thread_after.1 - thread.1,
            all_user: all_after.0 - all.0,
            all_system: all_after.1 - all.1,
        }
    }

    fn add(&mut self, other: Self) {
        self.wall += other.wall;
        self.thread_user += other.thread_user;
        self.thread_system += other.thread_system;
        self.all_user += other.all_user;
        self.all_system += other.all_system;
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} s (thread: user {:.2}, system {:.2}; all: user {:.2}, system {:.2})",
            self.wall, self.thread_user, self.thread_system, self.all_user, self.all_system
        )
    }
}

/// Splits the steps into parts that write about 128 MiB each.
fn parts(steps: &[Step]) -> Vec<Arc<[Step]>> {
    let (mut parts, mut part, mut held) = (Vec::new(), Vec::new(), 0);
    for step in steps {
        held += step.ops.iter().map(content_len).sum::<u64>();
        part.push(step.clone());
        if held > 128 << 20 {
            parts.push(std::mem::take(&mut part));
            held = 0;
        }
    }
    parts.push(part);
    // The writes of one part must be on the device before the other side runs.
    parts.into_iter().map(|part| part.into_iter().chain([synchronise()]).collect()).collect()
}

/// The time of the calls only, without their preparation.
fn run_bare(part: &[Step], at: &Path) -> Times {
    let target = PosixTarget::open(at).unwrap();
    let done =
        |step: &Step| DoneStep { number: 0, step: step.clone(), outcome: Outcome::Done, contents: vec![], began: None };
    let bare = SyscallBaseline::compile(&part.iter().map(done).collect::<Vec<_>>(), &(), 0o022).unwrap();
    Times::of(|| bare.run(target.root()).unwrap())
}

fn content_len(op: &Op) -> u64 {
    match op.content() {
        Some(Content::Seeded { len, .. }) => *len,
        _ => 0,
    }
}

fn header() -> LogHeader {
    LogHeader::new("bench".into(), Seed(1))
}

/// The time of a whole native replay: generating and hashing contents ahead on a second thread,
/// reading the free space, applying, recording. The second thread starts with the part, so that it
/// makes nothing while the other side runs.
fn run_native(part: Arc<[Step]>, at: &Path, log: &mut LogWriter, number: &mut u64) -> Times {
    let mut target = PosixTarget::open(at).unwrap();
    Times::of(|| {
        let all = (0..part.len()).map(move |index| part[index].clone());
        let (steps, contents) = prefetch_contents(all, |step| step.ops.clone(), Arc::new(()), AHEAD_BYTES);
        for step in steps {
            target.space().unwrap();
            let done = apply_step(&mut target as &mut dyn Target, *number, step, &*contents).unwrap();
            assert_eq!(done.outcome, Outcome::Done, "the file system is too small");
            log.append(&done).unwrap();
            *number += 1;
        }
        log.flush().unwrap();
    })
}

/// User and system seconds of a process or thread, from /proc (in ticks of 10 ms).
fn cpu_seconds(stat: &str) -> (f64, f64) {
    let stat = fs::read_to_string(stat).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() / 100.0, fields[12].parse::<f64>().unwrap() / 100.0)
}

/// Makes the operations of a replay of the trace. A file is replaced by unlinking and creating it.
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

fn steps_of_trace(path: &Path, commits: usize) -> Arc<[Step]> {
    let mut maker = Maker { known: HashMap::new(), directories: HashSet::new(), ops: vec![], seed: 0 };
    let mut steps = Vec::new();
    for line in BufReader::new(fs::File::open(path).unwrap()).lines() {
        let line = line.unwrap();
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "S" | "W" => {
                let (path, size) = rest.rsplit_once(' ').unwrap();
                maker.write(&RelPath::try_from(path).unwrap(), size.parse().unwrap());
                // The initial tree is also split into steps, so that it need not fit in memory.
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
    with_pace(steps)
}

fn synchronise() -> Step {
    Step { label: "pace".into(), counted: false, root: RelPath::root(), ops: [Op::SyncFs].into() }
}

/// Inserts the steps that sync, as an experiment does.
fn with_pace(steps: Vec<Step>) -> Arc<[Step]> {
    let mut unsynced = 0;
    let mut paced = Vec::new();
    for step in steps {
        unsynced += step.ops.len();
        paced.push(step);
        if unsynced >= SYNC_EVERY_OPERATIONS {
            paced.push(synchronise());
            unsynced = 0;
        }
    }
    paced.into()
}

fn made_up_steps(commits: usize) -> Arc<[Step]> {
    let mut rng = Rng::for_purpose(Seed(1), "bench");
    let mut maker = Maker { known: HashMap::new(), directories: HashSet::new(), ops: vec![], seed: 0 };
    let mut write = |maker: &mut Maker| {
        let path = format!("d{}/e{}/f{}", rng.below(20), rng.below(10), rng.below(15));
        maker.write(&RelPath::try_from(path.as_str()).unwrap(), rng.below(48 << 10));
    };
    let step = |_| {
        (0..40).for_each(|_| write(&mut maker));
        maker.step()
    };
    with_pace((0..commits).map(step).collect())
}
