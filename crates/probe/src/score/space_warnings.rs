//! Warnings about free space, as values.

use std::fmt;

use schemars::JsonSchema;
use senesce_core::Bytes;
use serde::{Deserialize, Serialize};

use super::FreeSpaceFigures;

/// If the largest free extent is below this, every file system suffers, bytes: it is the default
/// readahead, and the largest extent of compressed Btrfs.
const SMALL_BYTES: u64 = 128 << 10;

/// The limits of the warnings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarningLimits {
    /// Bytes of an XFS inode chunk, on XFS only; see
    /// [`crate::collect::collect_xfs_inode_chunk_bytes`].
    pub xfs_inode_chunk_bytes: Option<u64>,
    /// The natural transfer size of the device, bytes, if it is known.
    pub natural_transfer_bytes: Option<u64>,
}

/// A warning that free space is too small or too fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FreeSpaceWarning {
    /// There is no free extent.
    NoFreeSpace,
    /// XFS cannot make a whole chunk of 64 inodes. It makes sparse chunks, or returns "no space"
    /// although space is left.
    BelowXfsInodeChunk {
        /// The largest free extent, bytes.
        largest_bytes: u64,
        /// The size of a chunk, bytes.
        chunk_bytes: u64,
    },
    /// No extent of 128 KiB is left.
    Below128Kib {
        /// The largest free extent, bytes.
        largest_bytes: u64,
    },
    /// New data will not be read at the device's full rate.
    BelowNaturalTransfer {
        /// The largest free extent, bytes.
        largest_bytes: u64,
        /// The natural transfer size, bytes.
        natural_transfer_bytes: u64,
    },
    /// Btrfs: the block groups for metadata are nearly full, and no space is left for more of them,
    /// while those for data have space. The next writes, including deletions, return "no space".
    NoRoomForMetadata {
        /// Space left for metadata: free in its block groups, and convertible to one, bytes.
        room_bytes: u64,
        /// Space used by metadata, bytes.
        used_bytes: u64,
        /// Free space for data, bytes.
        data_free_bytes: u64,
    },
    /// Btrfs: the block groups for data are nearly full, and no space is left for more of them,
    /// while those for metadata have space.
    NoRoomForData {
        /// Space left for data: free in its block groups, and convertible to one, bytes.
        room_bytes: u64,
        /// Free space for metadata, bytes.
        metadata_free_bytes: u64,
    },
    /// The fixed number of inodes runs out before the space.
    FewInodes {
        /// Free inodes.
        free: u64,
        /// All inodes.
        all: u64,
        /// Free space, bytes.
        free_bytes: u64,
    },
    /// Little space is free.
    NearlyFull {
        /// Free space, bytes.
        free_bytes: u64,
        /// The capacity of the file system, bytes.
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
                "\"no space\" is ahead although {} are free for data: metadata uses {} and can grow by {}",
                Bytes(data_free_bytes),
                Bytes(used_bytes),
                Bytes(room_bytes)
            ),
            Self::NoRoomForData { room_bytes, metadata_free_bytes } => write!(
                f,
                "\"no space\" is ahead although {} are free for metadata: data can grow by {}",
                Bytes(metadata_free_bytes),
                Bytes(room_bytes)
            ),
            Self::FewInodes { free, all, free_bytes } => {
                write!(
                    f,
                    "\"no space\" is ahead although {} are free: only {free} of {all} inodes are free",
                    Bytes(free_bytes)
                )
            }
            Self::NearlyFull { free_bytes, capacity_bytes } => {
                write!(f, "only {} of {} are free", Bytes(free_bytes), Bytes(capacity_bytes))
            }
        }
    }
}

/// The warnings for free space, the most severe first; empty if there are none.
///
/// An extent exactly as large as a limit is large enough. The check ignores the alignment of XFS
/// chunks: the absence of a warning is no guarantee.
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
    fn warnings_depend_on_the_largest_extent() {
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
        assert_eq!(text, "the largest free extent, 28 KiB, is below an XFS inode chunk of 32 KiB");
    }

    proptest! {
        #[test]
        fn only_the_largest_extent_counts(mut lengths in prop::collection::vec(1u64..8 << 20, 1..20)) {
            let all = warnings(&lengths, &LIMITS);
            lengths.sort_unstable();
            prop_assert_eq!(&all, &warnings(&lengths[lengths.len() - 1..], &LIMITS));
            // A larger extent removes warnings and adds none.
            lengths.push(lengths[lengths.len() - 1] * 2);
            prop_assert!(warnings(&lengths, &LIMITS).len() <= all.len());
        }
    }
}
