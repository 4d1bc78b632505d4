//! Trees: the properties that two volumes with the same history have in common, for comparisons and
//! hashes.
//!
//! Paths, types, permissions, sizes, contents and the targets of symbolic links count. Times,
//! owners, hard links of one file, and the permissions of the root do not count. A directory
//! `lost+found` in the root of a mounted file system is left out if it belongs to root, because
//! mkfs makes it. So is the file `.nilfs` of a NILFS2.

mod collect;
mod compare;
mod entry;

pub use collect::{collect_tree, collect_tree_until};
pub use compare::{Difference, Differs, compare_trees};
pub use entry::{Entry, Tree};
