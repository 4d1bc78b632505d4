//! Cookies: a name gets a *label* when it is made, a number that it keeps, and names are listed in their order as well as in
//! that of their labels.
//!
//! Each name owns the labels from its *floor* to its own, and what lies behind the last name belongs to the directory; so a
//! new name needs to know the name behind it alone, from whose labels it takes a part: half, or little where names are
//! made in their order or against it. What a removed name had goes to the name behind it. A reading goes on at a label, whether the
//! name that had it is still there or not.
//!
//! No numbering that never changes can always keep the order. Where no label is left, a name becomes *unordered*: it gets
//! a number above all labels and is listed behind all names.

use std::collections::BTreeMap;

/// Labels are below this one; numbers of unordered names begin with it.
pub const LABELS: u64 = 1 << 61;

/// How many of the last labels are remembered, to know runs by.
const RECENT: usize = 8;
/// What a name takes of the labels that are free: a part in 2 to the power of this; in a run that much more that it has
/// names, up to so much. Behind the last name are the long runs.
const BITS: (u32, u32) = (1, 14);
const END_BITS: (u32, u32) = (6, 20);
/// Places that are remembered for a directory, at most.
const PLACES: usize = 1024;

/// What is in memory of a directory's labels. None of it is needed.
#[derive(Debug, Default)]
pub struct Labels {
    recent: [Recent; RECENT],
    /// Where labels are in the order of names: what has a greater label has a greater name, and the other way about.
    places: BTreeMap<u64, Vec<u8>>,
}

/// A label given lately, and how many names came one behind (or before) the other up to it.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    label: u64,
    behind: u32,
    before: u32,
}

impl Labels {
    /// The names that would be made in a row with one between these labels: one behind the other, one before the other.
    fn run(&self, floor: u64, next: u64) -> (u32, u32) {
        let of = |label| self.recent.iter().find(|recent| label > 0 && recent.label == label);
        (of(floor).map_or(0, |recent| recent.behind + 1), of(next).map_or(0, |recent| recent.before + 1))
    }

    /// A label between two, for a name whose next one has the second (or there is none, then it is [`LABELS`]). Nothing if
    /// none is left.
    pub fn choose(&self, floor: u64, next: u64) -> Option<u64> {
        let free = next.checked_sub(floor).filter(|&free| free >= 2)?;
        let (least, most) = if next == LABELS { END_BITS } else { BITS };
        let part = |names: u32| (free >> (least + names).min(most)).max(1);
        let (behind, before) = self.run(floor, next);
        Some(if before > behind { next - part(before) } else { floor + part(behind) })
    }

    /// A name was made with this label between two: what is remembered and no longer true is forgotten.
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

    /// A name with this label is there.
    pub fn note_place(&mut self, label: u64, name: &[u8]) {
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        self.places.insert(label, name.to_vec());
    }

    /// A name that all names with a greater label come behind; nothing if none is known.
    pub fn place(&self, label: u64) -> Option<&[u8]> {
        self.places.range(..=label).next_back().map(|(_, name)| &name[..])
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::{Rng, Seed};

    use super::*;

    /// Gives names labels, in this order; what had none left is counted.
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
    fn labels_last_for_the_orders_in_which_names_are_made() {
        assert_eq!(label_all(0..200_000), 0);
        assert_eq!(label_all((0..100_000).rev()), 0);
        assert_eq!(label_all((0..100_000).map(|n| n << 32 | (n % 2) << 60)), 0, "two runs at once");
        assert_eq!(label_all(std::iter::once(u64::MAX).chain(0..100_000)), 0, "a run before a name");
        let mut rng = Rng::for_purpose(Seed(1), "labels");
        assert_eq!(label_all((0..100_000).map(|_| rng.next_u64())), 0);
        let mut ends = (0, u64::MAX);
        let inwards = (0..200).map(|n| {
            ends = if n % 2 == 0 { (ends.0 + 1, ends.1) } else { (ends.0, ends.1 - 1) };
            if n % 2 == 0 { ends.0 } else { ends.1 }
        });
        assert!(label_all(inwards) < 200, "against this order nothing helps, but it does no harm");
    }

    #[test]
    fn places_that_are_no_longer_true_are_forgotten() {
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
