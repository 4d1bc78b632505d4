//! Plans one pull for each commit of a history.

use std::sync::Arc;

use senesce_oplog::{Content, Op};

use super::{
    ContentKey, IndexState, Oid, PackKey, PackNames, Repository,
    changes::compute_changes,
    checkout::plan_checkout,
    dotgit::{Refs, compute_config, create, path, plan_skeleton, rename, unlink},
    gc::Gc,
    objects::{NewObjects, Seen, Store},
    repository::{content, malformed},
};
use crate::WorkloadError;

/// The operations that bring one copy of a repository to one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Position of the commit in the list, from 0.
    pub index: usize,
    /// The commit.
    pub commit: Oid,
    /// The operations. Paths are relative to the copy's root directory, which the first pull (the
    /// clone) makes.
    pub ops: Arc<[Op]>,
}

/// Options of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannerOptions {
    /// Position of the commit that the initial clone checks out. The copy then has every object
    /// that commits `0..=start` reach.
    pub start: usize,
    /// Whether to repack at git's thresholds.
    pub gc: bool,
    /// `gc.auto`: about this number of loose objects starts a repack. Git's default is 6,700.
    pub gc_auto: u32,
    /// `gc.autoPackLimit`: more packs than this are combined into one. Git's default is 50.
    pub gc_auto_pack_limit: u32,
    /// `fetch.unpackLimit`: a pull with at least this number of objects stays a pack. Git's default
    /// is 100.
    pub unpack_limit: usize,
}

impl Default for PlannerOptions {
    fn default() -> Self {
        Self { start: 0, gc: false, gc_auto: 6700, gc_auto_pack_limit: 50, unpack_limit: 100 }
    }
}

/// An iterator of pulls: first the clone at commit `start`, then one pull for each later commit.
///
/// The same history and options give the same operations. After an error the iterator is exhausted.
///
/// Memory: the index (110 bytes a path), the set of seen objects (up to 21 bytes for each object so
/// far) and the list of commits (20 bytes each). Nothing else grows with the history.
///
/// Cost: a pull reads the commit and the trees that differ from the previous commit. The clone
/// reads every commit and tree up to `start`. A pull with a pack waits until the pack is made.
pub struct PullPlanner {
    repository: Box<dyn Repository>,
    packs: Arc<dyn PackNames>,
    commits: Arc<[Oid]>,
    options: PlannerOptions,
    next: usize,
    index: IndexState,
    tree: Option<Oid>,
    seen: Seen,
    new_objects: NewObjects,
    store: Store,
    refs: Refs,
    gc: Option<Gc>,
    fetched_before: bool,
}

impl PullPlanner {
    /// A planner over `commits`, oldest first. Every commit comes after its listed parents.
    pub fn new(
        repository: Box<dyn Repository>,
        packs: Arc<dyn PackNames>,
        commits: Arc<[Oid]>,
        options: PlannerOptions,
    ) -> Self {
        Self {
            next: options.start,
            index: IndexState::default(),
            tree: None,
            seen: Seen::default(),
            new_objects: NewObjects::default(),
            store: Store::new(options.gc),
            refs: Refs::new(),
            gc: options.gc.then(|| Gc::new(options.gc_auto, options.gc_auto_pack_limit, options.start)),
            fetched_before: false,
            repository,
            packs,
            commits,
            options,
        }
    }

    fn plan_next(&mut self, index: usize) -> Result<Pull, WorkloadError> {
        let commit = self.commits[index];
        let mut ops = Vec::new();
        let info = self.repository.commit(commit)?;
        if index == self.options.start {
            let gc_auto = if self.options.gc { self.options.gc_auto } else { 0 };
            plan_skeleton(&compute_config(gc_auto, self.options.gc_auto_pack_limit), &mut ops);
            self.plan_clone_objects(index, &mut ops)?;
        } else {
            self.plan_fetch(index, commit, &mut ops)?;
        }
        ops.push(create(".git/index.lock", ""));
        let changes = compute_changes(&*self.repository, self.tree, Some(info.tree))?;
        plan_checkout(&*self.repository, &mut self.index, &changes, &mut ops)?;
        self.tree = Some(info.tree);
        let index_file = content(ContentKey::Index(index));
        ops.push(Op::Write { path: path(".git/index.lock"), offset: 0, content: index_file });
        ops.push(rename(".git/index.lock", ".git/index"));
        let message = if index == self.options.start { "clone" } else { "reset: moving to FETCH_HEAD" };
        self.refs.plan_move(commit, info.committed_unix_seconds, message, &mut ops);
        if let Some(gc) = &mut self.gc {
            gc.plan_auto(index, self.refs.head(), &mut self.store, &*self.packs, &mut ops)?;
        }
        Ok(Pull { index, commit, ops: ops.into() })
    }

    fn plan_clone_objects(&mut self, start: usize, ops: &mut Vec<Op>) -> Result<(), WorkloadError> {
        for &commit in &self.commits[..=start] {
            self.seen.add(&*self.repository, commit, &mut self.new_objects)?;
            self.new_objects.clear();
        }
        self.store.plan_pack(PackKey::All(start), true, &*self.packs, ops)
    }

    fn plan_fetch(&mut self, index: usize, commit: Oid, ops: &mut Vec<Op>) -> Result<(), WorkloadError> {
        let fetch_head = ".git/FETCH_HEAD";
        if self.fetched_before {
            ops.push(Op::Truncate { path: path(fetch_head), len: 0 });
        } else {
            ops.push(create(fetch_head, ""));
            self.fetched_before = true;
        }
        self.new_objects.clear();
        self.seen.add(&*self.repository, commit, &mut self.new_objects)?;
        if self.new_objects.len() >= self.options.unpack_limit {
            self.store.plan_pack(PackKey::Fetch(index), true, &*self.packs, ops)?;
        } else {
            for oid in self.new_objects.iter() {
                self.store.plan_loose(oid, ops);
            }
        }
        let line = format!("{commit}\t\t'{commit}' of source\n");
        let content = Content::Inline(line.as_bytes().into());
        ops.push(Op::Write { path: path(fetch_head), offset: 0, content });
        ops.push(create(".git/objects/maintenance.lock", ""));
        ops.push(unlink(".git/objects/maintenance.lock"));
        Ok(())
    }
}

impl Iterator for PullPlanner {
    type Item = Result<Pull, WorkloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next;
        if index >= self.commits.len() {
            if index == self.options.start {
                self.next = usize::MAX;
                let problem = format!(
                    "it has {} commits, so there is no commit at position {index} to start from",
                    self.commits.len()
                );
                return Some(Err(malformed("the range of commits", problem)));
            }
            return None;
        }
        let pull = self.plan_next(index);
        self.next = if pull.is_ok() { index + 1 } else { usize::MAX };
        Some(pull)
    }
}
