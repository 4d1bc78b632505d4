//! A heap of the allocation areas of a RAID group, with most free blocks first.
//!
//! An area that was not counted is ordered by the most free blocks that it can have. So if the top
//! area was counted, it has the best score. If not, it has to be counted next.

use std::{cmp::Reverse, collections::BinaryHeap};

/// The known score of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub number: u32,
    /// Allocatable blocks; an upper bound if the area was not counted.
    pub free: u64,
    pub counted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    free: u64,
    counted: bool,
    /// The position in the heap.
    at: u32,
}

/// A binary heap that knows the position of every area, so that scores can change. Areas with equal
/// scores are in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AreaHeap {
    areas: Vec<Entry>,
    /// Numbers of areas; none is better than its parent in the heap.
    order: Vec<u32>,
    /// Free blocks of all areas together.
    free: u64,
}

impl AreaHeap {
    /// Areas 0, 1, … with their free blocks, and whether these were counted.
    ///
    /// Cost: linear.
    pub fn new(areas: impl Iterator<Item = (u64, bool)>) -> Self {
        let areas: Vec<Entry> = (0..).zip(areas).map(|(at, (free, counted))| Entry { free, counted, at }).collect();
        let free = areas.iter().map(|area| area.free).sum();
        let mut heap = Self { order: (0..areas.len() as u32).collect(), areas, free };
        for at in (0..heap.order.len() / 2).rev() {
            heap.sink(at);
        }
        heap
    }

    /// Free blocks of all areas; of uncounted areas, the upper bound.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// The number of areas.
    pub fn len(&self) -> usize {
        self.areas.len()
    }

    /// The score of an area; `None` beyond the end.
    pub fn get(&self, number: u32) -> Option<Area> {
        let Entry { free, counted, .. } = *self.areas.get(number as usize)?;
        Some(Area { number, free, counted })
    }

    /// All areas, by their numbers.
    pub fn areas(&self) -> impl Iterator<Item = Area> + '_ {
        (0..).zip(&self.areas).map(|(number, entry)| Area { number, free: entry.free, counted: entry.counted })
    }

    /// The first area.
    pub fn top(&self) -> Option<Area> {
        self.get(*self.order.first()?)
    }

    /// The first areas, in order.
    ///
    /// Cost: n log n for n areas, whatever the size of the heap.
    pub fn first(&self, most: usize) -> Vec<Area> {
        let mut frontier: BinaryHeap<((u64, Reverse<u32>), usize)> = BinaryHeap::new();
        let mut first = Vec::new();
        frontier.extend((!self.order.is_empty()).then(|| (self.key(0), 0)));
        while let Some((_, at)) = frontier.pop().filter(|_| first.len() < most) {
            first.extend(self.get(self.order[at]));
            frontier.extend(
                [2 * at + 1, 2 * at + 2]
                    .map(|below| (below, self.order.get(below)))
                    .into_iter()
                    .filter_map(|(below, number)| number.map(|_| (self.key(below), below))),
            );
        }
        first
    }

    /// Sets the count of an area.
    pub fn set(&mut self, number: u32, free: u64) {
        if let Some(entry) = self.areas.get_mut(number as usize) {
            entry.counted = true;
            self.change(number, free);
        }
    }

    /// Notes that a block of an area can be allocated.
    pub fn add(&mut self, number: u32) {
        if let Some(area) = self.get(number) {
            self.change(number, area.free + 1);
        }
    }

    /// Notes that a block of an area was allocated. Returns whether the area had a free one.
    #[must_use]
    pub fn remove(&mut self, number: u32) -> bool {
        let free = self.get(number).and_then(|area| area.free.checked_sub(1));
        free.map(|free| self.change(number, free)).is_some()
    }

    fn change(&mut self, number: u32, free: u64) {
        let entry = &mut self.areas[number as usize];
        let (at, old) = (entry.at as usize, std::mem::replace(&mut entry.free, free));
        self.free = self.free - old + free;
        if free > old {
            self.rise(at);
        } else {
            self.sink(at);
        }
    }

    fn key(&self, at: usize) -> (u64, Reverse<u32>) {
        let number = self.order[at];
        (self.areas[number as usize].free, Reverse(number))
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.order.swap(one, other);
        for at in [one, other] {
            self.areas[self.order[at] as usize].at = at as u32;
        }
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.key(at) > self.key((at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let below = [2 * at + 1, 2 * at + 2].into_iter().filter(|&below| below < self.order.len());
            let Some(best) = below.max_by_key(|&below| self.key(below)) else { return };
            if self.key(best) < self.key(at) {
                return;
            }
            self.swap(at, best);
            at = best;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Change {
        Add(u32),
        Remove(u32),
        Set(u32, u64),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            (0..40u32).prop_map(Change::Add),
            (0..40u32).prop_map(Change::Remove),
            (0..40u32, 0..9u64).prop_map(|(number, free)| Change::Set(number, free)),
        ];
        prop::collection::vec(change, 0..200)
    }

    proptest! {
        #[test]
        fn areas_are_ordered_like_a_sorted_list(
            start in prop::collection::vec((0..9u64, any::<bool>()), 0..33),
            changes in changes(),
        ) {
            let mut heap = AreaHeap::new(start.iter().copied());
            let mut model = start;
            for change in changes {
                match change {
                    Change::Add(number) => {
                        heap.add(number);
                        model.get_mut(number as usize).into_iter().for_each(|area| area.0 += 1);
                    }
                    Change::Remove(number) => {
                        let had = model.get(number as usize).is_some_and(|area| area.0 > 0);
                        prop_assert_eq!(heap.remove(number), had);
                        model.get_mut(number as usize).into_iter().for_each(|area| area.0 = area.0.saturating_sub(1));
                    }
                    Change::Set(number, free) => {
                        heap.set(number, free);
                        model.get_mut(number as usize).into_iter().for_each(|area| *area = (free, true));
                    }
                }
                let area = |(number, &(free, counted))| Area { number, free, counted };
                let mut sorted: Vec<Area> = (0..).zip(&model).map(area).collect();
                prop_assert_eq!(heap.areas().collect::<Vec<_>>(), sorted.clone());
                sorted.sort_by_key(|area| (Reverse(area.free), area.number));
                prop_assert_eq!(heap.free(), model.iter().map(|area| area.0).sum::<u64>());
                prop_assert_eq!(heap.top(), sorted.first().copied());
                prop_assert_eq!(heap.first(7), sorted[..sorted.len().min(7)].to_vec());
            }
            prop_assert_eq!(heap.first(usize::MAX).len(), heap.len());
        }
    }
}
