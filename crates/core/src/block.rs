//! Requests of the block layer: what a device is asked to do.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Bytes of a sector, the unit of positions in requests, whatever the device's own blocks are.
pub const SECTOR_BYTES: u64 = 512;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockOp {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// The sectors' contents are of no more use.
    Discard,
    /// Everything written before is to be durable; it has no sectors.
    Flush,
}

/// One request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockRequest {
    /// When it was issued to the device, on the clock of its trace.
    pub issued: Nanos,
    /// What it asks for.
    pub op: BlockOp,
    /// Its first sector.
    pub sector: u64,
    /// How many sectors; 0 for a flush.
    pub sectors: u32,
}

impl BlockRequest {
    /// The first sector after it.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }

    /// Bytes it moves.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}
