//! Layout, modelled costs, map and free space: all figures of a volume without a timed read.

use std::path::Path;

use senesce_inspect::{ModelOptions, ModelledTree, model_tree};
use senesce_probe::{
    collect::{EntryKind, Surveyed, collect_btrfs_free_space, collect_free_extents, collect_space},
    map::{BtrfsFreeSpace, BtrfsGroupType, FreeExtent},
    score::{FreeSpaceBucket, FreeSpaceFigures, LayoutFigures, LayoutScorer, PathOrderScorer, compute_free_space},
};
use senesce_store::{CellKey, FreeSpaceRow, LayoutRow, MapRow, ModelledRow};
use senesce_volume::Volume;

use super::super::{state::ArmContext, virtual_time::seconds_per_gib};
use crate::{Error, observer::Event, plan::FileSystemName, volumes::kind};

/// The unit of every figure that counts blocks.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The binary logarithm of the number of cells on each side of a checkpoint's map.
///
/// Pages draw the volumes of an arm with equal cells. So a larger volume has more cells, up to 256
/// on each side. Its cells have at most 256 KiB if these suffice.
pub(super) fn map_order(volume_bytes: u64) -> u32 {
    const LARGEST_CELL: u64 = 256 << 10;
    (6..8).find(|order| volume_bytes >> (2 * order) <= LARGEST_CELL).unwrap_or(8)
}

/// The results of a survey of a volume: layout, free space, modelled costs and map.
pub(super) type SurveyRows = (Option<LayoutRow>, Vec<FreeSpaceRow>, (Vec<ModelledRow>, Vec<MapRow>));

/// Surveys the mounted volume once, for all rows. There are no layout, costs and map if the file
/// system of a directory does not report extents.
pub(super) fn survey_rows(context: &mut ArmContext<'_>, key: &CellKey, volume: &Volume) -> Result<SurveyRows, Error> {
    let root = volume.root();
    let mut scorer = LayoutScorer::new(collect_space(root)?, BLOCK_BYTES);
    let mut by_path = PathOrderScorer::default();
    let mut add = |entry: &Surveyed| {
        if entry.kind == EntryKind::File {
            scorer.add_file(entry.size_bytes, &entry.extents);
            by_path.add_file(&entry.path, &entry.extents);
        }
    };
    let tree = collect_model(context, key, root, &mut add)?;
    let free = Free::collect(context, root)?;
    let free_space = match &free {
        Some(free) => free.figures().buckets.iter().map(|bucket| free_space_row(key, bucket)).collect(),
        None => Vec::new(),
    };
    let Some(tree) = tree else { return Ok((None, free_space, (Vec::new(), Vec::new()))) };
    let layout = layout_row_of(key, &scorer.finish(), by_path.finish());
    let cells = free.map_or(Vec::new(), |free| free.cells(&tree));
    Ok((Some(layout), free_space, tree_rows(key, &tree, &cells)))
}

/// The row of table `layout`. `by_path` is the share of files that start where the previous file in
/// the order of paths ends.
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

/// Returns the modelled tree. `None` if the file system of a directory does not report extents.
fn collect_model(
    context: &mut ArmContext<'_>,
    key: &CellKey,
    root: &Path,
    each: &mut dyn FnMut(&Surveyed),
) -> Result<Option<ModelledTree>, Error> {
    let space = rustix::fs::statvfs(root).map_err(|errno| Error::io("query", root)(errno.into()))?;
    let stop = context.world.stop();
    let options = ModelOptions {
        devices: context.devices,
        read_ahead_kib: context.plan.volumes.read_ahead_kib,
        volume_bytes: space.f_blocks * space.f_frsize,
        map_order: map_order(space.f_blocks * space.f_frsize),
        threads: context.world.threads,
        stop: &stop,
    };
    let tree = match model_tree(root, &options, each) {
        Err(senesce_inspect::Error::Probe(senesce_probe::Error::NotSupported { .. }))
            if context.arm.file_system.kind == FileSystemName::Host =>
        {
            return Ok(None);
        }
        tree => tree?,
    };
    if let Some(problem) = &tree.metadata_problem {
        context.observer.on_event(&Event::Warning {
            arm: key.arm.clone(),
            message: format!(
                "the modelled cost of the {} volume at {} pulls covers contents only: {problem}",
                key.role.name(),
                key.pulls
            ),
        });
    }
    Ok(Some(tree))
}

/// The rows of tables `modelled` and `maps`. `free` has the free bytes of each cell. It is empty if
/// they are unknown.
pub(super) fn tree_rows(key: &CellKey, tree: &ModelledTree, free: &[u64]) -> (Vec<ModelledRow>, Vec<MapRow>) {
    let modelled = tree.costs.iter().map(|cost| ModelledRow {
        key: key.clone(),
        device: cost.device.clone(),
        method: "extents".to_owned(),
        seconds: cost.seconds,
        best_order_seconds: cost.best_order_seconds,
        seconds_per_gib: seconds_per_gib(cost.seconds, tree.allocated_bytes),
        requests: cost.requests,
        read_bytes: cost.read_bytes,
    });
    let last = (tree.entries.max(2) - 1) as f64;
    let end = free.iter().rposition(|bytes| *bytes > 0).unwrap_or(0);
    // Bytes that are neither used nor free are metadata. After the last free byte this is not
    // known.
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

/// The free extents of a mounted file system.
enum Free {
    Extents(Vec<FreeExtent>),
    Btrfs(BtrfsFreeSpace),
}

impl Free {
    fn of(kind: FileSystemName, root: &Path) -> Result<Self, senesce_probe::Error> {
        match kind {
            FileSystemName::Btrfs => collect_btrfs_free_space(root).map(Self::Btrfs),
            _ => collect_free_extents(root).map(Self::Extents),
        }
    }

    /// Returns `None` if the file system does not report them, as that of a directory may.
    fn collect(context: &ArmContext<'_>, root: &Path) -> Result<Option<Self>, Error> {
        let name = context.arm.file_system.kind;
        let may_lack = name == FileSystemName::Host || !kind(name).lists_free_extents();
        match Self::of(name, root) {
            Err(senesce_probe::Error::NotSupported { .. }) if may_lack => Ok(None),
            free => Ok(Some(free?)),
        }
    }

    fn figures(&self) -> FreeSpaceFigures {
        match self {
            Self::Extents(extents) => compute_free_space(extents.iter().map(|it| it.length_bytes)),
            Self::Btrfs(space) => {
                compute_free_space(space.free_extents(BtrfsGroupType::DATA).map(|it| it.length_bytes))
            }
        }
    }

    /// Free bytes of each cell of a map, up to the last cell with free bytes. Empty if their
    /// addresses on the device are unknown.
    fn cells(self, tree: &ModelledTree) -> Vec<u64> {
        match self {
            Self::Extents(extents) => cells_of(extents, tree),
            // Without the map of chunks, the addresses of its files are logical.
            Self::Btrfs(_) if tree.metadata_problem.is_some() => Vec::new(),
            Self::Btrfs(space) => match space.devices.as_slice() {
                [device] => cells_of(space.device_free_extents(device.id).unwrap_or_default(), tree),
                _ => Vec::new(),
            },
        }
    }
}

/// Free bytes of each cell of a map, up to the last cell with free bytes.
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

/// The row of table `free_space`.
pub(super) fn free_space_row(key: &CellKey, bucket: &FreeSpaceBucket) -> FreeSpaceRow {
    FreeSpaceRow { key: key.clone(), bucket_bytes: bucket.bucket_bytes, extents: bucket.extents, bytes: bucket.bytes }
}

/// Collects the free extents of a mounted file system by size: of ext4 and XFS on the device, of
/// Btrfs in the logical space of its data block groups.
///
/// `root` is the file system's root. Errors: it does not report them. Cost: one call for some
/// thousand free extents.
pub(crate) fn collect_free_space(kind: FileSystemName, root: &Path) -> Result<FreeSpaceFigures, senesce_probe::Error> {
    Free::of(kind, root).map(|free| free.figures())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_volumes_have_more_cells() {
        let orders = [0, 329 << 20, 1 << 30, 3449 << 20, 1 << 40].map(map_order);
        assert_eq!(orders, [6, 6, 6, 7, 8]);
    }
}
