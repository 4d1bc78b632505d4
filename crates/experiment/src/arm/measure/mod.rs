//! The cells of a checkpoint: every volume of the arm is measured, and each step is verified.
//!
//! First every volume is synchronized, and its extents and free space are mapped. The unaged twin
//! is a copy of the last aged volume, and is mapped in the same way. Then the grep tests run, each
//! after a cold remount, in turn over the volumes: full, empty, unaged, full, … So load from other
//! work affects all alike. At last the trees are hashed and compared. By then the grep test has
//! read them from the device after the remount, so cached data need not be read again.
//!
//! The machine's load is sampled around every grep test (see [`senesce_probe::score::Load`]). A
//! cell that other work disturbed is read again, at most `measure.repeat_disturbed` more times. All
//! repetitions are stored, and disturbed ones are marked. Without them, the results would hide how
//! the machine behaved.

mod engine;
mod floor;
mod grep;
mod grep_turns;
mod maps;
mod trace;

pub(crate) use self::maps::collect_free_space;

use std::path::Path;

use senesce_core::RelPath;
use senesce_exec::tree::{Tree, collect_tree_until, compare_trees};
use senesce_store::{AgingRow, CellKey, CellResults, CellRow, CircumstanceRow, ModelledRow, Role};
use senesce_volume::{Settler, Volume, copy_tree_settled, find_unsettled};

use self::{
    engine::engine_rows,
    grep_turns::{in_turn, read_in_turn},
    maps::survey_rows,
};
use super::{
    cure::Cure,
    reason,
    state::{ArmContext, ArmState},
    virtual_time::VIRTUAL_TIME,
};
use crate::{
    Error,
    circumstances::add_circumstances,
    error::chain_text,
    observer::{Event, GrepCost},
    run::invalid_cell,
    volumes,
};

/// The minimum of threads that hash a cold volume. They wait for the device more than they compute.
const COLD_READERS: usize = 8;

/// Differences between two trees in a reason.
const DIFFERENCES_SHOWN: usize = 3;

/// The grep tests that a checkpoint runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// All repetitions of the plan.
    All,
    /// One.
    Once,
    None,
}

/// An unfinished cell: its results so far, or the reason why it is invalid.
struct Cell {
    key: CellKey,
    results: Result<CellResults, String>,
}

/// Measures all volumes of the arm and appends their cells.
///
/// If a volume cannot be measured, its cell is invalid with the reason, and the others continue. If
/// the tree of an aged volume differs from the other's, the arm stops, because later cells could
/// not be compared.
pub(crate) fn measure_all(context: &mut ArmContext<'_>, state: &mut ArmState, reads: Reads) -> Result<(), Error> {
    let pulls = state.pulls;
    let mut cells = Vec::new();
    for index in 0..state.aged.len() {
        let key = cell_key(context, state.aged[index].role, pulls);
        let results = look_at_aged(context, state, index, &key);
        // An error after a signal is caused by the signal, and makes no cell invalid.
        context.world.check_signal()?;
        // A failed measurement may have left it unmounted, and the next steps need the mount.
        state.aged[index].volume.mount()?;
        let results = match results {
            Ok(results) => Ok(results),
            Err(error) if error.interrupted().is_some() => return Err(error),
            Err(error) => Err(reason(&state.aged[index].volume, &error)),
        };
        cells.push(Cell { key, results });
    }
    let mut twin = None;
    if context.plan.roles().contains(&Role::Unaged) {
        let key = cell_key(context, Role::Unaged, pulls);
        let from =
            cells.iter().rposition(|cell| cell.results.is_ok()).map(|at| state.aged[at].volume.root().to_owned());
        let made = from.map(|from| make_twin(context, &key, &from)).transpose();
        context.world.check_signal()?;
        let results = match made {
            Ok(Some((volume, results))) => {
                twin = Some(volume);
                Ok(results)
            }
            Ok(None) => Err("no aged volume could be read".to_owned()),
            Err(error) if error.interrupted().is_some() => return Err(error),
            Err(error) => Err(chain_text(&error)),
        };
        cells.push(Cell { key, results });
    }
    let unlike = read_and_compare(context, state, &mut twin, &mut cells, (reads, None))?;
    if let Some(twin) = twin {
        context.doing("umount and removal", Role::Unaged);
        if let (Err(error), Some(cell)) = (twin.destroy(), cells.last_mut()) {
            cell.results = Err(chain_text(&Error::Volume(error)));
        }
    }
    append_all(context, cells)?;
    unlike.map_or(Ok(()), Err)
}

/// Measures the aged volumes after a cure and appends their cells. There is no unaged twin, because
/// the tree is that of the previous checkpoint.
///
/// Errors: a tree differs from that before the cure.
pub(crate) fn measure_cured(context: &mut ArmContext<'_>, state: &mut ArmState, cure: &Cure) -> Result<(), Error> {
    let pulls = state.pulls;
    let mut cells = Vec::new();
    for aged in &mut state.aged {
        let key = cell_key(context, aged.role.cured(), pulls);
        let results = look_at(context, &key, &mut aged.volume);
        context.world.check_signal()?;
        aged.volume.mount()?;
        cells.push(Cell { key, results: results.map_err(|error| reason(&aged.volume, &error)) });
    }
    let unlike = read_and_compare(context, state, &mut None, &mut cells, (Reads::All, Some(&cure.tree)))?;
    for (number, cell) in cells.iter_mut().enumerate() {
        if let Ok(results) = &mut cell.results {
            results.cures = cure.rows(number, results);
        }
    }
    append_all(context, cells)?;
    unlike.map_or(Ok(()), Err)
}

/// Runs the grep tests, and compares the trees with the expected one, or else with the first.
/// Returns an error that stops the arm if an aged volume has another tree. Leaves the aged volumes
/// mounted.
fn read_and_compare(
    context: &mut ArmContext<'_>,
    state: &mut ArmState,
    twin: &mut Option<Volume>,
    cells: &mut [Cell],
    (reads, expected): (Reads, Option<&Tree>),
) -> Result<Option<Error>, Error> {
    // The twin is the last volume and has the last cell.
    let aged = state.aged.iter_mut().map(|aged| &mut aged.volume);
    let mut volumes: Vec<&mut Volume> = aged.chain(twin).collect();
    let repetitions = match reads {
        Reads::All => context.plan.measure.repetitions,
        Reads::Once => 1,
        Reads::None => 0,
    };
    if repetitions > 0 {
        read_in_turn(context, &mut volumes, cells, repetitions)?;
    }
    let unlike = compare_in_turn(context, &mut volumes, cells, expected)?;
    for aged in &mut state.aged {
        aged.volume.mount()?;
        aged.mark_written()?;
    }
    Ok(unlike)
}

fn append_all(context: &mut ArmContext<'_>, cells: Vec<Cell>) -> Result<(), Error> {
    for cell in cells {
        append(context, cell.results.unwrap_or_else(|reason| invalid_cell(cell.key, &reason)))?;
    }
    Ok(())
}

/// Measures an aged volume except its grep tests and its tree.
fn look_at_aged(
    context: &mut ArmContext<'_>,
    state: &mut ArmState,
    index: usize,
    key: &CellKey,
) -> Result<CellResults, Error> {
    let copies = state.driver.copies();
    let aged = &mut state.aged[index];
    context.doing("writing back", key.role);
    aged.target = None;
    aged.volume.sync()?;
    if key.pulls == 0 {
        put_volume_circumstances(context, aged.role, &aged.volume)?;
    }
    let aging = aged.take_row(key.clone(), copies);
    let (latency, steps) = (aged.take_latencies(key), aged.take_steps(key));
    let mut results = look_at(context, key, &mut aged.volume)?;
    // `look_at` unmounted it, so data in memory was also written to the device.
    results.aging = Some(AgingRow { device_written_bytes: aged.written_since()?, ..aging });
    (results.latency, results.steps) = (latency, steps);
    Ok(results)
}

/// Makes the unaged twin of the volume at `from`. Returns it with its results except grep tests and
/// tree.
fn make_twin(context: &mut ArmContext<'_>, key: &CellKey, from: &Path) -> Result<(Volume, CellResults), Error> {
    context.doing("mkfs and copy", Role::Unaged);
    let mut twin = volumes::create(context, Role::Unaged, key.pulls + 1)?;
    let settle = context.plan.workload.settle();
    let mut settler = settle.map(|every| Settler::open(twin.root(), twin.spec().file_system, every)).transpose()?;
    copy_tree_settled(from, twin.root(), &context.world.stop(), settler.as_mut())?;
    drop(settler);
    context.doing("writing back", Role::Unaged);
    twin.sync()?;
    if key.pulls == 0 {
        put_volume_circumstances(context, Role::Unaged, &twin)?;
    }
    let results = look_at(context, key, &mut twin)?;
    Ok((twin, results))
}

/// Hashes the trees and compares each with the expected one, or else with the first. Returns an
/// error that stops the arm if an aged volume differs.
fn compare_in_turn(
    context: &mut ArmContext<'_>,
    volumes: &mut [&mut Volume],
    cells: &mut [Cell],
    expected: Option<&Tree>,
) -> Result<Option<Error>, Error> {
    let mut first: Option<Tree> = None;
    let mut unlike = None;
    in_turn(context, volumes, cells, |context, key, volume, results| {
        context.doing("hashing the tree", key.role);
        let tree = collect_tree_until(volume.root(), context.world.threads.max(COLD_READERS), &context.world.stop())?;
        results.cell.tree_hash = tree.hash();
        results.cell.work_tree_hash = work_tree(&tree).hash();
        results.cell.files = tree.files();
        results.cell.directories = tree.directories();
        results.cell.content_bytes = tree.content_bytes();
        let problem = expected.or(first.as_ref()).map(|first| differences(first, &tree)).unwrap_or_default();
        if expected.is_none() {
            first.get_or_insert(tree);
        }
        if problem.is_empty() {
            return Ok(());
        }
        if key.role == Role::Unaged {
            return Err(Error::Unverified { what: "the copy on the unaged volume".into(), problem });
        }
        let after = if key.role.is_cured() { "after the cure, " } else { "" };
        let problem = format!("{after}the {} volume differs: {problem}", key.role.uncured().name());
        let unverified = |problem: String| Error::Unverified {
            what: format!("the equality of the trees at {} pulls", key.pulls),
            problem,
        };
        unlike = Some(unverified(problem.clone()));
        Err(unverified(problem))
    })?;
    Ok(unlike)
}

/// The first differences between two trees, in words. Empty if they are equal.
fn differences(a: &Tree, b: &Tree) -> String {
    let found = compare_trees(a, b, DIFFERENCES_SHOWN);
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Measures a volume except its aging row, its grep tests and its tree. Leaves it mounted.
fn look_at(context: &mut ArmContext<'_>, key: &CellKey, volume: &mut Volume) -> Result<CellResults, Error> {
    let is_engine = context.arm.file_system.kind.is_engine();
    if !is_engine {
        context.doing("remounting", key.role);
        // Until the volume is unmounted, some metadata is only in the journal. A model needs it
        // at its final address.
        volume.remount_cold()?;
    }
    context.doing("mapping extents", key.role);
    let (layout, free_space, (modelled, map)) = match is_engine {
        true => engine_rows(context, key, volume)?,
        false => survey_rows(context, key, volume)?,
    };
    let root = volume.root();
    let space = rustix::fs::statvfs(root).map_err(|error| Error::io("query", root)(error.into()))?;
    let capacity_bytes = space.f_blocks * space.f_frsize;
    let cell = CellRow {
        key: key.clone(),
        valid: true,
        reason: String::new(),
        // The tree is read last.
        tree_hash: String::new(),
        work_tree_hash: String::new(),
        files: 0,
        directories: 0,
        content_bytes: 0,
        capacity_bytes,
        // As workloads that hold a fullness count it.
        used_bytes: capacity_bytes - space.f_bavail * space.f_frsize,
    };
    Ok(CellResults { layout, modelled, map, free_space, ..CellResults::of(cell) })
}

fn put_volume_circumstances(context: &mut ArmContext<'_>, role: Role, volume: &Volume) -> Result<(), Error> {
    let arm = context.arm.name.clone();
    let mut found = volume.circumstances()?;
    if context.plan.workload.settle().is_some()
        && let Some(problem) = find_unsettled(volume.root(), volume.spec().file_system)?
    {
        let message = format!("{}: {problem}", role.name());
        context.observer.on_event(&Event::Warning { arm: arm.clone(), message });
        found.push(("unsettled".to_owned(), problem));
    }
    let row = |(key, value)| CircumstanceRow { arm: arm.clone(), key: format!("{}.{key}", role.name()), value };
    add_circumstances(context.store, found.into_iter().map(row).collect())
}

/// The tree without the content of `.git` directories.
fn work_tree(tree: &Tree) -> Tree {
    let outside = |path: &RelPath| !path.as_bytes().split(|&b| b == b'/').any(|component| component == b".git");
    let entries = tree.entries.iter().filter(|(path, _)| outside(path));
    Tree { entries: entries.map(|(path, entry)| (path.clone(), entry.clone())).collect() }
}

pub(crate) fn cell_key(context: &ArmContext<'_>, role: Role, pulls: u64) -> CellKey {
    let file_system = context.arm.file_system.kind.as_str().to_owned();
    CellKey { arm: context.arm.name.clone(), file_system, role, pulls }
}

/// The cost of a grep test: `wall` seconds per GiB, or the seconds by the clock of a disk in
/// virtual time. `None`: the tree has no contents.
fn grep_cost(wall: f64, modelled: &[ModelledRow]) -> Option<GrepCost> {
    let of_disk = modelled.iter().find(|row| row.method == VIRTUAL_TIME).map(|row| row.seconds_per_gib);
    let seconds_per_gib = of_disk.unwrap_or(wall);
    seconds_per_gib.is_finite().then_some(GrepCost { seconds_per_gib, is_virtual: of_disk.is_some() })
}

fn append(context: &mut ArmContext<'_>, results: CellResults) -> Result<(), Error> {
    context.store.append_cell(&results)?;
    let event = Event::CellDone {
        key: results.cell.key.clone(),
        reason: results.cell.reason.clone(),
        grep: results.grep.first().and_then(|row| grep_cost(row.seconds_per_gib, &results.modelled)),
    };
    context.store.append_event("cell-done", &event)?;
    context.observer.on_event(&event);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tree_has_no_cost() {
        let key = CellKey { arm: "a".into(), file_system: "xfs".into(), role: Role::Empty, pulls: 0 };
        let row = |seconds_per_gib| ModelledRow {
            key: key.clone(),
            device: "model: x".into(),
            method: VIRTUAL_TIME.to_owned(),
            seconds: 0.5,
            best_order_seconds: f64::NAN,
            seconds_per_gib,
            requests: 1,
            read_bytes: 4096,
        };
        let cost = GrepCost { seconds_per_gib: 7.0, is_virtual: true };
        assert_eq!(grep_cost(3.0, &[row(7.0)]), Some(cost));
        assert_eq!(grep_cost(3.0, &[]), Some(GrepCost { seconds_per_gib: 3.0, is_virtual: false }));
        assert_eq!(grep_cost(f64::NAN, &[row(f64::NAN)]), None);
        assert_eq!(grep_cost(f64::NAN, &[]), None);
    }
}
