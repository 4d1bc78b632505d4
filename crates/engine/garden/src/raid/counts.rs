//! What the drives were asked for. A *chain* is the blocks of one drive that one request reads or writes: they lie one
//! behind the other. Long chains are what an aggregate loses by aging.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Blocks, and the requests (chains) that moved them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// Blocks.
    pub blocks: u64,
    /// Requests.
    pub requests: u64,
}

impl Chains {
    /// The mean length of a chain in blocks; `None` if there was none.
    pub fn mean(self) -> Option<f64> {
        (self.requests > 0).then(|| self.blocks as f64 / self.requests as f64)
    }

    fn plus(self, other: Self) -> Self {
        Self { blocks: self.blocks + other.blocks, requests: self.requests + other.requests }
    }

    fn since(self, earlier: Self) -> Self {
        Self { blocks: self.blocks - earlier.blocks, requests: self.requests - earlier.requests }
    }
}

/// What one drive was asked for. Labels, superblocks and repairs do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounts {
    /// Blocks that were read for their content.
    pub reads: Chains,
    /// Blocks that were written; on a drive of parity, those of parity.
    pub writes: Chains,
    /// Blocks that were read to compute parity: of data that stay in a stripe, or of data and parity that are replaced.
    pub parity_reads: Chains,
    /// Blocks that were read to move those among them that are in use.
    pub cleaning_reads: Chains,
}

impl DriveCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads.plus(other.reads),
            writes: self.writes.plus(other.writes),
            parity_reads: self.parity_reads.plus(other.parity_reads),
            cleaning_reads: self.cleaning_reads.plus(other.cleaning_reads),
        }
    }

    /// What came since an earlier count of the same drive.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.since(earlier.reads),
            writes: self.writes.since(earlier.writes),
            parity_reads: self.parity_reads.since(earlier.parity_reads),
            cleaning_reads: self.cleaning_reads.since(earlier.cleaning_reads),
        }
    }
}

/// What all drives were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RaidCounts {
    /// The sum of the drives that hold data. Reads of parity to compute parity anew are with them.
    pub data: DriveCounts,
    /// Stripes written whole, which needs no reading.
    pub full_stripes: u64,
    /// Stripes written in part.
    pub partial_stripes: u64,
    /// Blocks that did not fit, were put together from the other drives and written back.
    pub repairs: u64,
    /// Blocks that were put together because their drive is missing.
    pub degraded_reads: u64,
}

impl RaidCounts {
    /// What came since an earlier count of the same aggregate.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            data: self.data.since(earlier.data),
            full_stripes: self.full_stripes - earlier.full_stripes,
            partial_stripes: self.partial_stripes - earlier.partial_stripes,
            repairs: self.repairs - earlier.repairs,
            degraded_reads: self.degraded_reads - earlier.degraded_reads,
        }
    }
}

/// Why blocks are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Read,
    Write,
    ParityRead,
    Cleaning,
}

#[derive(Default)]
struct DriveCounters([[AtomicU64; 2]; 4]);

/// Counts as they are kept.
#[derive(Default)]
pub(super) struct Counters {
    drives: Vec<DriveCounters>,
    pub full_stripes: AtomicU64,
    pub partial_stripes: AtomicU64,
    pub repairs: AtomicU64,
    pub degraded_reads: AtomicU64,
}

impl Counters {
    pub fn new(drives: usize) -> Self {
        Self { drives: (0..drives).map(|_| DriveCounters::default()).collect(), ..Self::default() }
    }

    /// A request of `blocks` blocks to a drive.
    pub fn note(&self, drive: usize, why: Why, blocks: usize) {
        let [all, requests] = &self.drives[drive].0[why as usize];
        all.fetch_add(blocks as u64, Relaxed);
        requests.fetch_add(1, Relaxed);
    }

    /// By drive.
    pub fn drives(&self) -> Vec<DriveCounts> {
        let chains = |[blocks, requests]: &[AtomicU64; 2]| Chains {
            blocks: blocks.load(Relaxed),
            requests: requests.load(Relaxed),
        };
        let counts = |DriveCounters([reads, writes, parity_reads, cleaning_reads]): &DriveCounters| DriveCounts {
            reads: chains(reads),
            writes: chains(writes),
            parity_reads: chains(parity_reads),
            cleaning_reads: chains(cleaning_reads),
        };
        self.drives.iter().map(counts).collect()
    }

    /// Of all drives; `is_parity` says of which only the reads for parity count.
    pub fn sum(&self, is_parity: impl Fn(usize) -> bool) -> RaidCounts {
        let own = |(drive, counts): (usize, DriveCounts)| match is_parity(drive) {
            true => DriveCounts { parity_reads: counts.parity_reads, ..DriveCounts::default() },
            false => counts,
        };
        RaidCounts {
            data: self.drives().into_iter().enumerate().map(own).fold(DriveCounts::default(), DriveCounts::plus),
            full_stripes: self.full_stripes.load(Relaxed),
            partial_stripes: self.partial_stripes.load(Relaxed),
            repairs: self.repairs.load(Relaxed),
            degraded_reads: self.degraded_reads.load(Relaxed),
        }
    }
}
