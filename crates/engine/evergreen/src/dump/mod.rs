//! Dumps: every structure of an evergreen that is not open, field by field, as it lies on the device.
//!
//! It reads as the check does, without the engine, and writes nothing. What is damaged is shown as far as it can be read, with
//! what is wrong.

mod fixed;
mod layout;
mod log;
mod map;
mod node;
mod outline;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use outline::{Holds, Outline, OutlinedNode, Waiting, outline};
use senesce_block::BlockDevice;
pub use senesce_fsapi::dump::{Dump, DumpTable, DumpValue};

use crate::{
    Result,
    disk::{Area, NodeId, Superblock, read_newest},
};

/// What is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpWhat {
    /// Both superblocks.
    Superblocks,
    /// The map of nodes: where each of them lies.
    Map,
    /// The extents that are free.
    Space,
    /// The log: what opening will do again.
    Log,
    /// All nodes from the root on, with their bounds, in the order of keys.
    Tree,
    /// A node: its header, its parts and what is in them.
    Node {
        /// Its number.
        id: u64,
    },
}

/// Shows a structure of an evergreen that is not open; tables have at most `most` rows.
///
/// Errors: what keeps from looking at all (no superblock that can be read, where one is needed, no map where a node is looked for;
/// the device's errors); `Invalid` for a node that is not there. Damage is in the
/// dump. Cost: reads what is shown; nothing is written.
pub fn dump(device: &Arc<dyn BlockDevice>, what: &DumpWhat, most: u64) -> Result<Dump> {
    match what {
        DumpWhat::Superblocks => fixed::superblocks(device),
        DumpWhat::Map => map::map(&Media::open(device)?, most),
        DumpWhat::Space => map::space(&Media::open(device)?, most),
        DumpWhat::Log => log::log(&Media::open(device)?, most),
        DumpWhat::Tree => node::tree(&Media::open(device)?, most),
        DumpWhat::Node { id } => node::node(&Media::open(device)?, NodeId(*id), most),
    }
}

/// A device, and the superblock that counts.
struct Media {
    area: Area,
    superblock: Superblock,
}

impl Media {
    fn open(device: &Arc<dyn BlockDevice>) -> Result<Self> {
        let superblock = read_newest(&**device)?;
        Ok(Self { area: Area::new(device.clone(), superblock.geometry), superblock })
    }
}
