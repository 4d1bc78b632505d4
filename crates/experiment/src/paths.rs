//! The run directory: what lies where.

use std::path::{Path, PathBuf};

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunPaths {
    /// The directory itself.
    pub dir: PathBuf,
}

impl RunPaths {
    /// The layout of the run in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The plan as it was given, with overrides applied.
    pub fn plan(&self) -> PathBuf {
        self.dir.join("plan.toml")
    }

    /// The directory in which the run was begun: what the plan's relative paths are relative to.
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

    /// What belongs to one arm: its log, its feedback, its snapshots.
    pub fn arm(&self, arm: &str) -> PathBuf {
        self.dir.join("arms").join(arm)
    }

    /// An arm's operation log.
    pub fn log(&self, arm: &str) -> PathBuf {
        self.arm(arm).join("oplog.senesce-log")
    }

    /// What an arm's workload was told before each step.
    pub fn feedback(&self, arm: &str) -> PathBuf {
        self.arm(arm).join("feedback.ndjson")
    }

    /// The report.
    pub fn report(&self) -> PathBuf {
        self.dir.join("report.html")
    }
}
