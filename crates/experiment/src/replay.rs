//! Replays a log at a place, and compares the resulting tree.

use std::{io, path::Path, sync::Arc, thread, time::Duration};

use senesce_core::{Clock, Nanos, StopFn};
use senesce_exec::{
    CheckContents, EngineTarget, Guard, ModelTarget, PosixTarget, Replay, Target, Withheld, apply_done, apply_parallel,
    collect_engine_tree_until,
    tree::{Tree, collect_tree_until, compare_trees},
};
use senesce_gitsource::{HistoryOptions, TrustedOwners};
use senesce_oplog::{ContentSource, DoneStep, Ended, LogHeader, LogReader};
use senesce_volume::interrupted;
use senesce_workload::fsfb::PrintableContents;
use serde_json::Value;

use crate::{
    Error,
    arm::check_signal,
    source::{GitSource, WithBeginnings, is_url},
};

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayEnd {
    /// Steps replayed.
    pub steps: u64,
    /// The end of the log.
    pub ended: Ended,
    /// Hash of the tree at the end.
    pub tree_hash: String,
    /// Files in it.
    pub files: u64,
    /// The first differences from the compared tree. Empty if both are equal.
    pub differences: Vec<String>,
    /// The operations that were not replayed as recorded, because the log is not trusted.
    pub withheld: Withheld,
}

/// The tree that the result is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against<'a> {
    /// A model in memory to which the same log is applied.
    Model,
    /// Another directory.
    Directory(&'a Path),
}

/// The place of the operations.
#[derive(Clone, Copy)]
pub enum Onto<'a> {
    /// An empty directory.
    Directory(&'a Path),
    /// An empty engine in this process. It has no page cache, so direct I/O of a recording changes
    /// nothing.
    Engine(&'a EngineTarget),
}

impl Onto<'_> {
    pub(crate) fn open(&self, direct: bool) -> Result<Box<dyn Target>, Error> {
        Ok(match self {
            Self::Directory(root) => Box::new(PosixTarget::open(root)?.with_direct_io(direct).with_stop(STOP)),
            Self::Engine(target) => Box::new(target.another().with_stop(STOP)),
        })
    }

    /// Describes an error of a query for free space.
    pub(crate) fn no_space_told(&self, source: io::Error) -> Error {
        let place = match self {
            Self::Directory(root) => root,
            Self::Engine(_) => Path::new("the engine"),
        };
        Error::io("query the free space of", place)(source)
    }

    fn collect_tree(&self, threads: usize) -> Result<Tree, Error> {
        match self {
            Self::Directory(root) => Ok(collect_tree_until(root, threads, &STOP)?),
            Self::Engine(target) => collect_engine_tree_until(target.file_system().as_ref(), STOP)
                .map_err(|error| Error::Unverified { what: "the engine's tree".into(), problem: error.to_string() }),
        }
    }
}

/// Stops the work after a signal.
const STOP: StopFn = || interrupted().is_some();

/// The number of differences that are reported.
const DIFFERENCES_SHOWN: usize = 10;

/// The pace of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayPace {
    /// As fast as possible.
    Max,
    /// No step starts before its recorded time divided by this factor. 1 is the pace of the
    /// recording.
    Recorded(f64),
}

/// The parameters of [`replay_log`].
pub struct ReplayOptions<'a> {
    /// The operation log.
    pub log: &'a Path,
    /// The place of the operations.
    pub onto: Onto<'a>,
    /// Overrides the repository that the log names: a path or a URL.
    pub repo: Option<&'a str>,
    /// The users whose repositories are read.
    pub owners: &'a TrustedOwners,
    /// The directory for packs, which are made again.
    pub spool: &'a Path,
    /// The tree that the result is compared with.
    pub against: Against<'a>,
    /// Threads that apply operations. Every file and every directory keeps the recorded order.
    pub threads: usize,
    /// The pace.
    pub pace: ReplayPace,
    /// The clock of the pace.
    pub clock: &'a dyn Clock,
    /// Threads that read the trees at the end.
    pub hash_threads: usize,
    /// Whether setuid and setgid bits, `security.*` and `trusted.*` attributes and device nodes are
    /// replayed as recorded. Otherwise they are left out and counted.
    pub trust_log: bool,
}

/// Replays a log, and checks every content against its recorded hash. Calls `each` with the number
/// of every step when it starts.
///
/// A signal stops it also in the middle of a step. The error is then
/// [`Interrupted`](crate::Interrupted).
pub fn replay_log(options: &ReplayOptions<'_>, each: &mut dyn FnMut(u64)) -> Result<ReplayEnd, Error> {
    replay_all(options, each).or_else(|error| {
        // Work that a signal stopped returns its own error.
        check_signal()?;
        Err(error)
    })
}

fn replay_all(options: &ReplayOptions<'_>, each: &mut dyn FnMut(u64)) -> Result<ReplayEnd, Error> {
    let ReplayOptions { log, onto, repo, owners, spool, against, threads, hash_threads, .. } = *options;
    let mut reader = LogReader::open(log)?;
    let contents = contents_of(&reader.header().workload, repo, spool, owners)?;
    let direct = was_direct(reader.header());
    let guard = Guard::new(options.trust_log);
    // The model applies the same operations; withheld operations are counted once.
    let model_guard = Guard::new(options.trust_log);
    let mut model = (against == Against::Model).then(|| model_guard.over(ModelTarget::default()));
    let how = Replay { check: CheckContents::Yes, stop: STOP };
    let mut pacer = Pacer::new(options);
    let mut next = || -> Result<Option<DoneStep>, Error> {
        check_signal()?;
        let Some(done) = reader.next().transpose()? else { return Ok(None) };
        pacer.wait_for(&done)?;
        if let Some(model) = &mut model {
            apply_done(model, &done, &*contents, Replay { check: CheckContents::LengthOnly, ..how })?;
        }
        each(done.number);
        Ok(Some(done))
    };
    let mut steps = 0;
    if threads > 1 {
        let open = |_| -> Result<Box<dyn Target>, Error> { Ok(Box::new(guard.over(onto.open(direct)?))) };
        let targets = (0..threads).map(open).collect::<Result<_, Error>>()?;
        steps = apply_parallel(targets, &*contents, how, next)?;
    } else {
        let mut target = guard.over(onto.open(direct)?);
        while let Some(done) = next()? {
            apply_done(&mut target, &done, &*contents, how)?;
            steps += 1;
        }
    }
    let ended = reader.ended().unwrap_or(Ended::Unfinished);
    let tree = onto.collect_tree(hash_threads)?;
    let other: Tree = match (against, model) {
        (Against::Directory(path), _) => collect_tree_until(path, hash_threads, &STOP)?,
        (Against::Model, model) => model.expect("made above").into_inner().tree_until(STOP)?,
    };
    let name = match options.against {
        Against::Directory(path) => path.display().to_string(),
        Against::Model => "the tree that the log describes".to_owned(),
    };
    let differences = compare_trees(&other, &tree, DIFFERENCES_SHOWN);
    let differences = differences.iter().map(|difference| difference.describe(&name, "the replay")).collect();
    let (tree_hash, files, withheld) = (tree.hash(), tree.files(), guard.withheld());
    Ok(ReplayEnd { steps, ended, tree_hash, files, differences, withheld })
}

/// Waits until a step is due.
struct Pacer<'a> {
    clock: &'a dyn Clock,
    start: Nanos,
    speed: Option<f64>,
    timed: bool,
}

/// The longest wait between two checks for a signal.
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

/// Whether the reads and overwrites of the logged run bypassed the page cache. An overwriting
/// workload has this in its parameters.
pub(crate) fn was_direct(header: &LogHeader) -> bool {
    header.workload["parameters"]["io"] == "direct"
}

/// Returns the source of the contents that the log's header names.
///
/// `repo` overrides the repository in the header. Errors: the repository does not exist.
pub(crate) fn contents_of(
    workload: &Value,
    repo: Option<&str>,
    spool: &Path,
    owners: &TrustedOwners,
) -> Result<Arc<dyn ContentSource>, Error> {
    let source = &workload["source"];
    let whole = match source["kind"] == "git" {
        true => git_contents(source, repo, spool, owners)?,
        false => Arc::new(PrintableContents), // for workloads without a repository
    };
    Ok(Arc::new(WithBeginnings(whole)))
}

fn git_contents(
    source: &Value,
    repo: Option<&str>,
    spool: &Path,
    owners: &TrustedOwners,
) -> Result<Arc<dyn ContentSource>, Error> {
    let options = HistoryOptions {
        tip: source["tip"].as_str().map(str::to_owned),
        first_parent: source["first_parent"].as_bool().unwrap_or(false),
        limit: None,
    };
    let unclear = |problem: String| Error::Unverified { what: "the log's header".into(), problem };
    match (repo, source["repo"].as_str()) {
        (Some(repo), _) => GitSource::for_replay(repo, options, spool, owners),
        // The log may come from a stranger, who must not choose which machines are contacted.
        (None, Some(named)) if is_url(named) && !Path::new(named).exists() => Err(unclear(format!(
            "it names the repository {named:?}, and senesce clones no URL that a log names; pass it with --repo"
        ))),
        (None, Some(named)) => GitSource::for_replay(named, options, spool, owners),
        (None, None) if source["synthetic"].is_object() => {
            let path = GitSource::remake_synthetic(&source["synthetic"], spool)?;
            GitSource::for_replay_of_synthetic(&path, options, spool)
        }
        (None, None) => Err(unclear("it names no repository; pass one with --repo".into())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use senesce_core::{RelPath, Seed};
    use senesce_oplog::{LogHeader, LogWriter, Op, Outcome, Step};

    use super::*;

    /// Each call advances this clock by 10 ms.
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
            owners: &TrustedOwners::new(0, None),
            spool: &dir.path().join("spool"),
            against: Against::Model,
            threads,
            pace,
            clock: &clock,
            hash_threads: 1,
            trust_log: false,
        };
        let mut times = Vec::new();
        let end = replay_log(&options, &mut |_| times.push(clock.0.load(Ordering::SeqCst)))?;
        assert_eq!((end.steps, end.differences), (4, vec![]));
        Ok(times)
    }

    #[test]
    fn no_step_starts_before_its_scaled_time() {
        let began = |number| Some(Nanos(number * 100_000_000));
        for (threads, speed) in [(1, 1.0), (1, 4.0), (3, 2.0)] {
            let times = replay_at(began, ReplayPace::Recorded(speed), threads).unwrap();
            for (number, time) in times.iter().enumerate() {
                let due = number as f64 * 1e8 / speed;
                // One call of the clock before the step, and one that finds the step due.
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
