//! A history: an open repository and the list of its commits.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use senesce_workload::{
    WorkloadError,
    git::{CommitInfo, Oid, Repository, TreeEntry},
};

use crate::{Error, SpoolRepository, command::Git, objects::Objects};

/// The selection of commits of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryOptions {
    /// The newest commit: a branch, a tag, a hash. The default is `HEAD`.
    pub tip: Option<String>,
    /// Whether to follow first parents only.
    pub first_parent: bool,
    /// The number of commits to keep, from the oldest on.
    pub limit: Option<usize>,
}

/// An open repository and its commits, oldest first. Cheap to clone; clones share all data.
#[derive(Clone)]
pub struct History {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub objects: Objects,
    pub git_dir: PathBuf,
    pub commits: Arc<[Oid]>,
    pub numbers: HashMap<Oid, u32>,
}

impl History {
    /// Opens a repository and lists its commits, like `git rev-list --topo-order --reverse
    /// [--first-parent] TIP`.
    ///
    /// Errors: no commits, no such tip, an unreadable commit, no git binary.
    ///
    /// Cost: reads every commit once; about 60 bytes per commit stay in memory, 200 during the
    /// call.
    pub fn open(repository: &SpoolRepository, options: HistoryOptions) -> Result<History, Error> {
        let (origin, git_dir) = (repository.origin(), repository.git_dir().to_owned());
        let objects = Objects::open(origin, &git_dir)?;
        let tip = resolve(origin, &git_dir, options.tip.as_deref())?;
        let mut commits = list_commits(&objects, tip, options.first_parent)?;
        commits.truncate(options.limit.unwrap_or(usize::MAX));
        let numbers = commits.iter().zip(0..).map(|(&oid, number)| (oid, number)).collect();
        Ok(History { inner: Arc::new(Inner { objects, git_dir, commits: commits.into(), numbers }) })
    }

    /// The commits, oldest first, each after its parents.
    pub fn commits(&self) -> Arc<[Oid]> {
        self.inner.commits.clone()
    }

    /// The number of commits.
    pub fn len(&self) -> usize {
        self.inner.commits.len()
    }

    /// Whether there are no commits (only with a limit of 0).
    pub fn is_empty(&self) -> bool {
        self.inner.commits.is_empty()
    }

    /// The git directory of the spool repository.
    pub fn git_dir(&self) -> &Path {
        &self.inner.git_dir
    }
}

impl Inner {
    /// The object id of commit number `number`.
    pub fn oid(&self, number: usize) -> Result<Oid, Error> {
        self.commits.get(number).copied().ok_or(Error::NoSuchNumber { number, count: self.commits.len() })
    }

    /// The commits of `0..=last` that are no parent of another one of them. They reach all others.
    ///
    /// Cost: reads `last` commits.
    pub fn heads(&self, last: usize) -> Result<Vec<Oid>, Error> {
        self.oid(last)?;
        let mut is_parent = vec![false; last + 1];
        for &oid in &self.commits[..=last] {
            for parent in self.objects.read_commit(oid)?.parents {
                if let Some(&number) = self.numbers.get(&parent) {
                    // A limit or `first_parent` lists fewer commits than exist.
                    if let Some(seen) = is_parent.get_mut(number as usize) {
                        *seen = true;
                    }
                }
            }
        }
        Ok((0..=last).filter(|&number| !is_parent[number]).map(|number| self.commits[number]).collect())
    }

    /// The commits that a copy with the commits `0..number` would name as known in a request for
    /// commit `number`.
    pub fn haves(&self, number: usize) -> Result<Vec<Oid>, Error> {
        let mut haves = self.objects.read_commit(self.oid(number)?)?.parents;
        haves.retain(|parent| self.numbers.get(parent).is_some_and(|&at| (at as usize) < number));
        if let Some(before) = number.checked_sub(1) {
            let before = self.oid(before)?;
            if !haves.contains(&before) {
                haves.push(before);
            }
        }
        Ok(haves)
    }
}

impl Repository for History {
    fn commit(&self, oid: Oid) -> Result<CommitInfo, WorkloadError> {
        self.inner.objects.commit(oid)
    }

    fn tree(&self, oid: Oid) -> Result<Vec<TreeEntry>, WorkloadError> {
        self.inner.objects.tree(oid)
    }

    fn blob(&self, oid: Oid) -> Result<Vec<u8>, WorkloadError> {
        self.inner.objects.blob(oid)
    }
}

fn resolve(path: &Path, git_dir: &Path, tip: Option<&str>) -> Result<Oid, Error> {
    let name = format!("{}^{{commit}}", tip.unwrap_or("HEAD"));
    let answer = Git::new("rev-parse", git_dir).git_dir().args(["--verify", "--end-of-options", &name]).run();
    let output = answer.map_err(|error| match (error, tip) {
        (Error::Git { .. }, None) if !has_refs(git_dir) => Error::Empty { path: path.to_owned() },
        (Error::Git { stderr, .. }, tip) => {
            Error::NoSuchTip { path: path.to_owned(), tip: tip.unwrap_or("HEAD").to_owned(), problem: stderr }
        }
        (other, _) => other,
    })?;
    let text = String::from_utf8_lossy(&output);
    // Some versions print `--end-of-options`, too.
    let hex = text.lines().rev().find_map(|line| line.trim().parse().ok());
    hex.ok_or_else(|| Error::NoSuchTip { path: path.to_owned(), tip: name, problem: format!("git said {text:?}") })
}

fn has_refs(git_dir: &Path) -> bool {
    let refs = Git::new("for-each-ref", git_dir).git_dir().args(["--count=1"]).run();
    refs.is_ok_and(|output| !output.is_empty())
}

/// Lists the commits, oldest first: the reverse of git's topological order. In that order the last
/// parent of a merge comes first, and no commit comes before all its children.
fn list_commits(objects: &Objects, tip: Oid, first_parent: bool) -> Result<Vec<Oid>, Error> {
    let mut numbers = HashMap::from([(tip, 0usize)]);
    let mut oids = vec![tip];
    let mut parents: Vec<Vec<usize>> = Vec::new();
    let mut children = vec![0u32];
    while parents.len() < oids.len() {
        let mut of_commit = objects.read_commit(oids[parents.len()])?.parents;
        if first_parent {
            of_commit.truncate(1);
        }
        let mut found = Vec::with_capacity(of_commit.len());
        for parent in of_commit {
            let number = *numbers.entry(parent).or_insert_with(|| {
                oids.push(parent);
                children.push(0);
                oids.len() - 1
            });
            // A parent that is named twice is one parent.
            if !found.contains(&number) {
                found.push(number);
                children[number] += 1;
            }
        }
        parents.push(found);
    }
    let mut order = Vec::with_capacity(oids.len());
    let mut ready = vec![0];
    while let Some(number) = ready.pop() {
        order.push(oids[number]);
        for &parent in &parents[number] {
            children[parent] -= 1;
            if children[parent] == 0 {
                ready.push(parent);
            }
        }
    }
    order.reverse();
    Ok(order)
}
