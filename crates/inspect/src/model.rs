//! The modelled cost of reading a tree on described devices, and its map. Experiments also use this
//! part of an inspection.

use std::{collections::BTreeMap, path::Path};

use senesce_core::{Extent, Stop};
use senesce_device::{DeviceSpec, Readahead};
use senesce_probe::{
    collect::{EntryKind, SurveyFigures, Surveyed, collect_survey},
    map::{Placement, RawExtent},
    score::{MapBuilder, VolumeMap},
};
use senesce_volume::FileSystemKind;

use crate::{
    Error,
    adder::readahead,
    best_order::BestOrder,
    drives::Modelled,
    metadata::MetadataReader,
    meters::{EntryReads, Layouts, Meters, ReadMeter},
    names::Names,
    reads::extents_to_read,
    source::find_btrfs_read_ahead_kib,
    target::find_mount,
    told::{Told, ToldBlocks},
};

/// The options of a model.
#[derive(Clone)]
pub struct ModelOptions<'a> {
    /// The devices to model.
    pub devices: &'a [DeviceSpec],
    /// Readahead, KiB.
    pub read_ahead_kib: u32,
    /// Bytes of the volume, a first guess.
    pub volume_bytes: u64,
    /// The binary logarithm of the cells on each side of the map.
    pub map_order: u32,
    /// The number of threads that query the kernel.
    pub threads: usize,
    /// Called for every entry of the tree. Returns `true` to stop.
    pub stop: Stop<'a>,
}

/// The model of a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelledTree {
    /// The costs, one for each device.
    pub costs: Vec<TreeCost>,
    /// The places of data.
    pub map: VolumeMap,
    /// The number of entries of the tree. The map names owners by their numbers.
    pub entries: u64,
    /// The paths of those owners, from the root.
    pub owner_paths: BTreeMap<u32, String>,
    /// The reason why the costs do not include reads of inodes and of maps of extents; `None` if
    /// they do.
    pub metadata_problem: Option<String>,
    /// Bytes allocated to the tree: the sum of `st_blocks`, like `du -s`.
    pub allocated_bytes: u64,
}

/// The modelled cost of reading a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeCost {
    /// The device, such as `model: HDD 7.2K`.
    pub device: String,
    /// Seconds.
    pub seconds: f64,
    /// Seconds if every content followed the content that is read before it. Metadata stays.
    pub best_order_seconds: f64,
    /// Requests.
    pub requests: u64,
    /// Bytes of the requests, with metadata.
    pub read_bytes: u64,
}

/// Models a cold read of the tree below `root`, in the order in which the file system lists it.
///
/// If the device can be read (as root), each entry's metadata is read before its content: inodes,
/// blocks of directories, maps of extents. Otherwise only blocks of directories are read, if the
/// kernel reports them, and [`ModelledTree::metadata_problem`] has the reason. In: `each` receives
/// every entry of the survey, in the order of the tree. So a caller that also scores the layout
/// needs no second pass over all maps. Errors: those of a survey; an entry that cannot be read;
/// [`Error::Stopped`]. Cost: one survey; one read of the metadata.
pub fn model_tree(
    root: &Path,
    options: &ModelOptions<'_>,
    each: &mut dyn FnMut(&Surveyed),
) -> Result<ModelledTree, Error> {
    let (readahead, metadata) = prepare(root, options);
    let mut tree = Tree::new(Modelled::one(options.devices), readahead, metadata, options)?;
    let survey = collect_survey(root, options.threads, &mut |entry| {
        each(&entry);
        tree.add(&entry);
        !(options.stop)()
    })?;
    if (options.stop)() {
        return Err(Error::Stopped);
    }
    tree.finish(&survey)
}

/// Models a cold read of a file system that another reader surveyed. Each of its drives is a
/// device, and their sum is the length of the volume. [`ModelOptions::volume_bytes`] and `threads`
/// are not used.
///
/// Errors: a device cannot be made; an entry could not be read, or its map contradicts itself.
pub fn model_told(told: Told, options: &ModelOptions<'_>) -> Result<ModelledTree, Error> {
    let modelled = Modelled { specs: options.devices, drives: &told.drives, turn_bytes: told.turn_bytes };
    let options = ModelOptions { volume_bytes: told.drives.iter().sum(), ..options.clone() };
    let metadata = MetadataReader::of(Box::new(ToldBlocks::of(&told.entries)), None);
    let mut tree = Tree::new(modelled, readahead(options.read_ahead_kib, false), metadata, &options)?;
    told.entries.iter().for_each(|told| tree.add(&told.entry));
    tree.finish(&told.survey)
}

/// The modelled cost of reading a tree before and after contents move.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct MoveCost {
    /// The device: `model: HDD 7.2K`.
    pub device: String,
    /// Seconds with all contents where they are.
    pub now_seconds: f64,
    /// Seconds with the moved contents at their new places.
    pub after_seconds: f64,
    /// The part of `after_seconds` for metadata. `defrag` does not move it, but Btrfs writes
    /// changed metadata to new places. `None` if the metadata cannot be read.
    pub metadata_seconds: Option<f64>,
}

/// Models a cold read of entries that were surveyed below `root`, before and after contents move.
///
/// In: `order` has the indices of the entries in the order of reading, each directory before its
/// entries. `moved` returns the new extents of an entry by its index, or `None` if it does not
/// move. The content of a file whose map contradicts itself is left out. Errors: a device cannot be
/// made; [`Error::Stopped`]. Cost: one read of the metadata, and on
/// Btrfs another one.
pub fn model_moves(
    root: &Path,
    (entries, order): (&[Surveyed], &[usize]),
    moved: &dyn Fn(usize) -> Option<Vec<Extent>>,
    options: &ModelOptions<'_>,
) -> Result<Vec<MoveCost>, Error> {
    let (readahead, metadata) = prepare(root, options);
    let modelled = Modelled::one(options.devices);
    let makers = modelled.specs.iter().map(|spec| move |reads| modelled.build(spec, reads));
    let mut meters = Meters::new(makers, readahead, Layouts::WithMoved)?;
    let mut metadata = metadata;
    let at_new_place = |number: usize| {
        let flags = senesce_probe::map::ExtentFlags::default();
        let extents = moved(number)?.into_iter().map(|extent| RawExtent { extent, flags }).collect();
        Some(Surveyed { extents, ..entries[number].clone() })
    };
    let mut moves = order.iter().filter_map(|&number| Some((number, at_new_place(number)?)));
    let mut after = metadata.after_moves(entries, &mut moves);
    for &number in order {
        let entry = &entries[number];
        if (options.stop)() {
            return Err(Error::Stopped);
        }
        let extents = extents_to_read(entry, &metadata);
        let changed = at_new_place(number);
        let changed_extents = changed.as_ref().map(|changed| extents_to_read(changed, &metadata));
        let requests = metadata.requests(entry);
        let requests_after = after.as_mut().map(|after| after.requests(changed.as_ref().unwrap_or(entry)));
        let reads = EntryReads {
            metadata: &requests,
            extents: &extents,
            in_one_piece: None,
            moved: changed_extents.as_deref(),
            moved_metadata: requests_after.as_deref(),
            size_bytes: entry.size_bytes,
        };
        // The map of a file that is being written may contradict itself. Its content is then read
        // neither before nor after.
        if meters.read(&reads).is_err() {
            let nothing = EntryReads { extents: &[], moved: None, ..reads };
            meters.read(&nothing).expect("no extents do not contradict each other");
        }
    }
    let has_metadata = metadata.problem().is_none();
    let cost = |ReadMeter { meter, .. }: ReadMeter| MoveCost {
        device: meter.name.clone(),
        now_seconds: meter.seconds().as_it_lies,
        after_seconds: meter.seconds().best_order,
        metadata_seconds: has_metadata.then(|| meter.metadata_seconds().best_order),
    };
    Ok(meters.finish().into_iter().map(cost).collect())
}

/// The readahead, and the metadata, of the file system at `root`.
fn prepare(root: &Path, options: &ModelOptions<'_>) -> (Readahead, MetadataReader) {
    let mount = find_mount(root);
    let is_btrfs = matches!(mount, Some((FileSystemKind::Btrfs, _)));
    // Btrfs has a readahead setting of its own and ignores the one of the device.
    let own = if is_btrfs { find_btrfs_read_ahead_kib(root) } else { None };
    let readahead = readahead(own.unwrap_or(options.read_ahead_kib), is_btrfs);
    let metadata = match mount {
        Some((kind, Ok(device))) => MetadataReader::new(kind, Some(&device), root, options.threads),
        Some((_, Err(problem))) => MetadataReader::told(problem),
        None => MetadataReader::told("its mount is not known"),
    };
    (readahead, metadata)
}

/// The model of a tree, in progress.
struct Tree {
    meters: Meters,
    best_order: BestOrder,
    volume_bytes: u64,
    metadata: MetadataReader,
    map: MapBuilder,
    names: Names,
    entries: u64,
    allocated_bytes: u64,
    wrong: Option<Error>,
}

impl Tree {
    fn new(
        modelled: Modelled<'_>,
        readahead: Readahead,
        metadata: MetadataReader,
        options: &ModelOptions<'_>,
    ) -> Result<Self, Error> {
        let makers = modelled.specs.iter().map(|spec| move |reads| modelled.build(spec, reads));
        Ok(Self {
            meters: Meters::new(makers, readahead, Layouts::WithMoved)?,
            best_order: BestOrder::default(),
            volume_bytes: options.volume_bytes,
            metadata,
            map: MapBuilder::new(options.volume_bytes, options.map_order),
            names: Names::default(),
            entries: 0,
            allocated_bytes: 0,
            wrong: None,
        })
    }

    fn add(&mut self, entry: &Surveyed) {
        self.allocated_bytes += entry.allocated_bytes;
        let number = self.names.add(&entry.path, entry.kind == EntryKind::Directory);
        let extents = extents_to_read(entry, &self.metadata);
        let requests = self.metadata.requests(entry);
        let best = self.best_order.place(&extents, self.volume_bytes);
        let reads = EntryReads {
            metadata: &requests,
            extents: &extents,
            in_one_piece: None,
            moved: Some(&best),
            moved_metadata: None,
            size_bytes: entry.size_bytes,
        };
        if let Err(error) = self.meters.read(&reads) {
            let path = entry.path.as_path().into();
            self.wrong.get_or_insert(Error::Incomplete { path, problem: error.to_string() });
        }
        for raw in entry.extents.iter().filter(|raw| raw.placement() == Placement::Placed) {
            let extent = self.metadata.locate(raw.extent);
            self.map.add_extent(number, extent.physical, extent.length, entry.modified_unix_seconds);
        }
        self.entries += 1;
    }

    fn finish(mut self, survey: &SurveyFigures) -> Result<ModelledTree, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if let Some(first) = survey.errors.first() {
            return Err(Error::Incomplete { path: first.path.clone(), problem: first.message.clone() });
        }
        let (map, names) = (self.map.finish(), self.names);
        let cost = |ReadMeter { meter, .. }: ReadMeter| TreeCost {
            device: meter.name.clone(),
            seconds: meter.seconds().as_it_lies,
            best_order_seconds: meter.seconds().best_order,
            requests: meter.requests().as_it_lies,
            read_bytes: meter.bytes(),
        };
        Ok(ModelledTree {
            costs: self.meters.finish().into_iter().map(cost).collect(),
            owner_paths: map.owners().into_iter().map(|owner| (owner, names.path(owner))).collect(),
            map,
            entries: self.entries,
            metadata_problem: self.metadata.problem().map(str::to_owned),
            allocated_bytes: self.allocated_bytes,
        })
    }
}
