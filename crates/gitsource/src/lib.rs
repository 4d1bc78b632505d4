//! Real git repositories: reads histories, decodes contents, runs the git binary.

mod command;
mod contents;
mod error;
mod history;
mod objects;
mod packs;
mod real;

pub use command::{clone_url, collect_git_version};
pub use contents::GitContents;
pub use error::Error;
pub use history::{History, HistoryOptions};
pub use real::RealGit;
