//! The driver of an arm: a workload whose steps are applied and logged here, or the real git
//! binary.

use std::{path::Path, sync::Arc};

use senesce_core::Bytes;
use senesce_gitsource::{History, RealGit};
use senesce_oplog::{ContentSource, Outcome, Step};
use senesce_workload::{Feedback, Workload, git::PlannerOptions};

use crate::{Error, feedback::SpaceTold};

/// The driver of an arm.
pub(crate) enum Driver {
    /// Steps of operations.
    Steps {
        /// The source of the steps.
        workload: Box<dyn Workload>,
        /// The source of their bytes.
        contents: Arc<dyn ContentSource>,
    },
    /// The git binary.
    Git(GitDriver),
}

/// The real git binary at work on one repository.
pub(crate) struct GitDriver {
    history: History,
    options: PlannerOptions,
    /// The repository on the volume. `None` before the clone.
    git: Option<RealGit>,
    /// Pulls done by an earlier process of this run.
    resumed: bool,
    next_commit: usize,
    last_commit: usize,
    pace: Option<GitPace>,
}

/// Makes the git engine synchronize at the pace of a native replay of the same pulls.
///
/// The pace of synchronization changes the layout, and the operations of the git binary are not
/// counted. So this counts the operations of a native replay: both engines synchronize after the
/// same pulls.
pub(crate) struct GitPace {
    native: Box<dyn Workload>,
    every_operations: u64,
    unsynced: u64,
}

impl GitPace {
    /// Makes the pace of `native`, a replay of the same pulls with one copy of the repository.
    pub fn new(native: Box<dyn Workload>, every_operations: u64) -> Self {
        Self { native, every_operations, unsynced: 0 }
    }

    /// Counts one more step. Returns whether a synchronization follows it.
    fn is_due_after_step(&mut self) -> Result<bool, Error> {
        let endless = Bytes(u64::MAX / 2);
        let step = self.native.next_step(&Feedback { capacity: endless, free: endless, last: None })?;
        self.unsynced += step.map_or(0, |step| step.ops.len() as u64);
        let is_due = self.unsynced >= self.every_operations;
        if is_due {
            self.unsynced = 0;
        }
        Ok(is_due)
    }
}

impl GitDriver {
    /// Clones at `options.start`, then pulls up to commit number `last_commit`. Without a pace it
    /// never synchronizes.
    pub fn new(history: History, options: PlannerOptions, last_commit: usize, pace: Option<GitPace>) -> Self {
        let next_commit = options.start + 1;
        let last_commit = last_commit.min(history.len() - 1);
        Self { history, options, git: None, resumed: false, next_commit, last_commit, pace }
    }

    /// Skips the clone and `pulls` pulls, which are already on the volume.
    pub fn skip(&mut self, pulls: u64) -> Result<(), Error> {
        self.resumed = true;
        self.next_commit += pulls as usize;
        for _ in 0..=pulls {
            self.is_sync_due()?;
        }
        Ok(())
    }

    /// Whether a synchronization follows the completed step. Call it once for each step.
    pub fn is_sync_due(&mut self) -> Result<bool, Error> {
        self.pace.as_mut().map_or(Ok(false), GitPace::is_due_after_step)
    }

    fn next(&self) -> Option<Next> {
        if self.git.is_none() && !self.resumed {
            return Some(Next::GitClone);
        }
        (self.next_commit <= self.last_commit).then_some(Next::GitPull(self.next_commit))
    }

    fn run(&mut self, root: &Path, next: &Next) -> Result<String, Error> {
        let repository = root.join("repo");
        match next {
            Next::GitClone => {
                self.git = Some(RealGit::init(&repository, &self.history, &self.options)?);
                Ok("clone".to_owned())
            }
            Next::GitPull(commit) => {
                let git = self.git.get_or_insert_with(|| RealGit::reopen(&repository, &self.history));
                git.pull(*commit)?;
                self.next_commit = commit + 1;
                Ok(format!("git pull {commit}"))
            }
            Next::Step(_) => unreachable!("the git binary takes no steps"),
        }
    }
}

/// The next action of an arm.
pub(crate) enum Next {
    /// A step to apply.
    Step(Step),
    /// The real git's clone.
    GitClone,
    /// The real git's pull of this commit.
    GitPull(usize),
}

impl Next {
    /// Whether it counts towards checkpoints.
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Step(step) => step.counted,
            Self::GitClone => false,
            Self::GitPull(_) => true,
        }
    }
}

impl Driver {
    /// Returns the next action for the space on the volume and the outcome of the last step. `None`
    /// at the end.
    pub fn next(&mut self, space: SpaceTold, last: Option<Outcome>) -> Result<Option<Next>, Error> {
        match self {
            Self::Steps { workload, .. } => {
                let feedback = Feedback { capacity: space.capacity, free: space.free, last };
                Ok(workload.next_step(&feedback)?.map(Next::Step))
            }
            Self::Git(git) => Ok(git.next()),
        }
    }

    /// Copies of the repository that exist now.
    pub fn copies(&self) -> u64 {
        match self {
            Self::Steps { workload, .. } => workload.copies(),
            Self::Git(git) => u64::from(git.git.is_some() || git.resumed),
        }
    }

    /// Whether set-up was complete before the next action.
    pub fn is_set_up(&self) -> bool {
        match self {
            Self::Steps { workload, .. } => workload.is_set_up(),
            Self::Git(_) => false,
        }
    }

    /// The figures that the workload reports.
    pub fn reached(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Steps { workload, .. } => workload.reached(),
            Self::Git(_) => Vec::new(),
        }
    }

    /// Whether the volumes may be measured after the last action, which had this outcome.
    pub fn is_whole(&self, last: &Outcome) -> bool {
        match self {
            Self::Steps { workload, .. } => workload.is_whole(last),
            Self::Git(_) => true,
        }
    }

    /// Whether the next action needs fresh volumes.
    pub fn wants_fresh_volume(&self) -> bool {
        match self {
            Self::Steps { workload, .. } => workload.wants_fresh_volume(),
            Self::Git(_) => false,
        }
    }

    /// Whether a synchronization follows the git binary's last step. Call it once for each step.
    pub fn is_git_sync_due(&mut self) -> Result<bool, Error> {
        match self {
            Self::Git(git) => git.is_sync_due(),
            Self::Steps { .. } => Ok(false),
        }
    }

    /// Runs the next action of the git binary. Not for steps.
    pub fn run_git(&mut self, root: &Path, next: &Next) -> Result<String, Error> {
        match self {
            Self::Git(git) => git.run(root, next),
            Self::Steps { .. } => unreachable!("a workload's steps are applied to targets"),
        }
    }
}
