//! The free space of a mounted Btrfs, from its trees.
//!
//! The chunk tree lists the block groups and their locations, the device tree the space that no
//! block group has. The free-space tree has the free extents. On volumes without one, they are the
//! gaps in the extent tree.
//!
//! It does not map files. Positions are logical; [`crate::map::BtrfsFreeSpace`] translates them to
//! devices.

mod assemble;
mod collect;
mod items;
mod subvolumes;
mod tree_search;

pub use collect::{collect_btrfs_free_space, collect_btrfs_free_space_as_it_is};
pub use subvolumes::{BtrfsSubvolume, collect_btrfs_subvolumes};
