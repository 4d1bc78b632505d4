//! Which requests a cold, sequential read of a file makes.

use senesce_core::{BlockOp, BlockRequest, Extent, Nanos, SECTOR_BYTES};

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadPattern {
    /// Readahead, bytes.
    pub read_ahead_bytes: u64,
    /// The longest request, bytes.
    pub max_request_bytes: u64,
}

impl ReadPattern {
    /// The kernel's own default, KiB.
    pub const DEFAULT_READ_AHEAD_KIB: u32 = 128;

    /// With this readahead, and requests as long as most devices take them.
    pub fn with_read_ahead(kib: u32) -> Self {
        Self { read_ahead_bytes: u64::from(kib) << 10, max_request_bytes: 1280 << 10 }
    }
}

/// The requests of a sequential read of the file with these extents.
pub(crate) fn plan_reads(extents: &[Extent], _size_bytes: u64, pattern: &ReadPattern) -> Vec<BlockRequest> {
    let longest = pattern.read_ahead_bytes.min(pattern.max_request_bytes).max(4096);
    let mut requests = Vec::new();
    for extent in extents {
        let mut at = extent.physical;
        while at < extent.end() {
            let length = longest.min(extent.end() - at);
            requests.push(BlockRequest {
                issued: Nanos(0),
                op: BlockOp::Read,
                sector: at / SECTOR_BYTES,
                sectors: length.div_ceil(SECTOR_BYTES) as u32,
            });
            at += length;
        }
    }
    requests
}

impl Default for ReadPattern {
    fn default() -> Self {
        Self::with_read_ahead(Self::DEFAULT_READ_AHEAD_KIB)
    }
}
