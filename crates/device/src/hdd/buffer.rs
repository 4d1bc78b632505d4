//! The memory of the drive: data that was read, and data that is written but not yet on the
//! platters.

use std::collections::BTreeMap;

/// Disjoint runs of sectors that were read. If the memory is full, the runs that were not used for
/// the longest time are dropped.
#[derive(Clone, Debug, Default)]
pub struct ReadBuffer {
    /// The end and the last use of each run, by its start.
    runs: BTreeMap<u64, (u64, u64)>,
    /// The start of each run, by its last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    sectors: u64,
    capacity_sectors: u64,
}

impl ReadBuffer {
    /// A memory of `capacity_sectors` sectors; with 0 it keeps nothing.
    pub fn new(capacity_sectors: u64) -> Self {
        Self { capacity_sectors, ..Self::default() }
    }

    /// Keeps a run. If it does not fit, keeps its last sectors.
    pub fn insert(&mut self, start: u64, end: u64) {
        let start = start.max(end.saturating_sub(self.capacity_sectors));
        if start >= end {
            return;
        }
        self.remove(start, end);
        self.uses += 1;
        self.put(start, end, self.uses);
        while self.sectors > self.capacity_sectors
            && let Some((_, oldest)) = self.by_use.pop_first()
            && let Some((end, _)) = self.runs.remove(&oldest)
        {
            self.sectors -= end - oldest;
        }
    }

    /// Whether one run holds all these sectors. This counts as a use of the run.
    pub fn holds(&mut self, start: u64, end: u64) -> bool {
        let Some((&first, run)) = self.runs.range_mut(..=start).next_back().filter(|(_, run)| end <= run.0) else {
            return false;
        };
        self.uses += 1;
        self.by_use.remove(&std::mem::replace(&mut run.1, self.uses));
        self.by_use.insert(self.uses, first);
        true
    }

    /// Forgets these sectors.
    pub fn remove(&mut self, start: u64, end: u64) {
        while let Some((&s, &(e, used))) = self.runs.range(..end).next_back().filter(|&(_, &(e, _))| start < e) {
            self.runs.remove(&s);
            self.by_use.remove(&used);
            self.sectors -= e - s;
            if s < start {
                self.put(s, start, used);
            }
            if end < e {
                // The parts of a run need different times of use.
                self.uses += 1;
                self.put(end, e, self.uses);
            }
        }
    }

    fn put(&mut self, start: u64, end: u64, used: u64) {
        self.runs.insert(start, (end, used));
        self.by_use.insert(used, start);
        self.sectors += end - start;
    }
}

/// Sectors that are acknowledged but not yet on the platters: disjoint runs that do not touch.
#[derive(Clone, Debug, Default)]
pub struct DirtySectors {
    runs: BTreeMap<u64, u64>,
    sectors: u64,
}

impl DirtySectors {
    /// The number of sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether there are no sectors.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run, and merges it with runs that it overlaps or touches.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&s, &e)) = self.runs.range(..=end).next_back().filter(|&(_, &e)| e >= start) {
            self.runs.remove(&s);
            self.sectors -= e - s;
            (start, end) = (start.min(s), end.max(e));
        }
        self.runs.insert(start, end);
        self.sectors += end - start;
    }

    /// Removes these sectors.
    pub fn remove(&mut self, start: u64, end: u64) {
        while let Some((s, e)) = self.first_overlap(start, end) {
            self.runs.remove(&s);
            self.sectors -= e - s;
            for (s, e) in [(s, e.min(start)), (s.max(end), e)] {
                if s < e {
                    self.runs.insert(s, e);
                    self.sectors += e - s;
                }
            }
        }
    }

    /// A run that overlaps these sectors. `None` if there is none.
    pub fn first_overlap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (&s, &e) = self.runs.range(..end).next_back()?;
        (start < e && start < end).then_some((s, e))
    }

    /// Whether one run holds all these sectors.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        self.runs.range(..=start).next_back().is_some_and(|(_, &e)| end <= e)
    }

    /// The next run for an arm that sweeps inwards: the first one that starts at or after `sector`,
    /// otherwise the first of all.
    pub fn next_from(&self, sector: u64) -> Option<(u64, u64)> {
        self.runs.range(sector..).next().or_else(|| self.runs.iter().next()).map(|(&s, &e)| (s, e))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn oldest_run_is_dropped_first() {
        let mut buffer = ReadBuffer::new(20);
        buffer.insert(0, 10);
        buffer.insert(100, 110);
        assert!(buffer.holds(0, 10), "which makes it the youngest");
        buffer.insert(200, 205);
        assert!(buffer.holds(0, 10) && !buffer.holds(100, 101) && buffer.holds(201, 205));
        buffer.insert(1000, 2000);
        assert!(buffer.holds(1980, 2000) && !buffer.holds(1979, 2000), "the end of a long run is kept");
    }

    proptest! {
        #[test]
        fn dirty_sectors_are_a_set(ops in prop::collection::vec((any::<bool>(), 0u64..200, 0u64..40), 0..60)) {
            let (mut runs, mut model) = (DirtySectors::default(), BTreeSet::new());
            for (insert, start, length) in ops {
                let end = start + length;
                if insert {
                    runs.insert(start, end);
                    model.extend(start..end);
                } else {
                    runs.remove(start, end);
                    model.retain(|s| !(start..end).contains(s));
                }
                prop_assert_eq!(runs.sectors(), model.len() as u64);
                let (probe, probe_end) = (start.saturating_sub(7), end + 3);
                let wanted = (probe..probe_end).any(|s| model.contains(&s));
                prop_assert_eq!(runs.first_overlap(probe, probe_end).is_some(), wanted);
                if length > 0 {
                    prop_assert_eq!(runs.holds(start, end), (start..end).all(|s| model.contains(&s)));
                }
            }
            // Runs are as long as possible: a run starts exactly where the previous sector is
            // missing.
            let starts: Vec<u64> = runs.runs.keys().copied().collect();
            let wanted: Vec<u64> =
                model.iter().copied().filter(|&s| s == 0 || !model.contains(&(s - 1))).collect();
            prop_assert_eq!(starts, wanted);
        }

        #[test]
        fn read_buffer_holds_only_read_unremoved_sectors(
            ops in prop::collection::vec((any::<bool>(), 0u64..200, 1u64..40), 0..60),
        ) {
            let (mut buffer, mut model) = (ReadBuffer::new(50), BTreeSet::new());
            for (insert, start, length) in ops {
                if insert {
                    buffer.insert(start, start + length);
                    prop_assert!(buffer.holds(start, start + length));
                    model.extend(start..start + length);
                } else {
                    buffer.remove(start, start + length);
                    model.retain(|s| !(start..start + length).contains(s));
                }
                prop_assert!(buffer.sectors <= 50);
                prop_assert_eq!(buffer.sectors, buffer.runs.iter().map(|(s, (e, _))| e - s).sum::<u64>());
                prop_assert_eq!(buffer.runs.len(), buffer.by_use.len());
                for (&s, &(e, used)) in &buffer.runs {
                    prop_assert_eq!(buffer.by_use.get(&used), Some(&s));
                    prop_assert!((s..e).all(|sector| model.contains(&sector)));
                }
            }
        }
    }
}
