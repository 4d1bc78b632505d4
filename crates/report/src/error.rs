//! Errors of reports.

use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The page's template does not fit its values: a bug of this crate.
    #[error("cannot render the report's page")]
    Template {
        /// The cause.
        #[from]
        source: minijinja::Error,
    },
    /// The operating system returned an error.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The results are those of a run, and not of a campaign.
    #[error("the results are not those of a campaign")]
    NoCampaign,
    /// A figure could not become PNG or PDF.
    #[error("cannot draw figure {figure} as PNG or PDF: {detail}")]
    Draw {
        /// The figure's name.
        figure: String,
        /// The cause.
        detail: String,
    },
}
