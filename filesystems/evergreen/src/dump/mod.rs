//! Dumps: every structure of an evergreen that is not open, field by field.
//!
//! A dump uses the codecs without the engine, like the check, and writes nothing. It shows damaged
//! structures as far as they can be read, with their faults.

mod field_offsets;
mod log;
mod map;
mod node;
mod outline;
mod superblocks;
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

/// The structure to dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpWhat {
    /// Both superblocks.
    Superblocks,
    /// The map of nodes, with their places.
    Map,
    /// The free extents.
    Space,
    /// The log: the batches that opening will apply.
    Log,
    /// All nodes from the root on, with their bounds, in the order of keys.
    Tree,
    /// A node: its header, its parts and their contents.
    Node {
        /// The number of the node.
        id: u64,
    },
}

/// Dumps a structure of an evergreen that is not open; tables have at most `most` rows.
///
/// Errors: those that prevent the dump: a superblock or map that is needed and cannot be read,
/// errors of the device. `Invalid` if the node does not exist. Damage is in the dump. Cost: reads
/// the dumped structure; writes nothing.
pub fn dump(device: &Arc<dyn BlockDevice>, what: &DumpWhat, most: u64) -> Result<Dump> {
    match what {
        DumpWhat::Superblocks => superblocks::superblocks(device),
        DumpWhat::Map => map::map(&Media::open(device)?, most),
        DumpWhat::Space => map::space(&Media::open(device)?, most),
        DumpWhat::Log => log::log(&Media::open(device)?, most),
        DumpWhat::Tree => node::tree(&Media::open(device)?, most),
        DumpWhat::Node { id } => node::node(&Media::open(device)?, NodeId(*id), most),
    }
}

/// A device, and its newest superblock.
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
