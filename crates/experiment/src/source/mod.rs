//! Sources of an experiment's steps: a repository, a synthetic history, a trace, a log, or a seed.

mod git;
mod log;
mod log_survey;
mod seeded;
mod synthetic;
mod trace;

use std::{path::Path, sync::Arc};

use senesce_core::Bytes;
use senesce_exec::{NullTarget, apply_step};
use senesce_gitsource::TrustedOwners;
use senesce_oplog::{ContentSource, LogHeader, Op};
use senesce_workload::{Feedback, Workload};

use crate::{
    Error,
    arm::{ArmContext, Driver},
    plan::{Arm, Edition, Engine, Plan, WorkloadKind},
};

pub use git::GitSource;
pub(crate) use git::is_url;
pub use log::LogSource;
pub(crate) use log::WithBeginnings;
pub use log_survey::collect_peak;
pub use seeded::MadeSource;
pub use trace::TraceSource;

/// A workload and the source of its contents. Another thread may make them in advance.
pub(crate) type WorkloadAhead = (Box<dyn Workload>, Arc<dyn ContentSource>);

/// Bytes that the files of a first state use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstState {
    /// In blocks of 4 KiB, directories included.
    pub occupied_bytes: u64,
    /// The contents alone, or the peak of a log. A file system without compression uses at least
    /// this.
    pub content_bytes: u64,
}

/// An opened history, or a workload that needs none.
pub enum Source {
    /// Commits of a repository, real or synthetic.
    Git(GitSource),
    /// A size-only trace.
    Trace(TraceSource),
    /// An operation log.
    Log(Box<LogSource>),
    /// A seed and parameters.
    Made(MadeSource),
}

impl Source {
    /// Opens the plan's source. If it is not yet below `spool`, copies a repository, clones a URL
    /// or makes the synthetic history there.
    pub fn open(plan: &Plan, spool: &Path, owners: &TrustedOwners) -> Result<Self, Error> {
        if plan.workload.kind == WorkloadKind::Replay {
            return Ok(Self::Log(Box::new(LogSource::open(plan, spool, owners)?)));
        }
        if let Some(made) = MadeSource::open(plan)? {
            return Ok(Self::Made(made));
        }
        match &plan.history.trace {
            Some(path) => Ok(Self::Trace(TraceSource::open(Path::new(path))?)),
            None => Ok(Self::Git(GitSource::open(plan, spool, owners)?)),
        }
    }

    /// The maximum of counted steps of the plan.
    pub fn pulls(&self, plan: &Plan) -> u64 {
        let wanted = plan.history.pulls.unwrap_or(u64::MAX);
        match (self, plan.workload.edition) {
            (Self::Made(made), _) => made.rounds(),
            (Self::Log(log), _) => log.counted_steps(),
            // Several copies make one pull each of every commit.
            (_, Edition::FullDiskPaper | Edition::FullDiskCode) => wanted,
            (Self::Git(git), Edition::Single) => wanted.min(git.pulls_there_are()),
            (Self::Trace(trace), Edition::Single) => wanted.min(trace.commits()),
        }
    }

    /// Returns the driver of an arm.
    pub(crate) fn driver(&self, context: &ArmContext<'_>) -> Result<Driver, Error> {
        let (plan, arm) = (context.plan, context.arm);
        if let (Self::Git(git), Engine::Git) = (self, arm.engine) {
            return Ok(git.real_driver(plan, arm, context.pulls.0));
        }
        let (workload, contents) = self.workload(plan, arm)?;
        Ok(Driver::Steps { workload, contents })
    }

    /// Returns the workload of an arm and the source of its contents. Another thread may make them
    /// in advance.
    pub(crate) fn workload(&self, plan: &Plan, arm: &Arm) -> Result<WorkloadAhead, Error> {
        match self {
            Self::Git(git) => git.workload(plan, arm),
            Self::Trace(trace) => trace.workload(plan),
            Self::Log(log) => log.start(),
            Self::Made(made) => made.start(),
        }
    }

    /// Returns the source of the workload's contents.
    pub fn contents(&self) -> Arc<dyn ContentSource> {
        match self {
            Self::Git(git) => git.contents(),
            Self::Trace(_) => Arc::new(()),
            Self::Log(log) => log.contents(),
            Self::Made(made) => made.contents(),
        }
    }

    /// Computes the space that the files of the first state (one copy) use.
    ///
    /// Cost: makes all contents of the first step once, and stores none.
    pub(crate) fn first_state(&self) -> Result<FirstState, Error> {
        let mut workload = match self {
            Self::Git(git) => git.first_step_only()?,
            Self::Trace(trace) => trace.first_step_only()?,
            Self::Log(log) => {
                let (occupied_bytes, content_bytes) = (log.first_state_bytes(), log.needed().0);
                return Ok(FirstState { occupied_bytes, content_bytes });
            }
            Self::Made(made) => {
                let bytes = made.first_state_bytes();
                return Ok(FirstState { occupied_bytes: bytes, content_bytes: bytes });
            }
        };
        let endless = Bytes(u64::MAX / 2);
        let Some(step) = workload.next_step(&Feedback { capacity: endless, free: endless, last: None })? else {
            return Ok(FirstState::default());
        };
        let done = apply_step(&mut NullTarget::default(), 0, step, &*self.contents())?;
        let blocks = |bytes: u64| bytes.next_multiple_of(4096);
        let directories = done.step.ops.iter().filter(|op| matches!(op, Op::Mkdir { .. })).count() as u64;
        let sum = |of: fn(u64) -> u64| done.contents.iter().map(|(bytes, _)| of(*bytes)).sum::<u64>();
        Ok(FirstState { occupied_bytes: sum(blocks) + blocks(1) * directories, content_bytes: sum(|bytes| bytes) })
    }

    /// Whether reads and overwrites bypass the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        match self {
            Self::Git(_) | Self::Trace(_) => false,
            Self::Log(log) => log.is_direct(),
            Self::Made(made) => made.is_direct(),
        }
    }

    /// The log's header: everything that determines the steps, in a fixed order.
    pub(crate) fn log_header(&self, plan: &Plan, arm: &Arm) -> LogHeader {
        match self {
            Self::Log(log) => log.log_header(plan),
            _ => LogHeader::new(self.log_description(plan, arm), plan.seed),
        }
    }

    fn log_description(&self, plan: &Plan, arm: &Arm) -> serde_json::Value {
        if let Self::Made(made) = self {
            return made.log_description(plan);
        }
        let mut workload = serde_json::json!({
            "edition": plan.workload.edition,
            "gc": arm.gc,
            "pulls": plan.history.pulls,
            "sync_every_operations": plan.workload.sync_every_operations,
        });
        if plan.workload.edition == Edition::FullDiskPaper {
            workload["fill_percent"] = plan.workload.fill_percent.into();
        }
        if plan.workload.edition == Edition::FullDiskCode {
            workload["copies"] = plan.workload.copies.into();
            workload["keep_free_bytes"] = plan.workload.keep_free.0.0.into();
        }
        workload["source"] = match self {
            Self::Git(git) => git.description(plan),
            Self::Trace(trace) => trace.description(),
            Self::Made(_) | Self::Log(_) => unreachable!("they have descriptions of their own"),
        };
        workload
    }

    /// The circumstances of the source, for the records.
    pub(crate) fn circumstances(&self) -> Vec<(String, String)> {
        match self {
            Self::Git(git) => git.circumstances(),
            Self::Trace(trace) => trace.circumstances(),
            Self::Log(log) => log.circumstances(),
            Self::Made(made) => made.circumstances(),
        }
    }
}
