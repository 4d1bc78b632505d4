//! One pass over the tree that adds up all figures of an inspection.

use senesce_core::{BlockRequest, Extent, Space};
use senesce_device::Readahead;
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, Placement},
    score::{FileLayout, LayoutScorer, MapBuilder},
};

use crate::{
    Error,
    best_order::BestOrder,
    cost::Meter,
    drives::Modelled,
    figures::SpecialExtents,
    fresh_copy::{CopiedEntry, plan_fresh_copy},
    metadata::{MetadataReader, PageCache, Piece},
    meters::{EntryReads, Layouts, Meters},
    names::Names,
    reads::{BLOCK_BYTES, count_pieces, extents_to_read, extents_to_read_in_one_piece, has_holes, join_neighbours},
    worst::{Loss, Losses},
};

/// The parameters of a cold reader like the grep test, with a readahead of `read_ahead_kib`.
///
/// Btrfs issues requests of at most 512 KiB, whatever its readahead is (seen in traces, kernel
/// 6.18).
pub(crate) fn readahead(read_ahead_kib: u32, is_btrfs: bool) -> Readahead {
    let usual = Readahead { read_ahead_bytes: u64::from(read_ahead_kib) << 10, ..Readahead::default() };
    let max_request_bytes = if is_btrfs { 512 << 10 } else { usual.max_request_bytes };
    Readahead { max_request_bytes, ..usual }
}

/// The facts about an entry that the map and the fresh copy need after the pass.
pub(crate) struct Kept {
    pub size_bytes: u64,
    /// Bytes of its content in a copy, without packed metadata. For a directory, bytes of its
    /// blocks.
    read_bytes: u64,
    /// Bytes of its metadata that a copy packs with those of other entries.
    packed_bytes: u32,
    pub extents: u32,
    /// The terms of its layout score: blocks that have a place, and runs of them. Zero for a
    /// directory.
    blocks: u64,
    runs: u32,
    pub is_file: bool,
}

/// The figures of all entries so far.
pub(crate) struct Adder {
    meters: Meters,
    pub metadata: MetadataReader,
    pub scorer: LayoutScorer,
    pub map: MapBuilder,
    pub special: SpecialExtents,
    best_order: BestOrder,
    /// Files whose maps contradict themselves.
    pub contradictory: u64,
    /// All entries, in the order of the tree.
    pub entries: Vec<Kept>,
    pub names: Names,
    pub volume_bytes: u64,
    pub content_bytes: u64,
    pub allocated_bytes: u64,
}

impl Adder {
    /// A pass over no entries yet.
    ///
    /// In: `space` is the address space of the extents to come. `volume_bytes` is a first guess.
    /// The scorer counts extents below `natural_bytes` as short.
    pub fn new(
        space: Space,
        devices: Modelled<'_>,
        read_ahead_kib: u32,
        (volume_bytes, map_order): (u64, u32),
        natural_bytes: Option<u64>,
        metadata: MetadataReader,
    ) -> Result<Self, Error> {
        let readahead = readahead(read_ahead_kib, space == Space::BtrfsLogical);
        let makers = devices.specs.iter().map(|spec| move |reads| devices.build(spec, reads));
        let meters = Meters::new(makers, readahead, Layouts::All)?;
        let mut scorer = LayoutScorer::new(space, BLOCK_BYTES);
        if let Some(bytes) = natural_bytes {
            scorer = scorer.with_natural_transfer_size(bytes);
        }
        Ok(Self {
            meters,
            metadata,
            scorer,
            map: MapBuilder::new(volume_bytes, map_order),
            special: SpecialExtents::default(),
            best_order: BestOrder::default(),
            contradictory: 0,
            entries: Vec::new(),
            names: Names::default(),
            volume_bytes,
            content_bytes: 0,
            allocated_bytes: 0,
        })
    }

    /// Whether metadata is modelled. If a part of it cannot be read, no metadata is modelled:
    /// metadata in one layout only would look like a loss or a gain of the layout.
    pub fn has_metadata(&self) -> bool {
        self.metadata.problem().is_none()
    }

    /// Adds the next entry of the tree.
    pub fn add(&mut self, mut entry: Surveyed) {
        let requests = if self.has_metadata() { self.metadata.requests(&entry) } else { Vec::new() };
        join_neighbours(&mut entry.extents);
        let mut extents = extents_to_read(&entry, &self.metadata);
        let joined = extents_to_read_in_one_piece(&entry, &self.metadata);
        let best_order = self.best_order;
        let best = self.best_order.place(&extents, self.volume_bytes);
        let reads = EntryReads {
            metadata: &requests,
            extents: &extents,
            in_one_piece: joined.as_deref(),
            moved: Some(&best),
            moved_metadata: None,
            size_bytes: entry.size_bytes,
        };
        if self.meters.read(&reads).is_err() {
            // The map of a damaged file, or of one that is being written, may contradict itself.
            // Its content is left out of every layout, so that it is neither a loss nor a gain.
            self.contradictory += 1;
            self.best_order = best_order;
            extents.clear();
            self.read_metadata(&requests);
        }
        let pieces = count_pieces(&extents);
        let bytes = match entry.kind {
            EntryKind::File => extents.iter().map(|extent| extent.length).sum(),
            EntryKind::Directory => entry.allocated_bytes,
        };
        self.note_special(&entry);
        let number = self.names.add(&entry.path, entry.kind == EntryKind::Directory);
        for raw in entry.extents.iter().filter(|raw| raw.placement() == Placement::Placed) {
            let Extent { physical, length, .. } = self.metadata.locate(raw.extent);
            self.map.add_extent(number, physical, length, entry.modified_unix_seconds);
        }
        let layout = match entry.kind {
            EntryKind::Directory => FileLayout::default(),
            EntryKind::File => self.scorer.score_file(entry.size_bytes, &entry.extents),
        };
        self.entries.push(Kept {
            size_bytes: entry.size_bytes,
            read_bytes: bytes,
            packed_bytes: self.metadata.packed_bytes(&entry) as u32,
            extents: pieces as u32,
            blocks: layout.blocks,
            runs: layout.extents as u32,
            is_file: entry.kind == EntryKind::File,
        });
        if entry.kind == EntryKind::File {
            self.content_bytes += entry.size_bytes;
            self.allocated_bytes += entry.allocated_bytes;
        }
    }

    /// Reads an entry without its content.
    fn read_metadata(&mut self, metadata: &[BlockRequest]) {
        let nothing =
            EntryReads { metadata, extents: &[], in_one_piece: None, moved: None, moved_metadata: None, size_bytes: 0 };
        self.meters.read(&nothing).expect("no extents do not contradict each other");
    }

    /// Reads the fresh copy on every device, shuffled within each directory or not. Returns the
    /// meter of each device, and the losses against the copy on the first device: the `top` files
    /// and directories.
    pub fn read_fresh_copy(&mut self, is_shuffled: bool, top: usize) -> Result<(Vec<Meter>, Losses), Error> {
        let copied = |(number, kept): (usize, &Kept)| CopiedEntry {
            parent: self.names.parent(number as u32),
            is_directory: !kept.is_file,
            packed_bytes: u64::from(kept.packed_bytes),
            bytes: kept.read_bytes,
        };
        let copied: Vec<CopiedEntry> = self.entries.iter().enumerate().map(copied).collect();
        let unit_bytes = self.metadata.unit_bytes();
        let places = plan_fresh_copy(&copied, is_shuffled, self.metadata.copy_places(), unit_bytes);
        let mut cache = PageCache::default();
        let mut requests = Vec::new();
        for (kept, place) in self.entries.iter().zip(&places) {
            let (table, start) = (place.packed, place.content);
            requests.clear();
            if kept.packed_bytes > 0 {
                let end = table + u64::from(kept.packed_bytes);
                let units = table / unit_bytes..end.div_ceil(unit_bytes);
                units.for_each(|unit| cache.fetch(&Piece::whole(unit * unit_bytes, unit_bytes), &mut requests));
            }
            if !kept.is_file && self.metadata.problem().is_none() {
                // The blocks of a directory are metadata, and a reader requests them one by one.
                let blocks = (0..kept.read_bytes).step_by(BLOCK_BYTES as usize);
                blocks.for_each(|at| cache.fetch(&Piece::whole(start + at, BLOCK_BYTES), &mut requests));
            }
            let content_bytes = if kept.is_file { kept.read_bytes } else { 0 };
            self.meters.read_fresh_copy(&requests, start, content_bytes)?;
        }
        let read = self.meters.finish();
        let mut losses = Losses::new(top);
        if let Some(first) = read.first() {
            let times = first.as_it_lies.iter().zip(&first.fresh_copy);
            for ((number, kept), (&as_it_lies, &fresh_copy)) in self.entries.iter().enumerate().zip(times) {
                let loss = Loss {
                    as_it_lies,
                    fresh_copy,
                    bytes: kept.read_bytes,
                    files: u64::from(kept.is_file),
                    extents: u64::from(kept.extents),
                    following_blocks: kept.blocks - u64::from(kept.runs),
                    followable_blocks: kept.blocks.saturating_sub(1),
                };
                let number = number as u32;
                let directory = if kept.is_file { self.names.parent(number) } else { number };
                losses.add(loss, directory, kept.is_file.then_some(number));
            }
        }
        Ok((read.into_iter().map(|read| read.meter).collect(), losses))
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
}

#[cfg(test)]
mod tests {
    use senesce_core::RelPath;
    use senesce_device::find_preset;
    use senesce_probe::map::RawExtent;

    use super::*;

    fn entry(path: &str, kind: EntryKind, extents: &[(u64, u64, u64)]) -> Surveyed {
        let extent = |&(logical, physical, length)| RawExtent {
            extent: Extent { logical, physical, length },
            flags: ExtentFlags::default(),
        };
        Surveyed {
            path: if path.is_empty() { RelPath::root() } else { RelPath::new(path.as_bytes()).unwrap() },
            kind,
            inode: 2,
            links: 1,
            is_executable: false,
            size_bytes: 1 << 20,
            allocated_bytes: if kind == EntryKind::Directory { 4096 } else { 1 << 20 },
            modified_unix_seconds: 0,
            born_unix_seconds: None,
            extents: extents.iter().map(extent).collect(),
        }
    }

    fn add_up(entries: &[Surveyed]) -> (u64, Vec<Meter>) {
        let devices = [find_preset("hdd-7200").unwrap().clone(), find_preset("nvme").unwrap().clone()];
        let metadata = MetadataReader::told("a test");
        let mut adder =
            Adder::new(Space::Device, Modelled::one(&devices), 128, (1 << 30, 4), Some(1 << 20), metadata).unwrap();
        entries.iter().for_each(|entry| adder.add(entry.clone()));
        (adder.contradictory, adder.read_fresh_copy(false, 10).unwrap().0)
    }

    #[test]
    fn contradictory_map_is_read_in_no_layout() {
        let root = entry("", EntryKind::Directory, &[]);
        let first = entry("a", EntryKind::File, &[(0, 1 << 20, 512 << 10), (512 << 10, 9 << 20, 512 << 10)]);
        let last = entry("z", EntryKind::File, &[(0, 5 << 20, 1 << 20)]);
        // The second extent starts before the first one ends.
        let bad = entry("m", EntryKind::File, &[(0, 20 << 20, 512 << 10), (4096, 30 << 20, 512 << 10)]);
        let (none, without) = add_up(&[root.clone(), first.clone(), last.clone()]);
        let (one, with) = add_up(&[root, first, bad, last]);
        assert_eq!((none, one), (0, 1));
        for (without, with) in without.iter().zip(&with) {
            assert_eq!((without.seconds(), without.requests()), (with.seconds(), with.requests()), "{}", with.name);
            assert!(with.seconds().as_it_lies > 0.0 && with.seconds().fresh_copy > 0.0);
        }
    }
}
