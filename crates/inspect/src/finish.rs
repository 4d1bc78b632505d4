//! Makes the inspection, as a value, from the sums of a pass over the tree.

use std::collections::BTreeMap;

use senesce_core::Space;
use senesce_probe::{collect::SurveyFigures, score::MapBuilder};

use crate::{
    Error,
    adder::Adder,
    cost::Meter,
    figures::{DeviceCosts, INSPECT_SCHEMA, Inspection, MappedFile, TargetFigures, TreeFigures},
    free::FoundFree,
    gaps::{Gaps, Stale},
    judge::Judge,
    loss::LossSeconds,
    verdict::compute_verdict,
};

/// Makes the inspection. `warnings` come first, and `stale` is why the last writes are missing.
/// `is_shuffled` says whether the file system lists a fresh copy in another order than it was made
/// in. `top` is the number of the worst files and directories.
pub(crate) fn finish(
    mut adder: Adder,
    target: TargetFigures,
    is_shuffled: bool,
    survey: &SurveyFigures,
    free: Result<FoundFree, String>,
    (mut warnings, stale): (Vec<String>, Option<Stale>),
    (judge, top): (Judge, usize),
) -> Result<Inspection, Error> {
    warnings.extend(survey_warnings(survey));
    let free_space = match free {
        Ok(FoundFree { extents, figures }) => {
            extents.iter().for_each(|extent| adder.map.add_free(extent.start_bytes, extent.length_bytes));
            Some(figures)
        }
        Err(problem) => {
            warnings.push(format!("free space: {problem}"));
            None
        }
    };
    warnings.extend(reading_warnings(&adder, survey.space));
    let (meters, losses) = adder.read_fresh_copy(is_shuffled, top)?;
    let costs: Vec<DeviceCosts> = meters.iter().map(|meter| device_costs(meter, adder.has_metadata())).collect();
    let scorer = std::mem::replace(
        &mut adder.scorer,
        senesce_probe::score::LayoutScorer::new(survey.space, crate::reads::BLOCK_BYTES),
    );
    let tree = TreeFigures {
        files: survey.files,
        directories: survey.directories,
        not_looked_at: survey.errors_count,
        content_bytes: adder.content_bytes,
        allocated_bytes: adder.allocated_bytes,
        special: adder.special,
        contradictory_files: adder.contradictory,
        layout: scorer.finish(),
    };
    let map = std::mem::replace(&mut adder.map, MapBuilder::new(1, 0)).finish();
    let (worst_files, worst_directories) = losses.finish(|number| adder.names.path(number));
    let map_files = map.owners().into_iter().map(|number| {
        let kept = &adder.entries[number as usize];
        let directory = if kept.is_file { adder.names.parent(number) } else { number };
        let name = if kept.is_file { adder.names.name(number) } else { String::new() };
        MappedFile { number, directory, name, size_bytes: kept.size_bytes, extents: kept.extents }
    });
    let map_files: Vec<MappedFile> = map_files.collect();
    let mut map_directories = BTreeMap::new();
    for MappedFile { directory, .. } in &map_files {
        map_directories.entry(*directory).or_insert_with(|| adder.names.path(*directory));
    }
    let gaps = Gaps {
        stale,
        unread_entries: tree.not_looked_at,
        unwritten_extents: tree.special.delayed,
        no_metadata: adder.metadata.problem().map(str::to_owned),
    };
    let mut inspection = Inspection {
        schema: INSPECT_SCHEMA,
        verdict: String::new(),
        judged: judge.judge(&costs, tree.content_bytes > 0),
        target,
        tree,
        costs,
        free_space,
        worst_directories,
        worst_files,
        warnings,
        gaps,
        map_files,
        volume_bytes: adder.volume_bytes,
        map,
        map_directories,
    };
    inspection.verdict = compute_verdict(&inspection);
    Ok(inspection)
}

fn device_costs(meter: &Meter, has_metadata: bool) -> DeviceCosts {
    let seconds = meter.seconds();
    let metadata_seconds = has_metadata.then(|| meter.metadata_seconds());
    let loss = LossSeconds::of(seconds, metadata_seconds);
    let share = |part: f64| loss.share(part, seconds.fresh_copy);
    let gib = meter.content_bytes() as f64 / (1u64 << 30) as f64;
    DeviceCosts {
        device: meter.name.clone(),
        seconds,
        seconds_per_gib: seconds.map(|seconds| if gib > 0.0 { seconds / gib } else { 0.0 }),
        metadata_seconds,
        requests: meter.requests(),
        slowdown: if seconds.fresh_copy > 0.0 { seconds.as_it_lies / seconds.fresh_copy } else { 1.0 },
        loss_seconds: loss,
        intrafile_share: share(loss.within_files),
        interfile_share: share(loss.between_files),
        metadata_share: loss.metadata.and_then(share),
    }
}

/// The warnings about the entries that were read, and about reads that are not modelled.
fn reading_warnings(adder: &Adder, space: Space) -> Vec<String> {
    let mut warnings = Vec::new();
    if adder.special.encoded > 0 {
        warnings.push(format!(
            "{} extents are compressed or encrypted: the file system does not report their length on the device; the \
             models read each up to the next extent of the file, at most the length of its content",
            adder.special.encoded
        ));
    }
    if adder.contradictory > 0 {
        warnings.push(format!(
            "{} files have maps that contradict themselves; no layout of the models reads their contents",
            adder.contradictory
        ));
    }
    if let Some(problem) = adder.metadata.problem() {
        warnings.push(format!(
            "reads of metadata (inodes, blocks of directories, maps of extents) are not modelled in any layout: {problem}"
        ));
        if space == Space::BtrfsLogical {
            warnings.push(
                "positions are logical addresses of Btrfs: the places of its chunks on the device could not be read"
                    .to_owned(),
            );
        }
    }
    warnings
}

fn survey_warnings(survey: &SurveyFigures) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(first) = survey.errors.first() {
        warnings.push(format!(
            "partial: {} entries could not be read, the first: cannot {} {}: {}",
            survey.errors_count,
            first.operation,
            first.path.display(),
            first.message
        ));
    }
    if survey.vanished > 0 {
        warnings.push(format!("the tree changed during the survey: {} entries vanished", survey.vanished));
    }
    if survey.mounts_passed > 0 {
        warnings.push(format!("{} other file systems that are mounted below were skipped", survey.mounts_passed));
    }
    warnings
}

#[cfg(test)]
mod tests;
