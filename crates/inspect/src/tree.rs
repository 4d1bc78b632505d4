//! The inspection itself: one pass over the tree, everything added up on the way.

use std::{collections::HashMap, path::Path};

use senesce_core::{Clock, Extent, RelPath};
use senesce_device::{DeviceSpec, Readahead};
use senesce_probe::{
    collect::{EntryKind, SurveyFigures, Surveyed, collect_free_extents_as_it_is, collect_space, collect_survey},
    map::{ExtentFlags, FreeExtent, Placement, RawExtent},
    score::{LayoutScorer, MapBuilder, compute_free_space},
};
use senesce_volume::{FileSystemKind, Host};

use crate::{
    Error,
    cost::{EntryReads, LayoutCosts, Meter},
    figures::{
        DeviceCosts, FreeSpace, INSPECT_SCHEMA, Inspection, MappedFile, SpecialExtents, TargetFigures, TreeFigures,
    },
    fresh_copy::{CopiedEntry, plan_fresh_copy},
    metadata::{MetadataReader, PageCache, Piece},
    target::Target,
    verdict::{compute_free_space_warnings, compute_verdict},
    worst::{Loss, Losses},
};

/// Blocks of every figure that counts blocks.
const BLOCK_BYTES: u64 = 4096;

/// How to inspect.
pub struct InspectOptions<'a> {
    /// The devices to model; the first one ranks the losers. At least one.
    pub devices: Vec<DeviceSpec>,
    /// How many threads ask the kernel.
    pub threads: usize,
    /// Readahead to model, KiB; the device's own setting if none is given.
    pub read_ahead_kib: Option<u32>,
    /// Cells on each side of the map: two to the power of it.
    pub map_order: u32,
    /// Told the number of entries every now and then; gives `false` to stop.
    pub progress: &'a mut dyn FnMut(u64) -> bool,
}

/// Inspects a target. Causes no write to it.
///
/// Errors: the target cannot be listed or tells nobody where files lie; stopped. Single files that cannot be looked at
/// are counted in the warnings. Cost: one open, `statx` and FIEMAP for each entry; about 100 bytes of memory an entry.
pub fn inspect(
    target: &Target,
    options: InspectOptions<'_>,
    host: &dyn Host,
    clock: &dyn Clock,
) -> Result<Inspection, Error> {
    match target {
        Target::Mounted { root, mount_point, file_system, device, options: mount_options } => {
            let read_ahead_kib = match (options.read_ahead_kib, device) {
                (Some(kib), _) => kib,
                (None, Some(device)) => host.read_ahead(device).unwrap_or(DEFAULT_READ_AHEAD_KIB),
                (None, None) => DEFAULT_READ_AHEAD_KIB,
            };
            let space =
                rustix::fs::statvfs(mount_point).map_err(|errno| Error::io("look at", mount_point)(errno.into()))?;
            let capacity_bytes = space.f_blocks * space.f_frsize;
            let figures = TargetFigures {
                path: root.display().to_string(),
                file_system: file_system.name().to_owned(),
                device: device.as_ref().map(|device| device.display().to_string()),
                mount_options: Some(mount_options.clone()),
                capacity_bytes,
                used_bytes: capacity_bytes - space.f_bfree * space.f_frsize,
                read_ahead_kib,
                inspected_unix_seconds: clock.unix_seconds(),
                kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            };
            let device_bytes = device.as_ref().and_then(|device| host.device_size(device).ok());
            let volume_bytes = device_bytes.map_or(capacity_bytes, |bytes| bytes.0);
            let (progress, threads) = (options.progress, options.threads);
            let metadata = MetadataReader::new(*file_system, device.as_deref(), root, threads);
            let mut adder =
                Adder::new(root, &options.devices, read_ahead_kib, volume_bytes, options.map_order, metadata)?;
            let mut stopped = false;
            let mut entries = 0u64;
            let survey = collect_survey(root, threads, &mut |entry| {
                adder.add(entry);
                entries += 1;
                stopped = entries.is_multiple_of(PROGRESS_EVERY) && !progress(entries);
                !stopped
            })?;
            if stopped {
                return Err(Error::Stopped);
            }
            let free = match file_system {
                FileSystemKind::Btrfs => None,
                _ => Some(collect_free_extents_as_it_is(mount_point)),
            };
            adder.finish(figures, *file_system, &survey, free)
        }
        Target::Ext4 { path } => Err(Error::NotMounted {
            path: path.clone(),
            file_system: "ext4",
            hint: format!("mount it without writing: mount -o ro,noload {} DIR, then inspect DIR", path.display()),
        }),
    }
}

/// The kernel's own default, KiB.
const DEFAULT_READ_AHEAD_KIB: u32 = 128;

/// A cold reader as the grep test is, with this readahead.
pub(crate) fn readahead(read_ahead_kib: u32) -> Readahead {
    Readahead { read_ahead_bytes: u64::from(read_ahead_kib) << 10, ..Readahead::default() }
}

/// Entries between two reports of progress.
const PROGRESS_EVERY: u64 = 1024;

/// What is kept of each entry: for the map, and for its fresh copy.
struct Kept {
    parent: u32,
    name_at: u32,
    size_bytes: u64,
    /// What it occupies in a copy, besides what metadata are packed.
    read_bytes: u64,
    /// Bytes of its metadata in a copy that are packed.
    packed_bytes: u32,
    /// Nanoseconds that it takes as it lies, on the first device.
    as_it_lies: u64,
    extents: u32,
    is_file: bool,
}

/// Everything that is added up.
struct Adder {
    meters: Vec<Meter>,
    metadata: MetadataReader,
    scorer: LayoutScorer,
    map: MapBuilder,
    special: SpecialExtents,
    /// Files whose map contradicted itself.
    contradictory: u64,
    /// The numbers of the directories.
    directories: HashMap<RelPath, u32>,
    /// All entries in the order of the tree.
    entries: Vec<Kept>,
    /// All names, one behind the other.
    names: Vec<u8>,
    volume_bytes: u64,
    content_bytes: u64,
    allocated_bytes: u64,
}

impl Adder {
    fn new(
        root: &Path,
        devices: &[DeviceSpec],
        read_ahead_kib: u32,
        volume_bytes: u64,
        map_order: u32,
        metadata: MetadataReader,
    ) -> Result<Self, Error> {
        let readahead = readahead(read_ahead_kib);
        let meters = devices.iter().map(|spec| Meter::new(|| spec.build(), readahead)).collect::<Result<_, _>>()?;
        Ok(Self {
            meters,
            metadata,
            scorer: LayoutScorer::new(collect_space(root)?, BLOCK_BYTES),
            map: MapBuilder::new(volume_bytes, map_order),
            special: SpecialExtents::default(),
            contradictory: 0,
            directories: HashMap::new(),
            entries: Vec::new(),
            names: Vec::new(),
            volume_bytes,
            content_bytes: 0,
            allocated_bytes: 0,
        })
    }

    /// Takes the next entry of the tree.
    fn add(&mut self, entry: Surveyed) {
        let extents = extents_to_read(&entry, &self.metadata);
        let pieces = count_pieces(&extents);
        let bytes = match entry.kind {
            EntryKind::File => extents.iter().map(|extent| extent.length).sum(),
            EntryKind::Directory => entry.allocated_bytes,
        };
        let requests = self.metadata.requests(&entry);
        let reads = EntryReads { metadata: &requests, extents: &extents, size_bytes: entry.size_bytes };
        let mut as_it_lies = 0;
        for (number, meter) in self.meters.iter_mut().enumerate() {
            match meter.read(&reads) {
                Ok(time) if number == 0 => as_it_lies = time.0,
                Ok(_) => {}
                // A file that is being written may answer with a map that contradicts itself.
                Err(_) => self.contradictory += u64::from(number == 0),
            }
        }
        self.note_special(&entry);
        let number = self.entries.len() as u32;
        let parent = entry.path.parent().and_then(|parent| self.directories.get(&parent).copied()).unwrap_or(0);
        for raw in entry.extents.iter().filter(|raw| raw.placement() == Placement::Placed) {
            let Extent { physical, length, .. } = self.metadata.locate(raw.extent);
            self.map.add_extent(number, physical, length, entry.modified_unix_seconds);
        }
        self.entries.push(Kept {
            parent,
            name_at: self.names.len() as u32,
            size_bytes: entry.size_bytes,
            read_bytes: bytes,
            packed_bytes: self.metadata.packed_bytes(&entry) as u32,
            as_it_lies,
            extents: pieces as u32,
            is_file: entry.kind == EntryKind::File,
        });
        self.names.extend_from_slice(entry.path.name());
        match entry.kind {
            EntryKind::Directory => {
                self.directories.insert(entry.path, number);
            }
            EntryKind::File => {
                self.scorer.add_file(entry.size_bytes, &entry.extents);
                self.content_bytes += entry.size_bytes;
                self.allocated_bytes += entry.allocated_bytes;
            }
        }
    }

    fn name(&self, number: u32) -> String {
        let from = self.entries[number as usize].name_at as usize;
        let to = self.entries.get(number as usize + 1).map_or(self.names.len(), |next| next.name_at as usize);
        String::from_utf8_lossy(&self.names[from..to]).into_owned()
    }

    /// The path from the root, which is empty for the root itself.
    fn path(&self, number: u32) -> String {
        let mut parts = Vec::new();
        let mut at = number;
        while at != 0 {
            parts.push(self.name(at));
            at = self.entries[at as usize].parent;
        }
        parts.reverse();
        parts.join("/")
    }

    /// Reads the fresh copy on every device; gives the losses against it on the first.
    fn read_fresh_copy(&mut self, kind: FileSystemKind) -> Result<Losses, Error> {
        let copied = |kept: &Kept| CopiedEntry {
            parent: kept.parent,
            is_directory: !kept.is_file,
            packed_bytes: u64::from(kept.packed_bytes),
            bytes: kept.read_bytes,
        };
        let copied: Vec<CopiedEntry> = self.entries.iter().map(copied).collect();
        let unit_bytes = self.metadata.unit_bytes();
        let places = plan_fresh_copy(&copied, kind == FileSystemKind::Ext4, self.metadata.regions(), unit_bytes);
        let mut cache = PageCache::default();
        let mut losses = Losses::default();
        let mut meters = std::mem::take(&mut self.meters);
        for (number, (kept, place)) in self.entries.iter().zip(&places).enumerate() {
            let (table, start) = (place.packed, place.content);
            let mut requests = Vec::new();
            if kept.packed_bytes > 0 {
                let end = table + u64::from(kept.packed_bytes);
                let units = table / unit_bytes..end.div_ceil(unit_bytes);
                units.for_each(|unit| cache.fetch(&Piece::whole(unit * unit_bytes, unit_bytes), &mut requests));
            }
            if !kept.is_file {
                // A directory's blocks are metadata, and asked for one by one.
                let blocks = (0..kept.read_bytes).step_by(BLOCK_BYTES as usize);
                blocks.for_each(|at| cache.fetch(&Piece::whole(start + at, BLOCK_BYTES), &mut requests));
            }
            let content_bytes = if kept.is_file { kept.read_bytes } else { 0 };
            let mut fresh_copy = 0;
            for (device, meter) in meters.iter_mut().enumerate() {
                let time = meter.read_fresh(&requests, start, content_bytes)?;
                if device == 0 {
                    fresh_copy = time.0;
                }
            }
            let loss = Loss {
                as_it_lies: kept.as_it_lies,
                fresh_copy,
                bytes: kept.read_bytes,
                files: u64::from(kept.is_file),
                extents: u64::from(kept.extents),
            };
            let directory = if kept.is_file { kept.parent } else { number as u32 };
            losses.add(loss, directory, kept.is_file.then_some(number as u32));
        }
        self.meters = meters;
        Ok(losses)
    }

    fn note_special(&mut self, entry: &Surveyed) {
        let count = |flag: ExtentFlags| entry.extents.iter().filter(|raw| raw.flags.contains(flag)).count() as u64;
        self.special.encoded += count(ExtentFlags::ENCODED);
        self.special.shared += count(ExtentFlags::SHARED);
        self.special.inline += count(ExtentFlags::INLINE);
        self.special.preallocated += count(ExtentFlags::UNWRITTEN);
        self.special.delayed += count(ExtentFlags::DELAYED);
        self.special.sparse_files += u64::from(entry.kind == EntryKind::File && has_holes(entry));
    }

    fn finish(
        mut self,
        target: TargetFigures,
        kind: FileSystemKind,
        survey: &SurveyFigures,
        free: Option<Result<Vec<FreeExtent>, senesce_probe::Error>>,
    ) -> Result<Inspection, Error> {
        let mut warnings = survey_warnings(survey);
        let free_space = match free {
            Some(Ok(extents)) => {
                extents.iter().for_each(|extent| self.map.add_free(extent.start_bytes, extent.length_bytes));
                let figures = compute_free_space(extents.iter().map(|extent| extent.length_bytes));
                let warnings = compute_free_space_warnings(&figures, kind, target.capacity_bytes);
                Some(FreeSpace { figures, warnings })
            }
            Some(Err(error)) => {
                warnings.push(format!("free space: {error}"));
                None
            }
            None => None,
        };
        if self.special.encoded > 0 {
            warnings.push(format!(
                "{} extents are compressed or encrypted: their length on the device is not told, and the models read \
                 them as long as their content",
                self.special.encoded
            ));
        }
        if self.contradictory > 0 {
            warnings.push(format!(
                "{} files gave maps that contradict themselves; they are not modelled",
                self.contradictory
            ));
        }
        if let Some(problem) = self.metadata.problem() {
            warnings.push(format!("reads of inodes and of maps of extents are not modelled: {problem}"));
            if kind == FileSystemKind::Btrfs {
                warnings.push(
                    "Btrfs tells positions in its own logical address space; where its chunks lie on the device is not \
                     looked at"
                        .to_owned(),
                );
            }
        }
        let losses = self.read_fresh_copy(kind)?;
        let costs: Vec<DeviceCosts> = self.meters.iter().map(device_costs).collect();
        let tree = TreeFigures {
            files: survey.files,
            directories: survey.directories,
            content_bytes: self.content_bytes,
            allocated_bytes: self.allocated_bytes,
            special: self.special,
            layout: self.scorer.finish(),
        };
        let map = std::mem::replace(&mut self.map, MapBuilder::new(1, 0)).finish();
        let (worst_files, worst_directories) = losses.finish(|number| self.path(number));
        let mut owners: Vec<u32> = map.cells.iter().filter_map(|cell| cell.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        let map_files = owners.iter().map(|&number| {
            let kept = &self.entries[number as usize];
            let directory = if kept.is_file { kept.parent } else { number };
            let name = if kept.is_file { self.name(number) } else { String::new() };
            MappedFile { number, directory, name, size_bytes: kept.size_bytes, extents: kept.extents }
        });
        let map_files: Vec<MappedFile> = map_files.collect();
        let map_directories = map_files.iter().map(|file| (file.directory, self.path(file.directory))).collect();
        let mut inspection = Inspection {
            schema: INSPECT_SCHEMA,
            verdict: String::new(),
            target,
            tree,
            costs,
            free_space,
            worst_directories,
            worst_files,
            warnings,
            map_files,
            volume_bytes: self.volume_bytes,
            map,
            map_directories,
        };
        inspection.verdict = compute_verdict(&inspection);
        Ok(inspection)
    }
}

fn device_costs(meter: &Meter) -> DeviceCosts {
    let (seconds, metadata) = (meter.seconds(), meter.metadata_seconds());
    let loss = seconds.as_it_lies - seconds.fresh_copy;
    let share = |part: f64| if loss > 0.0 { (part / loss).clamp(0.0, 1.0) } else { 0.0 };
    let gib = meter.content_bytes() as f64 / (1u64 << 30) as f64;
    let contents = LayoutCosts {
        as_it_lies: seconds.as_it_lies - metadata.as_it_lies,
        defragmented: seconds.defragmented - metadata.defragmented,
        fresh_copy: seconds.fresh_copy - metadata.fresh_copy,
    };
    DeviceCosts {
        device: meter.name.clone(),
        seconds,
        seconds_per_gib: seconds.map(|seconds| if gib > 0.0 { seconds / gib } else { 0.0 }),
        metadata_seconds: metadata,
        requests: meter.requests(),
        slowdown: if seconds.fresh_copy > 0.0 { seconds.as_it_lies / seconds.fresh_copy } else { 1.0 },
        intrafile_share: share(contents.as_it_lies - contents.defragmented),
        interfile_share: share(contents.defragmented - contents.fresh_copy),
        metadata_share: share(metadata.as_it_lies - metadata.fresh_copy),
    }
}

fn survey_warnings(survey: &SurveyFigures) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(first) = survey.errors.first() {
        warnings.push(format!(
            "partial: {} entries could not be looked at, the first: cannot {} {}: {}",
            survey.errors_count,
            first.operation,
            first.path.display(),
            first.message
        ));
    }
    if survey.vanished > 0 {
        warnings.push(format!("the tree changed meanwhile: {} entries went away", survey.vanished));
    }
    if survey.mounts_passed > 0 {
        warnings.push(format!("{} other file systems mounted below were not entered", survey.mounts_passed));
    }
    warnings
}

/// The extents that a read of a file's content reads: placed and written, up to the end of the content, on the device.
/// None for directories, which are metadata.
pub(crate) fn extents_to_read(entry: &Surveyed, metadata: &MetadataReader) -> Vec<Extent> {
    if entry.kind == EntryKind::Directory {
        return Vec::new();
    }
    let end = entry.size_bytes.next_multiple_of(BLOCK_BYTES);
    let is_read = |raw: &&RawExtent| {
        matches!(raw.placement(), Placement::Placed | Placement::Encoded)
            && !raw.flags.contains(ExtentFlags::UNWRITTEN)
            && raw.extent.logical < end
    };
    let clip = |raw: &RawExtent| Extent { length: raw.extent.length.min(end - raw.extent.logical), ..raw.extent };
    entry.extents.iter().filter(is_read).map(|raw| metadata.locate(clip(raw))).collect()
}

/// Extents after merging neighbours.
fn count_pieces(extents: &[Extent]) -> u64 {
    let breaks = extents.windows(2).filter(|pair| pair[0].end() != pair[1].physical).count();
    breaks as u64 + u64::from(!extents.is_empty())
}

fn has_holes(entry: &Surveyed) -> bool {
    let mut next = 0;
    for raw in &entry.extents {
        if raw.extent.logical > next {
            return true;
        }
        next = raw.extent.logical + raw.extent.length;
    }
    next < entry.size_bytes
}
