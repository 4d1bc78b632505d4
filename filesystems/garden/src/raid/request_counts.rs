//! Counts of requests to the drives. A *chain* is the blocks of one drive that one request reads or
//! writes; they are adjacent. Aging shortens the chains of an aggregate.

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

/// Requests to one drive. Labels, superblocks and repairs do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounts {
    /// Blocks that were read for their contents.
    pub reads: Chains,
    /// Blocks that were written; on a parity drive, blocks of parity.
    pub writes: Chains,
    /// Blocks that were read to compute parity: data that stay in a stripe, or data and parity that
    /// are replaced.
    pub parity_reads: Chains,
    /// Blocks that were read to move those in use.
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

    /// The difference to an earlier count of the same drive.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.since(earlier.reads),
            writes: self.writes.since(earlier.writes),
            parity_reads: self.parity_reads.since(earlier.parity_reads),
            cleaning_reads: self.cleaning_reads.since(earlier.cleaning_reads),
        }
    }
}

/// Requests to all drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RaidCounts {
    /// The sum of the data drives, plus the reads of parity drives that serve to recompute parity.
    pub data: DriveCounts,
    /// Stripes that were written whole, which needs no reads.
    pub full_stripes: u64,
    /// Stripes that were written in part.
    pub partial_stripes: u64,
    /// Wrong blocks that were restored from the other drives and written back.
    pub repairs: u64,
    /// Blocks that were restored because their drive is missing.
    pub degraded_reads: u64,
}

impl RaidCounts {
    /// The difference to an earlier count of the same aggregate.
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

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Read,
    Write,
    ParityRead,
    Cleaning,
}

#[derive(Default)]
struct DriveCounters([[AtomicU64; 2]; 4]);

/// The counters from which reports are made.
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

    /// Counts a request of `blocks` blocks to a drive.
    pub fn note(&self, drive: usize, why: Why, blocks: usize) {
        let [all, requests] = &self.drives[drive].0[why as usize];
        all.fetch_add(blocks as u64, Relaxed);
        requests.fetch_add(1, Relaxed);
    }

    /// The counts of each drive.
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

    /// The sum of all drives. Of drives for which `is_parity` is true, only the reads for parity
    /// count.
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
