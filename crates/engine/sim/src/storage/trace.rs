//! What an engine did, as plain numbers.

use serde::{Deserialize, Serialize};

use crate::{CpuEvents, CpuProfile, Error};

/// Blocks of a drive that one request reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The drive, counted over all groups.
    pub drive: u32,
    /// The first block's number on the drive.
    pub block: u64,
    /// Blocks.
    pub blocks: u32,
}

/// What a client asked for, and what it took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Whether it is acknowledged by the log.
    pub write: bool,
    /// Blocks it reads or writes.
    pub blocks: u32,
    /// Blocks that were in the cache.
    pub cache_hits: u32,
    /// What had to be read to know where the others are: blocks of pointers, one after the other.
    pub pointers: Vec<Chain>,
    /// What was then read from drives, all at once.
    pub reads: Vec<Chain>,
    /// Blocks of the container map that were read because a pointer was stale, one after the other.
    pub lookups: Vec<Chain>,
    /// What was then read again from elsewhere, because a pointer was stale, all at once; a map lookup for each block.
    pub redirected: Vec<Chain>,
    /// Blocks that were decompressed when all had been read.
    pub decompressed: u32,
}

/// A consistency point, and the operations that make it.
///
/// A point may be there for what is done beside clients: if no operation of a trace writes, but its points take time, then each begins as soon
/// as the one before is durable, and whatever operations come meanwhile come besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointTrace {
    /// In the order in which they came; at least one writes, unless none of the trace does.
    pub operations: Vec<Operation>,
    /// What one thread read before it, one after the other, to find what the point is to write.
    pub scanned: Vec<Chain>,
    /// What that thread took of a processor, spread over what it read. Issuing chains is counted by the simulation.
    pub scan_events: CpuEvents,
    /// What one thread then did with clients kept out, part by part: operations that come during a part begin after it.
    #[serde(default)]
    pub exclusive: Vec<Exclusive>,
    /// What the point read, for parity and to move blocks.
    pub reads: Vec<Chain>,
    /// What it wrote, parity with it.
    pub writes: Vec<Chain>,
    /// What it took of processors. Issuing chains is counted here by the simulation.
    pub events: CpuEvents,
}

/// A part of background work that keeps clients out while it reads and computes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusive {
    /// What it read, one after the other.
    pub reads: Vec<Chain>,
    /// What it took of a processor, after the reads. Issuing chains is counted by the simulation.
    pub events: CpuEvents,
}

/// Consistency points in a row; a run begins with the first and goes around. What disks have in their buffers they do not read
/// again, so a trace should be longer than a run, or much larger than the buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// In their order.
    pub points: Vec<PointTrace>,
    /// What drives were asked to write before, in order: it takes no time, and SSDs hold what it left.
    pub before: Vec<Chain>,
}

impl Operation {
    /// All that it reads from drives.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.pointers.iter().chain(&self.reads).chain(&self.lookups).chain(&self.redirected)
    }
}

impl PointTrace {
    /// All chains that are not of operations.
    fn background(&self) -> impl Iterator<Item = &Chain> {
        let exclusive = self.exclusive.iter().flat_map(|part| &part.reads);
        self.scanned.iter().chain(exclusive).chain(&self.reads).chain(&self.writes)
    }

    fn is_written(&self) -> bool {
        self.operations.iter().any(|operation| operation.write)
    }

    /// Whether it takes time. Events that the table has for nothing do not: points of these would follow each other without an end.
    fn takes_time(&self, cpu: &CpuProfile) -> bool {
        !(self.scanned.is_empty() && self.exclusive.is_empty() && self.reads.is_empty() && self.writes.is_empty())
            || cpu.cost(&self.scan_events.plus(&self.events)) > 0
    }
}

impl Trace {
    /// Whether points begin without operations that write, on processors of this table.
    pub(super) fn goes_by_itself(&self, cpu: &CpuProfile) -> bool {
        !self.points.iter().any(PointTrace::is_written) && self.points.iter().any(|point| point.takes_time(cpu))
    }

    /// Refuses what cannot be simulated: no points, a point that nobody writes while others are written, drives that are not there.
    pub fn check(&self, drives: u32) -> Result<(), Error> {
        if self.points.is_empty() {
            return Err(Error::absurd("trace", "there are no consistency points; one would be enough".into()));
        }
        let some_write = self.points.iter().any(PointTrace::is_written);
        for (number, point) in self.points.iter().enumerate() {
            if !point.is_written() && (some_write || point.operations.is_empty()) {
                let problem =
                    format!("consistency point {number} has no operation that writes; nothing would begin it");
                return Err(Error::absurd("trace", problem));
            }
            let read = point.operations.iter().flat_map(Operation::chains);
            if let Some(chain) = read.chain(point.background()).find(|chain| chain.drive >= drives) {
                let problem = format!(
                    "consistency point {number} uses drive {} of {drives}; 0 to {} would be possible",
                    chain.drive,
                    drives.saturating_sub(1)
                );
                return Err(Error::absurd("trace", problem));
            }
        }
        match self.before.iter().find(|chain| chain.drive >= drives) {
            None => Ok(()),
            Some(chain) => {
                let problem = format!(
                    "drive {} of {drives} was written before; 0 to {} would be possible",
                    chain.drive,
                    drives.saturating_sub(1)
                );
                Err(Error::absurd("trace", problem))
            }
        }
    }
}
