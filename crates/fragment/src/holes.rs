//! Positions of the holes in the filler: pure arithmetic in units.

use std::collections::BinaryHeap;

use senesce_core::Rng;

/// Places holes into runs of filler so that no two touch, and none touches a run's end.
///
/// In: lengths of the runs and of the holes, units. Out: (run, first unit, units), by run and
/// position; on failure, the length of the first hole that did not fit. Long holes are placed
/// first, each into the run with most space left. Then the order within a run is shuffled, and the
/// remaining units are spread between the holes.
pub(crate) fn plan_holes(runs: &[u64], holes: &[u64], rng: &mut Rng) -> Result<Vec<(usize, u64, u64)>, u64> {
    let mut longest_first = holes.to_vec();
    longest_first.sort_unstable_by(|a, b| b.cmp(a));
    // Space left in a run: units that remain if each hole has one unit before it, and the last one
    // also one after it.
    let mut rooms: BinaryHeap<(u64, usize)> =
        runs.iter().enumerate().filter(|(_, length)| **length > 0).map(|(run, length)| (length - 1, run)).collect();
    let mut in_run: Vec<Vec<u64>> = vec![Vec::new(); runs.len()];
    for hole in longest_first {
        match rooms.peek().copied() {
            Some((room, run)) if room > hole => {
                rooms.pop();
                rooms.push((room - hole - 1, run));
                in_run[run].push(hole);
            }
            _ => return Err(hole),
        }
    }
    let mut placed = Vec::with_capacity(holes.len());
    for (run, mut holes) in in_run.into_iter().enumerate() {
        rng.shuffle(&mut holes);
        let gaps = holes.len() as u64 + 1;
        let kept = runs[run] - holes.iter().sum::<u64>();
        let mut used = 0;
        for (number, hole) in holes.into_iter().enumerate() {
            let kept_before = (u128::from(kept) * (number as u128 + 1) / u128::from(gaps)) as u64;
            placed.push((run, kept_before + used, hole));
            used += hole;
        }
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::{Rng, Seed};

    use super::*;

    #[test]
    fn planned_holes_equal_hand_computed_ones() {
        let mut rng = Rng::for_purpose(Seed(1), "test");
        assert_eq!(plan_holes(&[3], &[1], &mut rng), Ok(vec![(0, 1, 1)]));
        assert_eq!(plan_holes(&[5], &[1, 1], &mut rng), Ok(vec![(0, 1, 1), (0, 3, 1)]));
        assert_eq!(plan_holes(&[4], &[1, 1], &mut rng), Err(1));
        assert_eq!(plan_holes(&[4, 9], &[7, 2], &mut rng), Ok(vec![(0, 1, 2), (1, 1, 7)]));
        assert_eq!(plan_holes(&[], &[7], &mut rng), Err(7));
    }

    proptest! {
        #[test]
        fn holes_never_touch_each_other_or_an_end(
            runs in prop::collection::vec(0u64..200, 0..8), holes in prop::collection::vec(1u64..20, 0..30), seed: u64,
        ) {
            let Ok(placed) = plan_holes(&runs, &holes, &mut Rng::for_purpose(Seed(seed), "test")) else { return Ok(()) };
            let mut lengths: Vec<u64> = placed.iter().map(|hole| hole.2).collect();
            let mut wanted = holes;
            lengths.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(lengths, wanted);
            for (number, (run, start, length)) in placed.iter().enumerate() {
                prop_assert!(*start > 0 && start + length < runs[*run]);
                if let Some((next_run, next, _)) = placed.get(number + 1).filter(|next| next.0 == *run) {
                    prop_assert!(*next > start + length, "{next_run}");
                }
            }
        }
    }
}
