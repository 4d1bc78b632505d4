//! The paths in a run directory.

use std::path::{Path, PathBuf};

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunPaths {
    /// The directory itself.
    pub dir: PathBuf,
}

impl RunPaths {
    /// The paths of the run in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The plan of the user, with overrides applied.
    pub fn plan(&self) -> PathBuf {
        self.dir.join("plan.toml")
    }

    /// The file with the directory in which the run was started. The plan's relative paths start
    /// there.
    pub fn begun_in(&self) -> PathBuf {
        self.dir.join("begun-in")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal.ndjson")
    }

    /// The result tables.
    pub fn results(&self) -> PathBuf {
        self.dir.join("results")
    }

    /// Packs and a synthetic history, made once.
    pub fn spool(&self) -> PathBuf {
        self.dir.join("spool")
    }

    /// Images and mount points.
    pub fn volumes(&self) -> PathBuf {
        self.dir.join("volumes")
    }

    /// The files of one arm: its log, its feedback, its snapshots.
    pub fn arm(&self, arm: &str) -> PathBuf {
        self.dir.join("arms").join(arm)
    }

    /// An arm's operation log.
    pub fn log(&self, arm: &str) -> PathBuf {
        self.arm(arm).join("oplog.senesce-log")
    }

    /// The free space that an arm's workload received before each step.
    pub fn feedback(&self, arm: &str) -> PathBuf {
        self.arm(arm).join("feedback.ndjson")
    }

    /// The report.
    pub fn report(&self) -> PathBuf {
        self.dir.join("report.html")
    }
}
