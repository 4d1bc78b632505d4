//! Free units compared with a bitmap, and the places of allocations.

use proptest::prelude::*;

use super::*;

fn extent(first: u32, count: u32) -> Extent {
    Extent { first, count }
}

/// The free extents of a bitmap.
fn runs(free: &[bool]) -> Vec<Extent> {
    let mut runs: Vec<Extent> = Vec::new();
    for unit in (0..free.len()).filter(|unit| free[*unit]) {
        match runs.last_mut() {
            Some(run) if run.end() == unit as u32 => run.count += 1,
            _ => runs.push(extent(unit as u32, 1)),
        }
    }
    runs
}

#[derive(Clone, Debug)]
enum Step {
    Take { units: u32, near: u32 },
    GiveBack { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..9, 0u32..70).prop_map(|(units, near)| Step::Take { units, near }),
        3 => (0usize..100).prop_map(|which| Step::GiveBack { which }),
    ]
}

proptest! {
    #[test]
    fn space_agrees_with_a_bitmap(steps in proptest::collection::vec(step(), 1..80)) {
        let (mut space, mut bitmap) = (Space::new(64), [true; 64]);
        let mut taken = Vec::new();
        for step in steps {
            match step {
                Step::Take { units, near } => {
                    let before = runs(&bitmap);
                    let got = space.take(units, near);
                    let mut sizes: Vec<u32> = before.iter().map(|run| run.count).collect();
                    sizes.sort_unstable();
                    let possible = sizes.iter().rev().take(MAX_PIECES).sum::<u32>() >= units;
                    prop_assert_eq!(got.is_some(), possible);
                    let Some(got) = got else { continue };
                    prop_assert_eq!(got.units(), u64::from(units));
                    if sizes.last().is_some_and(|largest| *largest >= units) {
                        prop_assert_eq!(got.len(), 1, "one extent was large enough");
                        // The first fit from the hint on, if there is one.
                        let behind = before.iter().filter_map(|run| {
                            let first = run.first.max(near);
                            (first + units <= run.end()).then_some(first)
                        });
                        let around = before.iter().filter(|run| run.count >= units).map(|run| run.first);
                        prop_assert_eq!(Some(got[0].first), behind.min().or(around.min()));
                    }
                    for unit in got.iter().flat_map(|extent| extent.first..extent.end()) {
                        prop_assert!(bitmap[unit as usize], "unit {} was in use", unit);
                        bitmap[unit as usize] = false;
                    }
                    taken.push(got);
                }
                Step::GiveBack { which } if !taken.is_empty() => {
                    let extents = taken.swap_remove(which % taken.len());
                    space.give_back(&extents);
                    extents.iter().flat_map(|extent| extent.first..extent.end()).for_each(|unit| bitmap[unit as usize] = true);
                }
                Step::GiveBack { .. } => {}
            }
            let wanted = runs(&bitmap);
            prop_assert_eq!(space.free_extents().collect::<Vec<_>>(), wanted.clone());
            let statistics = SpaceStatistics {
                units: 64,
                free: bitmap.iter().filter(|free| **free).count() as u64,
                free_extents: wanted.len() as u64,
                largest: wanted.iter().map(|run| u64::from(run.count)).max().unwrap_or(0),
            };
            prop_assert_eq!(space.statistics(), statistics);
            let used = runs(&bitmap.map(|free| !free));
            let again = Space::complement(64, used).unwrap();
            prop_assert_eq!(again.free_extents().collect::<Vec<_>>(), wanted);
        }
    }
}

#[test]
fn overlapping_and_outside_extents_are_refused() {
    let refusal = |used: &[Extent]| Space::complement(10, used.iter().copied()).unwrap_err().to_string();
    assert_eq!(
        refusal(&[extent(4, 3), extent(6, 1)]),
        "node map: extent is 1 units from 6, expected units from 7 on: earlier ones are in use"
    );
    assert_eq!(refusal(&[extent(8, 3)]), "node map: extent is 3 units from 8, expected some of 10 units");
    assert!(refusal(&[extent(u32::MAX, 3)]).contains("some of 10 units"));
}

#[test]
#[should_panic(expected = "free already")]
fn freeing_twice_panics() {
    let mut space = Space::new(10);
    let taken = space.take(4, 0).unwrap();
    space.give_back(&taken);
    space.give_back(&taken);
}

#[test]
fn runs_leave_the_larger_extents_whole() {
    let mut space = Space::complement(30, [extent(5, 1), extent(9, 1), extent(20, 1)]).unwrap();
    // Free: 0..5, 6..9, 10..20, 21..30.
    assert_eq!(space.take_run(3, 12, Fit::Smallest), Some(extent(12, 3)), "the units at the hint are free");
    assert_eq!(space.take_run(4, 9, Fit::Smallest), Some(extent(0, 4)), "too few units are free at the hint");
    assert_eq!(space.take_run(9, 0, Fit::Smallest), Some(extent(21, 9)));
    assert_eq!(space.take_run(6, 0, Fit::Smallest), None);
    assert_eq!(space.clone().take_run(2, 0, Fit::Largest), Some(extent(15, 2)));
    let left = [extent(4, 1), extent(6, 3), extent(10, 2), extent(15, 5)];
    assert_eq!(space.free_extents().collect::<Vec<_>>(), left);
}

#[test]
fn second_copies_prefer_the_other_half() {
    let mut space = Space::complement(30, [extent(5, 1), extent(9, 1), extent(20, 1)]).unwrap();
    // Free: 0..5, 6..9, 10..20, 21..30.
    let mut far = |units, from| space.take_far(units, &[extent(from, 1)], 4).unwrap();
    assert_eq!(far(2, 0), [extent(28, 2)]);
    assert_eq!(far(7, 9), [extent(21, 7)]);
    assert_eq!(far(2, 15), [extent(0, 2)]);
    assert_eq!(far(8, 0), [extent(12, 8)], "the other half has too few units");
    assert_eq!(far(5, 0), [extent(6, 3), extent(10, 2)], "no extent is large enough");
    assert_eq!(space.take_far(9, &[], 4), None);
}

#[test]
fn the_last_piece_uses_the_smallest_fit() {
    let mut space = Space::complement(30, [extent(5, 1), extent(9, 1), extent(20, 1)]).unwrap();
    // Free: 0..5, 6..9, 10..20, 21..30.
    let taken = space.take(12, 0).unwrap();
    assert_eq!(&taken[..], [extent(6, 2), extent(10, 10)]);
    assert_eq!(space.take(16, 0), None, "15 are free");
    assert_eq!(space.take_pieces(15, 0, 2), None, "they are in three pieces");
    assert_eq!(space.take_pieces(15, 0, 3).unwrap(), [extent(0, 5), extent(8, 1), extent(21, 9)]);
}

#[test]
fn kept_units_are_never_free() {
    let mut space = Space::complement(20, [extent(0, 4), extent(10, 2)]).unwrap();
    space.keep(vec![extent(11, 3), extent(2, 2), extent(12, 1)]);
    assert_eq!(space.free_extents().collect::<Vec<_>>(), [extent(4, 6), extent(14, 6)]);
    space.give_back(&[extent(0, 4), extent(10, 2)]);
    assert_eq!(space.free_extents().collect::<Vec<_>>(), [extent(0, 2), extent(4, 7), extent(14, 6)]);
    assert_eq!(space.statistics().free, 15);
}
