//! A trace as a workload.

use std::{collections::HashMap, io::BufRead};

use senesce_core::{RelPath, Seed};
use senesce_oplog::{Content, Op, Step};

use super::{TraceChange, TraceCommit, TraceReader};
use crate::{Feedback, Workload, WorkloadError};

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The seed of the contents. Each content also depends on its path and its commit.
    pub seed: Seed,
    /// The largest number of commits; all if `None`.
    pub max_commits: Option<u64>,
}

/// Replays a trace: one uncounted step `start tree`, then one counted step per commit.
///
/// A file is created with mode 0644 and bytes that do not compress; a replaced one is unlinked
/// first, as git does. Directories (0755) are made before their first entry and removed after their
/// last one. A `D` of a missing file does nothing; [`absent_deletes`](Self::absent_deletes) counts
/// them. Real traces reduce merges to one parent and hold a few of these lines.
///
/// Errors: a line that is no record; a repeated `S` path; a path that is a file and a directory at
/// once. Cost: memory for the live paths, independent of the length of the trace.
#[derive(Debug)]
pub struct TraceReplay<R> {
    reader: TraceReader<R>,
    options: TraceOptions,
    content_seed: u64,
    tree: Tree,
    started: bool,
    commits_done: u64,
    absent_deletes: u64,
}

/// The live paths. The root directory always exists and is not listed.
#[derive(Debug, Default)]
struct Tree(HashMap<RelPath, Node>);

#[derive(Debug)]
enum Node {
    File,
    /// With the number of its direct entries.
    Directory(u64),
}

impl<R: BufRead + Send> TraceReplay<R> {
    /// A replay of plain trace text from its start.
    pub fn new(input: R, options: TraceOptions) -> Self {
        Self {
            reader: TraceReader::new(input),
            options,
            content_seed: options.seed.derive("trace content").0,
            tree: Tree::default(),
            started: false,
            commits_done: 0,
            absent_deletes: 0,
        }
    }

    /// The number of `D` lines that named a missing file.
    pub fn absent_deletes(&self) -> u64 {
        self.absent_deletes
    }

    /// Files and directories that exist after the last step, without the root.
    pub fn live_paths(&self) -> usize {
        self.tree.0.len()
    }

    fn start_ops(&mut self) -> Result<Vec<Op>, WorkloadError> {
        let (tree, content_seed) = (&mut self.tree, self.content_seed);
        let mut ops = Vec::new();
        self.reader.read_start(&mut |file| {
            if tree.0.contains_key(&file.path) {
                return Err(clash(&file.path, "comes twice in the starting tree"));
            }
            tree.create(file.path, file.size.0, content_seed, 0, &mut ops)
        })?;
        Ok(ops)
    }

    fn commit_ops(&mut self, commit: TraceCommit) -> Result<Vec<Op>, WorkloadError> {
        let mut ops = Vec::with_capacity(commit.changes.len() * 2);
        for change in commit.changes {
            match change {
                TraceChange::Delete { path } => {
                    if !self.tree.delete(&path, &mut ops)? {
                        self.absent_deletes += 1;
                    }
                }
                TraceChange::Write { path, size } => {
                    self.tree.create(path, size.0, self.content_seed, commit.number, &mut ops)?;
                }
            }
        }
        Ok(ops)
    }
}

impl<R: BufRead + Send> Workload for TraceReplay<R> {
    fn next_step(&mut self, _feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        let (label, counted, ops) = if !self.started {
            self.started = true;
            ("start tree".to_owned(), false, self.start_ops())
        } else {
            if self.options.max_commits.is_some_and(|max| self.commits_done >= max) {
                return Ok(None);
            }
            let Some(commit) = self.reader.next_commit()? else { return Ok(None) };
            self.commits_done = commit.number;
            (format!("commit {}", commit.number), true, self.commit_ops(commit))
        };
        let ops = ops.map_err(|error| match error {
            // The tree does not know the position in the text.
            WorkloadError::Source { what, problem, source } if !what.contains("line") => WorkloadError::Source {
                what: format!("{what} ({label}, before line {} of the trace)", self.reader.line() + 1),
                problem,
                source,
            },
            other => other,
        })?;
        Ok(Some(Step { label, counted, root: RelPath::root(), ops: ops.into() }))
    }

    fn copies(&self) -> u64 {
        u64::from(self.started)
    }
}

impl Tree {
    fn create(
        &mut self,
        path: RelPath,
        len: u64,
        seed: u64,
        commit: u64,
        ops: &mut Vec<Op>,
    ) -> Result<(), WorkloadError> {
        match self.0.get(&path) {
            Some(Node::Directory(_)) => return Err(clash(&path, "is written as a file, but is a directory")),
            Some(Node::File) => ops.push(Op::Unlink { path: path.clone() }),
            None => {
                self.enter(&path, ops)?;
                self.0.insert(path.clone(), Node::File);
            }
        }
        let content = Content::Seeded { seed: content_seed(seed, &path, commit), len };
        ops.push(Op::Create { path, mode: 0o644, content });
        Ok(())
    }

    /// Counts a new entry in its parent. Makes missing directories, outermost first.
    fn enter(&mut self, path: &RelPath, ops: &mut Vec<Op>) -> Result<(), WorkloadError> {
        let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else { return Ok(()) };
        match self.0.get_mut(&parent) {
            Some(Node::Directory(entries)) => *entries += 1,
            Some(Node::File) => return Err(clash(&parent, "is used as a directory, but is a file")),
            None => {
                self.enter(&parent, ops)?;
                ops.push(Op::Mkdir { path: parent.clone(), mode: 0o755 });
                self.0.insert(parent, Node::Directory(1));
            }
        }
        Ok(())
    }

    /// Removes a file; false if it did not exist.
    fn delete(&mut self, path: &RelPath, ops: &mut Vec<Op>) -> Result<bool, WorkloadError> {
        match self.0.get(path) {
            None => return Ok(false),
            Some(Node::Directory(_)) => return Err(clash(path, "is deleted as a file, but is a directory")),
            Some(Node::File) => {}
        }
        self.0.remove(path);
        ops.push(Op::Unlink { path: path.clone() });
        let mut child = path.clone();
        while let Some(parent) = child.parent().filter(|parent| !parent.is_root()) {
            match self.0.get_mut(&parent) {
                Some(Node::Directory(entries)) if *entries > 1 => {
                    *entries -= 1;
                    break;
                }
                _ => {
                    self.0.remove(&parent);
                    ops.push(Op::Rmdir { path: parent.clone() });
                    child = parent;
                }
            }
        }
        Ok(true)
    }
}

/// The seed of one version of one file: FNV-1a over the path, then mixed with the commit (finalizer
/// of splitmix64).
fn content_seed(seed: u64, path: &RelPath, commit: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for &byte in path.as_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = hash.wrapping_add(commit.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

fn clash(path: &RelPath, problem: &str) -> WorkloadError {
    WorkloadError::Source { what: format!("path {path}"), problem: format!("it {problem}"), source: None }
}
