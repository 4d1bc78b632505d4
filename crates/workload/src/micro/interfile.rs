//! Files copied in shuffled order.

use std::collections::BTreeSet;

use senesce_core::{Bytes, RelPath, Rng, Seed};
use senesce_oplog::{Content, Op, Outcome, Step};

use crate::{Feedback, Workload, WorkloadError, generated_paths::path, retry::Retry};

/// Parameters of [`Interfile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfileOptions {
    /// The seed of every random choice.
    pub seed: Seed,
    /// The number of files.
    pub files: u64,
    /// The size of a file, bytes.
    pub file_bytes: u64,
    /// Files of a directory.
    pub files_per_directory: u64,
    /// The growth of the shuffled share from copy to copy, percent.
    pub step_percent: u64,
}

impl InterfileOptions {
    /// The published file size of 4 KiB. 20,000 files (similar to an early Linux), 12 in a
    /// directory, in steps of 10%.
    pub fn paper(seed: Seed) -> Self {
        Self { seed, files: 20_000, file_bytes: 4 * Bytes::KIB, files_per_directory: 12, step_percent: 10 }
    }

    /// The number of copies after the first, ordered one.
    pub fn copies(&self) -> u64 {
        100u64.div_ceil(self.step_percent.max(1))
    }

    /// Estimates the bytes that a copy occupies; `u64::MAX` if the number overflows.
    pub fn first_state_bytes(&self) -> u64 {
        let directories = self.files / self.files_per_directory.max(1);
        let blocks = self.file_bytes.div_ceil(4096).saturating_mul(self.files).saturating_add(directories);
        blocks.saturating_mul(4096)
    }

    /// Errors: a parameter out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        for (name, value, most, problem) in [
            ("files", self.files, 100_000_000, "must be between 1 and 100,000,000"),
            ("files_per_directory", self.files_per_directory, 1_000_000, "must be between 1 and 1,000,000"),
            ("step_percent", self.step_percent, 100, "must be between 1 and 100"),
        ] {
            if value == 0 || value > most {
                return Err(WorkloadError::Parameter { name, value: value.to_string(), problem });
            }
        }
        Ok(())
    }
}

/// The copy order of `files` files when the first `percent` of the positions are shuffled. Each of
/// these positions is swapped with itself or a later one, drawn uniformly.
///
/// In: percent up to 100. Out: a permutation of `0..files`; 0 percent is the identity, 100 percent
/// uniformly random. A larger share continues the shuffle of a smaller one. Cost: linear.
pub fn compute_order(seed: Seed, files: u64, percent: u64) -> Vec<u32> {
    let mut rng = Rng::for_purpose(seed, "interfile order");
    let mut order: Vec<u32> = (0..files as u32).collect();
    let shuffled = (u128::from(files) * u128::from(percent.min(100))).div_ceil(100) as u64;
    for position in 0..shuffled.min(files) {
        let other = position + rng.below(files - position);
        order.swap(position as usize, other as usize);
    }
    order
}

/// A tree that is copied to a fresh volume repeatedly, each time in a more shuffled order.
///
/// Steps: `copy in order` (not counted), then for each share `remove the copy` (not counted) and
/// `copy with P% shuffled` (counted). Each copy belongs on a freshly formatted volume.
pub struct Interfile {
    options: InterfileOptions,
    copies: u64,
    removes_next: bool,
    wants_fresh: bool,
    is_removed: bool,
    retry: Retry,
}

impl Interfile {
    /// Errors: a parameter out of its range.
    pub fn new(options: InterfileOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let retry = Retry::default();
        Ok(Self { options, copies: 0, removes_next: false, wants_fresh: false, is_removed: false, retry })
    }

    fn percent(&self) -> u64 {
        (self.copies * self.options.step_percent).min(100)
    }

    /// The operations of a copy. Each directory is made before its first file, as in a copy of a
    /// file list.
    fn copy(&self) -> Vec<Op> {
        let mut ops = vec![Op::Mkdir { path: path(""), mode: 0o755 }];
        let mut made: BTreeSet<RelPath> = BTreeSet::new();
        for number in compute_order(self.options.seed, self.options.files, self.percent()) {
            let (directory, file) = place(u64::from(number), self.options.files_per_directory);
            let parent = directory.parent().unwrap_or_default();
            for directory in [parent, directory.clone()] {
                if made.insert(directory.clone()) {
                    ops.push(Op::Mkdir { path: directory, mode: 0o755 });
                }
            }
            // Every copy has the same bytes.
            let content =
                Content::Seeded { seed: self.options.seed.0 ^ u64::from(number), len: self.options.file_bytes };
            ops.push(Op::Create { path: directory.join(&file), mode: 0o644, content });
        }
        ops.push(Op::SyncFs);
        ops
    }
}

/// Subdirectories of a directory.
const DIRECTORIES: u64 = 40;

/// The directory and the name of a file. Path order is number order.
fn place(number: u64, files_per_directory: u64) -> (RelPath, RelPath) {
    let directory = number / files_per_directory;
    let (upper, lower) = (directory / DIRECTORIES, directory % DIRECTORIES);
    (path(&format!("d{upper:06}/d{lower:02}")), path(&format!("f{number:08}")))
}

impl Workload for Interfile {
    fn next_step(&mut self, feedback: &Feedback) -> Result<Option<Step>, WorkloadError> {
        self.wants_fresh = false;
        if let Some(step) = self.retry.settle(feedback)? {
            return Ok(Some(step));
        }
        let root = path("tree");
        if self.removes_next {
            if self.copies > self.options.copies() {
                return Ok(None);
            }
            (self.removes_next, self.is_removed) = (false, true);
            let ops = [Op::RemoveTree { path: path("") }, Op::SyncFs].into();
            return Ok(Some(self.retry.give(Step { label: "remove the copy".into(), counted: false, root, ops })));
        }
        let label = match self.copies {
            0 => "copy in order".to_owned(),
            _ => format!("copy with {}% shuffled", self.percent()),
        };
        let counted = self.copies > 0;
        let step = Step { label, counted, root, ops: self.copy().into() };
        self.wants_fresh = counted;
        self.copies += 1;
        (self.removes_next, self.is_removed) = (true, false);
        Ok(Some(self.retry.give(step)))
    }

    fn copies(&self) -> u64 {
        1
    }

    fn is_set_up(&self) -> bool {
        // The first copy is measured before it is removed.
        self.copies > 0 && self.is_removed
    }

    fn is_whole(&self, last: &Outcome) -> bool {
        !self.is_removed && self.retry.is_whole(last)
    }

    fn wants_fresh_volume(&self) -> bool {
        self.wants_fresh
    }
}
