//! Decides which contents move so that free space becomes contiguous. Pure.
//!
//! A *window* is a range of the device in which every block is free or belongs to a file that can
//! move. If its files move into free space elsewhere, all of it is one free extent. Windows with
//! the fewest bytes of files are emptied first, and long windows before short ones.

use std::collections::BTreeSet;

use senesce_core::Extent;

use crate::plan::Part;

/// Lengths of windows to try, bytes. The shortest has space for 8 chunks of 64 inodes.
const WINDOWS: [u64; 5] = [64 << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10];

/// A range of the device and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Start on the device, bytes.
    pub start: u64,
    /// Length, bytes.
    pub length: u64,
    /// The content.
    pub content: Content,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.length
    }

    fn owned(&self) -> u64 {
        if matches!(self.content, Content::Owned { .. }) { self.length } else { 0 }
    }

    fn held(&self) -> u64 {
        if matches!(self.content, Content::Free { .. }) { self.length } else { 0 }
    }
}

/// The content of a range of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Free space, held by a file that has it at this offset.
    Free {
        /// The offset, bytes.
        offset: u64,
    },
    /// Free space that no file holds. Other programs may use it.
    Loose,
    /// A range of a file that can move.
    Owned {
        /// Index of the file among the entries of the tree.
        entry: usize,
        /// Offset in the file, bytes.
        logical: u64,
    },
}

/// A range of a file, and its new offset in the file that holds the free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceMove {
    /// The range.
    pub part: Part,
    /// The offset, bytes.
    pub offset: u64,
}

/// The moves that make free space contiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpacePlan {
    /// Ranges that become free extents, as (start, length), ascending.
    pub windows: Vec<(u64, u64)>,
    /// The moves, by file and offset.
    pub moves: Vec<SpaceMove>,
}

impl SpacePlan {
    /// Bytes that move.
    pub fn bytes(&self) -> u64 {
        self.moves.iter().map(|moved| moved.part.length).sum()
    }

    /// The free extents after the moves, as (start, length), ascending.
    pub fn free_after(&self, segments: &[Segment]) -> Vec<(u64, u64)> {
        let mut used = self.filled(segments);
        used.sort_unstable();
        let mut free = self.windows.clone();
        for segment in segments.iter().filter(|segment| segment.owned() == 0 && !is_within(segment, &self.windows)) {
            let mut next = segment.start;
            let first = used.partition_point(|(start, _)| *start < segment.start);
            for &(start, length) in used[first..].iter().take_while(|(start, _)| *start < segment.end()) {
                free.push((next, start - next));
                next = start + length;
            }
            free.push((next, segment.end() - next));
        }
        free.retain(|(_, length)| *length > 0);
        free.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (start, length) in free {
            match joined.last_mut() {
                Some((last, bytes)) if *last + *bytes == start => *bytes += length,
                _ => joined.push((start, length)),
            }
        }
        joined
    }

    /// Places on the device that the moves fill, as (start, length).
    fn filled(&self, segments: &[Segment]) -> Vec<(u64, u64)> {
        let mut holes: Vec<(u64, &Segment)> = segments
            .iter()
            .filter_map(|segment| match segment.content {
                Content::Free { offset } => Some((offset, segment)),
                Content::Owned { .. } | Content::Loose => None,
            })
            .collect();
        holes.sort_unstable_by_key(|(offset, _)| *offset);
        let place = |moved: &SpaceMove| {
            let at = holes.partition_point(|(offset, _)| *offset <= moved.offset) - 1;
            let (offset, segment) = holes[at];
            (segment.start + (moved.offset - offset), moved.part.length)
        };
        self.moves.iter().map(place).collect()
    }
}

fn is_within(segment: &Segment, windows: &[(u64, u64)]) -> bool {
    let at = windows.partition_point(|(start, _)| *start <= segment.start);
    at > 0 && segment.start < windows[at - 1].0 + windows[at - 1].1
}

/// Chooses windows and where their contents move.
///
/// In: segments in the order of the device, which do not overlap; the most bytes that may move; the
/// alignment ([`crate::PlanOptions::align_bytes`]). With one that is longer than a block, contents
/// may find no place; then the worst windows are left out. Cost: linear in the segments for each
/// length of windows, and n log n for the places; again for each time that windows are left out.
pub fn plan_space(segments: &[Segment], budget_bytes: u64, align_bytes: u64) -> SpacePlan {
    let held: u64 = segments.iter().map(Segment::held).sum();
    let mut is_chosen = vec![false; segments.len()];
    let (mut moved, mut held_in_windows) = (0, 0);
    let mut windows = Vec::new();
    for length in WINDOWS {
        let mut found = find_windows(segments, &is_chosen, length);
        // The smallest share of files first. Compared without a division.
        found.sort_by(|a, b| {
            let worth = |window: &Window, other: &Window| u128::from(window.owned) * u128::from(other.length);
            worth(a, b).cmp(&worth(b, a)).then(a.first.cmp(&b.first))
        });
        for window in found {
            let has_place = moved + window.owned + held_in_windows + window.held <= held;
            if has_place && moved + window.owned <= budget_bytes {
                moved += window.owned;
                held_in_windows += window.held;
                is_chosen[window.first..window.end].fill(true);
                windows.push((segments[window.first].start, window.length));
            }
        }
    }
    loop {
        let mut sorted = windows.clone();
        sorted.sort_unstable();
        if let Some(moves) = place_contents(segments, &is_chosen, align_bytes) {
            return SpacePlan { windows: sorted, moves };
        }
        // A window with contents that stay would not be free. The best windows were chosen first.
        windows.truncate(windows.len() * 3 / 4);
        let mut kept = windows.clone();
        kept.sort_unstable();
        for (segment, is_chosen) in segments.iter().zip(&mut is_chosen) {
            *is_chosen = is_within(segment, &kept);
        }
    }
}

/// Segments that follow each other.
struct Window {
    first: usize,
    end: usize,
    length: u64,
    owned: u64,
    held: u64,
}

/// The windows of about this length that are worth it: at most three quarters are files, and no
/// free extent in it has more than half of its length.
fn find_windows(segments: &[Segment], is_chosen: &[bool], length: u64) -> Vec<Window> {
    let mut windows = Vec::new();
    let mut window = Window { first: 0, end: 0, length: 0, owned: 0, held: 0 };
    let mut longest_free = 0;
    for (at, segment) in segments.iter().enumerate() {
        let follows = at > 0 && segments[at - 1].end() == segment.start;
        if !follows || window.length >= length || is_chosen[at] {
            window = Window { first: at, end: at, length: 0, owned: 0, held: 0 };
            longest_free = 0;
        }
        if is_chosen[at] {
            window.first = at + 1;
            continue;
        }
        window.end = at + 1;
        window.length += segment.length;
        window.owned += segment.owned();
        window.held += segment.held();
        longest_free = longest_free.max(segment.length - segment.owned());
        let is_worth = window.owned > 0 && window.owned <= window.length / 4 * 3 && longest_free <= window.length / 2;
        if window.length >= length && is_worth {
            windows.push(Window { ..window });
        }
    }
    windows
}

/// Puts the contents of the chosen segments into free segments that are not chosen. Each goes into
/// the smallest one that is long enough, and the longest contents go first. If none is long enough,
/// the content is cut. A content keeps its place within the alignment.
///
/// `None` if a content has no place.
fn place_contents(segments: &[Segment], is_chosen: &[bool], align_bytes: u64) -> Option<Vec<SpaceMove>> {
    let mut holes: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut parts: Vec<Part> = Vec::new();
    for (segment, &is_chosen) in segments.iter().zip(is_chosen) {
        match segment.content {
            Content::Free { offset } if !is_chosen => {
                holes.insert((segment.length, offset));
            }
            Content::Owned { entry, logical } if is_chosen => {
                parts.push(Part { entry, logical, length: segment.length });
            }
            _ => {}
        }
    }
    parts.sort_unstable_by_key(|part| (std::cmp::Reverse(part.length), part.entry, part.logical));
    let mut moves = Vec::new();
    for mut part in parts {
        while part.length > 0 {
            let (hole, offset, skipped) = find_hole(&holes, &part, align_bytes)?;
            holes.remove(&(hole, offset));
            let length = part.length.min(hole - skipped);
            moves.push(SpaceMove { part: Part { length, ..part }, offset: offset + skipped });
            if skipped > 0 {
                holes.insert((skipped, offset));
            }
            let filled = skipped + length;
            if hole > filled {
                holes.insert((hole - filled, offset + filled));
            }
            part.logical += length;
            part.length -= length;
        }
    }
    moves.sort_unstable_by_key(|moved| (moved.part.entry, moved.part.logical));
    Some(moves)
}

/// The hole for a content: its length, its offset, and the bytes before the content. One of the
/// first holes that are long enough; else the longest one, if it has space for a part.
fn find_hole(holes: &BTreeSet<(u64, u64)>, part: &Part, align_bytes: u64) -> Option<(u64, u64, u64)> {
    /// Holes that may be too short because of the alignment, at most.
    const TRIES: usize = 16;
    let with_skipped = |&(hole, offset): &(u64, u64)| {
        let skipped = (part.logical % align_bytes + align_bytes - offset % align_bytes) % align_bytes;
        (hole, offset, skipped)
    };
    let fits = |&(hole, _, skipped): &(u64, u64, u64)| hole >= part.length + skipped;
    let first = holes.range((part.length, 0)..).take(TRIES).map(with_skipped).find(fits);
    let longer = || holes.range((part.length + align_bytes, 0)..).next().map(with_skipped);
    let has_space = |&(hole, _, skipped): &(u64, u64, u64)| hole > skipped;
    first.or_else(longer).or_else(|| holes.iter().rev().take(TRIES).map(with_skipped).find(has_space))
}

/// The segments of a device, in its order: the free space that a file holds, the other free space
/// as (start, length), and the extents of files that can move. Leaves out ranges that overlap
/// others.
pub fn merge_segments(
    held: &[Extent],
    loose: &[(u64, u64)],
    owned: impl IntoIterator<Item = (usize, Extent)>,
) -> Vec<Segment> {
    let segment = |extent: &Extent, content| Segment { start: extent.physical, length: extent.length, content };
    let mut all: Vec<Segment> =
        held.iter().map(|extent| segment(extent, Content::Free { offset: extent.logical })).collect();
    all.extend(loose.iter().map(|&(start, length)| Segment { start, length, content: Content::Loose }));
    all.extend(
        owned.into_iter().map(|(entry, extent)| segment(&extent, Content::Owned { entry, logical: extent.logical })),
    );
    all.sort_unstable_by_key(|segment| (segment.start, segment.length));
    let mut end = 0;
    let mut is_apart: Vec<bool> = all
        .iter()
        .map(|segment| {
            let is_after = segment.start >= end;
            end = end.max(segment.end());
            is_after
        })
        .collect();
    let mut start = u64::MAX;
    for (segment, is_apart) in all.iter().zip(&mut is_apart).rev() {
        *is_apart &= segment.end() <= start;
        start = start.min(segment.start);
    }
    let mut kept = is_apart.into_iter();
    all.retain(|_| kept.next() == Some(true));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIB: u64 = 1 << 10;

    /// Adjacent segments: (KiB, whether it is free, whether a range that cannot move is before it).
    /// Free ones whose KiB are a multiple of 13 are not held.
    fn segments(all: &[(u64, bool, bool)]) -> Vec<Segment> {
        let (mut start, mut offset, mut logical) = (0, 0, 0);
        let segment = |&(kib, is_free, is_after): &(u64, bool, bool)| {
            start += if is_after { 64 * KIB } else { 0 };
            let length = kib * KIB;
            let content = match is_free {
                true if kib % 13 == 0 => Content::Loose,
                true => Content::Free { offset },
                false => Content::Owned { entry: 0, logical },
            };
            if is_free {
                offset += length
            } else {
                logical += length
            }
            start += length;
            Segment { start: start - length, length, content }
        };
        all.iter().map(segment).collect()
    }

    #[test]
    fn the_emptiest_window_is_emptied_into_holes_elsewhere() {
        // Three windows of 256 KiB apart from each other. The second has the fewest bytes to move.
        let window = |free, owned, count| {
            let pair = move |at: u64| [(owned, false, at == 0), (free, true, false)];
            (0..count).flat_map(pair).collect::<Vec<_>>()
        };
        let all = segments(&[window(16, 16, 8), window(24, 8, 8), window(16, 16, 8)].concat());
        let plan = plan_space(&all, 100 * KIB, KIB);
        assert_eq!(plan.windows, [(all[16].start, 256 * KIB)]);
        assert_eq!((plan.bytes(), plan.moves.len()), (64 * KIB, 8), "no content is cut");
        let largest = plan.free_after(&all).into_iter().map(|(_, length)| length).max();
        assert_eq!(largest, Some(256 * KIB));
        assert_eq!(plan_space(&all, 60 * KIB, KIB), SpacePlan::default(), "over the budget");
    }

    #[test]
    fn segments_that_overlap_are_left_out() {
        let extent = |logical, physical, length| Extent { logical, physical, length };
        let owned = [(0, extent(0, 100, 50)), (1, extent(0, 140, 20)), (2, extent(0, 200, 10))];
        let merged = merge_segments(&[extent(0, 300, 10), extent(10, 205, 10)], &[(400, 10), (405, 10)], owned);
        assert_eq!(merged.iter().map(|segment| segment.start).collect::<Vec<_>>(), [300]);
    }

    proptest! {
        /// Contents move once each, out of the windows, into held space that no other content
        /// receives. The amount of free space stays the same.
        #[test]
        fn contents_leave_the_windows_and_fit(
            all in prop::collection::vec((1u64..200, any::<bool>(), prop::bool::weighted(0.05)), 1..300),
            budget in 0u64..20_000,
            align in prop_oneof![Just(KIB), Just(4 * KIB)],
        ) {
            let all = segments(&all);
            let plan = plan_space(&all, budget * KIB, align);
            prop_assert!(plan.bytes() <= budget * KIB);
            let owned: u64 =
                all.iter().filter(|segment| is_within(segment, &plan.windows)).map(Segment::owned).sum();
            prop_assert_eq!(plan.bytes(), owned);
            prop_assert!(plan.moves.iter().all(|moved| moved.part.logical % align == moved.offset % align));
            let mut filled = plan.filled(&all);
            filled.sort_unstable();
            prop_assert!(filled.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
            for &(start, length) in &filled {
                let within = |segment: &&Segment| segment.start <= start && start + length <= segment.end();
                let segment = all.iter().find(within).unwrap();
                prop_assert!(segment.held() > 0 && !is_within(segment, &plan.windows));
            }
            let logical: Vec<_> = plan.moves.iter().map(|moved| moved.part).collect();
            prop_assert!(logical.windows(2).all(|pair| pair[0].logical + pair[0].length <= pair[1].logical));
            let bytes = |extents: &[(u64, u64)]| extents.iter().map(|(_, length)| length).sum::<u64>();
            let before: u64 = all.iter().map(|segment| segment.length - segment.owned()).sum();
            prop_assert_eq!(bytes(&plan.free_after(&all)), before);
            let free = plan.free_after(&all);
            let is_free = |&(start, length): &(u64, u64)| {
                free.iter().any(|&(from, bytes)| from <= start && start + length <= from + bytes)
            };
            prop_assert!(plan.windows.iter().all(is_free));
        }
    }
}
