//! What happens in a volume: contents, directories, names, attributes, inodes that lost their names.
//!
//! Every change is an [`Operation`](crate::format::operation::Operation), and everything it does follows from it and the
//! state: done again after a loss of power, it gives the same.

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
