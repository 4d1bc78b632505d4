//! Real git repositories: reads histories, decodes contents, runs the git binary.

mod command;
mod contents;
mod deflate;
mod error;
mod history;
mod import;
mod objects;
mod packs;
mod real;
mod sizes;
mod trace_file;

pub use command::{clone_url, collect_git_version};
pub use contents::GitContents;
pub use error::Error;
pub use history::{History, HistoryOptions};
pub use import::{SyntheticRepository, import_synthetic};
pub use real::RealGit;
pub use trace_file::open_trace;
