//! Requests of the block layer to a device.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Bytes of a sector, the unit of positions in requests, whatever the block size of the device.
pub const SECTOR_BYTES: u64 = 512;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockOp {
    /// Data from the device.
    Read,
    /// Data to the device.
    Write,
    /// Drops the contents of the sectors, which are not needed any more.
    Discard,
    /// Makes all earlier writes durable. It has no sectors.
    Flush,
}

/// One request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockRequest {
    /// Time of its issue to the device, on the clock of its trace.
    pub issued: Nanos,
    /// The operation.
    pub op: BlockOp,
    /// Its first sector.
    pub sector: u64,
    /// The number of sectors; 0 for a flush.
    pub sectors: u32,
}

impl BlockRequest {
    /// The first sector after it.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }

    /// Bytes that it transfers.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}
