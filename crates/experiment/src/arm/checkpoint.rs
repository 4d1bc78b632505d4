//! The checkpoint of an arm: every volume is measured, then the results and the state become
//! durable. Last, the journal records the checkpoint.
//!
//! This order makes a killed run safe: a checkpoint in the journal has its cells, its part of the
//! log and its snapshots.

use senesce_store::CircumstanceRow;

use super::{
    measure::{self, Reads},
    state::{ArmContext, ArmState, drop_snapshots},
};
use crate::{Error, circumstances::add_circumstances, journal::Entry, observer::Event};

/// Measures every volume, makes the results and the state durable, and records the checkpoint in
/// the journal.
pub(super) fn checkpoint(context: &mut ArmContext<'_>, state: &mut ArmState, reads: Reads) -> Result<(), Error> {
    measure::measure_all(context, state, reads)?;
    conclude(context, state, false)
}

/// Makes the results and the state of a checkpoint durable, and records it in the journal. `cured`
/// is whether it follows a cure.
pub(super) fn conclude(context: &mut ArmContext<'_>, state: &mut ArmState, cured: bool) -> Result<(), Error> {
    let pulls = state.pulls;
    let reached = state.driver.reached().into_iter().map(|(name, value)| CircumstanceRow {
        arm: context.arm.name.clone(),
        key: format!("reached.{pulls}.{name}"),
        value,
    });
    add_circumstances(context.store, reached.collect())?;
    let (log_bytes, feedback_bytes) = state.sync_files()?;
    let snapshots = state.keep_snapshots(context, cured)?;
    context
        .journal
        .append(Entry::CheckpointDone {
            arm: context.arm.name.clone(),
            pulls: state.pulls,
            steps: state.steps,
            log_bytes,
            feedback_bytes,
            snapshots: snapshots.clone(),
            cured,
        })
        .map_err(Error::io("write", context.paths.journal()))?;
    drop_snapshots(&context.paths.arm(&context.arm.name), &snapshots)?;
    state.measured_at = Some(state.pulls);
    state.cured_at = cured.then_some(state.pulls).or(state.cured_at);
    let phases = context.observer.take();
    let event = Event::CheckpointDone { arm: context.arm.name.clone(), pulls: state.pulls, cured, phases };
    context.store.append_event("checkpoint-done", &event)?;
    context.observer.on_event(&event);
    Ok(())
}
