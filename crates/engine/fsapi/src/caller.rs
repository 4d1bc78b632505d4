//! Who asks, and when.

use crate::Timestamp;

/// Who asks for a change and when: an engine has no clock of its own and knows no users.
///
/// Whether the caller may do it is decided before (by the kernel, under FUSE): engines check no permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The owner of what is made.
    pub uid: u32,
    /// The group of what is made, where the directory does not say otherwise ([`NewNode::ownership`]).
    ///
    /// [`NewNode::ownership`]: crate::NewNode::ownership
    pub gid: u32,
    /// The time that the change has.
    pub now: Timestamp,
}
