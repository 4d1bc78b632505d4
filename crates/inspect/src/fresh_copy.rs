//! Where the files of a fresh copy would lie.

/// An entry of the tree, by its number in the order in which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedEntry {
    /// The entry's directory; the root is its own.
    pub parent: u32,
    /// Bytes that it occupies in the copy.
    pub bytes: u64,
}

/// Where each entry of a copy begins, bytes from the start: one behind the other in the order in which the copy makes
/// them. A directory's entries are made in the order in which they are read, or shuffled (always in the same way).
///
/// In: entries in the order in which they are read, each behind its directory. Cost: linear, but for sorting each
/// directory's entries if they are shuffled.
pub(crate) fn plan_fresh_copy(entries: &[CopiedEntry], is_shuffled: bool) -> Vec<u64> {
    // The entries of each directory, one list behind the other.
    let mut first = vec![0u32; entries.len() + 1];
    for (number, entry) in entries.iter().enumerate().skip(1) {
        debug_assert!((entry.parent as usize) < number);
        first[entry.parent as usize + 1] += 1;
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut filled = first.clone();
    let mut children = vec![0u32; entries.len()];
    for (number, entry) in entries.iter().enumerate().skip(1) {
        let at = &mut filled[entry.parent as usize];
        children[*at as usize] = number as u32;
        *at += 1;
    }
    if is_shuffled {
        for range in first.windows(2) {
            children[range[0] as usize..range[1] as usize].sort_by_key(|&number| mix(number));
        }
    }
    let mut starts = vec![0; entries.len()];
    let mut next_bytes = 0;
    let mut open: Vec<u32> = if entries.is_empty() { Vec::new() } else { vec![0] };
    while let Some(number) = open.pop() {
        starts[number as usize] = next_bytes;
        next_bytes += entries[number as usize].bytes;
        let of = first[number as usize] as usize..first[number as usize + 1] as usize;
        open.extend(children[of].iter().rev());
    }
    starts
}

/// A number that looks random and belongs to this one (the finish of splitmix64).
fn mix(number: u32) -> u64 {
    let mut hash = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(parent: u32, bytes: u64) -> CopiedEntry {
        CopiedEntry { parent, bytes }
    }

    #[test]
    fn a_copy_makes_a_directory_s_content_before_what_comes_behind_it() {
        // root, a/, a/x, b, a/y: read in this order only if `b` came between; the copy keeps `a` together.
        let entries = [entry(0, 4), entry(0, 4), entry(1, 10), entry(1, 20), entry(0, 7)];
        assert_eq!(plan_fresh_copy(&entries, false), [0, 4, 8, 18, 38]);
    }

    proptest! {
        #[test]
        fn no_entry_lies_on_another_and_directories_stay_together(
            shape in prop::collection::vec((any::<prop::sample::Index>(), 0u64..100), 1..60),
            is_shuffled: bool,
        ) {
            let entries: Vec<CopiedEntry> = shape
                .iter()
                .enumerate()
                .map(|(number, (parent, bytes))| entry(if number == 0 { 0 } else { parent.index(number) as u32 }, *bytes))
                .collect();
            let starts = plan_fresh_copy(&entries, is_shuffled);
            let mut by_place: Vec<usize> = (0..entries.len()).collect();
            by_place.sort_by_key(|&number| (starts[number], entries[number].bytes > 0, number));
            let mut next = 0;
            for number in by_place {
                prop_assert_eq!(starts[number], next);
                next += entries[number].bytes;
            }
            for (number, entry) in entries.iter().enumerate().skip(1) {
                prop_assert!(starts[number] >= starts[entry.parent as usize], "a directory is made before its entries");
            }
        }
    }
}
