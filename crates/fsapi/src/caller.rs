//! The caller of a change, and its time.

use crate::Timestamp;

/// The caller of a change, and its time: an engine has no clock and knows no users.
///
/// Engines check no permissions: the kernel does so before, under FUSE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The owner of new inodes.
    pub uid: u32,
    /// The group of new inodes, unless the directory determines it ([`NewNode::ownership`]).
    ///
    /// [`NewNode::ownership`]: crate::NewNode::ownership
    pub gid: u32,
    /// The time of the change.
    pub now: Timestamp,
}
