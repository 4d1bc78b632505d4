//! Commits of a git repository: given, cloned, or synthetic.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::Bytes;
use senesce_exec::{Ahead, make_ahead, resolve_ops};
use senesce_gitsource::{GitContents, History, HistoryOptions, clone_url, collect_git_version};
use senesce_oplog::{ContentSource, Op};
use senesce_workload::{
    Workload, WorkloadError,
    git::{Filling, FullDiskOptions, GitFullDisk, GitReplay, PlannerOptions, Pull, PullPlanner},
};

use super::WorkloadAhead;
use crate::{
    Error,
    arm::{Driver, GitDriver},
    durable::{sync_tree, write_durably},
    plan::{Arm, Edition, Plan, StartAt},
    sizing::AUTO_CLONE_BYTES,
};

/// Bytes of contents that may be made ahead of their use.
const AHEAD_BYTES: u64 = 64 * Bytes::MIB;

type PullResult = Result<Pull, WorkloadError>;

/// An opened repository.
pub struct GitSource {
    history: History,
    contents: Arc<GitContents>,
    start: usize,
    origin: String,
    git_version: String,
}

impl GitSource {
    pub(super) fn open(plan: &Plan, spool: &Path) -> Result<Self, Error> {
        let (path, origin) = repository(plan, spool)?;
        let options =
            HistoryOptions { tip: plan.history.tip.clone(), first_parent: plan.history.first_parent, limit: None };
        let history = History::open(&path, options)?;
        let start = match plan.history.start {
            StartAt::Commit(number) => usize::try_from(number).unwrap_or(usize::MAX - 1),
            StartAt::Auto => choose_start(plan, &history)?,
        };
        if start + 1 >= history.len() {
            let problem = format!(
                "the clone starts at commit {start} (history.start), and the repository has {} (0 to {}): nothing is \
                 left to pull",
                history.len(),
                history.len().saturating_sub(1)
            );
            return Err(Error::NoPulls { problem });
        }
        let contents = Arc::new(GitContents::new(&history, &spool.join("packs"))?);
        Ok(Self { history, contents, start, origin, git_version: collect_git_version()? })
    }

    /// Makes the synthetic history that a log names, below `spool`; gives its path.
    pub fn remake_synthetic(description: &serde_json::Value, spool: &Path) -> Result<PathBuf, Error> {
        let unclear = |error: serde_json::Error| Error::Unverified {
            what: "the synthetic history in the log's header".into(),
            problem: error.to_string(),
        };
        let synthetic = serde_json::from_value(description["parameters"].clone()).map_err(unclear)?;
        let seed = senesce_core::Seed(serde_json::from_value(description["seed"].clone()).map_err(unclear)?);
        std::fs::create_dir_all(spool).map_err(Error::io("create", spool))?;
        let path = spool.join("synthetic.git");
        super::synthetic::make(&synthetic, seed, &path)?;
        Ok(path)
    }

    /// Opens the repository that a log names, a path or a URL, for a replay.
    pub fn for_replay(repo: &str, options: HistoryOptions, spool: &Path) -> Result<Arc<dyn ContentSource>, Error> {
        let history = History::open(&local_repository(repo, spool)?, options)?;
        Ok(Arc::new(GitContents::new(&history, &spool.join("packs"))?))
    }

    pub(super) fn pulls_there_are(&self) -> u64 {
        (self.history.len() - 1 - self.start) as u64
    }

    pub(super) fn contents(&self) -> Arc<dyn ContentSource> {
        self.contents.clone()
    }

    fn planner_options(&self, gc: bool) -> PlannerOptions {
        PlannerOptions { start: self.start, gc, ..PlannerOptions::default() }
    }

    fn planner(&self, gc: bool) -> Result<PullPlanner, Error> {
        let repository = Box::new(self.history.clone());
        Ok(PullPlanner::new(repository, self.contents.clone(), self.history.commits(), self.planner_options(gc)))
    }

    /// The workload, and the source that has its contents ready: pulls and contents are made ahead on another thread.
    pub(super) fn workload(&self, plan: &Plan, arm: &Arm) -> Result<WorkloadAhead, Error> {
        let wanted = plan.history.pulls.unwrap_or(u64::MAX);
        let options = match plan.workload.edition {
            Edition::Single => {
                // Every pull is made once: its contents wait one by one, and not even the clone has to fit in memory.
                let ops = |pull: &PullResult| pull.as_ref().map_or_else(|_| [].into(), |pull| pull.ops.clone());
                let (pulls, contents) = make_ahead(self.planner(arm.gc)?, ops, self.contents(), AHEAD_BYTES);
                return Ok((Box::new(GitReplay::new(Box::new(pulls), wanted)), contents));
            }
            Edition::FullDiskPaper => {
                let percent = u8::try_from(plan.workload.fill_percent).unwrap_or(98);
                FullDiskOptions { filling: Filling::Percent(percent), pulls: wanted, keep_free: None }
            }
            Edition::FullDiskCode => FullDiskOptions {
                filling: Filling::Copies(plan.workload.copies),
                pulls: wanted,
                keep_free: Some(plan.workload.keep_free.0),
            },
        };
        // Every copy makes every pull, and contents are kept with the pull until the last one has. Whatever is not made
        // here, because it is too much for memory or cannot be had, is asked for by the executor, who reports errors
        // with their place.
        let contents = self.contents();
        let pulls = self.planner(arm.gc)?.map(move |pull| {
            let pull = pull?;
            let bytes = resolve_ops(&pull.ops, &*contents, AHEAD_BYTES).unwrap_or(0);
            Ok((pull, bytes))
        });
        let cost = |item: &Result<(Pull, u64), WorkloadError>| {
            item.as_ref().map_or(0, |(pull, bytes)| bytes + (size_of::<Op>() * pull.ops.len()) as u64)
        };
        let ahead = Ahead::spawn(pulls, AHEAD_BYTES, cost).map(|item| item.map(|(pull, _)| pull));
        Ok((Box::new(GitFullDisk::new(Box::new(ahead), options)), self.contents()))
    }

    pub(super) fn first_step_only(&self) -> Result<Box<dyn Workload>, Error> {
        Ok(Box::new(GitReplay::new(Box::new(self.planner(false)?), 0)))
    }

    pub(super) fn real_driver(&self, _plan: &Plan, arm: &Arm, pulls: u64) -> Driver {
        let last_commit = self.start + usize::try_from(pulls).unwrap_or(usize::MAX);
        Driver::Git(GitDriver::new(self.history.clone(), self.planner_options(arm.gc), last_commit))
    }

    fn ends(&self) -> (String, String) {
        let commits = self.history.commits();
        let name = |at: usize| commits.get(at).map_or_else(String::new, ToString::to_string);
        (name(self.start), name(commits.len() - 1))
    }

    pub(super) fn description(&self, plan: &Plan) -> serde_json::Value {
        let (first, last) = self.ends();
        // A synthetic history is made anew wherever the log is replayed; its place in the run's directory means nothing.
        let from = match &plan.history.synthetic {
            Some(synthetic) => ("synthetic", serde_json::json!({ "seed": plan.seed.0, "parameters": synthetic })),
            // As given, so that the same plan gives the same log wherever it runs.
            None => ("repo", plan.history.repo.as_deref().into()),
        };
        serde_json::json!({
            "kind": "git",
            (from.0): from.1,
            "tip": last,
            "first_parent": plan.history.first_parent,
            "start": self.start,
            "first_commit": first,
            "commits": self.history.len(),
        })
    }

    pub(super) fn circumstances(&self) -> Vec<(String, String)> {
        let (first, last) = self.ends();
        vec![
            ("history.origin".into(), self.origin.clone()),
            ("history.commits".into(), self.history.len().to_string()),
            ("history.first_commit".into(), first),
            ("history.last_commit".into(), last),
            ("history.start".into(), self.start.to_string()),
            ("git.version".into(), self.git_version.clone()),
        ]
    }
}

/// For [`StartAt::Auto`]: the newest commit that leaves enough to pull and whose clone is small enough.
///
/// A clone is its work tree and a pack of the history up to there, which is taken to grow evenly to its size at the end.
fn choose_start(plan: &Plan, history: &History) -> Result<usize, Error> {
    // Several copies share a commit; how many there will be is not known yet, but four at least are worth having.
    let per_commit = if plan.workload.edition == Edition::Single { 1 } else { 4 };
    let wanted = usize::try_from(plan.history.pulls.unwrap_or(0) / per_commit).unwrap_or(usize::MAX);
    let newest = history.len().saturating_sub(wanted.saturating_add(1));
    let packed = history.packed_bytes();
    let fits = |number: usize| -> Result<bool, Error> {
        let pack = packed / history.len() as u64 * number as u64;
        Ok(history.work_tree_bytes(number)? + pack <= AUTO_CLONE_BYTES)
    };
    // Trees and packs grow, by and large: halve the range until the last commit that fits is found.
    let (mut good, mut bad) = (0, newest + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(good)
}

/// The repository on this machine, and where it came from.
fn repository(plan: &Plan, spool: &Path) -> Result<(PathBuf, String), Error> {
    if let Some(synthetic) = &plan.history.synthetic {
        let path = spool.join("synthetic.git");
        super::synthetic::make(synthetic, plan.seed, &path)?;
        let origin = format!(
            "synthetic {} ({} files, {} commits, seed {})",
            synthetic.model, synthetic.files, synthetic.commits, plan.seed.0
        );
        return Ok((path, origin));
    }
    let given = plan.history.repo.clone().unwrap_or_default();
    Ok((local_repository(&given, spool)?, given))
}

/// The repository at a path, or a clone of the one at a URL, below `spool`.
fn local_repository(given: &str, spool: &Path) -> Result<PathBuf, Error> {
    if Path::new(given).exists() || !is_url(given) {
        return Ok(PathBuf::from(given));
    }
    std::fs::create_dir_all(spool).map_err(Error::io("create", spool))?;
    let path = spool.join("clone.git");
    if !path.join(".complete").exists() {
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(Error::io("remove the unfinished clone", &path))?;
        }
        clone_url(given, &path)?;
        sync_tree(&path)?;
        write_durably(&path.join(".complete"), b"")?;
    }
    Ok(path)
}

/// Whether it names a place that git can clone from: `https://…`, `host:path`.
fn is_url(text: &str) -> bool {
    text.contains("://") || text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}
