//! A log replayed onto a place, and the resulting tree compared.

use std::{io, path::Path, sync::Arc, thread, time::Duration};

use senesce_core::{Clock, Nanos};
use senesce_exec::{
    CheckContents, EngineTarget, ModelTarget, PosixTarget, Target, apply_done, apply_parallel, collect_engine_tree,
    tree::{Tree, collect_tree, compare_trees},
};
use senesce_gitsource::HistoryOptions;
use senesce_oplog::{ContentSource, DoneStep, Ended, LogHeader, LogReader};
use senesce_workload::fsfb::PrintableContents;
use serde_json::Value;

use crate::{
    Error,
    arm::check_signal,
    source::{GitSource, WithBeginnings},
};

/// What a replay did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayEnd {
    /// Steps replayed.
    pub steps: u64,
    /// How the log ends.
    pub ended: Ended,
    /// Hash of the tree at the end.
    pub tree_hash: String,
    /// Files in it.
    pub files: u64,
    /// The first differences from what it was compared with; empty if equal.
    pub differences: Vec<String>,
}

/// What the tree at the end is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against<'a> {
    /// A model in memory to which the same log is applied.
    Model,
    /// Another directory.
    Directory(&'a Path),
}

/// What operations are applied to.
#[derive(Clone, Copy)]
pub enum Onto<'a> {
    /// An empty directory.
    Directory(&'a Path),
    /// An empty engine in this process. What passed the page cache by when it was recorded does so no more: there is none.
    Engine(&'a EngineTarget),
}

impl Onto<'_> {
    pub(crate) fn open(&self, direct: bool) -> Result<Box<dyn Target>, Error> {
        Ok(match self {
            Self::Directory(root) => Box::new(PosixTarget::open(root)?.with_direct_io(direct)),
            Self::Engine(target) => Box::new(target.another()),
        })
    }

    /// Why it does not say what space it has.
    pub(crate) fn no_space_told(&self, source: io::Error) -> Error {
        let place = match self {
            Self::Directory(root) => root,
            Self::Engine(_) => Path::new("the engine"),
        };
        Error::io("ask for the free space of", place)(source)
    }

    fn collect_tree(&self, threads: usize) -> Result<Tree, Error> {
        match self {
            Self::Directory(root) => Ok(collect_tree(root, threads)?),
            Self::Engine(target) => collect_engine_tree(target.file_system().as_ref())
                .map_err(|error| Error::Unverified { what: "the engine's tree".into(), problem: error.to_string() }),
        }
    }
}

/// Differences that are told.
const DIFFERENCES_SHOWN: usize = 10;

/// How fast a log is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayPace {
    /// As fast as it goes.
    Max,
    /// No step begins before its recorded time, divided by this; 1 is the pace of the recording.
    Recorded(f64),
}

/// What to replay, and how.
pub struct ReplayOptions<'a> {
    /// The operation log.
    pub log: &'a Path,
    /// Onto what.
    pub onto: Onto<'a>,
    /// Overrides the repository that the log names.
    pub repo: Option<&'a Path>,
    /// Packs are made again below it.
    pub spool: &'a Path,
    /// What the tree at the end is compared with.
    pub against: Against<'a>,
    /// Threads that apply operations; the recorded order is kept for every file and every directory.
    pub threads: usize,
    /// How fast.
    pub pace: ReplayPace,
    /// What tells the time for the pace.
    pub clock: &'a dyn Clock,
    /// Threads that read the trees at the end.
    pub hash_threads: usize,
}

/// Replays a log; every content is checked against its recorded hash. `each` is told the number of
/// every step that was begun.
pub fn replay_log(options: &ReplayOptions<'_>, each: &mut dyn FnMut(u64)) -> Result<ReplayEnd, Error> {
    let ReplayOptions { log, onto, repo, spool, against, threads, hash_threads, .. } = *options;
    let mut reader = LogReader::open(log)?;
    let contents = contents_of(&reader.header().workload, repo, spool)?;
    let direct = was_direct(reader.header());
    let mut model = (against == Against::Model).then(ModelTarget::default);
    let mut pacer = Pacer::new(options);
    let mut next = || -> Result<Option<DoneStep>, Error> {
        check_signal()?;
        let Some(done) = reader.next().transpose()? else { return Ok(None) };
        pacer.wait_for(&done)?;
        if let Some(model) = &mut model {
            apply_done(model, &done, &*contents, CheckContents::LengthOnly)?;
        }
        each(done.number);
        Ok(Some(done))
    };
    let mut steps = 0;
    if threads > 1 {
        let targets = (0..threads).map(|_| onto.open(direct)).collect::<Result<_, Error>>()?;
        steps = apply_parallel(targets, &*contents, CheckContents::Yes, next)?;
    } else {
        let mut target = onto.open(direct)?;
        while let Some(done) = next()? {
            apply_done(target.as_mut(), &done, &*contents, CheckContents::Yes)?;
            steps += 1;
        }
    }
    let ended = reader.ended().unwrap_or(Ended::Unfinished);
    let tree = onto.collect_tree(hash_threads)?;
    let other: Tree = match (against, model) {
        (Against::Directory(path), _) => collect_tree(path, hash_threads)?,
        (Against::Model, model) => model.expect("made above").tree(),
    };
    let differences = compare_trees(&other, &tree, DIFFERENCES_SHOWN).iter().map(ToString::to_string).collect();
    Ok(ReplayEnd { steps, ended, tree_hash: tree.hash(), files: tree.files(), differences })
}

/// Waits until a step is due.
struct Pacer<'a> {
    clock: &'a dyn Clock,
    start: Nanos,
    speed: Option<f64>,
    timed: bool,
}

/// The longest wait without looking for a signal.
const WAIT: Duration = Duration::from_millis(50);

impl<'a> Pacer<'a> {
    fn new(options: &ReplayOptions<'a>) -> Self {
        let speed = match options.pace {
            ReplayPace::Max => None,
            ReplayPace::Recorded(speed) => Some(speed),
        };
        Self { clock: options.clock, start: options.clock.now(), speed, timed: false }
    }

    fn wait_for(&mut self, done: &DoneStep) -> Result<(), Error> {
        let Some(speed) = self.speed else { return Ok(()) };
        let Some(began) = done.began else {
            if self.timed {
                return Ok(());
            }
            return Err(Error::Unverified {
                what: "the log".into(),
                problem: "its steps have no times, so there is no pace to keep: replay it with --pace max".into(),
            });
        };
        self.timed = true;
        let due = Duration::from_secs_f64(began.as_secs_f64() / speed);
        loop {
            let passed = Duration::from_nanos(self.clock.now().0.saturating_sub(self.start.0));
            let Some(left) = due.checked_sub(passed).filter(|left| !left.is_zero()) else { return Ok(()) };
            check_signal()?;
            thread::sleep(left.min(WAIT));
        }
    }
}

/// Whether the logged run's reads and overwrites passed the page cache by: the parameters of an overwriting workload say so.
pub(crate) fn was_direct(header: &LogHeader) -> bool {
    header.workload["parameters"]["io"] == "direct"
}

/// The source of the contents that the log's header names.
///
/// In: `repo` instead of the repository that it names. Errors: a repository that is not there.
pub(crate) fn contents_of(
    workload: &Value,
    repo: Option<&Path>,
    spool: &Path,
) -> Result<Arc<dyn ContentSource>, Error> {
    let source = &workload["source"];
    let whole = match source["kind"] == "git" {
        true => git_contents(source, repo, spool)?,
        false => Arc::new(PrintableContents), // those of workloads without a repository; seeded ones need nothing
    };
    Ok(Arc::new(WithBeginnings(whole)))
}

fn git_contents(source: &Value, repo: Option<&Path>, spool: &Path) -> Result<Arc<dyn ContentSource>, Error> {
    let repo = match (repo, source["repo"].as_str()) {
        (Some(path), _) => path.to_string_lossy().into_owned(),
        (None, Some(repo)) => repo.to_owned(),
        (None, None) if source["synthetic"].is_object() => {
            GitSource::remake_synthetic(&source["synthetic"], spool)?.to_string_lossy().into_owned()
        }
        (None, None) => {
            return Err(Error::Unverified {
                what: "the log's header".into(),
                problem: "it names no repository; give one with --repo".into(),
            });
        }
    };
    let options = HistoryOptions {
        tip: source["tip"].as_str().map(str::to_owned),
        first_parent: source["first_parent"].as_bool().unwrap_or(false),
        limit: None,
    };
    GitSource::for_replay(&repo, options, spool)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use senesce_core::{RelPath, Seed};
    use senesce_oplog::{LogHeader, LogWriter, Op, Outcome, Step};

    use super::*;

    /// Every look at it takes a hundredth of a second.
    struct Ticking(AtomicU64);

    impl Clock for Ticking {
        fn now(&self) -> Nanos {
            Nanos(self.0.fetch_add(10_000_000, Ordering::SeqCst))
        }

        fn unix_seconds(&self) -> u64 {
            0
        }
    }

    fn write_log(path: &Path, began: impl Fn(u64) -> Option<Nanos>) {
        let mut writer = LogWriter::create(path, &LogHeader::recorded("test".into(), Seed(1))).unwrap();
        for number in 0..4 {
            let path = RelPath::try_from(format!("d{number}").as_str()).unwrap();
            let ops = Arc::from([Op::Mkdir { path, mode: 0o755 }]);
            let step = Step { label: "test".into(), counted: true, root: RelPath::root(), ops };
            let outcome = Outcome::Done;
            let done = DoneStep { number, step, outcome, contents: vec![], began: began(number) };
            writer.append(&done).unwrap();
        }
        writer.finish().unwrap();
    }

    fn replay_at(began: impl Fn(u64) -> Option<Nanos>, pace: ReplayPace, threads: usize) -> Result<Vec<u64>, Error> {
        let dir = tempfile::tempdir().unwrap();
        write_log(&dir.path().join("log"), began);
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let clock = Ticking(AtomicU64::new(0));
        let options = ReplayOptions {
            log: &dir.path().join("log"),
            onto: Onto::Directory(&root),
            repo: None,
            spool: &dir.path().join("spool"),
            against: Against::Model,
            threads,
            pace,
            clock: &clock,
            hash_threads: 1,
        };
        let mut times = Vec::new();
        let end = replay_log(&options, &mut |_| times.push(clock.0.load(Ordering::SeqCst)))?;
        assert_eq!((end.steps, end.differences), (4, vec![]));
        Ok(times)
    }

    #[test]
    fn no_step_begins_before_its_recorded_time_divided_by_the_factor() {
        let began = |number| Some(Nanos(number * 100_000_000));
        for (threads, speed) in [(1, 1.0), (1, 4.0), (3, 2.0)] {
            let times = replay_at(began, ReplayPace::Recorded(speed), threads).unwrap();
            for (number, time) in times.iter().enumerate() {
                let due = number as f64 * 1e8 / speed;
                // The look before the step, and the one that saw that it is due.
                assert!((due..due + 4e7).contains(&(*time as f64)), "step {number} at {time}, due {due}");
            }
        }
        assert!(replay_at(began, ReplayPace::Max, 1).unwrap().iter().all(|&time| time <= 20_000_000));
    }

    #[test]
    fn a_log_without_times_has_no_pace() {
        let error = replay_at(|_| None, ReplayPace::Recorded(1.0), 1).unwrap_err();
        assert!(error.to_string().contains("no times"), "{error}");
        replay_at(|_| None, ReplayPace::Max, 2).unwrap();
    }
}
