//! The reasons why a plan cannot be used.

use std::path::PathBuf;

/// The reason why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file could not be read.
    #[error("cannot read the plan {path:?}: {source}")]
    Read {
        /// The plan file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not a plan.
    #[error("cannot read {path:?}: {problem}{}", hint.as_ref().map(|h| format!("\n  hint: {h}")).unwrap_or_default())]
    Syntax {
        /// The plan file.
        path: PathBuf,
        /// The place and the problem.
        problem: String,
        /// The probable meaning.
        hint: Option<String>,
    },
    /// The plan has another version of the format.
    #[error(
        "{path:?} has format {found:?}; this program reads {reads:?}\n  hint: if that is a later version, use a newer \
         senesce"
    )]
    Version {
        /// The plan file.
        path: PathBuf,
        /// The value of its `format`.
        found: String,
        /// The version that this program reads.
        reads: &'static str,
    },
    /// A changed key makes the plan wrong.
    #[error("cannot use --set {setting}: {problem}{}", hint.as_ref().map(|h| format!("\n  hint: {h}")).unwrap_or_default())]
    Setting {
        /// The key and its new value.
        setting: String,
        /// The problem of the changed plan.
        problem: String,
        /// The probable meaning.
        hint: Option<String>,
    },
    /// Contradictory values.
    #[error("{path:?}: {key}: {problem}")]
    Contradiction {
        /// The plan file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The problem of its value.
        problem: String,
    },
}
