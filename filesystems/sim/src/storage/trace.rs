//! The recorded work of an engine, as plain numbers.

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

/// A client's operation, and the work that it caused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Whether it is acknowledged by the log.
    pub write: bool,
    /// Blocks it reads or writes.
    pub blocks: u32,
    /// Blocks that were in the cache.
    pub cache_hits: u32,
    /// Blocks of pointers that were read first, one after the other, to locate the data.
    pub pointers: Vec<Chain>,
    /// Chains that were then read from drives, all at once.
    pub reads: Vec<Chain>,
    /// Blocks of the container map that were read because a pointer was stale, one after the other.
    pub lookups: Vec<Chain>,
    /// Chains that were then read from the corrected locations, all at once; with a map look-up for
    /// each block.
    pub redirected: Vec<Chain>,
    /// Blocks that were decompressed after all reads.
    pub decompressed: u32,
}

/// A consistency point, and the operations that it contains.
///
/// A point may exist only for background work. If no operation of a trace writes, but its points
/// need time, each point starts as soon as the previous one is durable. Operations that arrive
/// meanwhile run concurrently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointTrace {
    /// In the order of arrival. At least one writes, unless no operation of the trace does.
    pub operations: Vec<Operation>,
    /// Chains that one thread read before the point, one after the other, to find its work.
    pub scanned: Vec<Chain>,
    /// The processor work of that thread, spread over its chains. The simulation adds the issue of
    /// chains.
    pub scan_events: CpuEvents,
    /// The work of that thread with clients excluded, part by part. Operations that arrive during a
    /// part start after it.
    #[serde(default)]
    pub exclusive: Vec<Exclusive>,
    /// Chains that the point read, for parity and relocation.
    pub reads: Vec<Chain>,
    /// Chains that it wrote, including parity.
    pub writes: Vec<Chain>,
    /// Its processor work. The simulation adds the issue of chains.
    pub events: CpuEvents,
}

/// A part of background work that excludes clients while it reads and computes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusive {
    /// Chains that it read, one after the other.
    pub reads: Vec<Chain>,
    /// Its processor work after the reads. The simulation adds the issue of chains.
    pub events: CpuEvents,
}

/// A sequence of consistency points; a run starts with the first and wraps around. Disks do not
/// read buffered blocks again, so a trace should be longer than a run, or much larger than the
/// buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// In order.
    pub points: Vec<PointTrace>,
    /// Writes of drives before the trace, in order. They need no time; SSDs start with the
    /// resulting content.
    pub before: Vec<Chain>,
}

impl Operation {
    /// All chains that it reads from drives.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.pointers.iter().chain(&self.reads).chain(&self.lookups).chain(&self.redirected)
    }
}

impl PointTrace {
    /// All chains that do not belong to operations.
    fn background(&self) -> impl Iterator<Item = &Chain> {
        let exclusive = self.exclusive.iter().flat_map(|part| &part.reads);
        self.scanned.iter().chain(exclusive).chain(&self.reads).chain(&self.writes)
    }

    fn is_written(&self) -> bool {
        self.operations.iter().any(|operation| operation.write)
    }

    /// Whether it needs time. Events with a time of zero need none: points of these alone would
    /// repeat without end.
    fn takes_time(&self, cpu: &CpuProfile) -> bool {
        !(self.scanned.is_empty() && self.exclusive.is_empty() && self.reads.is_empty() && self.writes.is_empty())
            || cpu.cost(&self.scan_events.plus(&self.events)) > 0
    }
}

impl Trace {
    /// Whether points start without operations that write, on processors of this table.
    pub(super) fn goes_by_itself(&self, cpu: &CpuProfile) -> bool {
        !self.points.iter().any(PointTrace::is_written) && self.points.iter().any(|point| point.takes_time(cpu))
    }

    /// Errors: a trace that cannot be simulated: no points, a point without writes while others
    /// have some, missing drives.
    pub fn check(&self, drives: u32) -> Result<(), Error> {
        if self.points.is_empty() {
            return Err(Error::absurd("trace", "it has no consistency points; use at least one".into()));
        }
        let some_write = self.points.iter().any(PointTrace::is_written);
        for (number, point) in self.points.iter().enumerate() {
            if !point.is_written() && (some_write || point.operations.is_empty()) {
                let problem =
                    format!("consistency point {number} has no operation that writes, so nothing would start it");
                return Err(Error::absurd("trace", problem));
            }
            let read = point.operations.iter().flat_map(Operation::chains);
            if let Some(chain) = read.chain(point.background()).find(|chain| chain.drive >= drives) {
                let problem = format!(
                    "consistency point {number} uses drive {} of {drives}; use 0 to {}",
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
                    "drive {} of {drives} was written before the trace; use 0 to {}",
                    chain.drive,
                    drives.saturating_sub(1)
                );
                Err(Error::absurd("trace", problem))
            }
        }
    }
}
