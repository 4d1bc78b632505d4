//! A checkpoint's cells: every volume of the arm measured, each step verified.
//!
//! Order on each volume: synchronise, map extents and free space, hash the tree; then the grep tests, each after a cold
//! remount. The hash reads everything, so it comes before the volume is made cold. The unaged twin is made last, from the
//! last aged volume.

use std::path::Path;

use senesce_core::{Bytes, RelPath};
use senesce_exec::tree::{Tree, collect_tree, compare_trees};
use senesce_inspect::{ModelOptions, model_tree};
use senesce_probe::{
    collect::{
        GrepFigures, GrepOptions, Order, collect_btrfs_free_space, collect_free_extents, collect_gnu_grep,
        collect_grep, collect_space, collect_tree_extents, compute_pattern,
    },
    map::{BtrfsGroupType, FileExtents},
    score::{LayoutScorer, compute_free_space},
};
use senesce_store::{
    CellKey, CellResults, CellRow, CircumstanceRow, FreeSpaceRow, GrepRow, LayoutRow, MapRow, ModelledRow, Role,
};
use senesce_volume::{ColdReport, Volume, copy_tree};

use super::{
    check_signal, reason,
    state::{ArmContext, ArmState},
    virtual_time::VirtualTime,
};
use crate::{
    Error,
    circumstances::add_circumstances,
    error::chain_text,
    observer::Event,
    plan::{FileSystemName, ScanOrder, Scanner},
    run::invalid_cell,
    volumes,
};

/// Blocks of every figure that counts blocks.
const BLOCK_BYTES: u64 = 4096;

/// Cells on each side of a checkpoint's map: two to the power of it.
const MAP_ORDER: u32 = 6;

/// Bytes of a sector in the block layer's statistics.
const SECTOR_BYTES: u64 = 512;

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
    let tree = collect_tree(&root, context.world.threads)?;
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

/// A grep test's wall time; and, of a disk in virtual time, its modelled time.
fn grep_rows(
    context: &mut ArmContext<'_>,
    key: &CellKey,
    volume: &mut Volume,
    repetition: u64,
) -> Result<(GrepRow, Option<ModelledRow>), Error> {
    let Scanned { cold, scanner, order, figures, device, virtual_time } = scan_cold(context, volume)?;
    let modelled = virtual_time.map(|time| time.row(key.clone(), figures.allocated_bytes));
    // On a disk in virtual time nothing waits for the device, and its figure is the other one.
    let is_paced = modelled.is_none() || context.plan.volumes.real_time;
    if figures.is_cpu_bound() && is_paced {
        let share = figures.cpu_share().unwrap_or_default() * 100.0;
        context.observer.on_event(&Event::Warning {
            arm: key.arm.clone(),
            message: format!(
                "the grep test of the {} volume at {} pulls used the CPU for {share:.0}% of its time: the CPU, not the \
                 device, set the pace",
                key.role.name(),
                key.pulls
            ),
        });
    }
    let row = GrepRow {
        key: key.clone(),
        repetition,
        scanner: scanner.to_owned(),
        order: order.to_owned(),
        cache: cold.description,
        wall_seconds: figures.wall.as_secs_f64(),
        allocated_bytes: figures.allocated_bytes,
        seconds_per_gib: figures.seconds_per_gib().unwrap_or(f64::NAN),
        read_bytes: figures.read_bytes,
        files: figures.files,
        user_seconds: figures.user_seconds,
        system_seconds: figures.system_seconds,
        device_read_bytes: device.as_ref().map(|device| device.bytes),
        device_read_requests: device.as_ref().map(|device| device.requests),
        cpu_bound: figures.is_cpu_bound() && is_paced,
    };
    Ok((row, modelled))
}

/// A grep test that was cold.
struct Scanned {
    cold: ColdReport,
    scanner: &'static str,
    order: &'static str,
    figures: GrepFigures,
    /// None in a directory.
    device: Option<DeviceReads>,
    /// Only of a disk in virtual time.
    virtual_time: Option<VirtualTime>,
}

/// What a block device was asked to read.
struct DeviceReads {
    bytes: u64,
    requests: u64,
}

/// The grep test after a cold remount, which the device has to confirm: it must have been asked for what was read.
///
/// A process in another mount namespace (a browser, a container) may hold a copy of the mount for a moment; the file
/// system then outlives its unmounting, warm, and nothing but the device's own count shows it. So it is tried again.
fn scan_cold(context: &mut ArmContext<'_>, volume: &mut Volume) -> Result<Scanned, Error> {
    const TRIES: u32 = 5;
    let mut device_bytes = 0;
    for attempt in 0..TRIES {
        check_signal()?;
        if attempt > 0 {
            std::thread::sleep(std::time::Duration::from_secs(u64::from(attempt)));
        }
        let scanned = scan_once(context, volume)?;
        device_bytes = scanned.device.as_ref().map_or(0, |device| device.bytes);
        // A tenth, because a file system may compress; a cold one asks for more than it delivers.
        if !scanned.cold.is_cold || device_bytes >= scanned.figures.read_bytes / 10 {
            return Ok(scanned);
        }
    }
    Err(Error::Unverified {
        what: "the cold cache".into(),
        problem: format!(
            "{TRIES} times the grep test read its files, but the device was asked for {device_bytes} bytes only"
        ),
    })
}

fn scan_once(context: &ArmContext<'_>, volume: &mut Volume) -> Result<Scanned, Error> {
    let cold = volume.remount_cold()?;
    let before = volume.device_stat()?;
    let time_before = volume.disk_time()?;
    let pattern = compute_pattern(context.plan.seed);
    let clock = &*context.world.clock;
    let (scanner, order, figures) = match context.plan.measure.scanner {
        Scanner::Senesce => {
            let (order, name) = match context.plan.measure.order {
                ScanOrder::Readdir => (Order::Readdir, "readdir"),
                ScanOrder::Sorted => (Order::Sorted, "sorted"),
                ScanOrder::Inode => (Order::Inode, "inode"),
            };
            ("senesce", name, collect_grep(volume.root(), &GrepOptions { order, pattern }, clock)?)
        }
        Scanner::Grep => ("grep", "readdir", collect_gnu_grep(volume.root(), &pattern, clock)?),
    };
    let after = volume.device_stat()?;
    let time_after = volume.disk_time()?;
    verify_grep(&figures)?;
    let device = before.zip(after).map(|(before, after)| DeviceReads {
        bytes: (after.read_sectors - before.read_sectors) * SECTOR_BYTES,
        requests: after.reads - before.reads,
    });
    let virtual_time =
        time_before.zip(time_after).map(|(before, after)| VirtualTime::between(&before, &after)).transpose()?;
    Ok(Scanned { cold, scanner, order, figures, device, virtual_time })
}

/// A scan that left files out, or took no time because the clock went backwards, measures nothing.
fn verify_grep(figures: &GrepFigures) -> Result<(), Error> {
    let unverified = |problem: String| Err(Error::Unverified { what: "the grep test".into(), problem });
    if let Some(first) = figures.errors.first() {
        let (count, path) = (figures.errors_count, first.path.display());
        return unverified(format!("{count} file(s) could not be read, the first: {path}: {}", first.message));
    }
    if figures.wall.0 == 0 {
        return unverified("it took no time; did the clock go backwards?".into());
    }
    Ok(())
}

/// The static layout; none if the file system that holds a directory does not tell where files lie.
fn layout_row(context: &ArmContext<'_>, key: &CellKey, root: &Path) -> Result<Option<LayoutRow>, Error> {
    let mut scorer = LayoutScorer::new(collect_space(root)?, BLOCK_BYTES);
    let mut add = |file: FileExtents| scorer.add_file(file.size_bytes, &file.extents);
    let mapped = collect_tree_extents(root, context.world.threads, &mut add);
    if is_untold(context, &mapped) {
        return Ok(None);
    }
    if let Some(first) = mapped?.errors.first() {
        let problem = format!("{}: {}", first.path.display(), first.message);
        return Err(Error::Unverified { what: "the map of the tree".into(), problem });
    }
    let figures = scorer.finish();
    Ok(Some(LayoutRow {
        key: key.clone(),
        space: match figures.space {
            senesce_core::Space::Device => "device".to_owned(),
            senesce_core::Space::BtrfsLogical => "btrfs-logical".to_owned(),
        },
        files: figures.files,
        fragmented_files: figures.fragmented_files,
        extents: figures.extents,
        blocks: figures.blocks,
        extents_per_file: figures.extents_per_file.unwrap_or(f64::NAN),
        layout_score: figures.layout_score.unwrap_or(f64::NAN),
        adjacent_files_share: figures.adjacent_files_share.unwrap_or(f64::NAN),
    }))
}

/// The modelled costs and the map; nothing if the file system that holds a directory does not tell where files lie.
fn model_rows(
    context: &mut ArmContext<'_>,
    key: &CellKey,
    volume: &Volume,
) -> Result<(Vec<ModelledRow>, Vec<MapRow>), Error> {
    let space =
        rustix::fs::statvfs(volume.root()).map_err(|errno| Error::io("look at", volume.root())(errno.into()))?;
    let options = ModelOptions {
        devices: context.devices,
        read_ahead_kib: context.plan.volumes.read_ahead_kib,
        volume_bytes: space.f_blocks * space.f_frsize,
        map_order: MAP_ORDER,
        threads: context.world.threads,
    };
    let tree = match model_tree(volume.root(), &options) {
        Err(senesce_inspect::Error::Probe(senesce_probe::Error::NotSupported { .. }))
            if context.arm.file_system.kind == FileSystemName::Host =>
        {
            return Ok((Vec::new(), Vec::new()));
        }
        tree => tree?,
    };
    if let Some(problem) = &tree.metadata_problem {
        context.observer.on_event(&Event::Warning {
            arm: key.arm.clone(),
            message: format!(
                "the modelled cost of the {} volume at {} pulls is of contents only: {problem}",
                key.role.name(),
                key.pulls
            ),
        });
    }
    let gib = tree.allocated_bytes as f64 / Bytes::GIB as f64;
    let modelled = tree.costs.iter().map(|cost| ModelledRow {
        key: key.clone(),
        device: cost.device.clone(),
        method: "extents".to_owned(),
        seconds: cost.seconds,
        seconds_per_gib: if gib > 0.0 { cost.seconds / gib } else { f64::NAN },
        requests: cost.requests,
        read_bytes: cost.read_bytes,
    });
    let last = (tree.entries.max(2) - 1) as f64;
    let cells = tree.map.cells.iter().enumerate().filter(|(_, cell)| cell.used_bytes > 0);
    let map = cells.map(|(at, cell)| MapRow {
        key: key.clone(),
        side: u64::from(tree.map.side),
        cell_bytes: tree.map.cell_bytes,
        cell: at as u64,
        used_bytes: cell.used_bytes,
        free_bytes: cell.free_bytes,
        extents: u64::from(cell.extents),
        place: cell.owner.map_or(f64::NAN, |owner| f64::from(owner) / last),
    });
    Ok((modelled.collect(), map.collect()))
}

/// Whether the file system that holds a directory has no way to tell this.
fn is_untold<T>(context: &ArmContext<'_>, answer: &Result<T, senesce_probe::Error>) -> bool {
    let is_host = context.arm.file_system.kind == FileSystemName::Host;
    is_host && matches!(answer, Err(senesce_probe::Error::NotSupported { .. }))
}

/// The histogram of free extents: of ext4 and XFS on the device, of Btrfs in the logical space of its data block groups.
fn free_space_rows(context: &ArmContext<'_>, key: &CellKey, root: &Path) -> Result<Vec<FreeSpaceRow>, Error> {
    let free = match context.arm.file_system.kind {
        FileSystemName::Btrfs => {
            collect_btrfs_free_space(root).map(|space| space.free_extents(BtrfsGroupType::DATA).collect::<Vec<_>>())
        }
        _ => collect_free_extents(root),
    };
    if is_untold(context, &free) {
        return Ok(Vec::new());
    }
    let free = free?;
    let figures = compute_free_space(free.iter().map(|extent| extent.length_bytes));
    let row = |bucket: &senesce_probe::score::FreeSpaceBucket| FreeSpaceRow {
        key: key.clone(),
        bucket_bytes: bucket.bucket_bytes,
        extents: bucket.extents,
        bytes: bucket.bytes,
    };
    Ok(figures.buckets.iter().map(row).collect())
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
