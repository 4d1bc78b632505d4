//! Groups of marks that cover each other, which are drawn beside each other.

/// Two marks that are nearer to each other cover each other, px.
const MARK: f64 = 4.5;

/// The place of a mark within its group, and the size of the group. `ends` has the top and the
/// bottom of each mark, px.
///
/// A group has all marks from top to bottom without a gap of [`MARK`] between two of them. So each
/// mark is in one group, and two marks that cover each other share one.
pub(super) fn beside(ends: &[(f64, f64)], own: usize) -> (usize, usize) {
    let mut by_top: Vec<usize> = (0..ends.len()).collect();
    by_top.sort_by(|a, b| ends[*a].0.total_cmp(&ends[*b].0));
    let (mut group, mut bottom): (Vec<usize>, f64) = (Vec::new(), f64::NEG_INFINITY);
    for at in by_top {
        if ends[at].0 >= bottom + MARK {
            if group.contains(&own) {
                break;
            }
            group.clear();
        }
        bottom = bottom.max(ends[at].1);
        group.push(at);
    }
    (group.iter().filter(|at| **at < own).count(), group.len().max(1))
}

#[cfg(test)]
mod tests {
    use senesce_core::{Rng, Seed};

    use super::*;

    #[test]
    fn marks_that_cover_each_other_are_beside_each_other() {
        let mut rng = Rng::for_purpose(Seed(7), "marks");
        for _ in 0..2_000 {
            let count = 1 + rng.below(6) as usize;
            let ends: Vec<(f64, f64)> = (0..count)
                .map(|_| {
                    let top = rng.below(60) as f64;
                    (top, top + rng.below(20) as f64)
                })
                .collect();
            let places: Vec<(usize, usize)> = (0..count).map(|own| beside(&ends, own)).collect();
            for (a, b) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                if ends[a].0 < ends[b].1 + MARK && ends[b].0 < ends[a].1 + MARK {
                    assert_ne!(places[a].0, places[b].0, "{ends:?}");
                    assert_eq!(places[a].1, places[b].1, "one group: {ends:?}");
                }
            }
            assert!(places.iter().all(|(at, count)| at < count), "{ends:?}: {places:?}");
            // A group has one mark for each of its places.
            let of_group = |size: usize| places.iter().filter(|(_, count)| *count == size).count();
            assert!((1..=count).all(|size| of_group(size).is_multiple_of(size)), "{ends:?}: {places:?}");
        }
        // The first and the last cover only the one between them.
        assert_eq!([0, 1, 2].map(|own| beside(&[(0.0, 2.0), (5.0, 7.0), (10.0, 12.0)], own)), [(0, 3), (1, 3), (2, 3)]);
        assert_eq!([0, 1].map(|own| beside(&[(20.0, 22.0), (0.0, 2.0)], own)), [(0, 1), (0, 1)]);
    }
}
