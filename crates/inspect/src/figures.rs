//! The result of an inspection, as values.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use senesce_probe::{
    map::{BtrfsBlockGroup, BtrfsGroupType, BtrfsProfile, BtrfsSource},
    score::{FreeSpaceFigures, FreeSpaceWarning, LayoutFigures, VolumeMap, compute_free_space},
};
use serde::{Deserialize, Serialize, Serializer};

use crate::{cost::LayoutCosts, gaps::Gaps, judge::Judged, loss::LossSeconds};

/// The schema of an inspection as JSON.
pub const INSPECT_SCHEMA: &str = "senesce-inspect/2";

/// The complete result of an inspection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Inspection {
    /// The name of the schema and its version.
    pub schema: &'static str,
    /// A summary of one or two sentences.
    pub verdict: String,
    /// The grade on the device that stores it.
    #[serde(flatten)]
    pub judged: Judged,
    /// The file system that was inspected.
    pub target: TargetFigures,
    /// The tree: counts and scores.
    pub tree: TreeFigures,
    /// The modelled cost of reading the tree, one for each requested device.
    pub costs: Vec<DeviceCosts>,
    /// The free space; `None` if it cannot be read. A warning then says why.
    pub free_space: Option<FreeSpace>,
    /// The directories that lose most on the first device, worst first.
    pub worst_directories: Vec<Loser>,
    /// The files that lose most on the first device, worst first. Of files that lose about the same
    /// time, the larger ones are listed.
    pub worst_files: Vec<Loser>,
    /// Limits of the figures, in words.
    pub warnings: Vec<String>,
    /// The data that the figures lack.
    pub gaps: Gaps,
    /// The places of data, as one list for each column.
    #[serde(serialize_with = "columns_of_map")]
    #[schemars(with = "MapColumns")]
    pub map: VolumeMap,
    /// Bytes of the volume. Map cells after the end of the volume have no meaning.
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

/// A map as one list for each column. As objects, its cells would be mostly names.
#[derive(Serialize, JsonSchema)]
struct MapColumns {
    /// Cells on each side of the square picture: a power of two.
    side: u32,
    /// Bytes of a cell.
    cell_bytes: u64,
    /// Bytes of files' extents in each cell, in the order of the volume. Bytes that are neither
    /// used nor free are metadata or unknown.
    used: Vec<u64>,
    /// Bytes of free extents in each cell.
    free: Vec<u64>,
    /// Extents that overlap each cell.
    extents: Vec<u32>,
    /// The number of the file with the most bytes in each cell, in the order of the tree. `None` if
    /// no file has bytes in the cell.
    owner: Vec<Option<u32>>,
    /// Mean time of modification of the used bytes in each cell, seconds since 1970.
    modified: Vec<i64>,
}

fn columns_of_map<S: Serializer>(map: &VolumeMap, serializer: S) -> Result<S::Ok, S::Error> {
    let cells = &map.cells;
    MapColumns {
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

/// The file system that was inspected.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TargetFigures {
    /// The directory, device or image.
    pub path: String,
    /// Its file system.
    pub file_system: String,
    /// The block device, if there is one.
    pub device: Option<String>,
    /// How it was read: `through its mount`, `straight from the device`, `straight from the image`
    /// or `mounted read-only for the inspection`, the last one also with `in a guest kernel`. A
    /// survey of an engine has its own text.
    pub read: String,
    /// Mount options, if it is mounted.
    pub mount_options: Option<String>,
    /// The mount point. `None` if the inspection read the device itself, or mounted it.
    pub mount_point: Option<String>,
    /// Capacity of the file system, bytes.
    pub capacity_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// The readahead that the models assume, KiB: the requested one, or the default of the kernel.
    /// The setting of the device does not count, so that a file system costs the same mounted, on
    /// its device and as an image.
    pub read_ahead_kib: u32,
    /// Whether the caller requested `read_ahead_kib`.
    pub read_ahead_asked_for: bool,
    /// The readahead setting of the device, KiB, if there is a device.
    pub device_read_ahead_kib: Option<u32>,
    /// Time of the inspection, seconds since 1970.
    pub inspected_unix_seconds: u64,
    /// Release of the running kernel. If a guest mounted the file system, release of its kernel.
    pub kernel: String,
}

/// The tree: counts and scores.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TreeFigures {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Entries that could not be read, because of permissions or damage. Neither they nor the
    /// entries below them are in any figure.
    pub not_looked_at: u64,
    /// Bytes of the files' contents.
    pub content_bytes: u64,
    /// Bytes allocated to the files (`st_blocks`).
    pub allocated_bytes: u64,
    /// Extents that are not plain data in blocks of their own.
    pub special: SpecialExtents,
    /// Files whose maps contradict themselves. No model reads their contents.
    pub contradictory_files: u64,
    /// Layout score, extents per file and distances, also by size class.
    pub layout: LayoutFigures,
}

/// Numbers of extents that are not plain data in blocks of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpecialExtents {
    /// Compressed or encrypted: their length on the device is not reported.
    pub encoded: u64,
    /// Shared with other files or snapshots (reflinks).
    pub shared: u64,
    /// Stored among the metadata.
    pub inline: u64,
    /// Allocated in advance and never written.
    pub preallocated: u64,
    /// Not written yet, and so without a place (delayed allocation).
    pub delayed: u64,
    /// Files with holes.
    pub sparse_files: u64,
}

/// The modelled cost of reading the tree on one device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeviceCosts {
    /// The device, such as `model: HDD 7.2K`.
    pub device: String,
    /// Seconds of a cold read of all entries, in the order of the tree.
    pub seconds: LayoutCosts<f64>,
    /// Seconds per GiB of content that is read.
    pub seconds_per_gib: LayoutCosts<f64>,
    /// The part of `seconds` that metadata takes: inodes, blocks of directories, maps of extents.
    /// `None` if metadata could not be read; then no layout and no figure includes it.
    pub metadata_seconds: Option<LayoutCosts<f64>>,
    /// The number of requests.
    pub requests: LayoutCosts<u64>,
    /// Time in the found layout over time in a fresh copy.
    pub slowdown: f64,
    /// The loss against a fresh copy, and its parts.
    pub loss_seconds: LossSeconds,
    /// The share of the loss within files. Shares are signed and add up to 1. `None` if the loss is
    /// below 2% of the time of a fresh copy.
    pub intrafile_share: Option<f64>,
    /// The share of the loss between files. `None` as for `intrafile_share`.
    pub interfile_share: Option<f64>,
    /// The share of the loss in metadata. Also `None` if the metadata could not be read.
    pub metadata_share: Option<f64>,
}

/// The free space.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FreeSpace {
    /// The histogram. On Btrfs it has the free extents of the block groups for data, and the runs
    /// of the devices that belong to no block group.
    pub figures: FreeSpaceFigures,
    /// The consequences, in words.
    pub warnings: Vec<String>,
    /// The findings that `warnings` explains, in the same order.
    pub findings: Vec<FreeSpaceWarning>,
    /// The block groups, on Btrfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub btrfs: Option<BtrfsSpace>,
    /// The allocation areas by RAID group, if the file system has such areas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaGroup>,
}

/// The allocation areas of a RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AreaGroup {
    /// The number of the RAID group.
    pub group: u32,
    /// The number of areas.
    pub areas: u64,
    /// The length of the largest area, bytes.
    pub bytes: u64,
    /// Free bytes of the area with the largest free share. Among equals, the largest area counts.
    pub emptiest_bytes: u64,
    /// Free bytes of the area with the smallest free share. Among equals, the largest area counts.
    pub fullest_bytes: u64,
    /// The number of areas by tenths of free space: below a tenth free, below two tenths, and so
    /// on. Completely free areas are in the last one.
    pub by_tenths: [u64; 10],
    /// Free bytes of each area.
    pub free_bytes: Vec<u64>,
}

impl AreaGroup {
    /// The figures of a group. `areas` has the length and the free bytes of each area.
    pub fn of(group: u32, areas: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let areas: Vec<(u64, u64)> = areas.into_iter().collect();
        // Areas are compared by free share, because the last area of a group may be shorter. The
        // shares are compared crosswise, without a division.
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BtrfsSpace {
    /// The source of the free extents.
    pub source: BtrfsSource,
    /// Runs of the devices that belong to no block group.
    pub unallocated: FreeSpaceFigures,
    /// Block groups by purpose and profile.
    pub purposes: Vec<BtrfsPurpose>,
    /// Every block group.
    pub groups: Vec<BtrfsGroup>,
    /// The difference between used, reserved and free bytes and the lengths of the groups. 0 on a
    /// quiet volume.
    pub mismatch_bytes: u64,
}

/// The block groups of one purpose and profile. Lengths are logical: each copy needs the same
/// again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BtrfsPurpose {
    /// `data`, `metadata`, `system`, `mixed`.
    pub purpose: &'static str,
    /// The arrangement of its copies or stripes on the devices.
    pub profile: BtrfsProfile,
    /// The number of block groups.
    pub groups: u64,
    /// Sum of the lengths of the block groups, bytes.
    pub bytes: u64,
    /// Used bytes of the block groups.
    pub used_bytes: u64,
    /// Free extents of the block groups. No extent crosses from one group into another.
    pub free: FreeSpaceFigures,
}

/// A block group.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BtrfsGroup {
    /// The start of the group, logical bytes.
    pub start_bytes: u64,
    /// Its length, bytes.
    pub bytes: u64,
    /// `data`, `metadata`, `system`, `mixed`.
    pub purpose: &'static str,
    /// The arrangement of its copies or stripes on the devices.
    pub profile: BtrfsProfile,
    /// Used bytes.
    pub used_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// The number of free extents.
    pub free_extents: u64,
    /// The largest free extent, bytes.
    pub largest_free_bytes: u64,
}

impl BtrfsGroup {
    /// The purpose of a block group type, as a word.
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

/// A file or directory that loses time, as modelled on the first device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Loser {
    /// Its path from the root of the inspection.
    pub path: String,
    /// Seconds that reading it takes longer than in a fresh copy.
    pub lost_seconds: f64,
    /// Time in the found layout over time in a fresh copy.
    pub slowdown: f64,
    /// Bytes that a reader reads.
    pub bytes: u64,
    /// Files: 1 for a file; for a directory, the files directly in it.
    pub files: u64,
    /// Extents, neighbours merged.
    pub extents: u64,
    /// The layout score; `None` if no file has two blocks. For a directory, the score of the files
    /// directly in it, weighted by blocks.
    pub layout_score: Option<f64>,
}

/// A file that the map names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MappedFile {
    /// Its number in the order of the tree. Cells of the map use this number.
    pub number: u32,
    /// The number of its directory.
    pub directory: u32,
    /// Its name.
    pub name: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Its extents.
    pub extents: u32,
}
