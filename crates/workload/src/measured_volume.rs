//! A volume for tests: names, sizes, blocks of 4 KiB and a capacity. Panics on every operation that
//! a file system refuses.

use std::collections::{BTreeMap, BTreeSet};

use senesce_core::Bytes;
use senesce_oplog::{Content, Op, Outcome, Step};

use crate::{Feedback, Workload, WorkloadError};

const BLOCK_BYTES: u64 = 4096;

pub(crate) struct Meter {
    /// Sizes by path.
    pub files: BTreeMap<String, u64>,
    pub directories: BTreeSet<String>,
    capacity_blocks: u64,
    used_blocks: u64,
    last: Option<Outcome>,
    /// The number of writes in a step that succeed before one is refused although there is space.
    /// The refusal resets it.
    pub refuse_after: Option<usize>,
}

impl Meter {
    pub fn new(capacity: u64) -> Self {
        Self {
            files: BTreeMap::new(),
            directories: BTreeSet::from([String::new()]),
            capacity_blocks: capacity / BLOCK_BYTES,
            used_blocks: 0,
            last: None,
            refuse_after: None,
        }
    }

    pub fn feedback(&self) -> Feedback {
        let capacity = Bytes(self.capacity_blocks * BLOCK_BYTES);
        let free = Bytes((self.capacity_blocks - self.used_blocks) * BLOCK_BYTES);
        Feedback { capacity, free, last: self.last }
    }

    pub fn used_share(&self) -> f64 {
        self.used_blocks as f64 / self.capacity_blocks as f64
    }

    /// Requests a step and applies it.
    pub fn step(&mut self, workload: &mut dyn Workload) -> Result<Option<Step>, WorkloadError> {
        let step = workload.next_step(&self.feedback())?;
        if let Some(step) = &step {
            self.last = Some(self.apply(step));
        }
        Ok(step)
    }

    /// Runs all steps.
    pub fn run(&mut self, workload: &mut dyn Workload) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(step) = self.step(workload).unwrap() {
            steps.push(step);
        }
        steps
    }

    pub fn last(&self) -> Outcome {
        self.last.unwrap_or(Outcome::Done)
    }

    fn apply(&mut self, step: &Step) -> Outcome {
        let mut writes = 0;
        for (index, op) in step.ops.iter().enumerate() {
            writes += usize::from(op.content().is_some());
            if op.content().is_some() && self.refuse_after.is_some_and(|most| writes > most) {
                self.refuse_after = None;
                if let Op::Create { path, .. } = op {
                    self.files.insert(step.root.join(path).to_string(), 0);
                }
                return Outcome::NoSpace { failed_op: index, written: Some(0) };
            }
            if let Err(written) = self.one(step, op) {
                return Outcome::NoSpace { failed_op: index, written };
            }
        }
        Outcome::Done
    }

    fn parent_exists(&self, path: &str) -> bool {
        self.directories.contains(path.rsplit_once('/').map_or("", |(parent, _)| parent))
    }

    fn one(&mut self, step: &Step, op: &Op) -> Result<(), Option<u64>> {
        let at = |path: &senesce_core::RelPath| step.root.join(path).to_string();
        match op {
            Op::Mkdir { path, .. } => {
                let path = at(path);
                assert!(self.parent_exists(&path) && !self.files.contains_key(&path), "mkdir {path}");
                self.take(1).map_err(|()| None)?;
                assert!(self.directories.insert(path.clone()), "{path} is made twice");
            }
            Op::Create { path, content, .. } => {
                let path = at(path);
                assert!(self.parent_exists(&path) && !self.directories.contains(&path), "create {path}");
                assert!(self.files.insert(path.clone(), 0).is_none(), "{path} is created twice");
                self.write(&path, 0, length(content)).map_err(Some)?;
            }
            Op::Write { path, offset, content } => {
                let path = at(path);
                assert!(self.files.contains_key(&path), "write {path}");
                self.write(&path, *offset, length(content)).map_err(Some)?;
            }
            Op::Unlink { path } => {
                let path = at(path);
                let size = self.files.remove(&path).unwrap_or_else(|| panic!("unlink {path}"));
                self.used_blocks -= size.div_ceil(BLOCK_BYTES);
            }
            Op::Rename { from, to } => {
                let size = self.files.remove(&at(from)).unwrap_or_else(|| panic!("rename {from}"));
                assert!(self.parent_exists(&at(to)), "rename to {to}");
                if let Some(size) = self.files.insert(at(to), size) {
                    self.used_blocks -= size.div_ceil(BLOCK_BYTES);
                }
            }
            Op::RemoveTree { path } => {
                let (path, below) = (at(path), format!("{}/", at(path)));
                assert!(self.directories.remove(&path), "remove {path}");
                let directories = self.directories.len();
                self.directories.retain(|name| !name.starts_with(&below));
                self.used_blocks -= 1 + (directories - self.directories.len()) as u64;
                let used = &mut self.used_blocks;
                self.files.retain(|name, size| {
                    let stays = !name.starts_with(&below);
                    *used -= if stays { 0 } else { size.div_ceil(BLOCK_BYTES) };
                    stays
                });
            }
            Op::Fsync { path } => assert!(self.files.contains_key(&at(path)), "fsync {path}"),
            Op::Read { path, offset, len } => {
                assert!(self.files[&at(path)] >= offset + len, "read {path} beyond its end");
            }
            Op::SyncFs => {}
            other => panic!("{other} is not expected of these workloads"),
        }
        Ok(())
    }

    fn take(&mut self, blocks: u64) -> Result<(), ()> {
        if self.used_blocks + blocks > self.capacity_blocks {
            return Err(());
        }
        self.used_blocks += blocks;
        Ok(())
    }

    /// Errors: the bytes that were written before the space was exhausted.
    fn write(&mut self, path: &str, offset: u64, len: u64) -> Result<(), u64> {
        let size = self.files[path];
        let old = size.div_ceil(BLOCK_BYTES);
        let reach = (old + self.capacity_blocks - self.used_blocks) * BLOCK_BYTES;
        let written = (offset + len).min(reach).saturating_sub(offset);
        let new = size.max(offset + written);
        self.files.insert(path.to_owned(), new);
        self.used_blocks += new.div_ceil(BLOCK_BYTES) - old;
        if written < len { Err(written) } else { Ok(()) }
    }
}

/// The length of a content, bytes.
pub(crate) fn length(content: &Content) -> u64 {
    match content {
        Content::Inline(bytes) => bytes.len() as u64,
        Content::Seeded { len, .. } => *len,
        Content::Derived(derived) => derived.key.rsplit(' ').next().and_then(|len| len.parse().ok()).unwrap(),
    }
}

/// Chi-square of counts against equal expectations.
pub(crate) fn chi_square(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
}

/// The value that chi-square with `degrees` degrees of freedom exceeds once in 10,000 draws
/// (approximation of Wilson and Hilferty).
pub(crate) fn chi_square_limit(degrees: usize) -> f64 {
    let k = degrees as f64;
    let z = 3.719;
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3)
}
