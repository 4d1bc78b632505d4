//! What free space can no longer hold: warnings as values.

use std::fmt;

use senesce_core::Bytes;
use serde::{Deserialize, Serialize};

use super::FreeSpaceFigures;

/// A size below which a largest free extent is a nuisance to every file system, bytes: the usual readahead, and the
/// largest extent of compressed Btrfs.
const SMALL_BYTES: u64 = 128 << 10;

/// What a warning is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarningLimits {
    /// Bytes of an XFS inode chunk, on XFS only; see [`crate::collect::collect_xfs_inode_chunk_bytes`].
    pub xfs_inode_chunk_bytes: Option<u64>,
    /// The natural transfer size of the device, bytes, if it is known.
    pub natural_transfer_bytes: Option<u64>,
}

/// Something that the free space is too little, or too scattered, for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FreeSpaceWarning {
    /// There is no free extent at all.
    NoFreeSpace,
    /// XFS cannot make a whole chunk of 64 inodes: it makes sparse chunks, or answers "no space" with space left.
    BelowXfsInodeChunk {
        /// The largest free extent, bytes.
        largest_bytes: u64,
        /// What a chunk needs, bytes.
        chunk_bytes: u64,
    },
    /// No extent of 128 KiB is left.
    Below128Kib {
        /// The largest free extent, bytes.
        largest_bytes: u64,
    },
    /// Whatever is written now will not be read at the device's full rate.
    BelowNaturalTransfer {
        /// The largest free extent, bytes.
        largest_bytes: u64,
        /// The natural transfer size, bytes.
        natural_transfer_bytes: u64,
    },
    /// Btrfs: the block groups for metadata are nearly full, and there is no space to make more of them, while those for
    /// data have room. The next writes, deletions among them, answer "no space".
    NoRoomForMetadata {
        /// What metadata can still take: free in their block groups, and what can become one, bytes.
        room_bytes: u64,
        /// What metadata take now, bytes.
        used_bytes: u64,
        /// What is free for data, bytes.
        data_free_bytes: u64,
    },
    /// Btrfs: the block groups for data are nearly full, and there is no space to make more of them, while those for
    /// metadata have room.
    NoRoomForData {
        /// What data can still take: free in their block groups, and what can become one, bytes.
        room_bytes: u64,
        /// What is free for metadata, bytes.
        metadata_free_bytes: u64,
    },
    /// The inodes, of which there is a fixed number, run out before the space.
    FewInodes {
        /// Free inodes.
        free: u64,
        /// All inodes.
        all: u64,
        /// Free space, bytes.
        free_bytes: u64,
    },
    /// Little is free.
    NearlyFull {
        /// Free space, bytes.
        free_bytes: u64,
        /// What the file system can hold, bytes.
        capacity_bytes: u64,
    },
}

impl fmt::Display for FreeSpaceWarning {
    /// A sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoFreeSpace => write!(f, "there is no free extent"),
            Self::BelowXfsInodeChunk { largest_bytes, chunk_bytes } => write!(
                f,
                "the largest free extent, {}, is below an XFS inode chunk of {}",
                Bytes(largest_bytes),
                Bytes(chunk_bytes)
            ),
            Self::Below128Kib { largest_bytes } => {
                write!(f, "the largest free extent, {}, is below 128 KiB", Bytes(largest_bytes))
            }
            Self::BelowNaturalTransfer { largest_bytes, natural_transfer_bytes } => write!(
                f,
                "the largest free extent, {}, is below the device's natural transfer size of {}",
                Bytes(largest_bytes),
                Bytes(natural_transfer_bytes)
            ),
            Self::NoRoomForMetadata { room_bytes, used_bytes, data_free_bytes } => write!(
                f,
                "\"no space\" is ahead though {} are free for data: metadata take {} and can take {} more",
                Bytes(data_free_bytes),
                Bytes(used_bytes),
                Bytes(room_bytes)
            ),
            Self::NoRoomForData { room_bytes, metadata_free_bytes } => write!(
                f,
                "\"no space\" is ahead though {} are free for metadata: data can take {} more",
                Bytes(metadata_free_bytes),
                Bytes(room_bytes)
            ),
            Self::FewInodes { free, all, free_bytes } => {
                write!(f, "\"no space\" is ahead though {} are free: {free} of {all} inodes are", Bytes(free_bytes))
            }
            Self::NearlyFull { free_bytes, capacity_bytes } => {
                write!(f, "only {} of {} are free", Bytes(free_bytes), Bytes(capacity_bytes))
            }
        }
    }
}

/// The warnings that free space deserves, the gravest first; none if there is nothing to warn of.
///
/// An extent exactly as large as a limit is large enough. Whether XFS finds a chunk's alignment in it is not looked at:
/// no warning is no promise.
pub fn compute_free_space_warnings(figures: &FreeSpaceFigures, limits: &WarningLimits) -> Vec<FreeSpaceWarning> {
    let largest_bytes = figures.largest_bytes;
    if figures.extents == 0 {
        return vec![FreeSpaceWarning::NoFreeSpace];
    }
    let mut warnings = Vec::new();
    if let Some(chunk_bytes) = limits.xfs_inode_chunk_bytes.filter(|limit| largest_bytes < *limit) {
        warnings.push(FreeSpaceWarning::BelowXfsInodeChunk { largest_bytes, chunk_bytes });
    }
    if largest_bytes < SMALL_BYTES {
        warnings.push(FreeSpaceWarning::Below128Kib { largest_bytes });
    }
    if let Some(natural_transfer_bytes) = limits.natural_transfer_bytes.filter(|limit| largest_bytes < *limit) {
        warnings.push(FreeSpaceWarning::BelowNaturalTransfer { largest_bytes, natural_transfer_bytes });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::score::compute_free_space;

    const LIMITS: WarningLimits =
        WarningLimits { xfs_inode_chunk_bytes: Some(32 << 10), natural_transfer_bytes: Some(4 << 20) };

    fn warnings(lengths: &[u64], limits: &WarningLimits) -> Vec<FreeSpaceWarning> {
        compute_free_space_warnings(&compute_free_space(lengths.iter().copied()), limits)
    }

    #[test]
    fn warnings_by_hand() {
        use FreeSpaceWarning as W;
        let kib = |n: u64| n << 10;
        assert_eq!(warnings(&[], &LIMITS), [W::NoFreeSpace]);
        let natural = |largest_bytes| W::BelowNaturalTransfer { largest_bytes, natural_transfer_bytes: 4 << 20 };
        assert_eq!(
            warnings(&[kib(4), kib(28)], &LIMITS),
            [
                W::BelowXfsInodeChunk { largest_bytes: kib(28), chunk_bytes: kib(32) },
                W::Below128Kib { largest_bytes: kib(28) },
                natural(kib(28)),
            ]
        );
        assert_eq!(warnings(&[kib(32)], &LIMITS), [W::Below128Kib { largest_bytes: kib(32) }, natural(kib(32))]);
        assert_eq!(warnings(&[kib(128)], &LIMITS), [natural(kib(128))]);
        assert_eq!(warnings(&[4 << 20], &LIMITS), []);
        assert_eq!(warnings(&[kib(28)], &WarningLimits::default()), [W::Below128Kib { largest_bytes: kib(28) }]);
        let text = warnings(&[kib(28)], &LIMITS)[0].to_string();
        assert_eq!(text, "the largest free extent, 28.00 KiB, is below an XFS inode chunk of 32.00 KiB");
    }

    proptest! {
        #[test]
        fn only_the_largest_extent_counts(mut lengths in prop::collection::vec(1u64..8 << 20, 1..20)) {
            let all = warnings(&lengths, &LIMITS);
            lengths.sort_unstable();
            prop_assert_eq!(&all, &warnings(&lengths[lengths.len() - 1..], &LIMITS));
            // A larger extent takes warnings away and adds none.
            lengths.push(lengths[lengths.len() - 1] * 2);
            prop_assert!(warnings(&lengths, &LIMITS).len() <= all.len());
        }
    }
}
