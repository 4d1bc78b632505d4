//! Predicts the places of moved files. Pure.

use std::collections::{BTreeMap, BTreeSet};

use senesce_core::Extent;
use senesce_probe::collect::Surveyed;

use crate::plan::{Batch, Part, extents_of};

/// A range of a file, and its place after the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the file among the entries of the tree.
    pub entry: usize,
    /// The range, and its position on the device.
    pub extent: Extent,
}

/// Puts each batch into free space, as a file system does that allocates a batch at once: into the
/// smallest free extent that is long enough for all of it. If none is, it fills the largest ones in
/// turn. A batch frees its old space.
///
/// `free` are the free extents as (start, length), bytes. Returns the pieces in the order of the
/// batches. `None` for a batch that stays because there is no space, or none that would leave it in
/// at most half of its pieces.
pub fn place_batches(
    entries: &[Surveyed],
    batches: &[Batch],
    free: impl IntoIterator<Item = (u64, u64)>,
) -> Vec<Option<Vec<Piece>>> {
    let mut space = FreeSpace::default();
    free.into_iter().for_each(|(start, length)| space.insert(start, length));
    let place = |batch: &Batch| {
        let pieces = place(batch, &mut space)?;
        let is_better = 2 * measure_pieces(batch, &pieces) <= batch.pieces;
        let freed = match is_better {
            true => batch.parts.iter().flat_map(|part| extents_of(&entries[part.entry], part)).collect::<Vec<_>>(),
            false => pieces.iter().map(|piece| piece.extent).collect(),
        };
        freed.into_iter().for_each(|extent| space.insert(extent.physical, extent.length));
        is_better.then_some(pieces)
    };
    batches.iter().map(place).collect()
}

/// The number of pieces in which a batch is read from these places.
pub fn measure_pieces(batch: &Batch, pieces: &[Piece]) -> u64 {
    let breaks = pieces.windows(2).filter(|pair| pair[0].extent.end() != pair[1].extent.physical).count();
    breaks as u64 + batch.runs
}

/// Allocates the space for a batch. `None` if there is too little. Then nothing is allocated.
fn place(batch: &Batch, space: &mut FreeSpace) -> Option<Vec<Piece>> {
    let mut left = batch.bytes();
    if space.bytes < left {
        return None;
    }
    let mut pieces = Vec::new();
    let mut parts = batch.parts.iter().copied();
    let mut part: Option<Part> = parts.next();
    while left > 0 {
        let (mut start, mut room) = space.take(left)?;
        while let Some(Part { entry, logical, length }) = part.filter(|_| room > 0) {
            let taken = length.min(room);
            pieces.push(Piece { entry, extent: Extent { logical, physical: start, length: taken } });
            (start, room, left) = (start + taken, room - taken, left - taken);
            part = match taken < length {
                true => Some(Part { entry, logical: logical + taken, length: length - taken }),
                false => parts.next(),
            };
        }
        space.insert(start, room);
    }
    Some(pieces)
}

/// Free extents. Adjacent ones are joined.
#[derive(Default)]
pub(crate) struct FreeSpace {
    by_start: BTreeMap<u64, u64>,
    /// (length, start).
    by_length: BTreeSet<(u64, u64)>,
    pub bytes: u64,
}

impl FreeSpace {
    pub fn insert(&mut self, mut start: u64, mut length: u64) {
        if length == 0 {
            return;
        }
        self.bytes += length;
        if let Some((&before, &bytes)) = self.by_start.range(..start).next_back()
            && before + bytes == start
        {
            self.remove(before, bytes);
            (start, length) = (before, bytes + length);
        }
        if let Some((&after, &bytes)) = self.by_start.range(start + 1..).next()
            && start + length == after
        {
            self.remove(after, bytes);
            length += bytes;
        }
        self.by_start.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
    }

    /// Allocates `length` bytes at the start of the largest extent. `None` if it is shorter.
    pub fn take_from_largest(&mut self, length: u64) -> Option<u64> {
        let &(room, start) = self.by_length.last().filter(|(room, _)| *room >= length)?;
        self.remove(start, room);
        self.bytes -= room;
        self.insert(start + length, room - length);
        Some(start)
    }

    /// Allocates the smallest extent of at least this length, or the largest one.
    fn take(&mut self, length: u64) -> Option<(u64, u64)> {
        let &(length, start) = self.by_length.range((length, 0)..).next().or_else(|| self.by_length.last())?;
        self.remove(start, length);
        self.bytes -= length;
        Some((start, length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::RelPath;
    use senesce_probe::{
        collect::EntryKind,
        map::{ExtentFlags, RawExtent},
    };

    use super::*;
    use crate::{
        Strategy,
        plan::{LeftWhy, PlanOptions, plan_moves},
    };

    const BLOCK: u64 = 4096;

    fn file(number: usize, extents: &[(u64, u64, u64)]) -> Surveyed {
        let raw = |&(logical, physical, length): &(u64, u64, u64)| RawExtent {
            extent: Extent { logical: logical * BLOCK, physical: physical * BLOCK, length: length * BLOCK },
            flags: ExtentFlags::default(),
        };
        let blocks: u64 = extents.iter().map(|(_, _, length)| length).sum();
        Surveyed {
            path: RelPath::new(number.to_string().as_bytes()).unwrap(),
            kind: EntryKind::File,
            inode: number as u64 + 10,
            links: 1,
            is_executable: false,
            size_bytes: extents.last().map_or(0, |(logical, _, length)| (logical + length) * BLOCK),
            allocated_bytes: blocks * BLOCK,
            modified_unix_seconds: 0,
            born_unix_seconds: None,
            extents: extents.iter().map(raw).collect(),
        }
    }

    /// Files of these blocks, each in pieces of at most `piece` blocks. A multiplication scatters
    /// their places.
    fn scatter(sizes: &[u64], piece: u64) -> (Vec<Surveyed>, u64) {
        let pieces: usize = sizes.iter().map(|size| size.div_ceil(piece) as usize).sum();
        let slots = (pieces | 1) as u64 + 2;
        let mut slot = 0u64;
        let files = sizes.iter().enumerate().map(|(number, &size)| {
            let mut extents = Vec::new();
            let mut logical = 0;
            while logical < size {
                let length = piece.min(size - logical);
                extents.push((logical, slot * 7919 % slots * piece * 2, length));
                slot += 1;
                logical += length;
            }
            file(number, &extents)
        });
        (files.collect(), slots * piece * 2)
    }

    fn options(keep_blocks: u64, batch_blocks: u64) -> PlanOptions {
        PlanOptions {
            block_bytes: BLOCK,
            align_bytes: BLOCK,
            keep_bytes: keep_blocks * BLOCK,
            batch_bytes: batch_blocks * BLOCK,
            batch_files: usize::MAX,
            moves_shared: false,
            moves_programs: false,
            orders: true,
            piece_bytes: 0,
        }
    }

    #[test]
    fn space_that_a_batch_leaves_is_used_by_the_next() {
        // Two batches of four blocks, and four free blocks.
        let files: Vec<Surveyed> = (0..8).map(|number| file(number, &[(0, (7 - number as u64) * 2, 1)])).collect();
        let order: Vec<usize> = (0..8).collect();
        let plan = plan_moves(&files, &order, &options(100, 4));
        assert_eq!(
            plan.batches.iter().map(|batch| (batch.bytes() / BLOCK, batch.pieces)).collect::<Vec<_>>(),
            [(4, 4), (4, 4)]
        );
        let free = (0..7).map(|number| ((number * 2 + 1) * BLOCK, BLOCK)).chain([(100 * BLOCK, 4 * BLOCK)]);
        let places = place_batches(&files, &plan.batches, free);
        assert_eq!(measure_pieces(&plan.batches[0], places[0].as_ref().unwrap()), 1);
        assert!(
            measure_pieces(&plan.batches[1], places[1].as_ref().unwrap()) <= 2,
            "the first batch left neighbours of free blocks"
        );
    }

    #[test]
    fn programs_stay_unless_they_move_too() {
        let mut files: Vec<Surveyed> = (0..9).map(|number| file(number, &[(0, 900 - number as u64 * 9, 1)])).collect();
        files[4].is_executable = true;
        let order: Vec<usize> = (0..9).collect();
        let plan = |moves_programs| plan_moves(&files, &order, &PlanOptions { moves_programs, ..options(100, 64) });
        assert_eq!((plan(false).left[&LeftWhy::Program].files, plan(false).bytes()), (1, 8 * BLOCK));
        assert_eq!(plan(true).bytes(), 9 * BLOCK);
    }

    #[test]
    fn files_in_order_stay() {
        let files: Vec<Surveyed> = (0..50).map(|number| file(number, &[(0, 1000 + number as u64 * 4, 4)])).collect();
        let order: Vec<usize> = (0..50).collect();
        assert_eq!(plan_moves(&files, &order, &options(100, 64)).batches, []);
        // In the opposite order each needs a seek.
        let order: Vec<usize> = (0..50).rev().collect();
        let plan = plan_moves(&files, &order, &options(100, 1000));
        assert_eq!((plan.batches.len(), plan.batches[0].pieces, plan.bytes()), (1, 50, 200 * BLOCK));
    }

    #[test]
    fn only_shattered_ranges_of_a_large_file_move() {
        // 90 blocks in one piece, 10 in pieces of one block, 100 in one piece.
        let shattered = (0..10).map(|at| (90 + at, 5000 + at * 2, 1));
        let extents: Vec<_> = [(0, 1000, 90)].into_iter().chain(shattered).chain([(100, 2000, 100)]).collect();
        let files = [file(0, &[(0, 9000, 4)]), file(1, &extents), file(2, &[(0, 8000, 4)])];
        let options = PlanOptions { piece_bytes: 50 * BLOCK, ..options(150, 64) };
        let plan = plan_moves(&files, &[0, 1, 2], &options);
        let moved = |strategy| plan.batches.iter().filter(move |batch| batch.strategy == strategy);
        let pieces: Vec<&Batch> = moved(Strategy::Pieces).collect();
        assert_eq!(pieces[0].parts, [Part { entry: 1, logical: 90 * BLOCK, length: 10 * BLOCK }]);
        assert_eq!((pieces.len(), pieces[0].pieces, pieces[0].runs), (1, 10, 1));
        assert_eq!(moved(Strategy::Order).map(Batch::bytes).sum::<u64>(), 8 * BLOCK, "both small files");
        assert_eq!(plan.live_bytes, plan.bytes() + plan.left[&LeftWhy::InOrder].bytes);
        // Without a strategy for pieces, the whole file moves.
        let whole = plan_moves(&files, &[0, 1, 2], &PlanOptions { piece_bytes: 0, ..options });
        assert_eq!(whole.bytes(), 208 * BLOCK);
        // Without an order, whole files stay.
        let plan = plan_moves(&files, &[0, 1, 2], &PlanOptions { orders: false, ..options });
        assert_eq!((plan.bytes(), plan.left[&LeftWhy::InOrder].files), (10 * BLOCK, 2));
    }

    #[test]
    fn runs_that_are_read_separately_stay_separate() {
        let run = |first: u64| (0..5).map(move |at| (first + at, 5000 + (first + at) * 2, 1));
        let extents: Vec<_> = run(0).chain([(5, 1000, 100)]).chain(run(105)).collect();
        let files = [file(0, &extents)];
        let options = PlanOptions { piece_bytes: 50 * BLOCK, ..options(50, 64) };
        let plan = plan_moves(&files, &[0], &options);
        let places = place_batches(&files, &plan.batches, [(9000 * BLOCK, 64 * BLOCK)]);
        let after = measure_pieces(&plan.batches[0], places[0].as_ref().unwrap());
        assert_eq!((plan.batches.len(), plan.batches[0].pieces, after), (1, 10, 2));
    }

    proptest! {
        /// A plan moves every byte once, and no two files have one place afterwards.
        #[test]
        fn moves_keep_every_block_once(
            sizes in prop::collection::vec(1u64..60, 1..60),
            piece in 1u64..20,
            keep in 4u64..200,
            batch in 1u64..300,
            free in 0u64..4000,
            shattered in 0u64..30,
        ) {
            let (files, end) = scatter(&sizes, piece);
            let order: Vec<usize> = (0..files.len()).collect();
            let plan = plan_moves(&files, &order, &PlanOptions {
                piece_bytes: shattered * BLOCK,
                ..options(keep, batch)
            });
            let stays: u64 = plan.left.values().map(|left| left.bytes).sum();
            prop_assert_eq!(plan.live_bytes, stays + plan.bytes());
            prop_assert!(plan.batches.iter().all(|batch_of| batch_of.bytes() <= batch * BLOCK));
            let places = place_batches(&files, &plan.batches, [((end + 5) * BLOCK, free * BLOCK)]);
            // Blocks of each file, as (file, logical block) -> physical block, moved one batch
            // after the other.
            let mut map: BTreeMap<(usize, u64), u64> = BTreeMap::new();
            for (number, file) in files.iter().enumerate() {
                for raw in &file.extents {
                    let Extent { logical, physical, length } = raw.extent;
                    map.extend((0..length / BLOCK).map(|at| ((number, logical / BLOCK + at), physical / BLOCK + at)));
                }
            }
            let blocks = map.len();
            for (batch, pieces) in plan.batches.iter().zip(&places) {
                let Some(pieces) = pieces else { continue };
                prop_assert_eq!(pieces.iter().map(|piece| piece.extent.length).sum::<u64>(), batch.bytes());
                prop_assert!(2 * measure_pieces(batch, pieces) <= batch.pieces);
                let used: BTreeSet<u64> = map.values().copied().collect();
                for Piece { entry, extent } in pieces {
                    for at in 0..extent.length / BLOCK {
                        let to = extent.physical / BLOCK + at;
                        prop_assert!(!used.contains(&to), "space in use until the batch has moved");
                        let before = map.insert((*entry, extent.logical / BLOCK + at), to);
                        prop_assert!(before.is_some(), "a block that the file does not have");
                    }
                }
                let distinct: BTreeSet<u64> = map.values().copied().collect();
                prop_assert_eq!((map.len(), distinct.len()), (blocks, blocks));
            }
        }

        /// After all batches are in one free extent, nothing is left to move.
        #[test]
        fn a_second_plan_moves_nothing(sizes in prop::collection::vec(1u64..60, 2..60), piece in 1u64..20) {
            let (mut files, end) = scatter(&sizes, piece);
            let order: Vec<usize> = (0..files.len()).collect();
            let options = options(1 << 20, 1 << 30);
            let plan = plan_moves(&files, &order, &options);
            let free = [((end + 5) * BLOCK, (1 << 20) * BLOCK)];
            for piece in place_batches(&files, &plan.batches, free).into_iter().flatten().flatten() {
                let raw = RawExtent { extent: piece.extent, flags: ExtentFlags::default() };
                let file = &mut files[piece.entry];
                file.extents.retain(|old| old.extent.logical != u64::MAX && old.extent.physical > end * BLOCK);
                file.extents.push(raw);
            }
            prop_assert_eq!(plan_moves(&files, &order, &options).batches, []);
        }
    }
}
