//! The places of files and their metadata in a fresh copy.

use crate::metadata::{CopyPlaces, Regions, SIZE_CLASSES};

/// An entry of the tree. Entries are numbered in the order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedEntry {
    /// The number of the entry's directory. The root is its own directory.
    pub parent: u32,
    /// Whether the entry is a directory.
    pub is_directory: bool,
    /// Bytes of its metadata that are packed with those of others.
    pub packed_bytes: u64,
    /// Other bytes that the entry occupies in the copy.
    pub bytes: u64,
}

/// The place of an entry in a copy, bytes from the start of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its packed metadata.
    pub packed: u64,
    /// Its content.
    pub content: u64,
}

/// Plans the place of each entry of a copy.
///
/// Entries are adjacent in the order in which the copy makes them. All packed metadata is before
/// all contents. The copy makes the entries of a directory in the order of reading, or shuffled
/// (always in the same way). With several regions, each new directory goes to the next region in
/// turn, with its files. With size classes, each class fills one group after the other. A content
/// that does not fit into the rest of a group starts a new one.
///
/// If the rest of a region is too small for a content, the content goes to the next region with
/// enough space. If no region has enough, it goes after all regions. No two contents overlap: a
/// modelled drive would buffer the second one while it reads the first.
///
/// In: `entries` in the order of reading, each after its directory. `unit_bytes` is the unit to
/// which the metadata before the contents is rounded up. Cost: linear, plus a sort of each
/// directory if entries are shuffled.
pub(crate) fn plan_fresh_copy(
    entries: &[CopiedEntry],
    is_shuffled: bool,
    copy_places: CopyPlaces,
    unit_bytes: u64,
) -> Vec<Place> {
    let regions = match copy_places {
        CopyPlaces::Regions(regions) => regions,
        CopyPlaces::OneRow | CopyPlaces::SizeClasses { .. } => Regions { count: 1, bytes: 0 },
    };
    let mut groups = match copy_places {
        CopyPlaces::SizeClasses { group_bytes } => Some(Groups::new(group_bytes)),
        _ => None,
    };
    // The entries of each directory, as adjacent lists.
    let mut first = vec![0u32; entries.len() + 1];
    for (number, entry) in entries.iter().enumerate().skip(1) {
        debug_assert!((entry.parent as usize) < number);
        first[entry.parent as usize + 1] += 1;
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut filled = first.clone();
    let mut children = vec![0u32; entries.len()];
    for (number, entry) in entries.iter().enumerate().skip(1) {
        let at = &mut filled[entry.parent as usize];
        children[*at as usize] = number as u32;
        *at += 1;
    }
    if is_shuffled {
        for range in first.windows(2) {
            children[range[0] as usize..range[1] as usize].sort_by_key(|&number| mix(number));
        }
    }
    let count = regions.count.max(1) as usize;
    let mut places = vec![Place::default(); entries.len()];
    let mut region_of = vec![0u32; entries.len()];
    // The bytes that each region holds so far.
    let mut filled = vec![Place::default(); count];
    let mut directories = 0;
    let mut order = Vec::with_capacity(entries.len());
    let mut open: Vec<u32> = if entries.is_empty() { Vec::new() } else { vec![0] };
    while let Some(number) = open.pop() {
        let entry = &entries[number as usize];
        let region = if entry.is_directory {
            directories += 1;
            (directories - 1) % count
        } else {
            region_of[entry.parent as usize] as usize
        };
        region_of[number as usize] = region as u32;
        places[number as usize].packed = filled[region].packed;
        filled[region].packed += entry.packed_bytes;
        order.push(number);
        let of = first[number as usize] as usize..first[number as usize + 1] as usize;
        open.extend(children[of].iter().rev());
    }
    for (number, region) in filled.iter_mut().enumerate() {
        region.content = number as u64 * regions.bytes + region.packed.next_multiple_of(unit_bytes.max(1));
    }
    let mut rows = Rows::new(filled.iter().map(|region| region.content).collect(), regions.bytes);
    for number in order {
        let (place, region) = (&mut places[number as usize], region_of[number as usize] as usize);
        place.packed += region as u64 * regions.bytes;
        place.content = match &mut groups {
            Some(groups) => filled[0].content + groups.place(entries[number as usize].bytes),
            None => rows.place(region, entries[number as usize].bytes),
        };
    }
    places
}

/// The contents of each region, adjacent to each other.
struct Rows {
    region_bytes: u64,
    /// The start of the next content of each region.
    next: Vec<u64>,
    /// The start of the next content that fits into no region.
    behind_all: u64,
}

impl Rows {
    /// Regions whose contents start at `starts`. A single region has no end.
    fn new(starts: Vec<u64>, region_bytes: u64) -> Self {
        let count = starts.len() as u64;
        let region_bytes = if count == 1 { u64::MAX } else { region_bytes };
        Self { region_bytes, next: starts, behind_all: region_bytes.saturating_mul(count) }
    }

    /// The start of a content whose directory is in `region`.
    fn place(&mut self, region: usize, bytes: u64) -> u64 {
        let count = self.next.len();
        let has_room = |&at: &usize| {
            let end = (at as u64 + 1).saturating_mul(self.region_bytes);
            self.next[at].checked_add(bytes).is_some_and(|next| next <= end)
        };
        let found = (region..region + count).map(|at| at % count).find(has_room);
        let next = found.map_or(&mut self.behind_all, |at| &mut self.next[at]);
        let place = *next;
        *next = next.saturating_add(bytes);
        place
    }
}

/// Groups of blocks. Each group holds contents of one size class.
struct Groups {
    group_bytes: u64,
    /// The start of the next group.
    next: u64,
    /// For each class, the start of its next content, and the bytes that are left in its group.
    open: [(u64, u64); SIZE_CLASSES.len() + 1],
}

impl Groups {
    fn new(group_bytes: u64) -> Self {
        Self { group_bytes: group_bytes.max(1), next: 0, open: [(0, 0); SIZE_CLASSES.len() + 1] }
    }

    /// The start of the next content.
    fn place(&mut self, bytes: u64) -> u64 {
        let (at, room) = &mut self.open[SIZE_CLASSES.iter().filter(|most| bytes > **most).count()];
        if bytes > *room {
            (*at, *room) = (self.next, bytes.next_multiple_of(self.group_bytes));
            self.next += *room;
        }
        let place = *at;
        (*at, *room) = (*at + bytes, *room - bytes);
        place
    }
}

/// A pseudorandom number that depends on `number` only (the finish of splitmix64).
fn mix(number: u32) -> u64 {
    let mut hash = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: CopyPlaces = CopyPlaces::OneRow;

    fn entry(parent: u32, bytes: u64) -> CopiedEntry {
        CopiedEntry { parent, is_directory: false, packed_bytes: 10, bytes }
    }

    fn contents(entries: &[CopiedEntry], is_shuffled: bool) -> Vec<u64> {
        plan_fresh_copy(entries, is_shuffled, ONE, 1).iter().map(|place| place.content).collect()
    }

    #[test]
    fn directory_content_comes_before_later_entries() {
        // root, a/, a/x, b, a/y: a reader has `b` in between; the copy keeps `a` together.
        let entries = [entry(0, 4), entry(0, 4), entry(1, 10), entry(1, 20), entry(0, 7)];
        assert_eq!(contents(&entries, false), [50, 54, 58, 68, 88], "after five times ten bytes of metadata");
    }

    #[test]
    fn directories_alternate_regions_and_files_follow() {
        let directory = |parent| CopiedEntry { is_directory: true, ..entry(parent, 0) };
        // root, a file of the root, a/, a/x, b/, b/y, b/z
        let entries = [directory(0), entry(0, 5), directory(0), entry(2, 6), directory(0), entry(4, 7), entry(4, 8)];
        let places = plan_fresh_copy(&entries, false, CopyPlaces::Regions(Regions { count: 2, bytes: 1000 }), 64);
        let place = |packed, content| Place { packed, content };
        assert_eq!(
            places,
            [
                place(0, 64),
                place(10, 64),
                place(1000, 1064),
                place(1010, 1064),
                place(20, 69),
                place(30, 69),
                place(40, 76)
            ]
        );
    }

    #[test]
    fn full_region_overflows_into_the_next() {
        let directory = |parent| CopiedEntry { is_directory: true, ..entry(parent, 0) };
        // A root with two files, then a/ with one. Each region has space for 70 bytes of contents.
        let entries = [directory(0), entry(0, 60), entry(0, 20), directory(0), entry(3, 55), entry(3, 200)];
        let places = plan_fresh_copy(&entries, false, CopyPlaces::Regions(Regions { count: 2, bytes: 100 }), 1);
        let contents: Vec<u64> = places.iter().map(|place| place.content).collect();
        assert_eq!(contents, [30, 30, 130, 150, 200, 255]);
    }

    #[test]
    fn size_classes_have_separate_groups() {
        const MIB: u64 = 1 << 20;
        // Before the contents: five times ten bytes, rounded up to a MiB.
        let bytes = [0, MIB / 8, MIB, 4096, 9 * MIB, 3 * MIB, 4096, MIB];
        let entries: Vec<CopiedEntry> = bytes.iter().map(|&bytes| entry(0, bytes)).collect();
        let places = plan_fresh_copy(&entries, false, CopyPlaces::SizeClasses { group_bytes: 4 * MIB }, MIB);
        let contents: Vec<u64> = places.iter().map(|place| place.content - MIB).collect();
        // Small contents are in the first group, middling ones in the second, the large one in the
        // next three. The last middling one does not fit into the second group.
        let small = [0, 0, MIB / 8, MIB / 8 + 4096];
        let expected = [small[0], small[1], 4 * MIB, small[2], 8 * MIB, 5 * MIB, small[3], 20 * MIB];
        assert_eq!(contents, expected);
    }

    proptest! {
        #[test]
        fn contents_in_regions_never_overlap(
            shape in prop::collection::vec((any::<prop::sample::Index>(), 0u64..100, any::<bool>()), 1..60),
            count in 1u64..5,
            bytes in 100u64..2000,
        ) {
            let mut entries: Vec<CopiedEntry> = Vec::new();
            for (parent, bytes, is_directory) in shape {
                let directories: Vec<u32> =
                    (0..).zip(&entries).filter(|(_, entry)| entry.is_directory).map(|(number, _)| number).collect();
                let parent = if directories.is_empty() { 0 } else { *parent.get(&directories) };
                let is_directory = is_directory || entries.is_empty();
                entries.push(CopiedEntry { is_directory, packed_bytes: 1, ..entry(parent, bytes) });
            }
            let places = plan_fresh_copy(&entries, false, CopyPlaces::Regions(Regions { count, bytes }), 1);
            let mut contents: Vec<(u64, u64)> =
                places.iter().zip(&entries).map(|(place, entry)| (place.content, entry.bytes)).collect();
            contents.sort_unstable();
            let is_apart = contents.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
            prop_assert!(is_apart, "{contents:?}");
        }

        #[test]
        fn entries_never_overlap_and_directories_stay_together(
            shape in prop::collection::vec((any::<prop::sample::Index>(), 0u64..100), 1..60),
            is_shuffled: bool,
        ) {
            let entries: Vec<CopiedEntry> = shape
                .iter()
                .enumerate()
                .map(|(number, (parent, bytes))| entry(if number == 0 { 0 } else { parent.index(number) as u32 }, *bytes))
                .collect();
            let places = plan_fresh_copy(&entries, is_shuffled, ONE, 1);
            let behind_packed = 10 * entries.len() as u64;
            let mut packed: Vec<u64> = places.iter().map(|place| place.packed).collect();
            packed.sort_unstable();
            prop_assert!(packed.iter().enumerate().all(|(at, start)| *start == 10 * at as u64));
            let starts: Vec<u64> = places.iter().map(|place| place.content - behind_packed).collect();
            let mut by_place: Vec<usize> = (0..entries.len()).collect();
            by_place.sort_by_key(|&number| (starts[number], entries[number].bytes > 0, number));
            let mut next = 0;
            for number in by_place {
                prop_assert_eq!(starts[number], next);
                next += entries[number].bytes;
            }
            for (number, entry) in entries.iter().enumerate().skip(1) {
                prop_assert!(starts[number] >= starts[entry.parent as usize], "a directory is made before its entries");
            }
        }
    }
}
