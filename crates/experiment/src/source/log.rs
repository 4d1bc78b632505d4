//! An operation log as the source of an experiment's steps.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_core::Bytes;
use senesce_exec::prefetch_contents;
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

/// The maximum of contents that are made before their use, bytes.
const AHEAD_BYTES: u64 = 16 * Bytes::MIB;

/// A log that was read once: it is complete, can be replayed, and its contents are available.
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
    /// Reads the log of the plan. `spool` is for packs, and for a synthetic history that is made
    /// again.
    ///
    /// Errors: damage, a log of a later version, one that no empty volume can follow, unavailable
    /// contents, a parameter out of its range. Cost: reads the log twice; makes all contents from a
    /// repository once; memory for the names of one repetition.
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

    /// The number of counted steps.
    pub(super) fn counted_steps(&self) -> u64 {
        self.survey.counted.saturating_mul(self.options.repeat)
    }

    /// Returns the workload at its start and the source of its contents. Another thread makes both
    /// in advance.
    pub(super) fn start(&self) -> Result<WorkloadAhead, Error> {
        let path = self.path.clone();
        let pieces = plan_pieces(self.options, move || records(&path));
        let ops = |piece: &Result<Piece, WorkloadError>| {
            piece.as_ref().map_or_else(|_| [].into(), |piece| piece.step.ops.clone())
        };
        let (pieces, contents) = prefetch_contents(pieces, ops, self.contents.clone(), AHEAD_BYTES);
        let replay = LogReplay::new(self.options, self.survey.needed, Box::new(pieces))?;
        Ok((Box::new(replay), contents))
    }

    pub(super) fn contents(&self) -> Arc<dyn ContentSource> {
        self.contents.clone()
    }

    /// The minimum that a volume must hold.
    pub(super) fn needed(&self) -> Bytes {
        self.survey.needed
    }

    /// The maximum that one repetition occupies.
    pub(super) fn first_state_bytes(&self) -> u64 {
        self.survey.peak.0
    }

    /// Whether its reads and overwrites bypassed the page cache.
    pub(super) fn is_direct(&self) -> bool {
        was_direct(&self.header)
    }

    /// The header of the new log: its version and its source of contents are those of this log.
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

/// A step of a recording is a single operation. A step of a workload has a meaning.
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

/// Contents, and the starts of contents that were written until space ran out.
pub(crate) struct WithBeginnings(pub Arc<dyn ContentSource>);

impl ContentSource for WithBeginnings {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        match parse_beginning(key) {
            Some((len, whole)) => Ok(self.payload(whole)?.beginning(len)),
            None => self.0.payload(key),
        }
    }
}
