//! A donor in the longest of many free extents.
//!
//! A file system allocates near the directory of a file, not where free space is longest. On a
//! nearly full volume a donor then has hundreds of pieces, although longer free extents exist. So a
//! pool reserves several times the wanted space, the longest extents stay, and the others are free
//! again at once.

use rustix::io::Errno;
use senesce_core::Extent;

use super::{Donor, Skip, read_extents, sys};
use crate::{Tree, plan::Batch};

/// A donor is good enough if its pieces have this length on average, bytes. A disk reads that in
/// several times the time of a seek.
const GOOD_PIECE_BYTES: u64 = 8 << 20;
/// One part in this number of the free space stays for other programs.
const KEPT_SHARE: u64 = 8;
/// The pool reserves at most this multiple of the wanted space.
const MOST_TIMES: u64 = 16;

impl Donor {
    /// As [`Donor::reserve`]. If the space is in many pieces, the donor comes from a pool.
    pub(super) fn reserve_longest(tree: &Tree, batch: &Batch, bytes: u64) -> Result<Self, Skip> {
        let first = Self::reserve(tree, batch, bytes);
        let pieces = match &first {
            Ok(donor) if donor.pieces() <= bytes / GOOD_PIECE_BYTES => return first,
            Ok(donor) => donor.pieces(),
            Err(Skip::NoBetterSpace) => u64::MAX,
            Err(_) => return first,
        };
        // The pool needs the space of the first donor, too.
        drop(first);
        // The pool fails if the kernel cannot remove a range from a file.
        if let Ok(pooled) = Self::from_pool(tree, batch, bytes)
            && pooled.pieces() < pieces
        {
            return pooled.check(batch);
        }
        Self::reserve(tree, batch, bytes)
    }

    /// Reserves a pool, and keeps its longest extents.
    fn from_pool(tree: &Tree, batch: &Batch, bytes: u64) -> Result<Self, Skip> {
        let file = tree.create_unnamed(batch.parts.iter().map(|part| part.entry))?;
        // The blocks of earlier batches are free after a commit. XFS must first free the files
        // without a name, and `fstatvfs` starts that work.
        rustix::fs::fstatvfs(&file).map_err(Skip::of)?;
        rustix::fs::syncfs(&file).map_err(Skip::of)?;
        let space = rustix::fs::fstatvfs(&file).map_err(Skip::of)?;
        // Other programs may write meanwhile.
        let available = space.f_bavail.saturating_mul(space.f_frsize) / KEPT_SHARE * (KEPT_SHARE - 1);
        let mut wanted = bytes.saturating_mul(MOST_TIMES).min(available).max(bytes);
        while let Err(error) = sys::allocate(&file, wanted) {
            if error != Errno::NOSPC || wanted == bytes {
                return Err(Skip::of(error));
            }
            wanted = (wanted / 2).max(bytes);
        }
        let extents = read_extents(&file, tree)?;
        let kept = choose_longest(&extents, bytes);
        // Each cut costs time, and this number of pieces would be refused afterwards.
        if 2 * (kept.len() as u64 + batch.runs) > batch.pieces + 2 {
            return Err(Skip::NoBetterSpace);
        }
        let mut end = file.metadata().map_err(|error| Skip::io(&error))?.len();
        for extent in kept.iter().rev() {
            let kept_end = extent.logical + extent.length;
            sys::cut(&file, kept_end, end).map_err(Skip::of)?;
            end = extent.logical;
        }
        sys::cut(&file, 0, end).map_err(Skip::of)?;
        let extents = read_extents(&file, tree)?;
        Ok(Self { file, extents })
    }
}

/// The longest extents that together have `bytes`, in the order of the file. Of the last one only
/// the beginning counts. All, if they have less.
fn choose_longest(extents: &[Extent], bytes: u64) -> Vec<Extent> {
    let mut by_length: Vec<Extent> = join(extents);
    by_length.sort_by_key(|extent| std::cmp::Reverse(extent.length));
    let mut left = bytes;
    let mut kept = Vec::new();
    for extent in by_length {
        if left == 0 {
            break;
        }
        let length = extent.length.min(left);
        left -= length;
        kept.push(Extent { length, ..extent });
    }
    kept.sort_unstable_by_key(|extent| extent.logical);
    kept
}

/// Joins extents that follow each other in the file and on the device.
fn join(extents: &[Extent]) -> Vec<Extent> {
    let mut joined: Vec<Extent> = Vec::new();
    for extent in extents {
        match joined.last_mut() {
            Some(last) if last.logical + last.length == extent.logical && last.end() == extent.physical => {
                last.length += extent.length;
            }
            _ => joined.push(*extent),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_longest_extents_are_chosen(
            parts in prop::collection::vec((1u64..100, 0u64..3), 1..40),
            wanted in 1u64..2000,
        ) {
            let (mut logical, mut physical) = (0, 0);
            let extents: Vec<Extent> = parts.iter().map(|&(length, gap)| {
                physical += gap;
                let extent = Extent { logical, physical, length };
                logical += length;
                physical += length;
                extent
            }).collect();
            let kept = choose_longest(&extents, wanted);
            prop_assert_eq!(kept.iter().map(|extent| extent.length).sum::<u64>(), wanted.min(logical));
            prop_assert!(kept.windows(2).all(|pair| pair[0].logical + pair[0].length <= pair[1].logical));
            // One extent at most is cut. None that is left out is longer than one that stays whole.
            let all = join(&extents);
            let is_whole = |extent: &&Extent| all.contains(extent);
            let shortest = kept.iter().filter(is_whole).map(|extent| extent.length).min().unwrap_or(u64::MAX);
            prop_assert!(kept.iter().filter(|extent| !is_whole(extent)).count() <= 1);
            let is_out = |extent: &&Extent| kept.iter().all(|kept| kept.logical != extent.logical);
            prop_assert!(all.iter().filter(is_out).all(|extent| extent.length <= shortest));
        }
    }
}
