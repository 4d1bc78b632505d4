//! One arm: ages its volumes step by step, and measures them at checkpoints.
//!
//! [`run_arm`] is the sequence. `state` has the volumes and files, `measure` makes the cells,
//! `checkpoint` makes them and the state durable, `cure` runs cures, and `resume` restores an
//! interrupted arm at its last checkpoint.

mod aged;
mod checkpoint;
mod cure;
mod driver;
mod measure;
mod phases;
mod resume;
mod state;
pub(crate) mod virtual_time;

use senesce_oplog::Outcome;
use senesce_volume::{Volume, interrupted};

use crate::{
    Error, Interrupted, error::chain_text, feedback::SpaceTold, journal::Entry, observer::Event, plan::ReadAt,
};

pub(crate) use aged::written_bytes;
pub(crate) use driver::{Driver, GitDriver, GitPace};
pub(crate) use measure::collect_free_space;
pub(crate) use phases::PhaseTimer;
pub(crate) use resume::check_source;
pub(crate) use state::{ArmContext, ArmPulls, drop_snapshots, sync_step};

use checkpoint::{checkpoint, conclude};
use cure::{cure_if_due, warn_of_missed};
use measure::Reads;
use state::ArmState;

/// Runs an arm from the state in the journal to its end.
///
/// Errors: an interruption, and errors after which the arm cannot continue. Finished cells stay.
pub(crate) fn run_arm(context: &mut ArmContext<'_>) -> Result<(), Error> {
    let mut state = resume::restore_or_begin(context)?;
    context.observer.start_aging();
    match age(context, &mut state) {
        Ok(()) => finish(context, state),
        Err(error) => Err(because_of_disk(&state, error)),
    }
}

/// Finds the cause of an error if a disk in virtual time is gone. The file system on it reports
/// only failed requests.
fn because_of_disk(state: &ArmState, error: Error) -> Error {
    if error.interrupted().is_some() {
        return error;
    }
    match state.aged.iter().find(|aged| aged.volume.disk_time().is_err()) {
        Some(aged) => Error::Unverified {
            what: format!("the disk of the {} volume", aged.role.name()),
            problem: reason(&aged.volume, &error),
        },
        None => error,
    }
}

/// The reason why a volume cannot be used any more: the error, with its cause first if the cause is
/// the volume's disk.
pub(crate) fn reason(volume: &Volume, error: &Error) -> String {
    // The user can prevent it in the next run, and a cell has no place for a hint.
    if let Error::Volume(cause @ senesce_volume::Error::DeviceInUse { elsewhere: Some(_), .. }) = error
        && let Some(hint) = cause.hint()
    {
        return format!("{}; {hint}", chain_text(error));
    }
    match volume.disk_time() {
        Err(gone) => format!("{gone}; seen as: {}", chain_text(error)),
        Ok(_) => chain_text(error),
    }
}

/// Runs all steps, checkpoints and cures.
fn age(context: &mut ArmContext<'_>, state: &mut ArmState) -> Result<(), Error> {
    // A run that was killed during a cure continues after the checkpoint before it.
    cure(context, state, false)?;
    loop {
        context.world.check_signal()?;
        let Some((next, space)) = state.next()? else { break };
        if state.measured_at.is_none() && (next.is_counted() || state.driver.is_set_up()) {
            checkpoint(context, state, Reads::All)?;
        }
        do_step(context, state, next, space)?;
        let is_last = state.pulls >= context.pulls.0;
        let cures = context.arm.file_system.cure.as_ref();
        let is_cured = cures.is_some_and(|cure| cure.is_due(state.pulls, is_last));
        if state.pulls > 0
            && (is_cured || state.pulls.is_multiple_of(context.plan.measure.every))
            && state.measured_at != Some(state.pulls)
            && state.last.is_none_or(|last| state.driver.is_whole(&last))
        {
            let reads = match context.plan.measure.read_at {
                // The gain of a cure is the difference of two reads.
                _ if is_last || is_cured => Reads::All,
                ReadAt::FirstAndLast => Reads::None,
                ReadAt::OnceBetween => Reads::Once,
                ReadAt::EveryCheckpoint => Reads::All,
            };
            checkpoint(context, state, reads)?;
            cure(context, state, false)?;
        }
    }
    if state.pulls == 0 && state.measured_at.is_none() {
        let problem = "the history ends before the first pull".to_owned();
        return Err(Error::NoPulls { problem });
    }
    if state.measured_at != Some(state.pulls) {
        checkpoint(context, state, Reads::All)?;
    } else if context.plan.measure.read_at == ReadAt::FirstAndLast && state.pulls < context.pulls.0 {
        // When this checkpoint was measured, it was not known to be the last.
        let message = format!(
            "the steps ended after {} of {} {}: the last checkpoint has no grep test (measure.read_at)",
            state.pulls,
            context.pulls.0,
            context.plan.step_unit()
        );
        context.observer.on_event(&Event::Warning { arm: context.arm.name.clone(), message });
    }
    cure(context, state, true)?;
    warn_of_missed(context, state.pulls)
}

/// Cures the volumes if a cure is due. Then makes the cells after the cure and the state durable.
fn cure(context: &mut ArmContext<'_>, state: &mut ArmState, is_end: bool) -> Result<(), Error> {
    match cure_if_due(context, state, is_end)? {
        true => conclude(context, state, true),
        false => Ok(()),
    }
}

fn do_step(
    context: &mut ArmContext<'_>,
    state: &mut ArmState,
    next: driver::Next,
    space: SpaceTold,
) -> Result<(), Error> {
    let counted = next.is_counted();
    if state.driver.wants_fresh_volume() {
        state.make_volumes_anew(context)?;
    }
    let (label, outcome) = state.apply(next)?;
    state.last = Some(outcome);
    state.pulls += u64::from(counted);
    context.observer.on_event(&Event::Step {
        arm: context.arm.name.clone(),
        label,
        pulls: state.pulls,
        capacity_bytes: space.capacity,
        free_bytes: space.free,
        no_space: matches!(outcome, Outcome::NoSpace { .. }),
    });
    state.keep_pace(context.plan.workload.sync_every_operations)
}

fn finish(context: &mut ArmContext<'_>, state: ArmState) -> Result<(), Error> {
    state.finish()?;
    context
        .journal
        .append(Entry::ArmDone { arm: context.arm.name.clone() })
        .map_err(Error::io("write", context.paths.journal()))
}

/// Fails if a signal requested an exit.
pub(crate) fn check_signal() -> Result<(), Error> {
    match interrupted() {
        Some(signal) => Err(Interrupted { signal }.into()),
        None => Ok(()),
    }
}

impl Driver {
    /// Whether the steps are in the operation log. Those of the git binary are not.
    pub(crate) fn is_logged(&self) -> bool {
        matches!(self, Driver::Steps { .. })
    }
}
