//! Predicts the gain of the moves: a modelled cold read of the tree, before and after.

use std::collections::HashMap;

use senesce_core::Extent;
use senesce_inspect::{ModelOptions, MoveCost, has_btrfs_quotas, model_moves};

use crate::{
    Error, Plan, Tree,
    place::{Piece, place_batches},
    place_btrfs::place_in_groups,
};

/// Predicts the places of the batches of a plan. `None` for a batch that stays.
///
/// On Btrfs, the mover runs against a model of the allocator. Elsewhere see [`place_batches`].
/// Errors: the file system does not report its free space; `stop` returned `true`.
pub fn place_moves(tree: &Tree, plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Vec<Option<Vec<Piece>>>, Error> {
    match tree.groups() {
        Some(space) => {
            let may_plug = !has_btrfs_quotas(tree.path());
            let places = place_in_groups(&tree.entries, &plan.batches, &space, may_plug, stop);
            if stop() { Err(Error::Stopped) } else { Ok(places) }
        }
        None => Ok(place_batches(&tree.entries, &plan.batches, tree.free_extents()?)),
    }
}

/// Models a cold read of the tree on each device, before and after the moves.
///
/// In: the indices of the entries in the order of reading, see [`crate::Order::reading`]; the
/// pieces of all batches that have space, see [`crate::place_batches`].
/// Errors: a device cannot be modelled; stopped. Cost: reads the metadata of the tree once,
/// and on Btrfs again if files move.
pub fn predict_costs(
    tree: &Tree,
    reading: &[usize],
    pieces: &[Piece],
    options: &ModelOptions<'_>,
) -> Result<Vec<MoveCost>, Error> {
    let mut by_entry: HashMap<usize, Vec<Extent>> = HashMap::new();
    for piece in pieces {
        by_entry.entry(piece.entry).or_default().push(piece.extent);
    }
    let moved = |entry: usize| {
        Some(apply_pieces(tree.entries[entry].extents.iter().map(|raw| raw.extent), by_entry.get(&entry)?))
    };
    Ok(model_moves(tree.path(), (&tree.entries, reading), &moved, options)?)
}

/// The extents of a file after some of its ranges have moved.
///
/// In: extents and pieces, each in file order; pieces do not overlap. Cost: linear.
fn apply_pieces(extents: impl Iterator<Item = Extent>, pieces: &[Extent]) -> Vec<Extent> {
    let mut after: Vec<Extent> = pieces.to_vec();
    let mut pieces = pieces.iter().peekable();
    for extent in extents {
        // Ranges without a piece stay.
        let end = extent.logical + extent.length;
        let mut next = extent.logical;
        while next < end {
            let piece = pieces.peek().filter(|piece| piece.logical < end);
            let kept_to = piece.map_or(end, |piece| piece.logical.max(next));
            if next < kept_to {
                let physical = extent.physical + (next - extent.logical);
                after.push(Extent { logical: next, physical, length: kept_to - next });
            }
            next = piece.map_or(end, |piece| (piece.logical + piece.length).max(next));
            if next <= end && piece.is_some() {
                pieces.next();
            }
        }
    }
    after.sort_unstable_by_key(|extent| extent.logical);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_without_a_piece_stay() {
        let extent = |logical, physical, length| Extent { logical, physical, length };
        let found = [extent(0, 100, 10), extent(10, 300, 20), extent(50, 500, 10)];
        let after = apply_pieces(found.into_iter(), &[extent(10, 700, 15)]);
        assert_eq!(after, [extent(0, 100, 10), extent(10, 700, 15), extent(25, 315, 5), extent(50, 500, 10)]);
        let all = [extent(0, 0, 10), extent(10, 10, 20), extent(50, 30, 10)];
        assert_eq!(apply_pieces(found.into_iter(), &all), all);
    }
}
