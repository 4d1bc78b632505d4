//! The extents of an entry that a reader reads, and how they are counted.

use senesce_core::Extent;
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, Placement, RawExtent},
};

use crate::metadata::MetadataReader;

/// The size of a block in all figures that count blocks, bytes.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Joins extents that are adjacent in the file and on the device and have the same flags. The size
/// of the pieces in which a file system stores a map is not a property of the layout. The kernel
/// and a reader of the device also split extents differently.
pub(crate) fn join_neighbours(extents: &mut Vec<RawExtent>) {
    /// The flags of the last extent, and of extents that were merged from blocks.
    const OF_NO_MATTER: u32 = ExtentFlags::LAST.0 | ExtentFlags::MERGED.0;
    extents.dedup_by(|next, before| {
        let is_alike = (next.flags.0 ^ before.flags.0) & !OF_NO_MATTER == 0;
        let joins = is_alike && before.placement() == Placement::Placed && before.extent.continues_into(&next.extent);
        if joins {
            before.extent.length += next.extent.length;
            before.flags = next.flags;
        }
        joins
    });
}

/// The extents that a read of a file's content reads, on the device: those with a place that are
/// written, up to the end of the content. Empty for directories, which are metadata.
pub(crate) fn extents_to_read(entry: &Surveyed, metadata: &MetadataReader) -> Vec<Extent> {
    if entry.kind == EntryKind::Directory {
        return Vec::new();
    }
    as_on_device(&entry.extents).filter_map(|raw| Some(metadata.locate(clip_to_read(entry, &raw)?))).collect()
}

/// The part of an extent that a read of the whole file reads. `None` if the extent is unwritten or
/// after the end.
fn clip_to_read(entry: &Surveyed, raw: &RawExtent) -> Option<Extent> {
    let end = entry.size_bytes.next_multiple_of(BLOCK_BYTES);
    let is_read = has_place(raw) && !raw.flags.contains(ExtentFlags::UNWRITTEN) && raw.extent.logical < end;
    is_read.then(|| Extent { length: raw.extent.length.min(end - raw.extent.logical), ..raw.extent })
}

/// The extents with their lengths on the device, as far as these are known.
///
/// A compressed extent reports the length of its content and is shorter on the device. If the file
/// continues within that length, the extent ends there. Otherwise each extent of a compressed file
/// would overlap the next one and look like a jump.
fn as_on_device(extents: &[RawExtent]) -> impl Iterator<Item = RawExtent> {
    let next = extents.iter().skip(1).map(Some).chain([None]);
    extents.iter().zip(next).map(|(&raw, next)| {
        let start = raw.extent.physical;
        let follower = next.filter(|_| raw.placement() == Placement::Encoded).filter(|next| has_place(next));
        let distance = follower.and_then(|next| next.extent.physical.checked_sub(start)).filter(|&bytes| bytes > 0);
        let length = distance.map_or(raw.extent.length, |bytes| bytes.min(raw.extent.length));
        RawExtent { extent: Extent { length, ..raw.extent }, ..raw }
    })
}

fn has_place(raw: &RawExtent) -> bool {
    matches!(raw.placement(), Placement::Placed | Placement::Encoded)
}

/// The extents that [`extents_to_read`] would return if the file were in one piece that starts
/// where the file starts now. `None` if the file is in one piece, so that nothing would change.
///
/// Reserved blocks that are not written keep their place in the piece: a reader skips them in both
/// layouts, and they must not look like a cut. Holes have no place.
pub(crate) fn extents_to_read_in_one_piece(entry: &Surveyed, metadata: &MetadataReader) -> Option<Vec<Extent>> {
    if entry.kind == EntryKind::Directory {
        return None;
    }
    let locate = |raw: RawExtent| (raw, metadata.locate(raw.extent));
    let placed = || as_on_device(&entry.extents).filter(has_place).map(locate);
    // A damaged map may have sums that overflow. No layout reads such a file.
    let mut ends = placed().map(|(_, extent)| extent.physical.checked_add(extent.length));
    if placed().skip(1).all(|(_, extent)| ends.next() == Some(Some(extent.physical))) {
        return None;
    }
    let mut next = placed().next()?.1.physical;
    let mut moved: Vec<Extent> = Vec::new();
    for (raw, extent) in placed() {
        let end = next.checked_add(extent.length)?;
        if let Some(read) = clip_to_read(entry, &raw) {
            let here = Extent { physical: next, ..read };
            match moved.last_mut() {
                Some(last) if last.continues_into(&here) => last.length += here.length,
                _ => moved.push(here),
            }
        }
        next = end;
    }
    Some(moved)
}

/// The number of extents after merging neighbours.
pub(crate) fn count_pieces(extents: &[Extent]) -> u64 {
    let breaks = extents.windows(2).filter(|pair| pair[0].end() != pair[1].physical).count();
    breaks as u64 + u64::from(!extents.is_empty())
}

pub(crate) fn has_holes(entry: &Surveyed) -> bool {
    let mut next = 0;
    for raw in &entry.extents {
        if raw.extent.logical > next {
            return true;
        }
        next = raw.extent.logical + raw.extent.length;
    }
    next < entry.size_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(logical: u64, physical: u64, length: u64, flags: u32) -> RawExtent {
        RawExtent { extent: Extent { logical, physical, length }, flags: ExtentFlags(flags) }
    }

    #[test]
    fn only_neighbours_of_one_kind_join() {
        let mut extents = vec![
            raw(0, 100, 10, 0x800),
            raw(10, 110, 5, 0x800),
            raw(15, 115, 5, 0x1000), // written, put together of blocks
            raw(20, 120, 5, 0),
            raw(30, 125, 5, 0), // behind a hole
            raw(35, 200, 5, 0),
            raw(40, 205, 5, 0x1),
        ];
        join_neighbours(&mut extents);
        let expected = [raw(0, 100, 15, 0x800), raw(15, 115, 10, 0), raw(30, 125, 5, 0), raw(35, 200, 10, 0x1)];
        assert_eq!(extents, expected);
        // Extents in memory have no place to continue from, and encoded ones have no known length.
        let mut extents =
            vec![raw(0, 0, 4096, 0x6), raw(4096, 4096, 4096, 0x6), raw(8192, 9, 9, 8), raw(8201, 18, 9, 8)];
        join_neighbours(&mut extents);
        assert_eq!(extents.len(), 4);
    }

    #[test]
    fn joined_pieces_keep_unwritten_blocks_and_drop_holes() {
        let of = |extents: Vec<RawExtent>| {
            let entry = Surveyed {
                path: senesce_core::RelPath::new(b"file").unwrap(),
                kind: EntryKind::File,
                inode: 9,
                links: 1,
                is_executable: false,
                size_bytes: 1 << 20,
                allocated_bytes: 1 << 20,
                modified_unix_seconds: 0,
                born_unix_seconds: None,
                extents,
            };
            extents_to_read_in_one_piece(&entry, &MetadataReader::told("a test"))
        };
        let extent = |logical, physical, length| Extent { logical, physical, length };
        const UNWRITTEN: u32 = ExtentFlags::UNWRITTEN.0;
        let moved = of(vec![raw(0, 900, 10, 0), raw(10, 100, 5, 0), raw(50, 200, 7, 0)]);
        assert_eq!(moved, Some(vec![extent(0, 900, 15), extent(50, 915, 7)]));
        let moved = of(vec![raw(0, 900, 10, 0), raw(10, 910, 5, UNWRITTEN), raw(15, 200, 7, 0)]);
        assert_eq!(moved, Some(vec![extent(0, 900, 10), extent(15, 915, 7)]));
        // Compressed extents that follow each other on the device, and one that does not.
        const ENCODED: u32 = ExtentFlags::ENCODED.0;
        assert_eq!(of(vec![raw(0, 900, 32, ENCODED), raw(32, 908, 32, ENCODED), raw(64, 920, 9, 0)]), None);
        let moved = of(vec![raw(0, 900, 32, ENCODED), raw(32, 908, 32, ENCODED), raw(64, 100, 9, ENCODED)]);
        assert_eq!(moved, Some(vec![extent(0, 900, 8), extent(32, 908, 41)]));
        // Two references to one compressed extent: the second reads all of it again.
        let moved = of(vec![raw(0, 900, 32, ENCODED), raw(32, 900, 32, ENCODED)]);
        assert_eq!(moved, Some(vec![extent(0, 900, 64)]));
        // In one piece, and with a damaged map.
        assert_eq!(of(vec![raw(0, 900, 10, 0), raw(10, 910, 5, UNWRITTEN), raw(15, 915, 7, 0)]), None);
        assert_eq!(of(vec![raw(0, u64::MAX - 5, 10, 0), raw(10, 7, u64::MAX, 0)]), None);
    }
}
