//! Real git repositories: reads histories, decodes contents, runs the git binary.

mod check_objects;
mod command;
mod contents;
mod copy_size;
mod deflate;
mod error;
mod foreign_repository;
mod history;
mod import;
mod main_line;
mod objects;
mod packs;
mod real_git;
mod spool;
mod trace_file;
mod trusted_repositories;

pub use check_objects::ObjectCheck;
pub use command::collect_git_version;
pub use contents::GitContents;
pub use error::Error;
pub use history::{History, HistoryOptions};
pub use import::{SyntheticRepository, import_synthetic, import_synthetic_until};
pub use main_line::MainLine;
pub use real_git::RealGit;
pub use spool::SpoolRepository;
pub use trace_file::open_trace;
pub use trusted_repositories::TrustedOwners;
