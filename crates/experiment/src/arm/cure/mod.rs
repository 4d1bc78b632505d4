//! Cures: a tool moves the files of the aged volumes, and a checkpoint measures the gain.
//!
//! A cure follows a checkpoint of the same step, so the volumes are measured before and after it.
//! The cells after it have their own roles ([`Role::cured`](senesce_store::Role::cured)), and do
//! not replace those before it.

mod senesce;
mod tool;

use senesce_core::statistics::compute_median;
use senesce_defrag::Strategy;
use senesce_exec::tree::{Tree, collect_tree_until};
use senesce_inspect::MoveCost;
use senesce_store::{CellCosts, CellResults, CircumstanceRow, CureRow, MISSED_CURE, ModelledRow};

use super::{
    measure, reason,
    state::{ArmContext, ArmState},
    virtual_time::VirtualTime,
};
use crate::{
    Error,
    circumstances::add_circumstances,
    observer::Event,
    plan::{CurePlan, CureTool},
    run::invalid_cell,
};

/// The cure of all aged volumes of an arm.
pub(crate) struct Cure {
    /// The tree that every volume had before the cure.
    pub tree: Tree,
    /// The cures of the volumes, in the order of the volumes.
    volumes: Vec<CuredVolume>,
}

/// The cure of one volume.
struct CuredVolume {
    tool: CureTool,
    strategies: Vec<Strategy>,
    written_bytes: Option<u64>,
    wall_seconds: f64,
    disk_seconds: f64,
    work: Work,
    /// The costs at the previous checkpoint.
    before: CellCosts,
}

/// The report of the tool.
#[derive(Default)]
struct Work {
    /// Moved files, skipped files, and the reasons. `None` if the tool does not report them.
    files: Option<(u64, u64, String)>,
    /// The costs after the cure, as predicted before the first move.
    predicted: Vec<MoveCost>,
}

/// If a cure is due after the current step, cures the volumes and measures them. Returns whether it
/// did. The step must have its checkpoint.
///
/// `is_end` is whether the step is the last one. Errors: the tool failed, or a tree differs from
/// that before the cure. Then the cells of the cure are invalid.
pub(crate) fn cure_if_due(context: &mut ArmContext<'_>, state: &mut ArmState, is_end: bool) -> Result<bool, Error> {
    let Some(plan) = &context.arm.file_system.cure else { return Ok(false) };
    let is_measured = state.measured_at == Some(state.pulls);
    if !is_measured || state.cured_at == Some(state.pulls) || !plan.is_due(state.pulls, is_end) {
        return Ok(false);
    }
    let cured = cure_all(context, state, plan).and_then(|cure| measure::measure_cured(context, state, &cure));
    match cured {
        Ok(()) => Ok(true),
        Err(error) if error.interrupted().is_some() => Err(error),
        Err(error) => {
            for aged in &state.aged {
                let key = measure::cell_key(context, aged.role.cured(), state.pulls);
                let why = reason(&aged.volume, &error);
                if !context.store.contains(&key) {
                    context.store.append_cell(&invalid_cell(key, &why))?;
                }
            }
            Err(error)
        }
    }
}

/// Runs the tool on every volume.
fn cure_all(context: &mut ArmContext<'_>, state: &mut ArmState, plan: &CurePlan) -> Result<Cure, Error> {
    let version = tool::find_version(&*context.world.host, plan.by);
    put_circumstances(context, plan, version)?;
    let first = state.aged[0].volume.root().to_owned();
    let tree = collect_tree_until(&first, context.world.threads, &context.world.stop())?;
    let mut volumes = Vec::new();
    for index in 0..state.aged.len() {
        let role = state.aged[index].role;
        let before = context.store.read_costs(&measure::cell_key(context, role, state.pulls))?;
        context.doing("cure", role);
        let event = Event::CureStarted {
            arm: context.arm.name.clone(),
            role,
            tool: plan.by.name().to_owned(),
            pulls: state.pulls,
        };
        context.store.append_event("cure-started", &event)?;
        context.observer.on_event(&event);
        volumes.push(cure_volume(context, state, index, (plan, before))?);
    }
    Ok(Cure { tree, volumes })
}

fn cure_volume(
    context: &mut ArmContext<'_>,
    state: &mut ArmState,
    index: usize,
    (plan, before): (&CurePlan, CellCosts),
) -> Result<CuredVolume, Error> {
    let aged = &mut state.aged[index];
    aged.target = None;
    // The checkpoint before left the volume with contents in memory, so a tool would read less.
    aged.volume.remount_cold()?;
    aged.mark_written()?;
    let disk_before = aged.volume.disk_time()?;
    let began = context.world.clock.now();
    let root = aged.volume.root().to_owned();
    let work = match plan.by {
        CureTool::Senesce => senesce::move_files(context, plan, &root),
        tool => tool::run(context, tool, &root),
    };
    // An error after a signal is caused by the signal.
    context.world.check_signal()?;
    let work = work?;
    // Data in memory belongs to the cure.
    aged.volume.sync()?;
    aged.volume.unmount()?;
    let wall_seconds = context.world.clock.now().since(began).as_secs_f64();
    let disk = disk_before.zip(aged.volume.disk_time()?).map(|(before, after)| VirtualTime::between(&before, &after));
    let disk_seconds = disk.transpose()?.map_or(f64::NAN, |time| time.seconds);
    let written_bytes = aged.written_since()?;
    aged.volume.mount()?;
    let strategies = if plan.by == CureTool::Senesce { plan.strategies() } else { Vec::new() };
    Ok(CuredVolume { tool: plan.by, strategies, written_bytes, wall_seconds, disk_seconds, work, before })
}

/// Records the cure. An outside tool has a version of its own.
fn put_circumstances(context: &mut ArmContext<'_>, plan: &CurePlan, version: Option<String>) -> Result<(), Error> {
    let values = serde_json::to_value(plan).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let keys = values.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), text(value)));
    let rows = keys.chain(version.map(|version| ("version", version))).map(|(key, value)| CircumstanceRow {
        arm: context.arm.name.clone(),
        key: format!("cure.{key}"),
        value,
    });
    add_circumstances(context.store, rows.collect())
}

/// Records and reports a cure that did not run because the steps ended before its step.
pub(crate) fn warn_of_missed(context: &mut ArmContext<'_>, pulls: u64) -> Result<(), Error> {
    let Some(plan) = &context.arm.file_system.cure else { return Ok(()) };
    let Some(due) = plan.first_step().filter(|due| *due > pulls) else { return Ok(()) };
    let message = format!(
        "the cure by {} after {due} {unit} did not run: the steps ended after {pulls} {unit}",
        plan.by.name(),
        unit = context.plan.step_unit(),
    );
    let arm = context.arm.name.clone();
    let row = CircumstanceRow { arm: arm.clone(), key: MISSED_CURE.to_owned(), value: message.clone() };
    add_circumstances(context.store, vec![row])?;
    context.observer.on_event(&Event::Warning { arm, message });
    Ok(())
}

impl Cure {
    /// The rows of table `cures` for the volume of number `volume`: one for each modelled device.
    /// `after` is its cell after the cure.
    pub(crate) fn rows(&self, volume: usize, after: &CellResults) -> Vec<CureRow> {
        let cured = &self.volumes[volume];
        let after_costs =
            CellCosts { grep: after.grep.clone(), load: after.load.clone(), modelled: after.modelled.clone() };
        let read = (read_seconds(&cured.before), read_seconds(&after_costs));
        let mut devices: Vec<&str> = [&cured.before, &after_costs]
            .into_iter()
            .flat_map(|costs| of_map(costs).map(|row| row.device.as_str()))
            .collect();
        devices.sort_unstable();
        devices.dedup();
        let row = |device: &str| {
            let of =
                |costs: &CellCosts| of_map(costs).find(|row| row.device == device).map_or(f64::NAN, |row| row.seconds);
            let predicted = cured.work.predicted.iter().find(|cost| cost.device == device);
            let files = cured.work.files.as_ref();
            CureRow {
                key: after.cell.key.clone(),
                tool: cured.tool.name().to_owned(),
                strategies: cured.strategies.iter().map(|strategy| strategy.name()).collect::<Vec<_>>().join(","),
                written_bytes: cured.written_bytes,
                wall_seconds: cured.wall_seconds,
                disk_seconds: cured.disk_seconds,
                moved_files: files.map(|(moved, ..)| *moved),
                skipped_files: files.map(|(_, skipped, _)| *skipped),
                skipped: files.map_or_else(String::new, |(.., reasons)| reasons.clone()),
                device: device.to_owned(),
                modelled_before_seconds: of(&cured.before),
                predicted_seconds: predicted.map_or(f64::NAN, |cost| cost.after_seconds),
                modelled_after_seconds: of(&after_costs),
                read_before_seconds: read.0,
                read_after_seconds: read.1,
            }
        };
        devices.into_iter().map(row).collect()
    }
}

/// The costs that were modelled from the map of the tree.
fn of_map(costs: &CellCosts) -> impl Iterator<Item = &ModelledRow> {
    costs.modelled.iter().filter(|row| row.method == "extents")
}

/// The median time of the grep tests: virtual time for a disk in virtual time, else the wall time
/// of the repetitions that other work did not disturb. NaN without tests.
fn read_seconds(costs: &CellCosts) -> f64 {
    let in_virtual_time: Vec<f64> =
        costs.modelled.iter().filter(|row| row.method == "virtual-time").map(|row| row.seconds).collect();
    let wall = || costs.counted_grep().map(|row| row.wall_seconds).collect();
    let seconds = if in_virtual_time.is_empty() { wall() } else { in_virtual_time };
    compute_median(&seconds).unwrap_or(f64::NAN)
}
