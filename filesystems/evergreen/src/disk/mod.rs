//! The structures of the device: two superblocks, the ring of the log, and an area of units with
//! the nodes and the map of nodes.
//!
//! The module does not know the contents of nodes. The superblock names the map, and the map names
//! the nodes. All other space is free, so there is no free list that could disagree. Blocks that a
//! durable superblock names are never overwritten.
//!
//! All numbers on the device are little-endian; checksums are XXH3, 64 bits.
//! docs/reference/evergreen-format.md has the layout.

mod bytes;
mod copy_count;
mod free_space;
mod geometry;
mod load_map;
mod message;
mod node_map;
mod node_map_chunk;
mod place;
mod superblock;
mod superblock_slots;
mod tree_shape;
mod unit_area;

pub use senesce_fsapi::{Damage, Decoded};

pub use bytes::{Reader, push_number, push_sized};
pub(crate) use bytes::{array_at, put_at, u32_at, u64_at};
pub use copy_count::Copies;
pub use free_space::{Fit, Space, SpaceStatistics};
pub use geometry::Geometry;
pub use message::{decode_message, encode_message, message_bytes};
pub use node_map::NodeMap;
pub(crate) use node_map::node_sum;
pub(crate) use node_map_chunk::{Loose, loose_entries};
pub use place::{Extent, Extents, FEW_PIECES, MAX_PIECES, NodeId, Place};
pub(crate) use superblock::MOST_COUNTED;
pub use superblock::{MAX_MAP_PIECES, MAX_SECOND_MAP_PIECES, MapPlace, Superblock};
pub(crate) use superblock_slots::{BadSlotCopy, MIRRORS_AT, SLOTS_AT, newest_of};
pub use superblock_slots::{Slots, clear_slots, is_evergreen, read_newest, read_slots, write_superblock};
pub use tree_shape::{KeyOrder, Shape};
pub use unit_area::Area;

/// The format version of a new file system.
pub const FORMAT_VERSION: u32 = 2;

/// The oldest version that can be read and written.
pub(crate) const OLDEST_VERSION: u32 = 1;

/// The block size: the size of a superblock and of a chunk of the map. Frames of the log are
/// multiples of it, and all requests to the device are aligned to it.
pub const BLOCK: usize = 4096;
