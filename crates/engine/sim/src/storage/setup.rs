//! What a trace is run on.

use senesce_core::{Nanos, Seed};
use senesce_device::DeviceSpec;
use serde::{Deserialize, Serialize};

use crate::{Arrivals, CpuProfile, Error, Favour, SsdFill, SsdSpec};

/// A drive that stands for a smaller one of the trace. What an SSD that is spread says of collection means nothing: most of it is
/// never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Blocks of the traced drive.
    pub drive_blocks: u64,
    /// Blocks that stay together, as those of an allocation area. The units are spread over all of the drive, so that the
    /// arm of a disk goes as far as it would.
    pub unit_blocks: u64,
}

/// A model of drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A disk; its queue is served as the arm sweeps, one request at a time.
    Disk {
        /// The description.
        spec: DeviceSpec,
        /// Whether it stands for a smaller one.
        spread: Option<Spread>,
    },
    /// An SSD.
    Ssd {
        /// The description.
        spec: SsdSpec,
        /// What it holds at the beginning.
        fill: SsdFill,
        /// Requests it is given at a time; the others wait outside, where clients go first.
        depth: u32,
        /// Whether it stands for a smaller one.
        spread: Option<Spread>,
    },
}

/// Drives of one RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drives {
    /// How many, parity with them.
    pub count: u32,
    /// What each is.
    pub model: Model,
}

/// Memory that outlives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSpec {
    /// From the end of a record's transfer until it is durable. Others are transferred meanwhile.
    pub latency: Nanos,
    /// 10^6 bytes a second.
    pub rate: u32,
}

/// The system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StorageSetup {
    /// The RAID groups; drives are counted over all of them.
    pub groups: Vec<Drives>,
    /// Processors.
    pub cores: u32,
    /// What events take of them.
    pub cpu: CpuProfile,
    /// The longest turn of background work on a processor.
    pub turn: Nanos,
    /// By how much clients go first, at processors and drives.
    pub favour: Favour,
    /// How long a request to a disk may be passed over by the arm.
    pub overdue: Nanos,
    /// The log.
    pub log: LogSpec,
    /// Blocks of a drive that a consistency point writes in one step: the depth of a tetris.
    pub step_blocks: u32,
    /// Steps on their way at a time, for each group.
    pub window: u32,
}

/// Who asks, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageLoad {
    /// Where operations come from.
    pub arrivals: Arrivals,
    /// Operations before figures are taken.
    pub warm_up: u64,
    /// Operations after that.
    pub operations: u64,
    /// From which arrivals are drawn.
    pub seed: Seed,
}

impl StorageSetup {
    /// A system with usual numbers beside its drives and processors: a log of 10 us and 2 GB/s, steps of 64 blocks, 4 at a
    /// time, clients before background work that has not waited for 20 ms, 4 of theirs between.
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

    /// Drives in all.
    pub fn drives(&self) -> u32 {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Refuses a system with a part of zero.
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
            Some((_, part)) => Err(Error::absurd("system", format!("0 {part} are not possible; 1 would be"))),
            None => Ok(()),
        }
    }
}
