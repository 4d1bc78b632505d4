//! An aged volume of an arm, and what was done to it since the last checkpoint.

use senesce_core::{Clock, Nanos};
use senesce_exec::PosixTarget;
use senesce_oplog::{DoneStep, Op, Outcome};
use senesce_probe::collect::collect_process_times;
use senesce_store::{AgingRow, CellKey, Role};
use senesce_volume::Volume;

use crate::{Error, feedback::SpaceTold};

/// A volume that is aged.
pub(crate) struct Aged {
    /// Full or empty.
    pub role: Role,
    /// The volume.
    pub volume: Volume,
    /// Applies operations to it; closed while it is unmounted.
    pub target: Option<PosixTarget>,
    /// Sums since the last checkpoint.
    pub tally: Tally,
}

/// Sums over steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub steps: u64,
    pub operations: u64,
    pub written_bytes: u64,
    pub no_space_steps: u64,
    pub wall: Nanos,
    pub user_seconds: f64,
    pub system_seconds: f64,
}

impl Aged {
    /// Takes a mounted volume.
    pub fn new(role: Role, volume: Volume) -> Result<Self, Error> {
        Ok(Self { role, volume, target: None, tally: Tally::default() })
    }

    /// The open target.
    pub fn target(&mut self) -> Result<&mut PosixTarget, Error> {
        if !self.volume.is_mounted() {
            // What lies below the mount point then is the host's file system.
            return Err(Error::Unverified {
                what: "the mount of an aged volume".into(),
                problem: "it is unmounted".into(),
            });
        }
        if self.target.is_none() {
            self.target = Some(PosixTarget::open(self.volume.root())?);
        }
        Ok(self.target.as_mut().expect("it was just opened"))
    }

    /// Runs `work` and adds its time to the tally.
    pub fn timed<T>(
        &mut self,
        clock: &dyn Clock,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (began, cpu) = (clock.now(), collect_process_times());
        let result = work(self);
        let used = collect_process_times().since(cpu);
        self.tally.wall.0 += clock.now().since(began).0;
        self.tally.user_seconds += used.user_seconds;
        self.tally.system_seconds += used.system_seconds;
        result
    }

    /// Counts a step that was done.
    pub fn count(&mut self, done: &DoneStep) {
        self.tally.steps += 1;
        self.tally.operations += done.step.ops.len() as u64;
        let contents: u64 = done.contents.iter().map(|(bytes, _)| bytes).sum();
        self.tally.written_bytes += contents;
        if let Outcome::NoSpace { failed_op, written } = done.outcome {
            self.tally.no_space_steps += 1;
            // Of the failed operation's content only a part was written.
            if done.step.ops.get(failed_op).and_then(Op::content).is_some() {
                let whole = done.contents.last().map_or(0, |(bytes, _)| *bytes);
                self.tally.written_bytes -= whole - written.unwrap_or(0);
            }
        }
    }

    /// The row of table `aging`, and an empty tally.
    pub fn take_row(&mut self, key: CellKey, copies: u64) -> AgingRow {
        let tally = std::mem::take(&mut self.tally);
        AgingRow {
            key,
            steps: tally.steps,
            operations: tally.operations,
            written_bytes: tally.written_bytes,
            no_space_steps: tally.no_space_steps,
            copies,
            wall_seconds: tally.wall.as_secs_f64(),
            user_seconds: tally.user_seconds,
            system_seconds: tally.system_seconds,
        }
    }

    /// Capacity and free space now.
    pub fn space(&mut self) -> Result<SpaceTold, Error> {
        use senesce_exec::Target;
        let root = self.volume.root().to_owned();
        let left = self.target()?.space().map_err(Error::io("ask for the free space of", root))?;
        Ok(SpaceTold { capacity: left.capacity, free: left.free })
    }
}
