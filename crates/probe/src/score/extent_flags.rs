//! Extents by the flags of the file system, so that unusual extents do not count as plain ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::map::{ExtentFlags, RawExtent};

/// A number of extents, and their bytes of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtentTally {
    /// Extents as FIEMAP reports them, without merging.
    pub extents: u64,
    /// Bytes of the file that they cover.
    pub bytes: u64,
}

/// The extents of a tree by kind. An extent with several flags counts under each: a compressed
/// clone is encoded and shared. Only extents without any of these flags are plain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtentKinds {
    /// Written, at a known position, of known length, of this file alone.
    pub plain: ExtentTally,
    /// Among the metadata.
    pub inline: ExtentTally,
    /// Allocated and never written (preallocated).
    pub unwritten: ExtentTally,
    /// Shared with other files or snapshots.
    pub shared: ExtentTally,
    /// Compressed or otherwise encoded; encrypted ones among them.
    pub encoded: ExtentTally,
    /// Encrypted by the file system.
    pub encrypted: ExtentTally,
    /// In a block with the tails of other files.
    pub tail: ExtentTally,
    /// Still in memory, without a position.
    pub delayed: ExtentTally,
    /// At a position that the file system does not know or report, but not delayed.
    pub unknown: ExtentTally,
    /// Files with holes.
    pub sparse_files: u64,
    /// Bytes of content without an extent: holes.
    pub hole_bytes: u64,
}

impl ExtentKinds {
    /// Adds a file: the size of its content, and its extents.
    pub(super) fn add(&mut self, size_bytes: u64, extents: &[RawExtent]) {
        let mut covered_bytes = 0;
        for raw in extents {
            let has = |flag| raw.flags.contains(flag);
            let is_unknown = has(ExtentFlags::UNKNOWN) && !has(ExtentFlags::DELAYED);
            let kinds = [
                (has(ExtentFlags::INLINE), &mut self.inline),
                (has(ExtentFlags::UNWRITTEN), &mut self.unwritten),
                (has(ExtentFlags::SHARED), &mut self.shared),
                (has(ExtentFlags::ENCODED) || has(ExtentFlags::ENCRYPTED), &mut self.encoded),
                (has(ExtentFlags::ENCRYPTED), &mut self.encrypted),
                (has(ExtentFlags::TAIL), &mut self.tail),
                (has(ExtentFlags::DELAYED), &mut self.delayed),
                (is_unknown, &mut self.unknown),
            ];
            let mut is_plain = true;
            for (is_kind, tally) in kinds {
                if is_kind {
                    is_plain = false;
                    tally.add(raw);
                }
            }
            if is_plain {
                self.plain.add(raw);
            }
            // Blocks after the end of the file (preallocated, or the rest of the last block) fill
            // no hole.
            let end = raw.extent.logical.saturating_add(raw.extent.length).min(size_bytes);
            covered_bytes += end.saturating_sub(raw.extent.logical);
        }
        let hole_bytes = size_bytes.saturating_sub(covered_bytes);
        self.sparse_files += u64::from(hole_bytes > 0);
        self.hole_bytes = self.hole_bytes.saturating_add(hole_bytes);
    }
}

impl ExtentTally {
    fn add(&mut self, raw: &RawExtent) {
        self.extents += 1;
        self.bytes = self.bytes.saturating_add(raw.extent.length);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::Extent;

    use super::*;

    fn raw(logical: u64, length: u64, flags: u32) -> RawExtent {
        RawExtent { extent: Extent { logical, physical: 1 << 20, length }, flags: ExtentFlags(flags) }
    }

    fn tally(extents: u64, bytes: u64) -> ExtentTally {
        ExtentTally { extents, bytes }
    }

    #[test]
    fn each_flag_is_counted_separately() {
        let mut kinds = ExtentKinds::default();
        kinds.add(
            9 * 4096,
            &[
                raw(0, 4096, 0),
                raw(4096, 4096, 0x200 | 0x100),
                raw(8192, 4096, 0x800),
                raw(12288, 4096, 0x2000 | 0x8),
                raw(16384, 4096, 0x80 | 0x8),
                raw(20480, 4096, 0x400 | 0x100),
                raw(24576, 4096, 0x4 | 0x2),
                raw(28672, 4096, 0x2),
                raw(32768, 4096, 0x1),
            ],
        );
        assert_eq!(kinds.plain, tally(2, 8192));
        for one in
            [kinds.inline, kinds.unwritten, kinds.shared, kinds.encrypted, kinds.tail, kinds.delayed, kinds.unknown]
        {
            assert_eq!(one, tally(1, 4096));
        }
        assert_eq!(kinds.encoded, tally(2, 8192));
        assert_eq!((kinds.sparse_files, kinds.hole_bytes), (0, 0));
    }

    #[test]
    fn holes_are_uncovered_bytes_before_the_end() {
        let mut kinds = ExtentKinds::default();
        kinds.add(10_000, &[raw(4096, 4096, 0)]); // 4096 before it, 1808 after it
        kinds.add(5_000, &[raw(0, 8192, 0), raw(8192, 1 << 20, 0x800)]); // preallocated after the end
        kinds.add(1 << 30, &[]);
        kinds.add(0, &[]);
        assert_eq!((kinds.sparse_files, kinds.hole_bytes), (2, 10_000 - 4096 + (1 << 30)));
    }

    proptest! {
        #[test]
        fn plain_extents_have_no_special_flag(flags in prop::collection::vec(0u32..0x4000, 0..30)) {
            let extents: Vec<_> = flags.iter().enumerate().map(|(n, &flags)| raw(n as u64 * 4096, 4096, flags)).collect();
            let mut kinds = ExtentKinds::default();
            kinds.add(flags.len() as u64 * 4096, &extents);
            let telling = 0x2 | 0x4 | 0x8 | 0x80 | 0x200 | 0x400 | 0x800 | 0x2000;
            prop_assert_eq!(kinds.plain.extents, flags.iter().filter(|&flags| flags & telling == 0).count() as u64);
            prop_assert_eq!(kinds.shared.bytes, 4096 * flags.iter().filter(|&flags| flags & 0x2000 != 0).count() as u64);
            prop_assert_eq!(kinds.hole_bytes, 0);
        }
    }
}
