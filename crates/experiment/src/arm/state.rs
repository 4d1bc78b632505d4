//! What an arm holds while it runs: volumes, log, feedback.

use std::{fs, path::Path};

use senesce_core::RelPath;
use senesce_device::DeviceSpec;
use senesce_exec::{CheckContents, apply_done, apply_step};
use senesce_oplog::{DoneStep, LogWriter, Op, Outcome, Step};
use senesce_store::{ResultStore, Role};
use senesce_volume::{Custodian, VirtualDevice};

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

/// Everything an arm may use.
pub(crate) struct ArmContext<'a> {
    pub plan: &'a Plan,
    pub arm: &'a Arm,
    pub pulls: ArmPulls,
    pub sizes: &'a Sizes,
    pub source: &'a Source,
    /// The devices to model.
    pub devices: &'a [DeviceSpec],
    /// The device whose times the volumes have, if they are disks in virtual time.
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
    /// Says that a phase begins on a volume.
    pub fn doing(&mut self, what: &str, role: Role) {
        let arm = self.arm.name.clone();
        self.observer.on_event(&Event::Doing { arm, what: what.to_owned(), role: Some(role) });
    }
}

/// How many counted steps the arm makes at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArmPulls(pub u64);

/// The volumes and files of a running arm.
pub(crate) struct ArmState {
    /// Who moves it forward.
    pub driver: Driver,
    /// The volume that decides (full if there is one), then the one that follows.
    pub aged: Vec<Aged>,
    /// The operation log; none when the git binary does the work.
    pub log: Option<LogWriter>,
    /// What the workload was told.
    pub feedback: FeedbackFile,
    /// What it answered to the last of it, if that is not done yet.
    pub pending: Option<(Next, SpaceTold)>,
    /// Steps in the log.
    pub steps: u64,
    /// Counted steps done.
    pub pulls: u64,
    /// How the last step ended.
    pub last: Option<Outcome>,
    /// The last checkpoint, in pulls.
    pub measured_at: Option<u64>,
    /// The last cure, in pulls.
    pub cured_at: Option<u64>,
    /// Whether every step is followed by a synchronisation.
    pub sync_steps: bool,
    /// Operations since the last synchronisation.
    pub unsynced_operations: u64,
    /// Time.
    pub clock: std::sync::Arc<dyn senesce_core::Clock>,
}

impl ArmState {
    /// Space on the volume that decides.
    pub fn leader_space(&mut self) -> Result<SpaceTold, Error> {
        self.aged[0].space()
    }

    /// What is next, and the space that was told for it; `None` at the end.
    ///
    /// What was told is written down at once: the first checkpoint comes between this and the step, and a run that goes
    /// on from there must not ask again, because the answer of a volume that was mounted anew may be another.
    pub fn next(&mut self) -> Result<Option<(Next, SpaceTold)>, Error> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        let told = self.leader_space()?;
        let Some(next) = self.driver.next(told, self.last)? else { return Ok(None) };
        self.feedback.append(told)?;
        Ok(Some((next, told)))
    }

    /// Makes every aged volume anew; their trees are empty already, so that nothing of the log is lost.
    pub fn make_volumes_anew(&mut self, context: &mut ArmContext<'_>) -> Result<(), Error> {
        for aged in std::mem::take(&mut self.aged) {
            // An image is gone with its volume, so that one of the same identity was made; a device still carries the old.
            let instance = if aged.volume.image().is_some() { 0 } else { self.steps };
            self.aged.push(aged.replaced(|role| volumes::create(context, role, instance))?);
        }
        Ok(())
    }

    /// Does what is next on every aged volume, and writes it down.
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

    /// A step on every volume, each with the synchronisation that the plan may ask for behind it, so that no volume
    /// writes back what it holds while another one is timed.
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

    /// Synchronises the volumes when enough was done since the last time, as a step of the log: the pace of commits
    /// changes the layout, so a replay has to keep it.
    pub fn keep_pace(&mut self, every_operations: u64) -> Result<(), Error> {
        if every_operations == 0 || self.unsynced_operations < every_operations || !self.driver.is_logged() {
            return Ok(());
        }
        // Not the workload's step: it is told nothing before it and hears nothing of it.
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

    /// Makes log and feedback durable; gives their lengths.
    pub fn sync_files(&mut self) -> Result<(u64, u64), Error> {
        let log_bytes = match &mut self.log {
            Some(log) => log.sync()?,
            None => 0,
        };
        Ok((log_bytes, self.feedback.sync()?))
    }

    /// Keeps a copy of every image, under names of this checkpoint, which may be the one after a cure; gives the names. The
    /// volumes are mounted afterwards.
    pub fn keep_snapshots(&mut self, context: &mut ArmContext<'_>, cured: bool) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        if !context.plan.measure.snapshots || self.aged.iter().any(|aged| aged.volume.image().is_none()) {
            return Ok(names);
        }
        for aged in &mut self.aged {
            context.doing("keeping the image", aged.role);
            // The copies from before the cure are needed until the journal has these.
            let role = if cured { aged.role.cured() } else { aged.role };
            let name = format!("snapshot-{}-{}.img", role.name(), self.pulls);
            aged.target = None;
            aged.volume.unmount()?;
            aged.volume.snapshot_to(&context.paths.arm(&context.arm.name).join(&name), &*context.world.clock)?;
            aged.volume.mount()?;
            names.push(name);
        }
        Ok(names)
    }

    /// Closes the log and removes the volumes. The snapshots stay until the journal says that the arm is done: a kill in
    /// between must find them.
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

/// Label of the steps that only synchronise.
pub(crate) const PACE: &str = "synchronise";

/// A step that only synchronises.
pub(crate) fn sync_step() -> Step {
    Step { label: PACE.into(), counted: false, root: RelPath::root(), ops: [Op::SyncFs].into() }
}

/// Whether a step of the log came from the workload.
pub(crate) fn is_workload_step(done: &DoneStep) -> bool {
    done.step.label != PACE
}

/// The aged volumes of a plan, the one that decides first.
pub(crate) fn aged_roles(plan: &Plan) -> Vec<Role> {
    plan.roles().iter().copied().filter(|role| *role != Role::Unaged).collect()
}
