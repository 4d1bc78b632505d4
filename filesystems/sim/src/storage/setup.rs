//! The system on which a trace runs.

use senesce_core::{Nanos, Seed};
use senesce_device::DeviceSpec;
use serde::{Deserialize, Serialize};

use crate::{Arrivals, CpuProfile, Error, Favour, SsdFill, SsdSpec};

/// A drive that represents a smaller one of the trace. Garbage collection figures of a spread SSD
/// have no meaning: most of it is never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Blocks of the traced drive.
    pub drive_blocks: u64,
    /// Blocks that stay together, like those of an allocation area. The units are spread over the
    /// whole drive, so that the arm of a disk moves over realistic distances.
    pub unit_blocks: u64,
}

/// A model of drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A disk. Its queue is served in sweep order, one request at a time.
    Disk {
        /// The description.
        spec: DeviceSpec,
        /// Set if it represents a smaller one.
        spread: Option<Spread>,
    },
    /// An SSD.
    Ssd {
        /// The description.
        spec: SsdSpec,
        /// Its initial content.
        fill: SsdFill,
        /// Concurrent requests. Others wait outside, where clients have priority.
        depth: u32,
        /// Set if it represents a smaller one.
        spread: Option<Spread>,
    },
}

/// Drives of one RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drives {
    /// The number of drives, including parity.
    pub count: u32,
    /// The model of each drive.
    pub model: Model,
}

/// Memory that survives a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSpec {
    /// From the end of a record's transfer until it is durable. Other records are transferred
    /// meanwhile.
    pub latency: Nanos,
    /// Rate, 10^6 bytes a second.
    pub rate: u32,
}

/// The system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageSetup {
    /// The RAID groups; drives are counted over all of them.
    pub groups: Vec<Drives>,
    /// Processors.
    pub cores: u32,
    /// The processor time of each event.
    pub cpu: CpuProfile,
    /// The longest turn of background work on a processor.
    pub turn: Nanos,
    /// The priority of clients, at processors and drives.
    pub favour: Favour,
    /// The longest time that the arm may pass over a request to a disk.
    pub overdue: Nanos,
    /// The log.
    pub log: LogSpec,
    /// Blocks of a drive that a consistency point writes in one step: the depth of a tetris.
    pub step_blocks: u32,
    /// Concurrent steps of each group.
    pub window: u32,
}

/// The load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageLoad {
    /// The source of operations.
    pub arrivals: Arrivals,
    /// Operations before figures are collected.
    pub warm_up: u64,
    /// Operations after that.
    pub operations: u64,
    /// The seed of the arrivals.
    pub seed: Seed,
}

impl StorageSetup {
    /// A system with typical parameters besides its drives and processors: a log of 10 us and 2
    /// GB/s, and 4 concurrent steps of 64 blocks. Clients go before background work that has waited
    /// for less than 20 ms; aged background work is served after every 4 clients.
    pub fn new(groups: Vec<Drives>, cores: u32, cpu: CpuProfile) -> Self {
        Self {
            groups,
            cores,
            cpu,
            turn: Nanos(50_000),
            favour: Favour { patience: Nanos(20_000_000), clients_between: 4 },
            overdue: Nanos(500_000_000),
            log: LogSpec { latency: Nanos(10_000), rate: 2000 },
            step_blocks: 64,
            window: 4,
        }
    }

    /// The number of drives.
    pub fn drives(&self) -> u32 {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Errors: a part of the system is zero.
    pub fn check(&self) -> Result<(), Error> {
        let parts = [
            (u64::from(self.drives()), "drives"),
            (u64::from(self.cores), "processors"),
            (self.turn.0, "ns of a turn"),
            (u64::from(self.log.rate), "MB/s of the log"),
            (u64::from(self.step_blocks), "blocks of a step"),
            (u64::from(self.window), "steps on their way"),
        ];
        match parts.iter().find(|(number, _)| *number == 0) {
            Some((_, part)) => Err(Error::absurd("system", format!("0 {part} are not possible; use at least 1"))),
            None => Ok(()),
        }
    }
}
