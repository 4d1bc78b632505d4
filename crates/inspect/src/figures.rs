//! What an inspection says, as values.

use std::collections::BTreeMap;

use senesce_probe::{
    map::{BtrfsBlockGroup, BtrfsGroupType, BtrfsProfile, BtrfsSource},
    score::{FreeSpaceFigures, FreeSpaceWarning, LayoutFigures, VolumeMap, compute_free_space},
};
use serde::{Serialize, Serializer};

use crate::{cost::LayoutCosts, judge::Judged, loss::LossSeconds};

/// The schema of an inspection as JSON.
pub const INSPECT_SCHEMA: &str = "senesce-inspect/2";

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// [`INSPECT_SCHEMA`].
    pub schema: &'static str,
    /// The whole in a sentence or two.
    pub verdict: String,
    /// The grade on the device that stores it.
    #[serde(flatten)]
    pub judged: Judged,
    /// What was inspected.
    pub target: TargetFigures,
    /// The tree: counts and scores.
    pub tree: TreeFigures,
    /// What reading it costs, one for each device asked for. Models.
    pub costs: Vec<DeviceCosts>,
    /// The free space; none if nobody tells.
    pub free_space: Option<FreeSpace>,
    /// The directories that lose most, worst first; by the first device.
    pub worst_directories: Vec<Loser>,
    /// The files that lose most, worst first; by the first device.
    pub worst_files: Vec<Loser>,
    /// What the reader has to know of these figures.
    pub warnings: Vec<String>,
    /// Where things lie. As JSON it is one list for each column.
    #[serde(serialize_with = "columns_of_map")]
    pub map: VolumeMap,
    /// Bytes of the volume; cells behind them are none.
    pub volume_bytes: u64,
    /// The files that the map names.
    pub map_files: Vec<MappedFile>,
    /// Paths of the directories that `map_files` refers to, by number.
    pub map_directories: BTreeMap<u32, String>,
}

impl Inspection {
    /// Everything as JSON of schema [`INSPECT_SCHEMA`].
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain structures with text keys")
    }
}

/// A map as lists, one for each column: a picture's worth of cells as objects would be mostly names.
fn columns_of_map<S: Serializer>(map: &VolumeMap, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Columns {
        side: u32,
        cell_bytes: u64,
        used: Vec<u64>,
        free: Vec<u64>,
        extents: Vec<u32>,
        owner: Vec<Option<u32>>,
        modified: Vec<i64>,
    }
    let cells = &map.cells;
    Columns {
        side: map.side,
        cell_bytes: map.cell_bytes,
        used: cells.iter().map(|cell| cell.used_bytes).collect(),
        free: cells.iter().map(|cell| cell.free_bytes).collect(),
        extents: cells.iter().map(|cell| cell.extents).collect(),
        owner: cells.iter().map(|cell| cell.owner).collect(),
        modified: cells.iter().map(|cell| cell.modified_unix_seconds).collect(),
    }
    .serialize(serializer)
}

/// What was inspected.
#[derive(Clone, Debug, Serialize)]
pub struct TargetFigures {
    /// The directory, device or image.
    pub path: String,
    /// Its file system.
    pub file_system: String,
    /// The block device, if there is one.
    pub device: Option<String>,
    /// How it was read: `through its mount`, `straight from the device`, `mounted read-only for the inspection`.
    pub read: String,
    /// Mount options, if it is mounted.
    pub mount_options: Option<String>,
    /// What the file system can hold, bytes.
    pub capacity_bytes: u64,
    /// What is in use, bytes.
    pub used_bytes: u64,
    /// The readahead that the models assume, KiB: what was asked for, or the kernel's default, whatever the device has set,
    /// so that a file system costs the same mounted, on its device and as an image.
    pub read_ahead_kib: u32,
    /// Whether it was asked for.
    pub read_ahead_asked_for: bool,
    /// What the device has set, KiB, if there is one.
    pub device_read_ahead_kib: Option<u32>,
    /// When, seconds since 1970.
    pub inspected_unix_seconds: u64,
    /// The kernel.
    pub kernel: String,
}

/// The tree: counts and scores.
#[derive(Clone, Debug, Serialize)]
pub struct TreeFigures {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Entries that could not be looked at, for want of permission or by damage: neither they nor what is below them is in
    /// any figure.
    pub not_looked_at: u64,
    /// Bytes of the files' contents.
    pub content_bytes: u64,
    /// Bytes that they occupy (`st_blocks`).
    pub allocated_bytes: u64,
    /// Extents that are not simply data in blocks of its own.
    pub special: SpecialExtents,
    /// Files whose maps contradict themselves: their contents are in no model.
    pub contradictory_files: u64,
    /// Layout score, extents per file, distances; by size class too.
    pub layout: LayoutFigures,
}

/// Extents that a simple count would get wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpecialExtents {
    /// Compressed or encrypted: their length on the device is not reported.
    pub encoded: u64,
    /// Shared with other files or snapshots (reflinks).
    pub shared: u64,
    /// Data among the metadata.
    pub inline: u64,
    /// Allocated ahead and never written.
    pub preallocated: u64,
    /// Not written yet, without a place.
    pub delayed: u64,
    /// Files with holes.
    pub sparse_files: u64,
}

/// What reading the tree costs on one device: a model.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceCosts {
    /// The device, such as `model: HDD 7.2K`.
    pub device: String,
    /// Seconds for a cold read of everything, in the order of the tree.
    pub seconds: LayoutCosts<f64>,
    /// The same per GiB of content that is read.
    pub seconds_per_gib: LayoutCosts<f64>,
    /// What of the seconds goes to metadata: inodes, blocks of directories, maps of extents. None if they could not be
    /// read; then they are in no figure, neither as they lie nor in a fresh copy.
    pub metadata_seconds: Option<LayoutCosts<f64>>,
    /// Requests.
    pub requests: LayoutCosts<u64>,
    /// Times as long as a fresh copy would take.
    pub slowdown: f64,
    /// The loss against a fresh copy, and its parts.
    pub loss_seconds: LossSeconds,
    /// The share of the loss within files. The shares are signed and add up to 1. None if the loss is below 2% of the
    /// time of a fresh copy.
    pub intrafile_share: Option<f64>,
    /// The share of the loss between files.
    pub interfile_share: Option<f64>,
    /// The share of the loss in metadata. Also none if the metadata could not be read.
    pub metadata_share: Option<f64>,
}

/// The free space.
#[derive(Clone, Debug, Serialize)]
pub struct FreeSpace {
    /// The histogram. On Btrfs it holds the free extents of the block groups for data, and the runs of the devices that no
    /// block group has.
    pub figures: FreeSpaceFigures,
    /// What to expect of it, in words.
    pub warnings: Vec<String>,
    /// The same as values.
    pub findings: Vec<FreeSpaceWarning>,
    /// The block groups, on Btrfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub btrfs: Option<BtrfsSpace>,
    /// The allocation areas by RAID group, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaGroup>,
}

/// The allocation areas of a RAID group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AreaGroup {
    /// Its number.
    pub group: u32,
    /// How many areas there are.
    pub areas: u64,
    /// The length of the largest, bytes.
    pub bytes: u64,
    /// What is free of the one with the greatest share free, the largest of several, bytes.
    pub emptiest_bytes: u64,
    /// What is free of the one with the least share free, the largest of several, bytes.
    pub fullest_bytes: u64,
    /// How many have up to a tenth free, from there up to two, and so on; all of one free is in the last.
    pub by_tenths: [u64; 10],
    /// What is free of each, bytes.
    pub free_bytes: Vec<u64>,
}

impl AreaGroup {
    /// The areas of a group: of each its bytes, and those that are free.
    pub fn of(group: u32, areas: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let areas: Vec<(u64, u64)> = areas.into_iter().collect();
        // By its share free, one over the other; the last area of a group may be shorter than the rest.
        let by_share = |a: &&(u64, u64), b: &&(u64, u64)| {
            let share = |bytes: u64, free: u64| u128::from(free) * u128::from(bytes);
            share(b.0, a.1).cmp(&share(a.0, b.1))
        };
        let free = |area: Option<&(u64, u64)>| area.map_or(0, |(_, free)| *free);
        let emptiest_bytes = free(areas.iter().max_by(|a, b| by_share(a, b).then(a.0.cmp(&b.0))));
        let fullest_bytes = free(areas.iter().min_by(|a, b| by_share(a, b).then(b.0.cmp(&a.0))));
        let (bytes, free_bytes): (Vec<u64>, Vec<u64>) = areas.into_iter().unzip();
        let mut by_tenths = [0; 10];
        for (bytes, free) in bytes.iter().zip(&free_bytes) {
            by_tenths[(free * 10 / bytes.max(&1)).min(9) as usize] += 1;
        }
        Self {
            group,
            areas: bytes.len() as u64,
            bytes: bytes.iter().copied().max().unwrap_or(0),
            emptiest_bytes,
            fullest_bytes,
            by_tenths,
            free_bytes,
        }
    }
}

/// The space of a Btrfs.
#[derive(Clone, Debug, Serialize)]
pub struct BtrfsSpace {
    /// Where the free extents were read.
    pub source: BtrfsSource,
    /// Runs of the devices that no block group has.
    pub unallocated: FreeSpaceFigures,
    /// Block groups by purpose and profile.
    pub purposes: Vec<BtrfsPurpose>,
    /// Every block group.
    pub groups: Vec<BtrfsGroup>,
    /// By how much used, reserved and free bytes miss the groups' lengths; 0 on a quiet volume.
    pub mismatch_bytes: u64,
}

/// The block groups for one purpose, of one profile. Lengths are logical: each copy takes as much again.
#[derive(Clone, Debug, Serialize)]
pub struct BtrfsPurpose {
    /// `data`, `metadata`, `system`, `mixed`.
    pub purpose: &'static str,
    /// How they lie on their devices.
    pub profile: BtrfsProfile,
    /// How many.
    pub groups: u64,
    /// Their lengths, bytes.
    pub bytes: u64,
    /// What of them is used, bytes.
    pub used_bytes: u64,
    /// What of them is free; no extent reaches from one group into another.
    pub free: FreeSpaceFigures,
}

/// A block group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BtrfsGroup {
    /// Where it starts, logical bytes.
    pub start_bytes: u64,
    /// Its length, bytes.
    pub bytes: u64,
    /// `data`, `metadata`, `system`, `mixed`.
    pub purpose: &'static str,
    /// How it lies on its devices.
    pub profile: BtrfsProfile,
    /// What of it is used, bytes.
    pub used_bytes: u64,
    /// What of it is free, bytes.
    pub free_bytes: u64,
    /// In how many extents.
    pub free_extents: u64,
    /// The largest of them, bytes.
    pub largest_free_bytes: u64,
}

impl BtrfsGroup {
    /// What a block group's type is for, as a word.
    pub(crate) fn purpose(kind: BtrfsGroupType) -> &'static str {
        match (kind.contains(BtrfsGroupType::DATA), kind.contains(BtrfsGroupType::METADATA)) {
            (true, true) => "mixed",
            (true, false) => "data",
            (false, true) => "metadata",
            (false, false) => "system",
        }
    }

    /// The figures of a block group.
    pub(crate) fn of(group: &BtrfsBlockGroup) -> Self {
        let free = compute_free_space(group.free.iter().map(|free| free.length_bytes));
        Self {
            start_bytes: group.start_bytes,
            bytes: group.length_bytes,
            purpose: Self::purpose(group.group_type),
            profile: group.group_type.profile(),
            used_bytes: group.used_bytes,
            free_bytes: free.bytes,
            free_extents: free.extents,
            largest_free_bytes: free.largest_bytes,
        }
    }
}

/// A file or directory that loses time. Modelled on the first device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loser {
    /// Its path from the root of the inspection.
    pub path: String,
    /// Seconds that reading it takes longer than in a fresh copy.
    pub lost_seconds: f64,
    /// Times as long.
    pub slowdown: f64,
    /// Bytes that are read.
    pub bytes: u64,
    /// Files: 1 for a file, those directly in it for a directory.
    pub files: u64,
    /// Extents, neighbours merged.
    pub extents: u64,
    /// Its layout score, of a directory that of the files directly in it, weighted by blocks; none if no file has two.
    pub layout_score: Option<f64>,
}

/// A file that the map names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedFile {
    /// Its number in the order of the tree, by which cells name it.
    pub number: u32,
    /// Its directory's number.
    pub directory: u32,
    /// Its name.
    pub name: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Its extents.
    pub extents: u32,
}
