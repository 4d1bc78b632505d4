//! Finds the shattered ranges of a file. Pure.

use std::ops::Range;

use senesce_core::Extent;

use crate::plan::Part;

/// Long pieces between two runs move if they have at most this multiple of the longest short piece.
const LONGEST_BETWEEN: u64 = 8;

/// The shattered ranges of a file: runs of at least two pieces that are short each.
///
/// Moving a run of n pieces saves n - 1 seeks, and costs its bytes. A long piece ends a run. A
/// short piece between two long ones stays, because moving it saves no seek. If the runs have less
/// than `most_bytes`, long pieces between two runs move too, up to this sum: each joins two runs.
/// Those with the fewest bytes for a saved seek are first.
///
/// In: the extents of the file in file order, without overlaps; a piece of at least `keep_bytes` is
/// long. Out: for each run its parts; two parts of a run have a hole between them.
/// Cost: n log n.
pub(crate) fn find_shattered(entry: usize, extents: &[Extent], keep_bytes: u64, most_bytes: u64) -> Vec<Vec<Part>> {
    let pieces: Vec<&[Extent]> = extents.chunk_by(|a, b| a.end() == b.physical).collect();
    let lengths: Vec<u64> = pieces.iter().map(|piece| piece.iter().map(|extent| extent.length).sum()).collect();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..lengths.len()).filter(|&at| lengths[at] < keep_bytes) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs.retain(|run| run.len() >= 2);
    let runs = join_runs(&runs, &lengths, (keep_bytes.saturating_mul(LONGEST_BETWEEN), most_bytes));
    runs.into_iter().map(|run| join(entry, pieces[run].concat())).collect()
}

/// Joins runs whose pieces between them have at most `longest` bytes each, while all runs have at
/// most `most_bytes`.
fn join_runs(runs: &[Range<usize>], lengths: &[u64], (longest, most_bytes): (u64, u64)) -> Vec<Range<usize>> {
    let bytes = |range: &Range<usize>| lengths[range.clone()].iter().sum::<u64>();
    let mut moved: u64 = runs.iter().map(bytes).sum();
    let between = runs.windows(2).enumerate().map(|(at, pair)| (at, pair[0].end..pair[1].start));
    let mut between: Vec<(usize, Range<usize>, u64)> = between
        .filter(|(_, gap)| lengths[gap.clone()].iter().all(|length| *length <= longest))
        .map(|(at, gap)| (at, gap.clone(), bytes(&gap)))
        .collect();
    // n pieces save n + 1 seeks. Compared without a division.
    let seeks = |gap: &Range<usize>| gap.len() as u128 + 1;
    between.sort_by(|(_, a, bytes_a), (_, b, bytes_b)| {
        (u128::from(*bytes_a) * seeks(b)).cmp(&(u128::from(*bytes_b) * seeks(a)))
    });
    let mut is_joined = vec![false; runs.len()];
    for (at, _, bytes) in between {
        if moved + bytes <= most_bytes {
            moved += bytes;
            is_joined[at + 1] = true;
        }
    }
    let mut joined: Vec<Range<usize>> = Vec::new();
    for (run, is_joined) in runs.iter().zip(is_joined) {
        match joined.last_mut() {
            Some(last) if is_joined => last.end = run.end,
            _ => joined.push(run.clone()),
        }
    }
    joined
}

/// Joins neighbours in the file.
pub(crate) fn join(entry: usize, extents: Vec<Extent>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for Extent { logical, length, .. } in extents {
        match parts.last_mut() {
            Some(last) if last.logical + last.length == logical => last.length += length,
            _ => parts.push(Part { entry, logical, length }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of these lengths: adjacent in the file, apart on the device. A `true` has a hole
    /// before it.
    fn extents(pieces: &[(u64, bool)]) -> Vec<Extent> {
        let mut logical = 0;
        let extent = |(number, &(length, is_after_hole)): (usize, &(u64, bool))| {
            logical += if is_after_hole { 7 } else { 0 };
            let extent = Extent { logical, physical: (pieces.len() - number) as u64 * 10_000, length };
            logical += length;
            extent
        };
        pieces.iter().enumerate().map(extent).collect()
    }

    #[test]
    fn long_pieces_and_single_short_ones_stay() {
        let file = extents(&[(500, false), (3, false), (5, false), (100, false), (9, false), (100, false)]);
        assert_eq!(find_shattered(4, &file, 100, 0), [[Part { entry: 4, logical: 500, length: 8 }]]);
        assert_eq!(find_shattered(4, &file, 10, 0), [[Part { entry: 4, logical: 500, length: 8 }]]);
        assert_eq!(find_shattered(4, &file, 4, 0), [] as [Vec<Part>; 0]);
    }

    #[test]
    fn a_hole_splits_a_run_into_parts() {
        let file = extents(&[(3, false), (5, true), (2, false)]);
        let part = |logical, length| Part { entry: 0, logical, length };
        assert_eq!(find_shattered(0, &file, 100, 0), [[part(0, 3), part(10, 7)]]);
    }

    #[test]
    fn long_pieces_between_runs_move_up_to_the_limit() {
        let lengths =
            [(3, false), (5, false), (300, false), (2, false), (4, false), (200, false), (1, false), (2, false)];
        let file = extents(&lengths);
        let bytes = |most| -> Vec<u64> {
            let runs = find_shattered(0, &file, 100, most);
            runs.iter().map(|run| run.iter().map(|part| part.length).sum()).collect()
        };
        assert_eq!(bytes(216), [8, 6, 3], "one byte too few");
        assert_eq!(bytes(217), [8, 209], "the shorter one first");
        assert_eq!(bytes(517), [517]);
        assert_eq!(
            find_shattered(0, &extents(&[(1, false), (1, false), (81, false), (1, false), (1, false)]), 10, 500).len(),
            2
        );
    }

    proptest! {
        /// Every short piece that has a short neighbour is in one run, and no other piece is.
        #[test]
        fn short_pieces_with_short_neighbours_are_runs(
            pieces in prop::collection::vec((1u64..200, any::<bool>()), 0..80),
            keep in 1u64..200,
        ) {
            let file = extents(&pieces);
            let is_short = |at: usize| pieces.get(at).is_some_and(|(length, _)| *length < keep);
            let expected: Vec<Extent> = (0..pieces.len())
                .filter(|&at| is_short(at) && (is_short(at + 1) || at > 0 && is_short(at - 1)))
                .map(|at| file[at])
                .collect();
            let runs = find_shattered(0, &file, keep, 0);
            prop_assert_eq!(runs.concat(), join(0, expected.clone()).into_iter().collect::<Vec<_>>().clone());
            let bytes: u64 = runs.concat().iter().map(|part| part.length).sum();
            prop_assert_eq!(bytes, expected.iter().map(|extent| extent.length).sum::<u64>());
        }
    }
}
