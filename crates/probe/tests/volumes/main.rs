//! The collectors on real file systems, against established tools. Needs root.

mod btrfs;
mod extents;
mod free_space;
mod grep;
mod support;
mod survey;
mod trace;
mod transfer;
