//! Access to the ring by position.

use std::sync::Arc;

use senesce_block::{BlockDevice, BlockResult};

use crate::{Result, disk::Geometry};

/// The ring of the log on its device: position *p* is at byte *p* modulo the ring's length.
#[derive(Clone)]
pub(crate) struct Ring {
    device: Arc<dyn BlockDevice>,
    at: u64,
    bytes: u64,
}

impl Ring {
    pub fn new(device: Arc<dyn BlockDevice>, geometry: &Geometry) -> Self {
        Self { device, at: geometry.log_at, bytes: geometry.log_bytes }
    }

    /// The length of the ring.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Describes the place of a position.
    pub fn describe(&self, position: u64) -> String {
        format!("{}, log, position {position} (byte {})", self.device.name(), self.at + position % self.bytes)
    }

    /// Writes at most the ring's length. Durable after the next flush of the device.
    pub fn write(&self, position: u64, data: &[u8]) -> Result<()> {
        self.write_parts(position, data, |offset, part| self.device.write_at(offset, part))
    }

    /// Writes at most the ring's length, and returns when it is durable. Does not wait for other
    /// writes to the device.
    pub fn write_durably(&self, position: u64, data: &[u8]) -> Result<()> {
        self.write_parts(position, data, |offset, part| self.device.write_durably_at(offset, part))
    }

    /// Writes the part before the end of the ring, and the rest at its start.
    fn write_parts(&self, position: u64, data: &[u8], write: impl Fn(u64, &[u8]) -> BlockResult<()>) -> Result<()> {
        let (first, rest) = data.split_at(self.until_end(position, data.len()));
        write(self.at + position % self.bytes, first)?;
        if !rest.is_empty() {
            write(self.at, rest)?;
        }
        Ok(())
    }

    /// Reads at most the ring's length.
    pub fn read(&self, position: u64, len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; len];
        let (first, rest) = out.split_at_mut(self.until_end(position, len));
        self.device.read_at(self.at + position % self.bytes, first)?;
        if !rest.is_empty() {
            self.device.read_at(self.at, rest)?;
        }
        Ok(out)
    }

    fn until_end(&self, position: u64, len: usize) -> usize {
        len.min((self.bytes - position % self.bytes) as usize)
    }
}
