//! The reader on images of many kinds, against the kernel (FIEMAP, stat, getdents) and against
//! e2fsprogs.
//!
//! Tests that mount need root. Tests that only format an image and fill it with `mkfs.ext4 -d` or
//! `debugfs` do not.

mod aging;
mod consistency;
mod corruption;
mod fiemap;
mod free_space;
mod hashes;
mod offline;
mod support;
mod variants;
