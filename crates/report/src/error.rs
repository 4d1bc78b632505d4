//! What can go wrong with a report.

use std::path::PathBuf;

/// An error of this room.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The page's template does not fit what it is given: a bug here.
    #[error("cannot render the report's page")]
    Template {
        /// Why.
        #[from]
        source: minijinja::Error,
    },
    /// The operating system refused.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        operation: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A figure could not become PNG or PDF.
    #[error("cannot draw figure {figure} as PNG or PDF: {detail}")]
    Draw {
        /// The figure's name.
        figure: String,
        /// What failed.
        detail: String,
    },
}
