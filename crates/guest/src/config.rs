//! What the launcher hands to the guest's init, in a file of the private directory.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A directory that the guest may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Writable {
    /// The host's directory of this path.
    Host {
        /// An absolute path without links.
        path: PathBuf,
    },
    /// A file system in the guest's memory at this path.
    Memory {
        /// An absolute path without links.
        path: PathBuf,
    },
}

impl Writable {
    /// Its path in the guest.
    pub fn path(&self) -> &Path {
        match self {
            Writable::Host { path } | Writable::Memory { path } => path,
        }
    }
}

/// A command, and the machine that it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestConfig {
    /// The command with its arguments; the first one is an absolute path.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
    /// Variables that receive the number of the calling user, as the guest sees it.
    pub caller_variables: Vec<String>,
    /// Variables that receive the number of the host's root, as the guest sees it.
    pub system_variables: Vec<String>,
    /// Its working directory.
    pub dir: PathBuf,
    /// The caller's mask of file modes.
    pub umask: u32,
    /// Directories that the command may write; all others are read-only.
    pub writable: Vec<Writable>,
    /// Files of kernel modules, in the order of loading.
    pub modules: Vec<PathBuf>,
}
