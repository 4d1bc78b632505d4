//! Git replay: the file operations that git issues when a checked-out repository moves from commit
//! to commit.
//!
//! [`PullPlanner`] turns a [`Repository`] and a list of commits into one [`Pull`] per commit;
//! [`GitReplay`] and [`GitFullDisk`] make steps of them. The order of the operations is that of
//! `git fetch` followed by `git reset --hard FETCH_HEAD` (git 2.39, observed with strace):
//!
//! 1. `FETCH_HEAD` is emptied. New objects are written under a temporary name, then renamed: loose
//!    objects, or one pack with its index if there are at least 100. `FETCH_HEAD` is written;
//!    `objects/maintenance.lock` is made and removed.
//! 2. `index.lock` is made. Files are removed from the work tree in index order, each directory
//!    when git leaves it empty. For each changed path the old file is unlinked and the new one
//!    created, with its directories. The index is written into `index.lock` and renamed.
//! 3. `ORIG_HEAD`; `HEAD.lock`, `refs/heads/main.lock`, both reflogs, rename, unlink.
//! 4. With gc: the operations of `git gc --auto`, if a threshold is exceeded.
//!
//! Known differences from git:
//!
//! - Objects get their final names by `rename`, not by `link` and `unlink`.
//! - The index has no stat data and no extensions.
//! - The loose objects of a pull are ordered commits, trees, blobs, without regard to deltas.
//! - gc runs after step 3; git runs it before, in the background. It does not rewrite the reflogs
//!   and prunes nothing.
//!
//! [`ContentKey`]s name the contents. A content source turns them into bytes; it needs the same
//! history.

mod changes;
mod checkout;
mod content_key;
mod dotgit;
mod full_disk;
mod gc;
mod index;
mod objects;
mod oid;
mod planner;
mod replay;
mod repository;

pub use changes::{Change, Leaf, compute_changes};
pub use content_key::{ContentKey, PackKey};
pub use dotgit::{ATTRIBUTES, BRANCH, compute_config};
pub use full_disk::{Filling, FullDiskOptions, GitFullDisk};
pub use index::IndexState;
pub use oid::Oid;
pub use planner::{PlannerOptions, Pull, PullPlanner};
pub use replay::{GitReplay, PullSource};
pub use repository::{CommitInfo, EntryKind, PackNames, Repository, TreeEntry};
