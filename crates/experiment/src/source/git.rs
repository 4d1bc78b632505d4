//! Commits of a git repository: a local, a cloned, or a synthetic one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::{Bytes, Seed};
use senesce_exec::{Prefetcher, prefetch_contents, resolve_ops};
use senesce_gitsource::{
    GitContents, History, HistoryOptions, MainLine, ObjectCheck, SpoolRepository, TrustedOwners, collect_git_version,
};
use senesce_oplog::{ContentSource, Op};
use senesce_workload::{
    Workload, WorkloadError,
    git::{
        Filling, FullDiskOptions, GitFullDisk, GitReplay, Oid, PackKey, PackNames, PlannerOptions, Pull, PullPlanner,
    },
    synthetic::{HistoryModel, SyntheticHistory},
};

use super::WorkloadAhead;
use crate::{
    Error,
    arm::{Driver, GitDriver, GitPace, check_signal},
    durable_files::{sync_tree, write_durably},
    plan::{Arm, Edition, Plan, StartAt},
    sizing::AUTO_CLONE_BYTES,
};

/// The maximum of contents that are made before their use, bytes.
const AHEAD_BYTES: u64 = 64 * Bytes::MIB;

type PullResult = Result<Pull, WorkloadError>;

/// An opened repository.
pub struct GitSource {
    history: History,
    contents: Arc<GitContents>,
    start: usize,
    origin: String,
    git_version: String,
    /// The model of a synthetic history that follows a model file.
    model: Option<Box<HistoryModel>>,
}

impl GitSource {
    /// Opens the plan's history, and checks the objects of the commits that the plan pulls.
    pub(super) fn open(plan: &Plan, spool: &Path, owners: &TrustedOwners) -> Result<Self, Error> {
        let model = plan.history.like.as_deref().map(|name| super::synthetic::read_model(name, spool));
        let model = model.transpose()?.map(Box::new);
        let (repository, origin) = repository(plan, model.as_deref(), spool, owners)?;
        let options =
            HistoryOptions { tip: plan.history.tip.clone(), first_parent: plan.history.first_parent, limit: None };
        let history = History::open(&repository, options)?;
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
        check_objects(plan, &history, &contents, start)?;
        Ok(Self { history, contents, start, origin, git_version: collect_git_version()?, model })
    }

    /// Makes the synthetic history that a log names, below `spool`. Returns its path.
    pub fn remake_synthetic(description: &serde_json::Value, spool: &Path) -> Result<PathBuf, Error> {
        let unclear = |error: serde_json::Error| Error::Unverified {
            what: "the synthetic history in the log's header".into(),
            problem: error.to_string(),
        };
        let seed = Seed(serde_json::from_value(description["seed"].clone()).map_err(unclear)?);
        let history = match &description["like"] {
            serde_json::Value::Null => {
                let synthetic = serde_json::from_value(description["parameters"].clone()).map_err(unclear)?;
                super::synthetic::linux_like(&synthetic, seed)?
            }
            model => {
                let model: HistoryModel = serde_json::from_value(model.clone()).map_err(unclear)?;
                SyntheticHistory::like(model.checked("the log's header")?, seed)
            }
        };
        std::fs::create_dir_all(spool).map_err(Error::io("create", spool))?;
        let path = spool.join("synthetic.git");
        super::synthetic::make(history, &path)?;
        Ok(path)
    }

    /// Opens a repository, a path or a URL, for the replay of a log.
    pub fn for_replay(
        repo: &str,
        options: HistoryOptions,
        spool: &Path,
        owners: &TrustedOwners,
    ) -> Result<Arc<dyn ContentSource>, Error> {
        let history = History::open(&spooled(repo, spool, owners)?, options)?;
        Ok(Arc::new(GitContents::new(&history, &spool.join("packs"))?))
    }

    /// The main line of a repository, a path or a URL, for the statistics of its history. Copies
    /// the repository below `spool`.
    pub fn open_main_line(repo: &str, spool: &Path, owners: &TrustedOwners) -> Result<MainLine, Error> {
        let options = HistoryOptions { first_parent: true, ..HistoryOptions::default() };
        Ok(MainLine::open(History::open(&spooled(repo, spool, owners)?, options)?)?)
    }

    /// Opens the synthetic repository that [`Self::remake_synthetic`] made, for the replay of a
    /// log.
    pub fn for_replay_of_synthetic(
        path: &Path,
        options: HistoryOptions,
        spool: &Path,
    ) -> Result<Arc<dyn ContentSource>, Error> {
        let history = History::open(&SpoolRepository::adopt(path, path)?, options)?;
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

    /// Returns the workload and the source of its contents. Another thread makes pulls and contents
    /// in advance.
    pub(super) fn workload(&self, plan: &Plan, arm: &Arm) -> Result<WorkloadAhead, Error> {
        let wanted = plan.history.pulls.unwrap_or(u64::MAX);
        let options = match plan.workload.edition {
            Edition::Single => {
                // Every pull is used once. Its contents are queued one by one, so the clone need
                // not fit in memory.
                let ops = |pull: &PullResult| pull.as_ref().map_or_else(|_| [].into(), |pull| pull.ops.clone());
                let (pulls, contents) = prefetch_contents(self.planner(arm.gc)?, ops, self.contents(), AHEAD_BYTES);
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
        // Every copy makes every pull, so a pull is kept with its contents until the last copy has
        // made it. The executor requests contents that are too large for the queue or cannot be
        // made here. It reports errors with their place.
        let contents = self.contents();
        let pulls = self.planner(arm.gc)?.map(move |pull| {
            let pull = pull?;
            let bytes = resolve_ops(&pull.ops, &*contents, AHEAD_BYTES).unwrap_or(0);
            Ok((pull, bytes))
        });
        let cost = |item: &Result<(Pull, u64), WorkloadError>| {
            item.as_ref().map_or(0, |(pull, bytes)| bytes + (size_of::<Op>() * pull.ops.len()) as u64)
        };
        let ahead = Prefetcher::spawn(pulls, AHEAD_BYTES, cost).map(|item| item.map(|(pull, _)| pull));
        Ok((Box::new(GitFullDisk::new(Box::new(ahead), options)), self.contents()))
    }

    pub(super) fn first_step_only(&self) -> Result<Box<dyn Workload>, Error> {
        Ok(Box::new(GitReplay::new(Box::new(self.planner(false)?), 0)))
    }

    pub(super) fn real_driver(&self, plan: &Plan, arm: &Arm, pulls: u64) -> Driver {
        let last_commit = self.start.saturating_add(usize::try_from(pulls).unwrap_or(usize::MAX));
        let options = self.planner_options(arm.gc);
        let every = plan.workload.sync_every_operations;
        let pace = (every > 0).then(|| {
            let history = Box::new(self.history.clone());
            let planner = PullPlanner::new(history, Arc::new(NoPacks), self.history.commits(), options);
            GitPace::new(Box::new(GitReplay::new(Box::new(planner), pulls)), every)
        });
        Driver::Git(GitDriver::new(self.history.clone(), options, last_commit, pace))
    }

    fn ends(&self) -> (String, String) {
        let commits = self.history.commits();
        let name = |at: usize| commits.get(at).map_or_else(String::new, ToString::to_string);
        (name(self.start), name(commits.len() - 1))
    }

    pub(super) fn description(&self, plan: &Plan) -> serde_json::Value {
        let (first, last) = self.ends();
        // A replay makes a synthetic history again, so its path in the run's directory is not
        // recorded.
        let from = match (&plan.history.synthetic, &self.model) {
            (Some(synthetic), _) => ("synthetic", serde_json::json!({ "seed": plan.seed.0, "parameters": synthetic })),
            // The whole model, so that the log needs no other file.
            (None, Some(model)) => ("synthetic", serde_json::json!({ "seed": plan.seed.0, "like": model })),
            // As the plan has it, so that the same plan gives the same log in any directory.
            (None, None) => ("repo", plan.history.repo.as_deref().into()),
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

/// Names packs without making them. The number of operations does not depend on their bytes.
struct NoPacks;

impl PackNames for NoPacks {
    fn pack_name(&self, pack: PackKey) -> Result<Oid, WorkloadError> {
        let hash = blake3::hash(pack.to_string().as_bytes());
        Ok(Oid(hash.as_bytes()[..20].try_into().expect("a hash has 32 bytes")))
    }
}

/// For [`StartAt::Auto`]: the newest commit with enough later commits to pull, and with a clone
/// that is small enough.
///
/// A clone is a work tree and a pack of the history up to its commit. The pack is assumed to grow
/// evenly to its final size.
fn choose_start(plan: &Plan, history: &History) -> Result<usize, Error> {
    // Several copies share a commit. The number of copies is not known yet, so assume four, the
    // fewest that are useful.
    let per_commit = if plan.workload.edition == Edition::Single { 1 } else { 4 };
    let wanted = usize::try_from(plan.history.pulls.unwrap_or(0) / per_commit).unwrap_or(usize::MAX);
    let newest = history.len().saturating_sub(wanted.saturating_add(1));
    let packed = history.packed_bytes();
    let fits = |number: usize| -> Result<bool, Error> {
        let pack = packed / history.len() as u64 * number as u64;
        Ok(history.work_tree_bytes(number)? + pack <= AUTO_CLONE_BYTES)
    };
    // Trees and packs mostly grow, so bisect the range for the last commit that fits.
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

/// Returns the repository in the spool, and its origin.
fn repository(
    plan: &Plan,
    model: Option<&HistoryModel>,
    spool: &Path,
    owners: &TrustedOwners,
) -> Result<(SpoolRepository, String), Error> {
    if let Some(model) = model {
        let path = spool.join("synthetic.git");
        super::synthetic::make(SyntheticHistory::like(model.clone(), plan.seed), &path)?;
        // Two models can have files of one name, so the hash identifies the model.
        let hash = blake3::hash(model.to_text().as_bytes()).to_hex();
        let origin = format!(
            "synthetic like model {} ({} files, {} commits, seed {})",
            &hash[..16],
            model.files,
            model.commits,
            plan.seed.0
        );
        return Ok((SpoolRepository::adopt(&path, &path)?, origin));
    }
    if let Some(synthetic) = &plan.history.synthetic {
        let path = spool.join("synthetic.git");
        super::synthetic::make(super::synthetic::linux_like(synthetic, plan.seed)?, &path)?;
        let origin = format!(
            "synthetic {} ({} files, {} commits, seed {})",
            synthetic.model, synthetic.files, synthetic.commits, plan.seed.0
        );
        return Ok((SpoolRepository::adopt(&path, &path)?, origin));
    }
    let given = plan.history.repo.clone().unwrap_or_default();
    Ok((spooled(&given, spool, owners)?, given))
}

/// Copies the repository at a path, or clones the one at a URL, below `spool`. Does it once.
fn spooled(given: &str, spool: &Path, owners: &TrustedOwners) -> Result<SpoolRepository, Error> {
    let of_file_url = given.strip_prefix("file://");
    let local = Path::new(of_file_url.unwrap_or(given));
    let is_local = of_file_url.is_some() || local.exists() || !is_url(given);
    std::fs::create_dir_all(spool).map_err(Error::io("create", spool))?;
    let path = spool.join(if is_local { "source.git" } else { "clone.git" });
    if path.join(".complete").exists() {
        return Ok(SpoolRepository::adopt(&path, Path::new(given))?);
    }
    if path.exists() {
        std::fs::remove_dir_all(&path).map_err(Error::io("remove the unfinished copy", &path))?;
    }
    let made = if is_local {
        let copied = SpoolRepository::copy(local, &path, owners, &|| check_signal().is_ok());
        copied.or_else(|error| check_signal().and(Err(error.into())))?
    } else {
        SpoolRepository::clone_url(given, &path)?
    };
    sync_tree(&path)?;
    write_durably(&path.join(".complete"), b"")?;
    Ok(made)
}

/// Fails before any volume is made if the history lacks objects that the plan needs.
///
/// The clone's pack, which is used later, proves the objects up to the clone. The objects of the
/// pulls are looked up.
fn check_objects(plan: &Plan, history: &History, contents: &GitContents, start: usize) -> Result<(), Error> {
    contents.pack_name(PackKey::All(start))?;
    let pulls = plan.history.pulls.map_or(usize::MAX, |pulls| usize::try_from(pulls).unwrap_or(usize::MAX));
    let last = start.saturating_add(pulls).min(history.len() - 1);
    let mut check = ObjectCheck::new(history);
    for number in start + 1..=last {
        check_signal()?;
        check.check_commit(number)?;
    }
    Ok(check.finish()?)
}

/// Whether git can clone from this text: `https://…`, `host:path`.
pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://") || text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}
