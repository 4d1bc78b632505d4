//! Starts an arm from nothing, or from its last checkpoint.

use std::{collections::BTreeSet, fs, path::Path};

use senesce_oplog::{DoneStep, LogReader, LogWriter, Outcome};
use senesce_store::CellKey;
use senesce_volume::Volume;
use serde_json::{Map, Value};

use super::{
    aged::Aged,
    driver::{Driver, Next},
    state::{ArmContext, ArmState, aged_roles, is_workload_step},
};
use crate::{
    Error,
    feedback::{FeedbackFile, SpaceTold},
    journal::{self, Entry},
    observer::Event,
    paths::RunPaths,
    plan::{Arm, Plan},
    source::Source,
    volumes,
};

/// Brings the arm to its state in the journal.
pub(crate) fn restore_or_begin(context: &mut ArmContext<'_>) -> Result<ArmState, Error> {
    let name = context.arm.name.clone();
    let dir = context.paths.arm(&name);
    fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
    if let journal::ArmState::At(entry) = context.journal.arm_state(&name)
        && let Entry::CheckpointDone { pulls, steps, log_bytes, feedback_bytes, snapshots, cured, .. } = *entry
    {
        let there = !snapshots.is_empty() && snapshots.iter().all(|snapshot| dir.join(snapshot).exists());
        if there {
            announce(context, pulls);
            return restore(context, &dir, Position { pulls, steps, log_bytes, feedback_bytes, snapshots, cured });
        }
        context.observer.on_event(&Event::Warning {
            arm: name.clone(),
            message: "no snapshots of its last checkpoint are left; the arm starts again".into(),
        });
    }
    announce(context, 0);
    begin(context, &dir)
}

fn announce(context: &mut ArmContext<'_>, from_pulls: u64) {
    let arms = context.plan.arms();
    let number = arms.iter().position(|arm| arm.name == context.arm.name).map_or(0, |at| at as u64 + 1);
    let cells = context.plan.cells(context.arm, context.pulls.0);
    let later = arms.iter().skip_while(|arm| arm.name != context.arm.name).skip(1);
    let later: Vec<(u64, u64)> = later.map(|arm| work_left(context, arm)).collect();
    context.observer.on_event(&Event::ArmStarted {
        unit: context.plan.step_unit(),
        from_cells: cells_done(&cells, from_pulls),
        cells: cells.len() as u64,
        later_pulls: later.iter().map(|(pulls, _)| pulls).sum(),
        later_cells: later.iter().map(|(_, cells)| cells).sum(),
        arm: context.arm.name.clone(),
        number,
        of: arms.len() as u64,
        from_pulls,
        pulls: context.pulls.0,
    });
}

/// The cells that are measured when `pulls` are done.
fn cells_done(cells: &[CellKey], pulls: u64) -> u64 {
    cells.iter().filter(|cell| pulls > 0 && cell.pulls <= pulls).count() as u64
}

/// The pulls and the cells that an arm has still to do.
fn work_left(context: &ArmContext<'_>, arm: &Arm) -> (u64, u64) {
    let (all, cells) = (context.pulls.0, context.plan.cells(arm, context.pulls.0));
    let from = match context.journal.arm_state(&arm.name) {
        journal::ArmState::Done => return (0, 0),
        journal::ArmState::At(entry) => match *entry {
            Entry::CheckpointDone { pulls, .. } => pulls,
            _ => 0,
        },
        journal::ArmState::Fresh | journal::ArmState::Failed(_) => 0,
    };
    (all.saturating_sub(from), cells.len() as u64 - cells_done(&cells, from))
}

fn begin(context: &mut ArmContext<'_>, dir: &Path) -> Result<ArmState, Error> {
    let name = context.arm.name.clone();
    context
        .journal
        .append(Entry::ArmStarted { arm: name.clone() })
        .map_err(Error::io("write", context.paths.journal()))?;
    // Files of an earlier attempt have no use without its volumes.
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let path = entry.map_err(Error::io("list", dir))?.path();
        let ours = path == context.paths.log(&name)
            || path == context.paths.feedback(&name)
            || path.file_name().is_some_and(|file| file.to_string_lossy().starts_with("snapshot-"));
        if ours {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    let mut aged = Vec::new();
    for role in aged_roles(context.plan) {
        context.doing("mkfs", role);
        aged.push(Aged::new(
            role,
            volumes::create(context, role, 0)?,
            context.source.is_direct(),
            context.plan.workload.settle(),
        )?);
    }
    let driver = context.source.driver(context)?;
    let log = match driver.is_logged() {
        true => {
            let header = context.source.log_header(context.plan, context.arm);
            Some(LogWriter::create(&context.paths.log(&name), &header)?)
        }
        false => None,
    };
    let (feedback, _) = FeedbackFile::open(&context.paths.feedback(&name), 0)?;
    Ok(ArmState {
        driver,
        aged,
        log,
        feedback,
        pending: None,
        steps: 0,
        pulls: 0,
        last: None,
        measured_at: None,
        cured_at: None,
        sync_steps: context.plan.measure.sync_steps,
        unsynced_operations: 0,
        clock: context.world.clock.clone(),
    })
}

struct Position {
    pulls: u64,
    steps: u64,
    log_bytes: u64,
    feedback_bytes: u64,
    snapshots: Vec<String>,
    cured: bool,
}

fn restore(context: &mut ArmContext<'_>, dir: &Path, at: Position) -> Result<ArmState, Error> {
    let name = context.arm.name.clone();
    let mut aged = Vec::new();
    for (role, snapshot) in aged_roles(context.plan).into_iter().zip(&at.snapshots) {
        context.doing("restoring the snapshot", role);
        let (spec, slot) = volumes::spec_and_slot(context, role, 0);
        let (volume, _) = Volume::restore(context.custodian, &spec, &slot, &dir.join(snapshot), &*context.world.clock)?;
        aged.push(Aged::new(role, volume, context.source.is_direct(), context.plan.workload.settle())?);
    }
    let (feedback, told) = FeedbackFile::open(&context.paths.feedback(&name), at.feedback_bytes)?;
    let mut driver = context.source.driver(context)?;
    let path = context.paths.log(&name);
    let (log, last, pending) = if driver.is_logged() {
        let log = LogWriter::resume(&path, at.log_bytes)?;
        let (last, pending) = tell_again(context, &mut driver, &path, &told)?;
        (Some(log), last, pending)
    } else {
        if let Driver::Git(git) = &mut driver {
            git.skip(at.pulls)?;
        }
        (None, None, None)
    };
    Ok(ArmState {
        driver,
        aged,
        log,
        feedback,
        pending,
        steps: at.steps,
        pulls: at.pulls,
        last,
        measured_at: Some(at.pulls),
        cured_at: at.cured.then_some(at.pulls),
        sync_steps: context.plan.measure.sync_steps,
        unsynced_operations: unsynced(context, &path, at.steps)?,
        clock: context.world.clock.clone(),
    })
}

/// The outcome of the last step, and the workload's answer to feedback that no step of the log
/// followed.
type ToldAgain = (Option<Outcome>, Option<(Next, SpaceTold)>);

/// Sends the recorded feedback to the workload, and checks that it answers with the steps of the
/// log. Returns the last outcome, and the answer to feedback that no step of the log followed.
fn tell_again(
    context: &ArmContext<'_>,
    driver: &mut Driver,
    log: &Path,
    told: &[SpaceTold],
) -> Result<ToldAgain, Error> {
    let mut last = None;
    let mut recorded = LogReader::open(log)?.filter(|done| done.as_ref().map_or(true, is_workload_step));
    for (number, space) in told.iter().enumerate() {
        let unlike = |problem: String| Error::Unverified {
            what: format!("{}: resuming at step {number}", context.arm.name),
            problem,
        };
        let next = driver.next(*space, last)?;
        let Some(done) = recorded.next().transpose()? else {
            if number + 1 == told.len() {
                return Ok((last, next.map(|next| (next, *space))));
            }
            return Err(unlike("the operation log has fewer steps than the feedback".into()));
        };
        let Some(Next::Step(step)) = next else {
            return Err(unlike(format!("the workload ends here, but the log continues with {:?}", done.step.label)));
        };
        if !begins_alike(&step, &done) {
            return Err(unlike(format!(
                "the workload has the step {:?}, but the log has {:?}",
                step.label, done.step.label
            )));
        }
        last = Some(done.outcome);
    }
    Ok((last, None))
}

/// Whether the log's step is the workload's, or its start if space ran out.
fn begins_alike(step: &senesce_oplog::Step, done: &DoneStep) -> bool {
    step.label == done.step.label && step.root == done.step.root && step.ops.starts_with(&done.step.ops)
}

/// Operations after the last synchronization in the log.
fn unsynced(context: &ArmContext<'_>, log: &Path, steps: u64) -> Result<u64, Error> {
    let mut operations = 0;
    if steps > 0 && context.plan.workload.sync_every_operations > 0 && log.exists() {
        for done in LogReader::open(log)? {
            let done = done?;
            operations = if is_workload_step(&done) { operations + done.step.ops.len() as u64 } else { 0 };
        }
    }
    Ok(operations)
}

/// Compares the headers of the logs of all arms, also of complete ones, with the header that the
/// source makes now: one result must be of one workload.
///
/// Errors: the first difference. Skips a log without a readable header, because a kill leaves one
/// in an arm that will start again.
pub(crate) fn check_source(plan: &Plan, source: &Source, paths: &RunPaths) -> Result<(), Error> {
    for arm in plan.arms() {
        let path = paths.log(&arm.name);
        let Ok(log) = LogReader::open(&path) else { continue };
        let (was, is) = (log.header(), source.log_header(plan, &arm));
        let difference = first_difference("format", &was.format.as_str().into(), &is.format.as_str().into())
            .or_else(|| first_difference("seed", &was.seed.0.into(), &is.seed.0.into()))
            .or_else(|| first_difference("workload", &was.workload, &is.workload));
        if let Some(difference) = difference {
            return Err(Error::RunDirectory {
                path,
                problem: format!(
                    "is of another source: the source of the workload was changed after the arm was started: {difference}"
                ),
                hint: "nothing was changed in the run: restore the source and resume, continue with the version of senesce \
                       that started it, or start a new run",
            });
        }
    }
    Ok(())
}

/// The first difference of two values, by the order of the keys. A missing key counts as null.
fn first_difference(key: &str, was: &Value, is: &Value) -> Option<String> {
    if let (Value::Object(was), Value::Object(is)) = (was, is) {
        let names: BTreeSet<_> = was.keys().chain(is.keys()).collect();
        let of = |map: &Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or_default();
        return names
            .into_iter()
            .find_map(|name| first_difference(&format!("{key}.{name}"), &of(was, name), &of(is, name)));
    }
    (was != is).then(|| format!("{key} was {was} and is {is}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_different_key_is_named() {
        let was = json!({ "kind": "replay", "log": { "blake3": "aa", "seed": 1 }, "keep": [1, 2] });
        for (is, says) in [
            (was.clone(), None),
            (
                json!({ "kind": "replay", "log": { "blake3": "bb", "seed": 2 }, "keep": [1, 2] }),
                Some("w.log.blake3 was \"aa\" and is \"bb\""),
            ),
            (
                json!({ "kind": "replay", "log": { "blake3": "aa", "seed": 1, "new": 7 }, "keep": [1, 2] }),
                Some("w.log.new was null and is 7"),
            ),
            (
                json!({ "kind": "replay", "log": { "blake3": "aa" }, "keep": [1, 2] }),
                Some("w.log.seed was 1 and is null"),
            ),
            (json!({ "kind": "replay", "log": 3, "keep": [1] }), Some("w.keep was [1,2] and is [1]")),
            (
                json!("replay"),
                Some(
                    "w was {\"keep\":[1,2],\"kind\":\"replay\",\"log\":{\"blake3\":\"aa\",\"seed\":1}} and is \"replay\"",
                ),
            ),
        ] {
            assert_eq!(first_difference("w", &was, &is).as_deref(), says);
        }
    }
}
