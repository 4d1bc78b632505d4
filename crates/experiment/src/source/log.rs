//! An operation log as the source of an experiment's steps.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::Bytes;
use senesce_exec::make_ahead;
use senesce_gitsource::TrustedOwners;
use senesce_oplog::{ContentError, ContentSource, DoneStep, LogError, LogHeader, LogReader, Payload};
use senesce_workload::{
    WorkloadError,
    replay::{LogReplay, Piece, ReplayOptions, parse_beginning, plan_pieces},
};
use serde_json::{Value, json};

use super::{
    WorkloadAhead,
    log_survey::{Survey, survey},
};
use crate::{
    Error,
    plan::{FileSystem, Plan, ReplayPlan},
    replay::{contents_of, was_direct},
};

/// Bytes of contents that may be made ahead of their use.
const AHEAD_BYTES: u64 = 16 * Bytes::MIB;

/// A log that was read through once: it is whole, it can be replayed, and its contents are to be had.
pub struct LogSource {
    path: PathBuf,
    table: ReplayPlan,
    header: LogHeader,
    options: ReplayOptions,
    survey: Survey,
    hash: String,
    contents: Arc<dyn ContentSource>,
}

impl LogSource {
    /// Reads the log of the plan; `spool` is for packs and for a synthetic history that is made again.
    ///
    /// Errors: damage, a log of a later version, one that no empty volume can follow, contents that are not to be had, a
    /// parameter out of its range. Cost: the log is read twice; contents from a repository are all made once; memory for
    /// the names of one repetition.
    pub(super) fn open(plan: &Plan, spool: &Path, owners: &TrustedOwners) -> Result<Self, Error> {
        let table = plan.workload.replay.clone().unwrap_or_default();
        let path = PathBuf::from(&table.log);
        let header = LogReader::open(&path)?.header().clone();
        let contents = contents_of(&header.workload, table.repo.as_deref(), spool, owners)?;
        let options = ReplayOptions {
            operations: table.operations.unwrap_or_else(|| default_operations(&header)),
            repeat: table.repeat,
            keep: table.keep.unwrap_or(table.repeat),
        };
        LogReplay::new(options, Bytes(0), Box::new([].into_iter()))?;
        let mut survey = survey(&path, options, &*contents, header.workload["source"]["kind"] == "git")?;
        let compresses = |fs: &FileSystem| fs.mount.as_ref().is_some_and(|options| options.contains("compress"));
        if plan.file_systems.iter().any(compresses) {
            survey.needed = Bytes(0);
        }
        if survey.counted == 0 {
            let problem = "it has no step that counts, so there is nothing to measure".to_owned();
            return Err(Error::Unverified { what: format!("the log {}", path.display()), problem });
        }
        let mut hasher = blake3::Hasher::new();
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        hasher.update_reader(file).map_err(Error::io("read", &path))?;
        let hash = hasher.finalize().to_hex().to_string();
        Ok(Self { path, table, header, options, survey, hash, contents })
    }

    /// How many counted steps it makes.
    pub(super) fn counted_steps(&self) -> u64 {
        self.survey.counted.saturating_mul(self.options.repeat)
    }

    /// The workload at its beginning, and what has its contents ready: both are made ahead on another thread.
    pub(super) fn start(&self) -> Result<WorkloadAhead, Error> {
        let path = self.path.clone();
        let pieces = plan_pieces(self.options, move || records(&path));
        let ops = |piece: &Result<Piece, WorkloadError>| {
            piece.as_ref().map_or_else(|_| [].into(), |piece| piece.step.ops.clone())
        };
        let (pieces, contents) = make_ahead(pieces, ops, self.contents.clone(), AHEAD_BYTES);
        let replay = LogReplay::new(self.options, self.survey.needed, Box::new(pieces))?;
        Ok((Box::new(replay), contents))
    }

    pub(super) fn contents(&self) -> Arc<dyn ContentSource> {
        self.contents.clone()
    }

    /// What a volume has to hold at least.
    pub(super) fn needed(&self) -> Bytes {
        self.survey.needed
    }

    /// What one repetition occupies at most.
    pub(super) fn first_state_bytes(&self) -> u64 {
        self.survey.peak.0
    }

    /// Whether its reads and overwrites passed the page cache by.
    pub(super) fn is_direct(&self) -> bool {
        was_direct(&self.header)
    }

    /// The header of the log of what is done now: of the same version, and from where its contents come.
    pub(super) fn log_header(&self, plan: &Plan) -> LogHeader {
        let source = match &self.header.workload["source"] {
            Value::Null => json!({ "kind": "log" }),
            source => source.clone(),
        };
        let workload = json!({
            "kind": "replay",
            "parameters": {
                "operations": self.options.operations,
                "repeat": self.options.repeat,
                "keep": self.options.keep,
                "io": if self.is_direct() { "direct" } else { "buffered" },
            },
            "log": { "blake3": self.hash, "seed": self.header.seed, "workload": self.header.workload },
            "sync_every_operations": plan.workload.sync_every_operations,
            "source": source,
        });
        match self.header.format == LogHeader::RECORDED_FORMAT {
            true => LogHeader::recorded(workload, plan.seed),
            false => LogHeader::new(workload, plan.seed),
        }
    }

    pub(super) fn circumstances(&self) -> Vec<(String, String)> {
        let Survey { summary, needed, peak, .. } = &self.survey;
        let repo = self.table.repo.iter().map(|repo| ("repo", repo.clone()));
        let facts = [
            ("log", self.path.display().to_string()),
            ("log_blake3", self.hash.clone()),
            ("log_workload", self.header.workload.to_string()),
            ("log_ended", summary.ended.to_string()),
            ("log_steps", summary.steps.to_string()),
            ("log_operations", summary.operations.to_string()),
            ("log_content_bytes", summary.content_bytes.to_string()),
            ("log_peak_bytes", peak.0.to_string()),
            ("log_needed_bytes", needed.0.to_string()),
            ("operations", self.options.operations.to_string()),
            ("repeat", self.options.repeat.to_string()),
            ("keep", self.options.keep.to_string()),
        ];
        facts.into_iter().chain(repo).map(|(key, value)| (format!("workload.replay.{key}"), value)).collect()
    }
}

/// Recordings are single operations; what workloads did is in steps that mean something.
fn default_operations(header: &LogHeader) -> u64 {
    match header.format == LogHeader::RECORDED_FORMAT && header.workload["kind"] != "replay" {
        true => ReplayPlan::RECORDED_OPERATIONS,
        false => 0,
    }
}

/// The records of a log.
pub(super) fn records(
    path: &Path,
) -> Result<impl Iterator<Item = Result<DoneStep, WorkloadError>> + use<>, WorkloadError> {
    let what = format!("the log {}", path.display());
    let unreadable = move |error: LogError| WorkloadError::Source {
        what: what.clone(),
        problem: error.to_string(),
        source: Some(Box::new(error)),
    };
    let reader = LogReader::open(path).map_err(&unreadable)?;
    Ok(reader.map(move |done| done.map_err(&unreadable)))
}

/// Contents, and beginnings of contents: of what was written when space ran out.
pub(crate) struct WithBeginnings(pub Arc<dyn ContentSource>);

impl ContentSource for WithBeginnings {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        match parse_beginning(key) {
            Some((len, whole)) => Ok(self.payload(whole)?.beginning(len)),
            None => self.0.payload(key),
        }
    }
}
