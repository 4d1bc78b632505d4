//! A shared data path: a channel or the link.

use std::collections::BTreeMap;

use senesce_core::Nanos;

/// The reserved times of a lane.
///
/// A page that waits for its die does not block others: each transfer gets the first gap that is
/// long enough.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// End of each reserved time, by its start.
    taken: BTreeMap<u64, u64>,
}

impl Lane {
    /// Reserves `time` in the first gap from `at` on; returns its end. Later calls never ask for
    /// times before `now`.
    pub fn reserve(&mut self, now: Nanos, at: Nanos, time: u64) -> Nanos {
        while let Some(first) = self.taken.first_entry()
            && *first.get() <= now.0
        {
            first.remove();
        }
        let mut start = at.0;
        // Starts with the last reservation that starts at or before `at`: earlier ones have ended.
        let first = self.taken.range(..=start).next_back().map_or(start, |(&begin, _)| begin);
        for (&begin, &end) in self.taken.range(first..) {
            if begin >= start + time {
                break;
            }
            start = start.max(end);
        }
        let mut end = start + time;
        if let Some(next) = self.taken.remove(&end) {
            end = next;
        }
        match self.taken.range_mut(..start).next_back() {
            Some((_, before)) if *before == start => *before = end,
            _ if time > 0 => drop(self.taken.insert(start, end)),
            _ => {}
        }
        Nanos(start + time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reservations_get_the_first_gap_without_overlap(
            asked in prop::collection::vec((0u64..8, 0u64..60, 1u64..10), 1..60),
        ) {
            let (mut lane, mut now, mut used) = (Lane::default(), 0, vec![false; 2000]);
            for (later, ahead, time) in asked {
                now += later;
                let end = lane.reserve(Nanos(now), Nanos(now + ahead), time).0;
                let free = |start: u64| (start..start + time).all(|at| !used[at as usize]);
                let want = (now + ahead..).find(|&start| free(start)).unwrap();
                prop_assert_eq!(end - time, want);
                (want..end).for_each(|at| used[at as usize] = true);
            }
        }
    }
}
