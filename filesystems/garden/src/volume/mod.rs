//! The operations on a volume: contents, directories, names, attributes, and inodes without a name.
//!
//! Every change is an [`Operation`](crate::format::operation::Operation). Its effect depends only
//! on the operation and the state, so a replay after a loss of power has the same result.

mod apply;
mod attributes;
mod clone;
mod contents;
mod directory;
mod extents;
mod inodes;
mod names;
mod xattrs;

pub(crate) use apply::{Done, compute_cost};
pub(crate) use attributes::attributes_of;
pub(crate) use contents::{MAX_FILE_BYTES, check_end};
pub(crate) use xattrs::{check_xattr_name, decode as decode_xattrs};
