//! Labels, the cookies of directory listings. A new name receives a *label*, a number that it
//! keeps. The order of names is also the order of their labels.
//!
//! Each name owns the labels from its *floor* to its own; the directory owns those after the last
//! name. So a new name needs only its successor, and takes a part of its labels. The part is half,
//! or less where names are created in ascending or descending order. The successor of a removed
//! name receives its labels. A listing continues after a label, even if its name was removed.
//!
//! No numbering without renumbering can always keep the order. If no label is left, a name becomes
//! *unordered*: it receives a number above all labels, and is listed after all names.

use std::collections::BTreeMap;

/// The limit of labels; the numbers of unordered names start here.
pub const LABELS: u64 = 1 << 61;

/// The number of recent labels that are remembered to detect runs.
const RECENT: usize = 8;
/// The share of the free labels that a new name takes: 1 / 2^n. The first number is n outside a
/// run; each name of a run adds 1, up to the second number. `END_BITS` are for names after the last
/// one, where long runs occur.
const BITS: (u32, u32) = (1, 14);
const END_BITS: (u32, u32) = (6, 20);
/// The most places that are remembered for a directory.
const PLACES: usize = 1024;

/// The state of a directory's labels in memory. It is optional.
#[derive(Debug, Default)]
pub struct Labels {
    recent: [Recent; RECENT],
    /// Known names by label. A name with a greater label is greater, and vice versa.
    places: BTreeMap<u64, Vec<u8>>,
}

/// A recent label, and the length of the ascending or descending run up to it.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    label: u64,
    behind: u32,
    before: u32,
}

impl Labels {
    /// The lengths of the ascending and the descending run that a name between these labels would
    /// continue.
    fn run(&self, floor: u64, next: u64) -> (u32, u32) {
        let of = |label| self.recent.iter().find(|recent| label > 0 && recent.label == label);
        (of(floor).map_or(0, |recent| recent.behind + 1), of(next).map_or(0, |recent| recent.before + 1))
    }

    /// Chooses a label between two, for a name whose successor has the label `next`, or [`LABELS`]
    /// if there is none. `None` if no label is left.
    pub fn choose(&self, floor: u64, next: u64) -> Option<u64> {
        let free = next.checked_sub(floor).filter(|&free| free >= 2)?;
        let (least, most) = if next == LABELS { END_BITS } else { BITS };
        let part = |names: u32| (free >> (least + names).min(most)).max(1);
        let (behind, before) = self.run(floor, next);
        Some(if before > behind { next - part(before) } else { floor + part(behind) })
    }

    /// Notes a new name with this label between two. Forgets places that contradict it.
    pub fn note_new(&mut self, label: u64, (floor, next): (u64, u64), name: &[u8]) {
        if label >= LABELS {
            return;
        }
        let (behind, before) = self.run(floor, next);
        let continued = self.recent.iter().position(|recent| [floor, next].contains(&recent.label) && recent.label > 0);
        self.recent[..=continued.unwrap_or(RECENT - 1)].rotate_right(1);
        self.recent[0] =
            if before > behind { Recent { label, behind: 0, before } } else { Recent { label, behind, before: 0 } };
        while let Some((&below, _)) = self.places.range(..label).next_back().filter(|(_, place)| &place[..] >= name) {
            self.places.remove(&below);
        }
        while let Some((&above, _)) = self.places.range(label..).next().filter(|(_, place)| &place[..] < name) {
            self.places.remove(&above);
        }
    }

    /// Notes the place of a name with this label.
    pub fn note_place(&mut self, label: u64, name: &[u8]) {
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        self.places.insert(label, name.to_vec());
    }

    /// A known name that is before all names with a greater label; `None` if there is none.
    pub fn place(&self, label: u64) -> Option<&[u8]> {
        self.places.range(..=label).next_back().map(|(_, name)| &name[..])
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::{Rng, Seed};

    use super::*;

    /// Labels names that are created in this order; returns the number of unordered ones.
    fn label_all(order: impl Iterator<Item = u64>) -> u64 {
        let mut labels = Labels::default();
        let mut names: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let (mut last, mut unordered) = (0, 0);
        for name in order {
            let next = names.range(name..).next().map(|(next, place)| (*next, *place));
            let (floor, above) = next.map_or((last, LABELS), |(_, place)| place);
            let Some(label) = labels.choose(floor, above) else {
                unordered += 1;
                continue;
            };
            assert!(floor < label && label < above);
            match next {
                Some((next, (_, above))) => drop(names.insert(next, (label, above))),
                None => last = label,
            }
            names.insert(name, (floor, label));
            labels.note_new(label, (floor, above), &name.to_be_bytes());
        }
        let in_order: Vec<u64> = names.values().map(|(_, label)| *label).collect();
        assert!(in_order.is_sorted());
        unordered
    }

    #[test]
    fn common_orders_of_names_do_not_exhaust_labels() {
        assert_eq!(label_all(0..200_000), 0);
        assert_eq!(label_all((0..100_000).rev()), 0);
        assert_eq!(label_all((0..100_000).map(|n| n << 32 | (n % 2) << 60)), 0, "two concurrent runs");
        assert_eq!(label_all(std::iter::once(u64::MAX).chain(0..100_000)), 0, "a run before a name");
        let mut rng = Rng::for_purpose(Seed(1), "labels");
        assert_eq!(label_all((0..100_000).map(|_| rng.next_u64())), 0);
        let mut ends = (0, u64::MAX);
        let inwards = (0..200).map(|n| {
            ends = if n % 2 == 0 { (ends.0 + 1, ends.1) } else { (ends.0, ends.1 - 1) };
            if n % 2 == 0 { ends.0 } else { ends.1 }
        });
        assert!(label_all(inwards) < 200, "this order exhausts labels, which is harmless");
    }

    #[test]
    fn outdated_places_are_forgotten() {
        let mut labels = Labels::default();
        labels.note_place(10, b"c");
        labels.note_place(20, b"f");
        labels.note_place(30, b"k");
        assert_eq!(labels.place(9), None);
        assert_eq!(labels.place(25), Some(&b"f"[..]));
        labels.note_new(25, (20, 30), b"e"); // f was removed, and its labels went to k
        assert_eq!(labels.place(25), Some(&b"c"[..]));
        assert_eq!(labels.place(30), Some(&b"k"[..]));
        labels.note_new(29, (25, LABELS), b"z"); // and so was k
        assert_eq!(labels.place(30), Some(&b"c"[..]));
    }
}
