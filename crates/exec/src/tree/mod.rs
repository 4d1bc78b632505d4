//! Trees: everything that two volumes with the same history must have in common, to be compared and named by a hash.
//!
//! Paths, types, permissions, sizes, contents and the targets of symbolic links count. Times, owners, and which names
//! are hard links of one file do not, nor do the permissions of the root itself. A directory `lost+found` in the root
//! of a mounted file system that belongs to root is mkfs's own and is left out.

mod collect;
mod compare;
mod entry;

pub use collect::{collect_tree, collect_tree_until};
pub use compare::{Difference, Differs, compare_trees};
pub use entry::{Entry, Tree};
