//! Surveys volumes of our engines on their devices: FUSE has no FIEMAP, and the devices have more
//! data.

use senesce_core::Space;
use senesce_inspect::{ModelOptions, Told, model_told};
use senesce_probe::{
    collect::EntryKind,
    score::{LayoutScorer, PathOrderScorer, compute_free_space},
};
use senesce_store::{CellKey, LayoutRow};
use senesce_volume::Volume;

use super::{
    super::state::ArmContext,
    maps::{BLOCK_BYTES, SurveyRows, cells_of, free_space_row, layout_row_of, map_order, tree_rows},
};
use crate::Error;

/// Surveys the volume on its device while it is unmounted. Leaves it mounted.
pub(super) fn engine_rows(context: &ArmContext<'_>, key: &CellKey, volume: &mut Volume) -> Result<SurveyRows, Error> {
    volume.unmount()?;
    let told = collect_told(context, volume);
    // The blocks that the survey read must not stay in a cache.
    volume.mount()?;
    volume.remount_cold()?;
    let told = told?;
    let layout = compute_layout(key, &told)?;
    let free = compute_free_space(told.free.iter().map(|extent| extent.length_bytes));
    let free_space = free.buckets.iter().map(|bucket| free_space_row(key, bucket)).collect();
    let stop = context.world.stop();
    let options = ModelOptions {
        devices: context.devices,
        read_ahead_kib: context.plan.volumes.read_ahead_kib,
        volume_bytes: 0,
        map_order: map_order(0),
        threads: context.world.threads,
        stop: &stop,
    };
    let free = told.free.clone();
    let tree = model_told(told, &options)?;
    let rows = tree_rows(key, &tree, &cells_of(free, &tree));
    Ok((Some(layout), free_space, rows))
}

fn collect_told(context: &ArmContext<'_>, volume: &Volume) -> Result<Told, Error> {
    let unverified = |problem| Error::Unverified { what: "the survey of the engine".into(), problem };
    let device = volume.device().ok_or_else(|| unverified("it has no device".to_owned()))?;
    let told = context.world.engines.collect_told(device).map_err(unverified)?;
    match told.survey.errors.first() {
        Some(first) => Err(unverified(format!("{}: {}", first.path.display(), first.message))),
        None => Ok(told),
    }
}

fn compute_layout(key: &CellKey, told: &Told) -> Result<LayoutRow, Error> {
    let mut scorer = LayoutScorer::new(Space::Device, BLOCK_BYTES);
    let mut by_path = PathOrderScorer::default();
    for told in told.entries.iter().filter(|told| told.entry.kind == EntryKind::File) {
        scorer.add_file(told.entry.size_bytes, &told.entry.extents);
        by_path.add_file(&told.entry.path, &told.entry.extents);
    }
    Ok(layout_row_of(key, &scorer.finish(), by_path.finish()))
}
