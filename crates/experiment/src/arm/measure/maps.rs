//! What lies where: layout, modelled costs, the map, free space. Everything a volume tells of itself without a timed read.

use std::path::Path;

use senesce_core::Bytes;
use senesce_inspect::{ModelOptions, ModelledTree, model_tree};
use senesce_probe::{
    collect::{collect_btrfs_free_space, collect_free_extents, collect_space, collect_tree_extents},
    map::{BtrfsGroupType, FileExtents, FreeExtent},
    score::{FreeSpaceBucket, FreeSpaceFigures, LayoutFigures, LayoutScorer, PathOrderScorer, compute_free_space},
};
use senesce_store::{CellKey, FreeSpaceRow, LayoutRow, MapRow, ModelledRow};
use senesce_volume::Volume;

use super::super::state::ArmContext;
use crate::{Error, observer::Event, plan::FileSystemName};

/// Blocks of every figure that counts blocks.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Cells on each side of a checkpoint's map: two to the power of it.
pub(super) const MAP_ORDER: u32 = 6;

/// The static layout; none if the file system that holds a directory does not tell where files lie.
pub(super) fn layout_row(context: &ArmContext<'_>, key: &CellKey, root: &Path) -> Result<Option<LayoutRow>, Error> {
    let mut scorer = LayoutScorer::new(collect_space(root)?, BLOCK_BYTES);
    let mut by_path = PathOrderScorer::default();
    let mut add = |file: FileExtents| {
        scorer.add_file(file.size_bytes, &file.extents);
        by_path.add_file(&file.path, &file.extents);
    };
    let mapped = collect_tree_extents(root, context.world.threads, &mut add);
    if is_untold(context, &mapped) {
        return Ok(None);
    }
    if let Some(first) = mapped?.errors.first() {
        let problem = format!("{}: {}", first.path.display(), first.message);
        return Err(Error::Unverified { what: "the map of the tree".into(), problem });
    }
    Ok(Some(layout_row_of(key, &scorer.finish(), by_path.finish())))
}

/// The row of table `layout`. In: the share of files that begin where the one before in the order of paths ends.
pub(super) fn layout_row_of(key: &CellKey, figures: &LayoutFigures, by_path: Option<f64>) -> LayoutRow {
    LayoutRow {
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
        path_adjacent_files_share: by_path.unwrap_or(f64::NAN),
    }
}

/// The modelled costs and the map; nothing if the file system that holds a directory does not tell where files lie.
pub(super) fn model_rows(
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
    let free = free_of_cells(context, volume.root(), &tree)?;
    Ok(tree_rows(key, &tree, &free))
}

/// The rows of tables `modelled` and `maps`. In: free bytes of each cell, nothing if that cannot be told.
pub(super) fn tree_rows(key: &CellKey, tree: &ModelledTree, free: &[u64]) -> (Vec<ModelledRow>, Vec<MapRow>) {
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
    let end = free.iter().rposition(|bytes| *bytes > 0).unwrap_or(0);
    // What is neither used nor free is metadata; behind the last free byte nobody knows.
    let has_any = |at: usize, used: u64| used > 0 || (at < end && free[at] < tree.map.cell_bytes / 2);
    let cells = tree.map.cells.iter().enumerate().filter(|(at, cell)| has_any(*at, cell.used_bytes));
    let map = cells.map(|(at, cell)| MapRow {
        key: key.clone(),
        side: u64::from(tree.map.side),
        cell_bytes: tree.map.cell_bytes,
        cell: at as u64,
        used_bytes: cell.used_bytes,
        free_bytes: free.get(at).copied().unwrap_or(0),
        extents: u64::from(cell.extents),
        place: cell.owner.map_or(f64::NAN, |owner| f64::from(owner) / last),
        path: cell.owner.and_then(|owner| tree.owner_paths.get(&owner).cloned()),
    });
    (modelled.collect(), map.collect())
}

/// Free bytes of each cell of a map, as far as the last cell with any; nothing if it cannot be told where they lie.
fn free_of_cells(context: &ArmContext<'_>, root: &Path, tree: &ModelledTree) -> Result<Vec<u64>, Error> {
    let free = match context.arm.file_system.kind {
        // Without its chunks all its files are in logical addresses.
        FileSystemName::Btrfs if tree.metadata_problem.is_some() => return Ok(Vec::new()),
        FileSystemName::Btrfs => collect_btrfs_free_space(root).map(|space| match space.devices.as_slice() {
            [device] => space.device_free_extents(device.id).unwrap_or_default(),
            _ => Vec::new(),
        }),
        _ => collect_free_extents(root),
    };
    if is_untold(context, &free) {
        return Ok(Vec::new());
    }
    Ok(cells_of(free?, tree))
}

/// Free bytes of each cell of a map, as far as the last cell with any.
pub(super) fn cells_of(free: Vec<FreeExtent>, tree: &ModelledTree) -> Vec<u64> {
    let (bytes, mut cells) = (tree.map.cell_bytes, vec![0; tree.map.cells.len()]);
    for extent in free {
        let (mut at, end) = (extent.start_bytes, extent.start_bytes + extent.length_bytes);
        while let Some(cell) = cells.get_mut((at / bytes) as usize).filter(|_| at < end) {
            let next = ((at / bytes + 1) * bytes).min(end);
            *cell += next - at;
            at = next;
        }
    }
    cells
}

/// Whether the file system that holds a directory has no way to tell this.
fn is_untold<T>(context: &ArmContext<'_>, answer: &Result<T, senesce_probe::Error>) -> bool {
    let is_host = context.arm.file_system.kind == FileSystemName::Host;
    is_host && matches!(answer, Err(senesce_probe::Error::NotSupported { .. }))
}

/// The histogram of free extents, as rows.
pub(super) fn free_space_rows(
    context: &ArmContext<'_>,
    key: &CellKey,
    root: &Path,
) -> Result<Vec<FreeSpaceRow>, Error> {
    let figures = collect_free_space(context.arm.file_system.kind, root);
    if is_untold(context, &figures) {
        return Ok(Vec::new());
    }
    Ok(figures?.buckets.iter().map(|bucket| free_space_row(key, bucket)).collect())
}

/// The row of table `free_space`.
pub(super) fn free_space_row(key: &CellKey, bucket: &FreeSpaceBucket) -> FreeSpaceRow {
    FreeSpaceRow { key: key.clone(), bucket_bytes: bucket.bucket_bytes, extents: bucket.extents, bytes: bucket.bytes }
}

/// The free extents of a mounted file system, by size: of ext4 and XFS on the device, of Btrfs in the logical space of its
/// data block groups.
///
/// In: the file system's root. Errors: it has no way to tell. Cost: one call for some thousand free extents.
pub(crate) fn collect_free_space(kind: FileSystemName, root: &Path) -> Result<FreeSpaceFigures, senesce_probe::Error> {
    let of = |extents: &mut dyn Iterator<Item = FreeExtent>| compute_free_space(extents.map(|it| it.length_bytes));
    match kind {
        FileSystemName::Btrfs => {
            collect_btrfs_free_space(root).map(|space| of(&mut space.free_extents(BtrfsGroupType::DATA)))
        }
        _ => collect_free_extents(root).map(|extents| of(&mut extents.into_iter())),
    }
}
