//! The inspection of a file system that another reader surveyed, such as an engine of senesce. Its
//! entries and free space are judged like those of other file systems.

use std::collections::HashMap;

use senesce_core::{Clock, Space};
use senesce_probe::{
    collect::{SurveyFigures, Surveyed},
    map::FreeExtent,
};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Inspection,
    adder::Adder,
    drives::Modelled,
    figures::{AreaGroup, TargetFigures},
    finish::finish,
    free::{self, Circumstances},
    inspect::{DEFAULT_READ_AHEAD_KIB, InspectOptions, PROGRESS_EVERY, kernel, natural_transfer_bytes},
    metadata::{Metadata, MetadataReader, Piece, add_directory_blocks},
    reads::BLOCK_BYTES,
};

/// The survey of a file system by another reader.
///
/// Positions are bytes in one address space, in which the drives are adjacent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// The path of the target.
    pub path: String,
    /// Its file system.
    pub file_system: String,
    /// How it was read, in words.
    pub read: String,
    /// Capacity of all drives without parity, bytes.
    pub capacity_bytes: u64,
    /// The lengths of the drives that hold data, bytes.
    pub drives: Vec<u64>,
    /// Bytes of a copy that go to one drive before the next drive follows.
    pub turn_bytes: u64,
    /// Free inodes and all inodes.
    pub inodes: (u64, u64),
    /// Free runs. Each run is on one drive.
    pub free: Vec<FreeExtent>,
    /// The allocation areas by RAID group.
    pub areas: Vec<AreaGroup>,
    /// Whether names are listed in another order than they were made in.
    pub is_shuffled: bool,
    /// Every file and directory in the order of listing, a directory before its entries.
    pub entries: Vec<ToldEntry>,
    /// The figures of the survey.
    pub survey: SurveyFigures,
    /// Warnings that are known before the inspection.
    pub warnings: Vec<String>,
}

/// A file or directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToldEntry {
    /// The entry as a survey returns it.
    pub entry: Surveyed,
    /// Positions of the blocks that are read before its content, bytes. Several entries may share a
    /// block.
    pub metadata: Vec<u64>,
    /// Bytes of those blocks that belong to this entry alone. A fresh copy packs them with those of
    /// other entries.
    pub packed_bytes: u64,
}

/// Inspects a file system that another reader surveyed.
///
/// The survey has the positions of metadata, so metadata is always modelled. Every drive is a
/// device of its own. Errors: a device cannot be made; stopped. Cost: as
/// [`inspect`](crate::inspect()), without a survey.
pub fn inspect_told(told: Told, options: InspectOptions<'_>, clock: &dyn Clock) -> Result<Inspection, Error> {
    let natural_transfer_bytes = natural_transfer_bytes(&options.devices);
    let circumstances =
        Circumstances { capacity_bytes: told.capacity_bytes, inodes: told.inodes, natural_transfer_bytes };
    let free = free::judge_told(told.free, told.areas, &circumstances);
    let figures = TargetFigures {
        path: told.path,
        file_system: told.file_system,
        device: None,
        read: told.read,
        mount_options: None,
        mount_point: None,
        capacity_bytes: told.capacity_bytes,
        used_bytes: told.capacity_bytes.saturating_sub(free.figures.figures.bytes),
        read_ahead_kib: options.read_ahead_kib.unwrap_or(DEFAULT_READ_AHEAD_KIB),
        read_ahead_asked_for: options.read_ahead_kib.is_some(),
        device_read_ahead_kib: None,
        inspected_unix_seconds: clock.unix_seconds(),
        kernel: kernel(),
    };
    let metadata = MetadataReader::of(Box::new(ToldBlocks::of(&told.entries)), None);
    let mut adder = Adder::new(
        Space::Device,
        Modelled { specs: &options.devices, drives: &told.drives, turn_bytes: told.turn_bytes },
        figures.read_ahead_kib,
        (told.drives.iter().sum(), options.map_order),
        natural_transfer_bytes,
        metadata,
    )?;
    for (number, told) in (1u64..).zip(told.entries) {
        adder.add(told.entry);
        if number.is_multiple_of(PROGRESS_EVERY) && !(options.progress)(number) {
            return Err(Error::Stopped);
        }
    }
    finish(
        adder,
        figures,
        told.is_shuffled,
        &told.survey,
        Ok(free),
        (told.warnings, None),
        (options.judge, options.top),
    )
}

/// By inode, the positions of the blocks of inodes and pointers, and the bytes of the entry's own.
pub(crate) struct ToldBlocks(HashMap<u64, (Vec<u64>, u64)>);

impl ToldBlocks {
    pub(crate) fn of(entries: &[ToldEntry]) -> Self {
        let blocks = entries.iter().map(|told| (told.entry.inode, (told.metadata.clone(), told.packed_bytes)));
        Self(blocks.collect())
    }
}

impl Metadata for ToldBlocks {
    fn add_pieces(&mut self, entry: &Surveyed, pieces: &mut Vec<Piece>) {
        let blocks = self.0.get(&entry.inode).into_iter().flat_map(|(blocks, _)| blocks);
        pieces.extend(blocks.map(|&at| Piece::whole(at, BLOCK_BYTES)));
        add_directory_blocks(entry, pieces);
    }

    fn packed_bytes(&self, entry: &Surveyed) -> u64 {
        self.0.get(&entry.inode).map_or(0, |(_, packed)| *packed)
    }

    fn unit_bytes(&self) -> u64 {
        BLOCK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::{Extent, ManualClock, Nanos, RelPath};
    use senesce_device::find_preset;
    use senesce_probe::{
        collect::{EntryKind, ItemError},
        map::{ExtentFlags, RawExtent},
    };

    use super::*;

    fn entry(inode: u64, path: &str, kind: EntryKind, blocks: &[u64]) -> ToldEntry {
        let extent = |(number, &at): (usize, &u64)| RawExtent {
            extent: Extent { logical: number as u64 * 4096, physical: at * 4096, length: 4096 },
            flags: ExtentFlags::default(),
        };
        let size_bytes = blocks.len() as u64 * 4096;
        let entry = Surveyed {
            path: if path.is_empty() { RelPath::root() } else { RelPath::new(path.as_bytes()).unwrap() },
            kind,
            inode,
            links: 1,
            is_executable: false,
            size_bytes,
            allocated_bytes: size_bytes,
            modified_unix_seconds: 0,
            born_unix_seconds: None,
            extents: blocks.iter().enumerate().map(extent).collect(),
        };
        ToldEntry { entry, metadata: vec![4096 * 900], packed_bytes: 256 }
    }

    fn told(blocks: &[u64]) -> Told {
        Told {
            path: "garden:g".to_owned(),
            file_system: "garden".to_owned(),
            read: "straight from its drives".to_owned(),
            capacity_bytes: 1000 * 4096,
            drives: vec![500 * 4096, 500 * 4096],
            turn_bytes: 64 * 4096,
            inodes: (90, 100),
            free: vec![FreeExtent { start_bytes: 0, length_bytes: 10 * 4096 }],
            is_shuffled: true,
            areas: vec![AreaGroup::of(0, [(100 * 4096, 25 * 4096), (100 * 4096, 100 * 4096), (4096, 4096)])],
            entries: vec![entry(1, "", EntryKind::Directory, &[800]), entry(16, "file", EntryKind::File, blocks)],
            survey: SurveyFigures {
                space: Space::Device,
                files: 1,
                directories: 1,
                further_links: 0,
                mounts_passed: 0,
                vanished: 0,
                errors: Vec::new(),
                errors_count: 0,
            },
            warnings: vec!["first".to_owned()],
        }
    }

    fn inspected(blocks: &[u64]) -> Inspection {
        let options = InspectOptions {
            judge: crate::Judge::Named,
            devices: vec![find_preset("hdd-7200").unwrap().clone()],
            threads: 1,
            read_ahead_kib: None,
            map_order: 4,
            top: crate::DEFAULT_TOP,
            progress: &mut |_| true,
        };
        let clock = ManualClock::default();
        clock.set(Nanos(7_000_000_000));
        inspect_told(told(blocks), options, &clock).unwrap()
    }

    #[test]
    fn a_survey_and_its_json_are_the_same_with_any_name() {
        let mut told = told(&[100, 7]);
        told.entries[1].entry.path = RelPath::new(b"a/\xff\n").unwrap();
        let error = ItemError { operation: "read".into(), path: "b".into(), message: "no".to_owned(), errno: Some(5) };
        told.survey.errors.push(error);
        let text = serde_json::to_string(&told).unwrap();
        let read: Told = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{told:?}"));
        let leaving = text.replace("[97,47,255,10]", "\"../a\"");
        assert!(leaving != text && serde_json::from_str::<Told>(&leaving).is_err());
    }

    #[test]
    fn survey_is_scored_modelled_and_drawn() {
        let row: Vec<u64> = (100..132).collect();
        let scattered: Vec<u64> = (0..32).map(|number| 100 + number * 37 % 800).collect();
        let (good, bad) = (inspected(&row), inspected(&scattered));
        assert_eq!((good.tree.layout.layout_score, bad.tree.layout.layout_score), (Some(1.0), Some(0.0)));
        assert!(bad.costs[0].seconds.as_it_lies > 2.0 * good.costs[0].seconds.as_it_lies, "{:?}", bad.costs);
        assert_eq!(good.costs[0].device, "model: 2 × HDD 7.2K");
        assert!(good.costs[0].metadata_seconds.is_some_and(|seconds| seconds.as_it_lies > 0.0));
        assert_eq!((good.target.used_bytes, good.target.inspected_unix_seconds), (990 * 4096, 7));
        assert_eq!(good.warnings, ["first"]);
        let areas = &good.free_space.as_ref().unwrap().areas[0];
        assert_eq!((areas.areas, areas.emptiest_bytes, areas.fullest_bytes), (3, 100 * 4096, 25 * 4096));
        assert_eq!(areas.by_tenths, [0, 0, 1, 0, 0, 0, 0, 0, 0, 2]);
        let used: u64 = good.map.cells.iter().map(|cell| cell.used_bytes).sum();
        assert_eq!(used, 33 * 4096, "the file and its directory");
        assert_eq!(bad.worst_files.first().map(|worst| worst.path.as_str()), Some("file"));
    }
}
