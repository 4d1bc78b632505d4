//! What the device is made of: two superblocks, the ring of the log, and an area of units in which nodes and the map of nodes lie.
//!
//! Nothing here knows what a node holds. From the superblock the map is reached, from the map the nodes; what neither names is
//! free, so no list of free space can disagree. Nothing that a durable superblock names is written over.
//!
//! All numbers on the device are little-endian; checksums are XXH3, 64 bits. docs/reference/evergreen-format.md draws it to scale.

mod area;
mod bytes;
mod chunk;
mod copies;
mod geometry;
mod load;
mod map;
mod message;
mod place;
mod shape;
mod slots;
mod space;
mod superblock;

pub use senesce_fsapi::{Damage, Decoded};

pub use area::Area;
pub use bytes::{Reader, push_number, push_sized};
pub(crate) use bytes::{array_at, put_at, u32_at, u64_at};
pub(crate) use chunk::{Loose, loose_entries};
pub use copies::Copies;
pub use geometry::Geometry;
pub use map::NodeMap;
pub(crate) use map::node_sum;
pub use message::{decode_message, encode_message, message_bytes};
pub use place::{Extent, Extents, FEW_PIECES, MAX_PIECES, NodeId, Place};
pub use shape::{KeyOrder, Shape};
pub(crate) use slots::{BadSlotCopy, MIRRORS_AT, SLOTS_AT, newest_of};
pub use slots::{Slots, clear_slots, is_evergreen, read_newest, read_slots, write_superblock};
pub use space::{Fit, Space, SpaceStatistics};
pub(crate) use superblock::MOST_COUNTED;
pub use superblock::{MAX_MAP_PIECES, MAX_SECOND_MAP_PIECES, MapPlace, Superblock};

/// The version of everything that is written to the device when an evergreen is made.
pub const FORMAT_VERSION: u32 = 2;

/// The oldest version that is read, and written to what was made with it.
pub(crate) const OLDEST_VERSION: u32 = 1;

/// Bytes of a superblock, of a chunk of the map, and what a frame of the log is a multiple of. All requests to the device
/// begin and end at multiples of it.
pub const BLOCK: usize = 4096;
