//! Git replay: the file operations that git issues when a checked-out repository goes from commit to commit.
//!
//! [`PullPlanner`] turns a [`Repository`] and a list of commits into one [`Pull`] per commit; [`GitReplay`] and
//! [`GitFullDisk`] make steps of them. The order of the operations is that of `git fetch` followed by
//! `git reset --hard FETCH_HEAD` (git 2.39, observed with strace):
//!
//! 1. `FETCH_HEAD` emptied; new objects, each under a temporary name, then renamed: loose, or one pack with its index
//!    when there are at least 100; `FETCH_HEAD` written; `objects/maintenance.lock` made and removed.
//! 2. `index.lock` made; work tree: removals in index order (a directory goes when git leaves it empty), then for each
//!    changed path the old file unlinked and the new one created, directories made as needed; the index written into
//!    `index.lock` and renamed.
//! 3. `ORIG_HEAD`; `HEAD.lock`, `refs/heads/main.lock`, both reflogs, rename, unlink.
//! 4. With gc: what `git gc --auto` does at its thresholds.
//!
//! What differs from git, knowingly: objects take their final names by `rename`, not `link` and `unlink`; the index has no
//! stat data and no extensions; the loose objects of a pull come commits, trees, blobs, without regard to deltas; gc runs
//! after step 3 (git runs it before, in the background), does not rewrite the reflogs, and prunes nothing.
//!
//! Contents are named by [`ContentKey`]s, which a content source turns into bytes with the same history at hand.

mod changes;
mod checkout;
mod dotgit;
mod full_disk;
mod gc;
mod index;
mod key;
mod objects;
mod oid;
mod planner;
mod replay;
mod repository;

pub use changes::{Change, Leaf, compute_changes};
pub use dotgit::{ATTRIBUTES, BRANCH, compute_config};
pub use full_disk::{Filling, FullDiskOptions, GitFullDisk};
pub use index::IndexState;
pub use key::{ContentKey, PackKey};
pub use oid::Oid;
pub use planner::{PlannerOptions, Pull, PullPlanner};
pub use replay::{GitReplay, PullSource};
pub use repository::{CommitInfo, EntryKind, PackNames, Repository, TreeEntry};
