//! The data that a file system of this project returns to an inspection.

use std::path::Path;

use anyhow::{Context, Result};
use senesce_core::{Bytes, Extent, RelPath, Space};
use senesce_fsapi::FileKind;
use senesce_garden::{Survey, SurveyedArea, SurveyedFile, SurveyedRun, survey as survey_drives};
use senesce_inspect::{AreaGroup, Told, ToldEntry};
use senesce_probe::{
    collect::{EntryKind, ItemError, SurveyFigures, Surveyed},
    map::{ExtentFlags, FreeExtent, RawExtent},
};
use senesce_volume::{install_signal_cleanup, interrupted};

use super::{
    evergreen,
    name_arguments::explain_missing,
    place::{BLOCK_BYTES, Place},
};
use crate::args::FsSurveyArgs;

const INODE_BYTES: u64 = 256;

/// Prints the survey of a place for a program of the same version.
pub fn survey(args: &FsSurveyArgs) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let named = args.place.to_str().and_then(|path| path.strip_prefix("garden:")).map(Path::new);
    let told = collect_told(named.unwrap_or(&args.place), args.volume.as_deref(), &|| interrupted().is_none())?;
    if args.json {
        println!("{}", serde_json::to_string(&told)?);
    } else {
        let SurveyFigures { files, directories, .. } = told.survey;
        let free: u64 = told.free.iter().map(|free| free.length_bytes).sum();
        let (free, capacity) = (Bytes(free), Bytes(told.capacity_bytes));
        println!("{}: {files} files, {directories} directories; {free} of {capacity} free", told.path);
    }
    Ok(())
}

/// Surveys the evergreen at a path, or a volume of the garden there, straight from its devices. A
/// position is a PVBN times 4,096: all drives that hold data, one after the other, without
/// trailers. `goes_on` is asked now and then.
pub fn collect_told(place: &Path, volume: Option<&str>, goes_on: &dyn Fn() -> bool) -> Result<Told> {
    if let Some(place) = evergreen::Place::find_at(place) {
        return evergreen::collect_told(&place, goes_on);
    }
    let devices = Place::at(place).look()?;
    let (mut entries, mut strange) = (Vec::new(), Vec::new());
    let found = survey_drives(&devices.drives, &devices.log, volume.map(str::as_bytes), &mut |file| {
        match told(&file) {
            Some(entry) => entries.push(entry),
            None => strange.push((file.path, "its name is none".to_owned())),
        }
        !entries.len().is_multiple_of(1024) || goes_on()
    });
    let mut found = found.map_err(explain_missing).with_context(|| format!("cannot look into {}", place.display()))?;
    found.errors.extend(strange);
    let (inodes, used) = found.inodes;
    Ok(Told {
        path: format!("garden:{} volume {}", place.display(), found.name()),
        file_system: "garden".to_owned(),
        read: "straight from its drives".to_owned(),
        capacity_bytes: found.drives.iter().map(|drive| (drive.end - drive.start) * BLOCK_BYTES).sum(),
        drives: found.drives.iter().map(|drive| (drive.end - drive.start) * BLOCK_BYTES).collect(),
        turn_bytes: found.tetris_stripes * BLOCK_BYTES,
        inodes: (inodes.saturating_sub(used), inodes),
        free: found.free.iter().map(|free| free_extent(free.start, free.end - free.start)).collect(),
        areas: groups(&found.areas),
        survey: figures(&entries, found.further_links, &found.errors),
        warnings: warnings(&found),
        // By a hash with a seed of the volume's own, as on ext4.
        is_shuffled: true,
        entries,
    })
}

fn free_extent(first: u64, blocks: u64) -> FreeExtent {
    FreeExtent { start_bytes: first * BLOCK_BYTES, length_bytes: blocks * BLOCK_BYTES }
}

fn groups(areas: &[SurveyedArea]) -> Vec<AreaGroup> {
    let of_group = |areas: &[SurveyedArea]| {
        let bytes = areas.iter().map(|area| (area.blocks * BLOCK_BYTES, area.free * BLOCK_BYTES));
        AreaGroup::of(areas[0].group, bytes)
    };
    areas.chunk_by(|a, b| a.group == b.group).map(of_group).collect()
}

/// The outcome of a survey of an engine: its data, further names of files, and what it could not
/// read, with the reasons.
pub(super) fn figures(entries: &[ToldEntry], further_links: u64, errors: &[(Vec<u8>, String)]) -> SurveyFigures {
    let count = |kind| entries.iter().filter(|told| told.entry.kind == kind).count() as u64;
    let error = |(path, message): &(Vec<u8>, String)| ItemError {
        operation: "read".into(),
        path: String::from_utf8_lossy(path).into_owned().into(),
        message: message.clone(),
        errno: None,
    };
    SurveyFigures {
        space: Space::Device,
        files: count(EntryKind::File),
        directories: count(EntryKind::Directory),
        further_links,
        mounts_passed: 0,
        vanished: 0,
        errors: errors.iter().take(SurveyFigures::ERRORS_KEPT).map(error).collect(),
        errors_count: errors.len() as u64,
    }
}

fn warnings(found: &Survey) -> Vec<String> {
    let mut warnings = found.notes.clone();
    if found.log_operations > 0 {
        warnings.push(format!(
            "{} operations wait in the log: what they did is missing here; `senesce fs mount` does them again",
            found.log_operations
        ));
    }
    if found.other_volumes > 0 {
        warnings.push(format!(
            "{} other volume(s) lie on the same drives: the map has their blocks among the metadata",
            found.other_volumes
        ));
    }
    warnings
}

fn told(file: &SurveyedFile) -> Option<ToldEntry> {
    let path = if file.path.is_empty() { RelPath::root() } else { RelPath::new(&file.path[..]).ok()? };
    let placed = |run: &SurveyedRun| RawExtent {
        extent: Extent {
            logical: run.block * BLOCK_BYTES,
            physical: run.pvbn * BLOCK_BYTES,
            length: run.blocks * BLOCK_BYTES,
        },
        flags: if run.shared { ExtentFlags::SHARED } else { ExtentFlags::default() },
    };
    let mut extents: Vec<RawExtent> = file.runs.iter().map(placed).collect();
    if file.inline && file.size > 0 {
        let extent = Extent { logical: 0, physical: 0, length: file.size };
        extents.push(RawExtent { extent, flags: ExtentFlags::INLINE.with(ExtentFlags::NOT_ALIGNED) });
    }
    let entry = Surveyed {
        path,
        kind: if file.kind == FileKind::Directory { EntryKind::Directory } else { EntryKind::File },
        inode: file.ino,
        links: u64::from(file.links),
        is_executable: false,
        size_bytes: file.size,
        allocated_bytes: file.blocks * BLOCK_BYTES,
        modified_unix_seconds: file.modified_unix_seconds,
        born_unix_seconds: None,
        extents,
    };
    let metadata = file.metadata.iter().map(|pvbn| pvbn * BLOCK_BYTES).collect();
    Some(ToldEntry { entry, metadata, packed_bytes: INODE_BYTES + file.pointer_blocks * BLOCK_BYTES })
}
