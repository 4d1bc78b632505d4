//! Runs grep tests in turn over the volumes of a checkpoint.

use senesce_store::{CellKey, CellResults, LoadRow};
use senesce_volume::Volume;

use super::{
    super::{reason, state::ArmContext},
    Cell,
    floor::Floor,
    grep::grep_rows,
    trace::trace_volume,
};
use crate::{Error, error::chain_text, observer::Event};

/// Runs `repetitions` grep tests in turn over the volumes, then the additional repetitions of
/// disturbed cells. At last it runs one traced test of each volume if the plan requests it.
pub(super) fn read_in_turn(
    context: &mut ArmContext<'_>,
    volumes: &mut [&mut Volume],
    cells: &mut [Cell],
    repetitions: u64,
) -> Result<(), Error> {
    let measure = &context.plan.measure;
    let (warmups, more) = (measure.warmups, measure.repeat_disturbed);
    let first = cells.iter().position(|cell| cell.results.is_ok());
    let mut floor = match first {
        Some(at) => {
            let floor = Floor::of_tree(context, volumes[at].root());
            or_warning(context, floor)?.flatten()
        }
        None => None,
    };
    for _ in 0..warmups {
        in_turn(context, volumes, cells, |context, key, volume, _| {
            context.doing("grep test", key.role);
            grep_rows(context, key, volume, 0).map(drop)
        })?;
    }
    for run in 0..repetitions.saturating_add(more) {
        if run >= repetitions && !cells.iter().any(|cell| wants_repetition(cell, repetitions)) {
            break;
        }
        in_turn(context, volumes, cells, |context, key, volume, results| {
            if run >= repetitions && !needs_repetition(&results.load, repetitions) {
                return Ok(());
            }
            context.doing("grep test", key.role);
            let rows = grep_rows(context, key, volume, results.grep.len() as u64)?;
            results.grep.push(rows.grep);
            results.load.push(rows.load);
            results.modelled.extend(rows.modelled);
            Ok(())
        })?;
        if let Some(one) = &mut floor {
            let seconds = one.collect_seconds(context);
            match or_warning(context, seconds)? {
                Some(seconds) => {
                    let rows = cells.iter_mut().filter_map(|cell| cell.results.as_mut().ok()?.grep.last_mut());
                    // A cell that this round left out keeps the result of an earlier round.
                    rows.filter(|row| row.fuse_floor_seconds.is_nan()).for_each(|row| row.fuse_floor_seconds = seconds);
                }
                None => floor = None,
            }
        }
    }
    if let Some(floor) = floor {
        or_warning(context, floor.finish())?;
    }
    warn_of_disturbed(context, cells);
    if context.plan.measure.trace {
        in_turn(context, volumes, cells, trace_volume)?;
    }
    Ok(())
}

/// Whether a cell has fewer undisturbed repetitions than the plan requests.
fn needs_repetition(loads: &[LoadRow], repetitions: u64) -> bool {
    let undisturbed = loads.iter().filter(|row| row.disturbance.is_empty()).count();
    (undisturbed as u64) < repetitions
}

fn wants_repetition(cell: &Cell, repetitions: u64) -> bool {
    cell.results.as_ref().is_ok_and(|results| needs_repetition(&results.load, repetitions))
}

/// Warns of the cells of which every repetition was disturbed.
fn warn_of_disturbed(context: &mut ArmContext<'_>, cells: &[Cell]) {
    for cell in cells {
        let Ok(results) = &cell.results else { continue };
        let Some(last) = results.load.last() else { continue };
        if results.load.iter().any(|row| row.disturbance.is_empty()) {
            continue;
        }
        let message = format!(
            "other work disturbed all {} grep test(s) of the {} volume at {} {}: {}",
            results.load.len(),
            cell.key.role.name(),
            cell.key.pulls,
            context.plan.step_unit(),
            last.disturbance
        );
        context.observer.on_event(&Event::Warning { arm: cell.key.arm.clone(), message });
    }
}

/// Turns a failed measurement of the FUSE floor into a warning: the cells are valid without it.
fn or_warning<T>(context: &mut ArmContext<'_>, result: Result<T, Error>) -> Result<Option<T>, Error> {
    context.world.check_signal()?;
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.interrupted().is_some() => Err(error),
        Err(error) => {
            let message = format!("the FUSE floor was not measured: {}", chain_text(&error));
            context.observer.on_event(&Event::Warning { arm: context.arm.name.clone(), message });
            Ok(None)
        }
    }
}

/// Works on every volume whose cell is still valid. If the work fails, the cell is invalid.
pub(super) fn in_turn(
    context: &mut ArmContext<'_>,
    volumes: &mut [&mut Volume],
    cells: &mut [Cell],
    mut work: impl FnMut(&mut ArmContext<'_>, &CellKey, &mut Volume, &mut CellResults) -> Result<(), Error>,
) -> Result<(), Error> {
    for (volume, cell) in volumes.iter_mut().zip(cells) {
        context.world.check_signal()?;
        let Ok(results) = &mut cell.results else { continue };
        let done = work(context, &cell.key, volume, results);
        context.world.check_signal()?;
        match done {
            Ok(()) => {}
            Err(error) if error.interrupted().is_some() => return Err(error),
            Err(error) => cell.results = Err(reason(volume, &error)),
        }
    }
    Ok(())
}
