//! Real git repositories: reads histories, decodes contents, runs the git binary.

mod check;
mod command;
mod contents;
mod deflate;
mod error;
mod foreign;
mod history;
mod import;
mod objects;
mod packs;
mod real;
mod sizes;
mod spool;
mod trace_file;
mod trust;

pub use check::ObjectCheck;
pub use command::collect_git_version;
pub use contents::GitContents;
pub use error::Error;
pub use history::{History, HistoryOptions};
pub use import::{SyntheticRepository, import_synthetic, import_synthetic_until};
pub use real::RealGit;
pub use spool::SpoolRepository;
pub use trace_file::open_trace;
pub use trust::TrustedOwners;
