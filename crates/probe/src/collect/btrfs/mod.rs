//! The free space of a mounted Btrfs, from its trees.
//!
//! The chunk tree says which block groups there are and where they lie, the device tree what no block group has, and the
//! free-space tree (or, on volumes without one, the extent tree) what is free in them.
//!
//! What it is not: a map of files. Positions are logical; [`crate::map::BtrfsFreeSpace`] knows where they lie on devices.

mod assemble;
mod collect;
mod items;
mod search;

pub use collect::{collect_btrfs_free_space, collect_btrfs_free_space_as_it_is};
