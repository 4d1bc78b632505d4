//! Extents: runs of bytes in a named address space.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The address space of an extent's positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// Bytes from the start of the block device.
    Device,
    /// The logical space of a Btrfs file system, which its chunks map to devices.
    BtrfsLogical,
}

/// A run of bytes of a file, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    /// Offset in the file, bytes.
    pub logical: u64,
    /// Position in its space, bytes.
    pub physical: u64,
    /// Length, bytes; never zero.
    pub length: u64,
}

impl Extent {
    /// The first byte position after the extent.
    pub fn end(&self) -> u64 {
        self.physical + self.length
    }

    /// Whether `next` directly follows this extent in the file and on the device.
    pub fn continues_into(&self, next: &Extent) -> bool {
        self.end() == next.physical && self.logical + self.length == next.logical
    }
}
