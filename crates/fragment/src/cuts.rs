//! Positions of the cuts in a file: pure arithmetic in blocks.

/// Plans which blocks of an allocation are spare: removing them creates `cuts` more extents.
///
/// In: lengths of the extents in file order, blocks. Out: numbers of the spare blocks, ascending.
/// Spare blocks are never adjacent, and never the first or last block of an extent: removing that
/// creates no extent. The pieces of an extent differ by at most one block. Extents get cuts in
/// proportion to the most cuts they can have. `None` if they cannot have `cuts`.
pub(crate) fn plan_cuts(extents: &[u64], cuts: u64) -> Option<Vec<u64>> {
    // n spare blocks leave n + 1 pieces of at least one block each: 2n + 1 blocks.
    let room = |length: u64| length.saturating_sub(1) / 2;
    let total: u64 = extents.iter().map(|length| room(*length)).sum();
    if cuts > total {
        return None;
    }
    let mut spare = Vec::with_capacity(cuts as usize);
    let (mut start, mut room_before, mut given) = (0, 0u64, 0u64);
    for &length in extents {
        room_before += room(length);
        // The share of all extents up to here, rounded down: no difference exceeds an extent's own
        // limit.
        let until_here =
            if total == 0 { 0 } else { (u128::from(cuts) * u128::from(room_before) / u128::from(total)) as u64 };
        let here = until_here - given;
        given = until_here;
        let data = length - here;
        for cut in 1..=here {
            let data_before = (u128::from(data) * u128::from(cut) / u128::from(here + 1)) as u64;
            spare.push(start + data_before + cut - 1);
        }
        start += length;
    }
    Some(spare)
}

/// Returns the pieces of `total` blocks between the spare ones: (first block, blocks).
pub(crate) fn compute_pieces(total: u64, spare: &[u64]) -> Vec<(u64, u64)> {
    let mut pieces = Vec::with_capacity(spare.len() + 1);
    let mut at = 0;
    for &block in spare.iter().chain([&total]) {
        if block > at {
            pieces.push((at, block - at));
        }
        at = block + 1;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn planned_cuts_equal_hand_computed_ones() {
        assert_eq!(plan_cuts(&[10], 0), Some(vec![]));
        // 10 blocks less 1: 4 and 5.
        assert_eq!(plan_cuts(&[10], 1), Some(vec![4]));
        assert_eq!(plan_cuts(&[7], 3), Some(vec![1, 3, 5]));
        assert_eq!(plan_cuts(&[7], 4), None);
        assert_eq!(plan_cuts(&[2, 1, 5], 2), Some(vec![4, 6]));
        assert_eq!(compute_pieces(7, &[1, 3, 5]), [(0, 1), (2, 1), (4, 1), (6, 1)]);
        assert_eq!(compute_pieces(5, &[]), [(0, 5)]);
    }

    proptest! {
        #[test]
        fn removing_spare_blocks_adds_exactly_the_cuts(
            extents in prop::collection::vec(1u64..60, 1..10), share in 0.0f64..=1.0,
        ) {
            let room: u64 = extents.iter().map(|length| (length - 1) / 2).sum();
            let cuts = (room as f64 * share) as u64;
            let spare = plan_cuts(&extents, cuts).unwrap();
            prop_assert_eq!(spare.len() as u64, cuts);
            // A model of the device: two blocks separate the extents.
            let mut device = Vec::new();
            for (number, length) in extents.iter().enumerate() {
                let first = device.last().map_or(0, |last| last + 3);
                device.extend((0..*length).map(|block| first + block));
                prop_assert!(number < 10);
            }
            let left: Vec<u64> = (0..device.len()).filter(|n| !spare.contains(&(*n as u64))).map(|n| device[n]).collect();
            let breaks = left.windows(2).filter(|pair| pair[1] != pair[0] + 1).count() as u64;
            prop_assert_eq!(breaks + 1, extents.len() as u64 + cuts);
            let blocks: u64 = compute_pieces(device.len() as u64, &spare).iter().map(|(_, length)| length).sum();
            prop_assert_eq!(blocks, left.len() as u64);
            prop_assert_eq!(plan_cuts(&extents, room + 1), None);
        }
    }
}
