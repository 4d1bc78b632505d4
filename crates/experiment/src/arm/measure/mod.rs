//! A checkpoint's cells: every volume of the arm measured, each step verified.
//!
//! Order on each volume: synchronise, map extents and free space, hash the tree; then the grep tests, each after a cold
//! remount. The hash reads everything, so it comes before the volume is made cold. The unaged twin is made last, from the
//! last aged volume.

mod grep;
mod maps;

use std::path::Path;

use senesce_core::RelPath;
use senesce_exec::tree::{Tree, collect_tree, compare_trees};
use senesce_store::{CellKey, CellResults, CellRow, CircumstanceRow, Role};
use senesce_volume::{Volume, copy_tree};

use self::{
    grep::grep_rows,
    maps::{free_space_rows, layout_row, model_rows},
};
use super::{
    check_signal, reason,
    state::{ArmContext, ArmState},
};
use crate::{Error, circumstances::add_circumstances, error::chain_text, observer::Event, run::invalid_cell, volumes};

/// Threads that read a cold volume at least, to hash it: they wait for the device more than they compute.
const COLD_READERS: usize = 8;

/// Differences between two trees that a reason names.
const DIFFERENCES_SHOWN: usize = 3;

/// Measures all volumes of the arm and appends their cells.
///
/// A volume that cannot be measured gives an invalid cell with the reason, and the others go on. An aged volume whose
/// tree is not the other's ends the arm: whatever came after would compare nothing.
pub(crate) fn measure_all(context: &mut ArmContext<'_>, state: &mut ArmState) -> Result<(), Error> {
    let pulls = state.pulls;
    let copies = state.driver.copies();
    let mut first_tree: Option<Tree> = None;
    for index in 0..state.aged.len() {
        let aged = &mut state.aged[index];
        let key = cell_key(context, aged.role, pulls);
        aged.target = None;
        aged.volume.sync()?;
        if pulls == 0 {
            put_volume_circumstances(context, aged.role, &aged.volume)?;
        }
        let aging = aged.take_row(key.clone(), copies);
        let measured = measure_volume(context, key.clone(), &mut aged.volume);
        // A measurement that failed may have left it unmounted, and the steps go on.
        aged.volume.mount()?;
        let role = aged.role;
        let (mut results, tree) = match measured {
            Ok(measured) => measured,
            Err(error) if error.interrupted().is_some() => return Err(error),
            Err(error) => {
                append(context, invalid_cell(key, &reason(&state.aged[index].volume, &error)))?;
                continue;
            }
        };
        results.aging = Some(aging);
        if let Some(first) = &first_tree {
            let unlike = differences(first, &tree);
            if !unlike.is_empty() {
                let what = format!("the equality of the trees at {pulls} pulls");
                let problem = format!("the {} volume differs: {unlike}", role.name());
                append(context, invalid_cell(key, &problem))?;
                return Err(Error::Unverified { what, problem });
            }
        }
        append(context, results)?;
        first_tree.get_or_insert(tree);
    }
    match first_tree {
        _ if !context.plan.roles().contains(&Role::Unaged) => Ok(()),
        Some(tree) => measure_twin(context, state, &tree),
        None => {
            let key = cell_key(context, Role::Unaged, pulls);
            append(context, invalid_cell(key, "no aged volume could be read"))
        }
    }
}

/// Makes the unaged twin, compares and measures it, and removes it.
fn measure_twin(context: &mut ArmContext<'_>, state: &mut ArmState, tree: &Tree) -> Result<(), Error> {
    let pulls = state.pulls;
    let key = cell_key(context, Role::Unaged, pulls);
    let from = state.aged.last().expect("an arm has an aged volume").volume.root().to_owned();
    match twin_results(context, key.clone(), &from, pulls, tree) {
        Ok(results) => append(context, results),
        Err(error) if error.interrupted().is_some() => Err(error),
        Err(error) => append(context, invalid_cell(key, &chain_text(&error))),
    }
}

fn twin_results(
    context: &mut ArmContext<'_>,
    key: CellKey,
    from: &Path,
    pulls: u64,
    tree: &Tree,
) -> Result<CellResults, Error> {
    doing(context, "making the unaged twin", Role::Unaged);
    let mut twin = volumes::create(context, Role::Unaged, pulls + 1)?;
    copy_tree(from, twin.root())?;
    twin.sync()?;
    if pulls == 0 {
        put_volume_circumstances(context, Role::Unaged, &twin)?;
    }
    let (results, twin_tree) = measure_volume(context, key, &mut twin)?;
    let unlike = differences(tree, &twin_tree);
    twin.destroy()?;
    if unlike.is_empty() {
        return Ok(results);
    }
    Err(Error::Unverified { what: "the copy on the unaged volume".into(), problem: unlike })
}

/// The first differences between two trees, in words; empty if they are equal.
fn differences(a: &Tree, b: &Tree) -> String {
    let found = compare_trees(a, b, DIFFERENCES_SHOWN);
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Everything but the aging row; leaves the volume mounted.
fn measure_volume(
    context: &mut ArmContext<'_>,
    key: CellKey,
    volume: &mut Volume,
) -> Result<(CellResults, Tree), Error> {
    doing(context, "mapping extents", key.role);
    let layout = layout_row(context, &key, volume.root())?;
    let free_space = free_space_rows(context, &key, volume.root())?;
    // Some metadata lie in the journal only until the volume is unmounted, and a model must find all in their places.
    // What is hashed is then what the device holds, not what memory does.
    volume.remount_cold()?;
    let (mut modelled, map) = model_rows(context, &key, volume)?;
    doing(context, "hashing the tree", key.role);
    let root = volume.root().to_owned();
    let tree = collect_tree(&root, context.world.threads.max(COLD_READERS))?;
    let space = rustix::fs::statvfs(&root).map_err(|error| Error::io("look at", &root)(error.into()))?;
    let capacity_bytes = space.f_blocks * space.f_frsize;
    let cell = CellRow {
        key: key.clone(),
        valid: true,
        reason: String::new(),
        tree_hash: tree.hash(),
        work_tree_hash: work_tree(&tree).hash(),
        files: tree.files(),
        directories: tree.directories(),
        content_bytes: tree.content_bytes(),
        capacity_bytes,
        used_bytes: capacity_bytes - space.f_bfree * space.f_frsize,
    };
    let mut grep = Vec::new();
    let measure = &context.plan.measure;
    let (warmups, repetitions) = (measure.warmups, measure.repetitions);
    for run in 0..warmups + repetitions {
        check_signal()?;
        doing(context, "grep test", key.role);
        let (row, virtual_time) = grep_rows(context, &key, volume, run.saturating_sub(warmups))?;
        if run >= warmups {
            grep.push(row);
            modelled.extend(virtual_time);
        }
    }
    Ok((CellResults { cell, grep, layout, modelled, map, free_space, aging: None }, tree))
}

fn put_volume_circumstances(context: &mut ArmContext<'_>, role: Role, volume: &Volume) -> Result<(), Error> {
    let arm = &context.arm.name;
    let rows = volume.circumstances()?.into_iter().map(|(key, value)| CircumstanceRow {
        arm: arm.clone(),
        key: format!("{}.{key}", role.name()),
        value,
    });
    add_circumstances(context.store, rows.collect())
}

/// The tree without what lies below a `.git` directory.
fn work_tree(tree: &Tree) -> Tree {
    let outside = |path: &RelPath| !path.as_bytes().split(|&b| b == b'/').any(|component| component == b".git");
    let entries = tree.entries.iter().filter(|(path, _)| outside(path));
    Tree { entries: entries.map(|(path, entry)| (path.clone(), entry.clone())).collect() }
}

fn cell_key(context: &ArmContext<'_>, role: Role, pulls: u64) -> CellKey {
    let file_system = context.arm.file_system.kind.as_str().to_owned();
    CellKey { arm: context.arm.name.clone(), file_system, role, pulls }
}

fn append(context: &mut ArmContext<'_>, results: CellResults) -> Result<(), Error> {
    context.store.append_cell(&results)?;
    let event = Event::CellDone {
        key: results.cell.key.clone(),
        reason: results.cell.reason.clone(),
        grep_seconds_per_gib: results.grep.first().map(|row| row.seconds_per_gib),
    };
    context.store.append_event("cell-done", &event)?;
    context.observer.on_event(&event);
    Ok(())
}

fn doing(context: &mut ArmContext<'_>, what: &str, role: Role) {
    let arm = context.arm.name.clone();
    context.observer.on_event(&Event::Doing { arm, what: what.to_owned(), role: Some(role) });
}
