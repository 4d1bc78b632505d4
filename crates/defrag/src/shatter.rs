//! Finds the shattered ranges of a file. Pure.

use senesce_core::Extent;

use crate::plan::Part;

/// The shattered ranges of a file: runs of at least two pieces that are short each.
///
/// Moving a run of n pieces saves n - 1 seeks, and costs its bytes. A long piece in the middle
/// would cost many bytes and save one seek, so it ends a run and stays. A short piece between two
/// long ones stays, because moving it saves no seek.
///
/// In: the extents of the file in file order, without overlaps; a piece of at least `keep_bytes` is
/// long. Out: for each run its parts; two parts of a run have a hole between them.
/// Cost: linear.
pub(crate) fn find_shattered(entry: usize, extents: &[Extent], keep_bytes: u64) -> Vec<Vec<Part>> {
    let pieces = extents.chunk_by(|a, b| a.end() == b.physical);
    let length = |piece: &[Extent]| piece.iter().map(|extent| extent.length).sum::<u64>();
    let mut runs: Vec<Vec<&[Extent]>> = vec![Vec::new()];
    for piece in pieces {
        match length(piece) < keep_bytes {
            true => runs.last_mut().expect("the list starts with one").push(piece),
            false => runs.push(Vec::new()),
        }
    }
    let is_shattered = |run: &Vec<&[Extent]>| run.len() >= 2;
    runs.into_iter().filter(is_shattered).map(|run| join(entry, run.concat())).collect()
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
        assert_eq!(find_shattered(4, &file, 100), [[Part { entry: 4, logical: 500, length: 8 }]]);
        assert_eq!(find_shattered(4, &file, 10), [[Part { entry: 4, logical: 500, length: 8 }]]);
        assert_eq!(find_shattered(4, &file, 4), [] as [Vec<Part>; 0]);
    }

    #[test]
    fn a_hole_splits_a_run_into_parts() {
        let file = extents(&[(3, false), (5, true), (2, false)]);
        let part = |logical, length| Part { entry: 0, logical, length };
        assert_eq!(find_shattered(0, &file, 100), [[part(0, 3), part(10, 7)]]);
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
            let runs = find_shattered(0, &file, keep);
            prop_assert_eq!(runs.concat(), join(0, expected.clone()).into_iter().collect::<Vec<_>>().clone());
            let bytes: u64 = runs.concat().iter().map(|part| part.length).sum();
            prop_assert_eq!(bytes, expected.iter().map(|extent| extent.length).sum::<u64>());
        }
    }
}
