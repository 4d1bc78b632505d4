//! The file system in the tree on a device.

mod conformance;
mod crash;
mod rig;
mod space;
mod version_1;
