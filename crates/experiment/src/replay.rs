//! A log replayed onto a place, and the resulting tree compared.

use std::{path::Path, sync::Arc};

use senesce_exec::{
    CheckContents, ModelTarget, PosixTarget, apply_done,
    tree::{Tree, collect_tree, compare_trees},
};
use senesce_gitsource::HistoryOptions;
use senesce_oplog::{ContentSource, Ended, LogReader};
use senesce_workload::fsfb::PrintableContents;
use serde_json::Value;

use crate::{Error, arm::check_signal, source::GitSource};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against<'a> {
    /// A model in memory to which the same log is applied.
    Model,
    /// Another directory.
    Directory(&'a Path),
}

/// Differences that are told.
const DIFFERENCES_SHOWN: usize = 10;

/// Replays `log` into `root`, which must be empty; every content is checked against its recorded hash.
///
/// `repo` overrides the repository that the log names; packs are made again below `spool`. `each` is told the number of
/// every step that was done.
pub fn replay_log(
    log: &Path,
    root: &Path,
    repo: Option<&Path>,
    spool: &Path,
    against: &Against<'_>,
    threads: usize,
    each: &mut dyn FnMut(u64),
) -> Result<ReplayEnd, Error> {
    let mut reader = LogReader::open(log)?;
    let contents = contents_of(&reader.header().workload, repo, spool)?;
    // The parameters of an overwriting workload say whether it passed the page cache by.
    let direct = reader.header().workload["parameters"]["io"] == "direct";
    let mut target = PosixTarget::open(root)?.with_direct_io(direct);
    let mut model = (*against == Against::Model).then(ModelTarget::default);
    let mut steps = 0;
    while let Some(done) = reader.next().transpose()? {
        check_signal()?;
        apply_done(&mut target, &done, &*contents, CheckContents::Yes)?;
        if let Some(model) = &mut model {
            apply_done(model, &done, &*contents, CheckContents::LengthOnly)?;
        }
        steps += 1;
        each(done.number);
    }
    let ended = reader.ended().unwrap_or(Ended::Unfinished);
    drop(target);
    let tree = collect_tree(root, threads)?;
    let other: Tree = match (against, model) {
        (Against::Directory(path), _) => collect_tree(path, threads)?,
        (Against::Model, model) => model.expect("made above").tree(),
    };
    let differences = compare_trees(&other, &tree, DIFFERENCES_SHOWN).iter().map(ToString::to_string).collect();
    Ok(ReplayEnd { steps, ended, tree_hash: tree.hash(), files: tree.files(), differences })
}

/// The source of the contents that the log's header names.
fn contents_of(workload: &Value, repo: Option<&Path>, spool: &Path) -> Result<Arc<dyn ContentSource>, Error> {
    let source = &workload["source"];
    if source["kind"] != "git" {
        return Ok(Arc::new(PrintableContents)); // those of workloads without a repository; seeded ones need nothing
    }
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
