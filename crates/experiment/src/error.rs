//! Errors of experiments, and their kinds.

use std::{error::Error as StdError, io, path::PathBuf};

use senesce_exec::ExecError;
use senesce_workload::WorkloadError;

use crate::plan::PlanError;

/// The kind of an error, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// An operation failed.
    Failed,
    /// The plan or the command line is wrong.
    Usage,
    /// The machine lacks something: root, a kernel feature, a tool, space.
    Environment,
    /// A fault of senesce.
    Internal,
}

/// A signal stopped the run. Finished work stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted by signal {signal}; everything acquired was released")]
pub struct Interrupted {
    /// The signal's number.
    pub signal: i32,
}

/// The reason why an experiment cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the transparent variants are errors of other crates
pub enum Error {
    /// A volume could not be surveyed or modelled.
    #[error(transparent)]
    Inspect(#[from] senesce_inspect::Error),
    /// The files of a volume could not be moved.
    #[error(transparent)]
    Defrag(#[from] senesce_defrag::Error),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Volume(#[from] senesce_volume::Error),
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Source(#[from] senesce_gitsource::Error),
    #[error(transparent)]
    Probe(#[from] senesce_probe::Error),
    #[error(transparent)]
    Store(#[from] senesce_store::Error),
    #[error(transparent)]
    Log(#[from] senesce_oplog::LogError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A volume does not fit the plan.
    #[error("volumes.{role}, {arm}: {source}")]
    PlannedVolume {
        /// The role of the volume.
        role: &'static str,
        /// The arm.
        arm: String,
        /// The reason.
        source: senesce_volume::Error,
    },
    /// A file of the run directory could not be used.
    #[error("cannot {operation} {path:?}: {source}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file system of the host is full or read-only. The run can continue when it is writable
    /// again.
    #[error("{dir:?} {}: {source}", if source.is_read_only() { "became read-only" } else { "is full" })]
    HostFull {
        /// The directory of results or images.
        dir: PathBuf,
        /// The run.
        run: PathBuf,
        /// The error of the write.
        source: Box<Error>,
    },
    /// The run directory is not as expected.
    #[error("{} {problem}", path.display())]
    RunDirectory {
        /// The directory.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A step could not be verified. Later figures would have no meaning.
    #[error("{what} could not be verified: {problem}")]
    Unverified {
        /// Which step of the experiment.
        what: String,
        /// The state that was found instead.
        problem: String,
    },
    /// An aging profile cannot be used.
    #[error("profile {profile:?}: {problem}")]
    Profile {
        /// Its name or path.
        profile: String,
        /// The problem.
        problem: String,
    },
    /// The plan requests block traces, and the machine cannot record them.
    #[error("measure.trace: the volumes' block requests cannot be traced: {source}")]
    NoTracing {
        /// The reason.
        source: senesce_probe::Error,
    },
    /// The history has no steps.
    #[error("the range of commits is empty: {problem}")]
    NoPulls {
        /// The range and the available commits.
        problem: String,
    },
}

impl Error {
    /// Makes an [`Error::Io`].
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { operation, path, source }
    }

    /// Whether the results or the log of a run could not be written because the host has no space
    /// or is read-only.
    pub(crate) fn is_host_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let unwritable = [StorageFull, QuotaExceeded, ReadOnlyFilesystem];
        self.host_problem().is_some_and(|source| unwritable.contains(&source.kind()))
    }

    fn is_read_only(&self) -> bool {
        self.host_problem().is_some_and(|source| source.kind() == io::ErrorKind::ReadOnlyFilesystem)
    }

    /// The system's error when the results or the log of a run were written.
    fn host_problem(&self) -> Option<&io::Error> {
        match self {
            Self::Store(senesce_store::Error::Io { source, .. })
            | Self::Log(senesce_oplog::LogError::Io { source, .. })
            | Self::Io { source, .. } => Some(source),
            // An incomplete snapshot is in the run's directory.
            Self::Volume(senesce_volume::Error::Io { path, source, .. })
                if path.extension().is_some_and(|extension| extension == "partial") =>
            {
                Some(source)
            }
            _ => None,
        }
    }

    /// The signal, if this is an interruption of any crate.
    pub fn interrupted(&self) -> Option<Interrupted> {
        match self {
            Self::Interrupted(interrupted) => Some(*interrupted),
            Self::Volume(senesce_volume::Error::Interrupted { signal, .. }) => Some(Interrupted { signal: *signal }),
            _ => None,
        }
    }
}

/// The error with its causes, on one line: the reason of an invalid cell.
pub(crate) fn chain_text(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// The signal of an interruption of any crate.
pub fn interruption(error: &(dyn StdError + 'static)) -> Option<Interrupted> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.interrupted();
    }
    match error.downcast_ref::<senesce_volume::Error>() {
        Some(senesce_volume::Error::Interrupted { signal, .. }) => Some(Interrupted { signal: *signal }),
        _ => error.downcast_ref::<Interrupted>().copied(),
    }
}

/// Kind and hint of an error of this crate or the crates below. `None` for any other error.
pub fn classify(error: &(dyn StdError + 'static)) -> Option<(ErrorKind, Option<String>)> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return Some(match error {
            Error::Plan(error) => (plan_kind(error), None),
            Error::Volume(error) => volume_kind(error),
            Error::PlannedVolume { source, .. } => volume_kind(source),
            Error::Source(error) => source_kind(error),
            Error::RunDirectory { hint, .. } => (ErrorKind::Usage, Some((*hint).to_owned())),
            Error::HostFull { run, source, .. } => {
                let what = if source.is_read_only() { "see why (dmesg), make it writable" } else { "free some space" };
                let hint = format!("{what}, then continue: senesce run --resume {}", run.display());
                (ErrorKind::Environment, Some(hint))
            }
            Error::NoPulls { .. } => {
                (ErrorKind::Usage, Some("choose a smaller history.start, or another tip".to_owned()))
            }
            Error::Profile { .. } => (ErrorKind::Usage, None),
            Error::Workload(error) => (workload_kind(error), None),
            Error::Store(error) => (store_kind(error), None),
            Error::Log(error) => (log_kind(error), None),
            Error::Io { source, .. } => (io_kind(source), None),
            Error::NoTracing { .. } => (
                ErrorKind::Environment,
                Some(
                    "trace as root, on a disk in virtual time (volumes.device), or not at all (measure.trace = false)"
                        .to_owned(),
                ),
            ),
            _ => (ErrorKind::Failed, None),
        });
    }
    if let Some(error) = error.downcast_ref::<PlanError>() {
        return Some((plan_kind(error), None));
    }
    if let Some(error) = error.downcast_ref::<senesce_volume::Error>() {
        return Some(volume_kind(error));
    }
    if let Some(error) = error.downcast_ref::<senesce_store::Error>() {
        return Some((store_kind(error), None));
    }
    if let Some(error) = error.downcast_ref::<senesce_oplog::LogError>() {
        return Some((log_kind(error), None));
    }
    error.downcast_ref::<senesce_gitsource::Error>().map(source_kind)
}

fn plan_kind(_: &PlanError) -> ErrorKind {
    ErrorKind::Usage
}

fn volume_kind(error: &senesce_volume::Error) -> (ErrorKind, Option<String>) {
    let kind = match error.kind() {
        senesce_volume::ErrorKind::Failed => ErrorKind::Failed,
        senesce_volume::ErrorKind::Usage => ErrorKind::Usage,
        senesce_volume::ErrorKind::Environment => ErrorKind::Environment,
    };
    (kind, error.hint())
}

fn source_kind(error: &senesce_gitsource::Error) -> (ErrorKind, Option<String>) {
    use senesce_gitsource::Error as Source;
    let kind = match error {
        Source::Missing { .. }
        | Source::NotARepository { .. }
        | Source::Shallow { .. }
        | Source::Empty { .. }
        | Source::NoSuchTip { .. }
        | Source::ObjectFormat { .. }
        | Source::RefStorage { .. }
        | Source::Partial { .. }
        | Source::ForeignOwner { .. }
        | Source::Elsewhere { .. }
        | Source::Irregular { .. } => ErrorKind::Usage,
        Source::Io { source, .. } => io_kind(source),
        Source::Workload(error) => workload_kind(error),
        Source::Spawn { .. } | Source::SpoolFull { .. } => ErrorKind::Environment,
        _ => ErrorKind::Failed,
    };
    (kind, error.hint().map(str::to_owned))
}

fn workload_kind(error: &WorkloadError) -> ErrorKind {
    match error {
        WorkloadError::Parameter { .. } | WorkloadError::HistoryModel { .. } => ErrorKind::Usage,
        _ => ErrorKind::Failed,
    }
}

/// A directory without results, or results or a log of a later version, is an error of the user,
/// like a wrong plan.
fn store_kind(error: &senesce_store::Error) -> ErrorKind {
    use senesce_store::Error as Store;
    match error {
        Store::NotResults { .. }
        | Store::NewerFormat { .. }
        | Store::AlreadyExists { .. }
        | Store::UnknownTable { .. } => ErrorKind::Usage,
        Store::Io { source, .. } => io_kind(source),
        _ => ErrorKind::Failed,
    }
}

fn log_kind(error: &senesce_oplog::LogError) -> ErrorKind {
    use senesce_oplog::LogError as Log;
    match error {
        Log::NotALog { .. } | Log::NewerVersion { .. } => ErrorKind::Usage,
        Log::Io { source, .. } => io_kind(source),
        _ => ErrorKind::Failed,
    }
}

fn io_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::StorageFull
        | io::ErrorKind::QuotaExceeded
        | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Environment,
        _ => ErrorKind::Failed,
    }
}
