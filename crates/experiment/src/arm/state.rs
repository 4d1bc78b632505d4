//! The state of a running arm: volumes, log, feedback.

use std::{fs, path::Path};

use senesce_core::RelPath;
use senesce_device::DeviceSpec;
use senesce_exec::{CheckContents, apply_done, apply_step};
use senesce_oplog::{DoneStep, LogWriter, Op, Outcome, Step};
use senesce_store::{ResultStore, Role};
use senesce_volume::{Custodian, Existing, VirtualDevice};

use super::{
    aged::Aged,
    driver::{Driver, Next},
    phases::PhaseTimer,
};
use crate::{
    Error, World,
    feedback::{FeedbackFile, SpaceTold},
    journal::Journal,
    observer::Event,
    paths::RunPaths,
    plan::{Arm, Plan},
    sizing::Sizes,
    source::Source,
    volumes,
};

/// The parameters and services of an arm.
pub(crate) struct ArmContext<'a> {
    pub plan: &'a Plan,
    pub arm: &'a Arm,
    pub pulls: ArmPulls,
    pub sizes: &'a Sizes,
    pub source: &'a Source,
    /// The devices to model.
    pub devices: &'a [DeviceSpec],
    /// The device that the volumes imitate, if they are disks in virtual time.
    pub virtual_device: Option<&'a VirtualDevice>,
    pub paths: &'a RunPaths,
    pub world: &'a World,
    pub custodian: &'a Custodian,
    pub force: bool,
    pub store: &'a mut ResultStore,
    pub journal: &'a mut Journal,
    pub observer: PhaseTimer<'a>,
}

impl ArmContext<'_> {
    /// Reports that a phase starts on a volume.
    pub fn doing(&mut self, what: &str, role: Role) {
        let arm = self.arm.name.clone();
        self.observer.on_event(&Event::Doing { arm, what: what.to_owned(), role: Some(role) });
    }
}

/// The maximum of counted steps of the arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArmPulls(pub u64);

/// The volumes and files of a running arm.
pub(crate) struct ArmState {
    /// The driver of the arm.
    pub driver: Driver,
    /// The aged volumes. The first one (full if there is one) decides, and the other follows it.
    pub aged: Vec<Aged>,
    /// The operation log. `None` for the git binary.
    pub log: Option<LogWriter>,
    /// The free space that the workload received.
    pub feedback: FeedbackFile,
    /// The next action with its space, if it is not done yet.
    pub pending: Option<(Next, SpaceTold)>,
    /// Steps in the log.
    pub steps: u64,
    /// Completed counted steps.
    pub pulls: u64,
    /// The outcome of the last step.
    pub last: Option<Outcome>,
    /// The last checkpoint, in pulls.
    pub measured_at: Option<u64>,
    /// The last cure, in pulls.
    pub cured_at: Option<u64>,
    /// Whether a synchronization follows every step.
    pub sync_steps: bool,
    /// Operations since the last synchronization.
    pub unsynced_operations: u64,
    /// The clock.
    pub clock: std::sync::Arc<dyn senesce_core::Clock>,
}

impl ArmState {
    /// The space on the volume that decides.
    pub fn leader_space(&mut self) -> Result<SpaceTold, Error> {
        self.aged[0].space()
    }

    /// Returns the next action and the space that it was chosen for. `None` at the end.
    ///
    /// The space is recorded at once, because the first checkpoint comes between this and the step.
    /// A run that resumes there must not query it again: after a new mount, the volume may report
    /// another value.
    pub fn next(&mut self) -> Result<Option<(Next, SpaceTold)>, Error> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        let told = self.leader_space()?;
        let Some(next) = self.driver.next(told, self.last)? else { return Ok(None) };
        self.feedback.append(told)?;
        Ok(Some((next, told)))
    }

    /// Replaces every aged volume by a new one. The trees are empty already, so the log stays
    /// complete.
    pub fn make_volumes_anew(&mut self, context: &mut ArmContext<'_>) -> Result<(), Error> {
        for aged in std::mem::take(&mut self.aged) {
            // The image is removed with its volume, so the new one may have the same UUID. A device
            // still has the old one.
            let instance = if aged.volume.image().is_some() { 0 } else { self.steps };
            self.aged.push(aged.replaced(|role| volumes::create(context, role, instance))?);
        }
        Ok(())
    }

    /// Runs the next action on every aged volume, and logs it.
    pub fn apply(&mut self, next: Next) -> Result<(String, Outcome), Error> {
        match next {
            Next::Step(step) => self.apply_logged(step),
            git => {
                let counted = git.is_counted();
                let (driver, clock, number) = (&mut self.driver, &*self.clock, self.steps);
                let aged = &mut self.aged[0];
                let (label, times) = aged.timed(clock, |aged| driver.run_git(aged.volume.root(), &git))?;
                aged.count_git(number, counted, times);
                if self.sync_steps {
                    let ((), times) = aged.timed(clock, |aged| Ok(aged.volume.sync()?))?;
                    aged.note_sync(times);
                }
                self.steps += 1;
                if self.driver.is_git_sync_due()? && !self.sync_steps {
                    let aged = &mut self.aged[0];
                    aged.timed(&*self.clock, |aged| Ok(aged.volume.sync()?))?;
                    aged.count_git_sync();
                    self.steps += 1;
                }
                Ok((label, Outcome::Done))
            }
        }
    }

    /// Applies a step to every volume. If the plan requests it, a synchronization follows on each
    /// volume at once. So no volume writes back its data while another one is timed.
    fn apply_logged(&mut self, step: Step) -> Result<(String, Outcome), Error> {
        let Driver::Steps { contents, .. } = &self.driver else {
            unreachable!("only workloads make steps");
        };
        let (number, clock) = (self.steps, &*self.clock);
        let (leader, followers) = self.aged.split_first_mut().expect("an arm has a volume");
        let contents = &**contents;
        let (done, times) = leader.apply(clock, |target| apply_step(target, number, step, contents))?;
        leader.count(&done, times);
        let mut sync_done = None;
        if self.sync_steps {
            let (sync, times) = leader.apply(clock, |target| apply_step(target, number + 1, sync_step(), contents))?;
            leader.count_sync(&sync);
            leader.note_sync(times);
            sync_done = Some(sync);
        }
        for follower in followers {
            let again = |done: &DoneStep, follower: &mut Aged| {
                follower.apply(clock, |target| apply_done(target, done, contents, CheckContents::LengthOnly))
            };
            let ((), times) = again(&done, follower)?;
            follower.count(&done, times);
            if let Some(sync) = &sync_done {
                let ((), times) = again(sync, follower)?;
                follower.count_sync(sync);
                follower.note_sync(times);
            }
        }
        for done in [&done].into_iter().chain(&sync_done) {
            if let Some(log) = &mut self.log {
                log.append(done)?;
            }
            self.steps += 1;
        }
        self.unsynced_operations =
            if sync_done.is_some() { 0 } else { self.unsynced_operations + done.step.ops.len() as u64 };
        Ok((done.step.label.clone(), done.outcome))
    }

    /// Synchronizes the volumes after enough operations, as a step of the log. The pace of commits
    /// changes the layout, so a replay must keep it.
    pub fn keep_pace(&mut self, every_operations: u64) -> Result<(), Error> {
        if every_operations == 0 || self.unsynced_operations < every_operations || !self.driver.is_logged() {
            return Ok(());
        }
        // The workload does not know of this step.
        let (number, clock) = (self.steps, &*self.clock);
        let (leader, followers) = self.aged.split_first_mut().expect("an arm has a volume");
        let (done, _) = leader.apply(clock, |target| apply_step(target, number, sync_step(), &()))?;
        leader.count_sync(&done);
        for follower in followers {
            follower.apply(clock, |target| apply_done(target, &done, &(), CheckContents::LengthOnly))?;
            follower.count_sync(&done);
        }
        if let Some(log) = &mut self.log {
            log.append(&done)?;
        }
        self.steps += 1;
        self.unsynced_operations = 0;
        Ok(())
    }

    /// Makes log and feedback durable. Returns their lengths.
    pub fn sync_files(&mut self) -> Result<(u64, u64), Error> {
        let log_bytes = match &mut self.log {
            Some(log) => log.sync()?,
            None => 0,
        };
        Ok((log_bytes, self.feedback.sync()?))
    }

    /// Stores a copy of every image under names of this checkpoint, and returns the names. `cured`
    /// is whether the checkpoint follows a cure. Leaves the volumes mounted.
    pub fn keep_snapshots(&mut self, context: &mut ArmContext<'_>, cured: bool) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        if !context.plan.measure.snapshots || self.aged.iter().any(|aged| aged.volume.image().is_none()) {
            return Ok(names);
        }
        for aged in &mut self.aged {
            context.doing("keeping the image", aged.role);
            // The copies before the cure are needed until the journal names these.
            let role = if cured { aged.role.cured() } else { aged.role };
            let name = format!("snapshot-{}-{}.img", role.name(), self.pulls);
            aged.target = None;
            aged.volume.unmount()?;
            aged.volume.snapshot_to(
                &context.paths.arm(&context.arm.name).join(&name),
                Existing::Replace,
                &*context.world.clock,
            )?;
            aged.volume.mount()?;
            names.push(name);
        }
        Ok(names)
    }

    /// Closes the log and removes the volumes. The snapshots stay until the journal records the end
    /// of the arm, because a resume after a kill needs them.
    pub fn finish(mut self) -> Result<(), Error> {
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        for aged in self.aged.drain(..) {
            drop(aged.target);
            aged.volume.destroy()?;
        }
        Ok(())
    }
}

/// Removes the snapshots of the arm in `dir`, except those to keep.
pub(crate) fn drop_snapshots(dir: &Path, keep: &[String]) -> Result<(), Error> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(Error::io("list", dir))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::io("list", dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("snapshot-") && !keep.contains(&name) {
            fs::remove_file(entry.path()).map_err(Error::io("remove", entry.path()))?;
        }
    }
    Ok(())
}

/// Label of the steps that only synchronize.
pub(crate) const PACE: &str = "synchronise";

/// A step that only synchronizes.
pub(crate) fn sync_step() -> Step {
    Step { label: PACE.into(), counted: false, root: RelPath::root(), ops: [Op::SyncFs].into() }
}

/// Whether a step of the log came from the workload.
pub(crate) fn is_workload_step(done: &DoneStep) -> bool {
    done.step.label != PACE
}

/// The aged volumes of a plan. The first one decides.
pub(crate) fn aged_roles(plan: &Plan) -> Vec<Role> {
    plan.roles().iter().copied().filter(|role| *role != Role::Unaged).collect()
}
