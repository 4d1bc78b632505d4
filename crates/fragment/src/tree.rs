//! Fragments all files below a directory, one at a time.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use senesce_probe::{
    collect::{collect_space, collect_tree_extents},
    score::LayoutScorer,
};
use senesce_volume::{Custodian, check_interrupted, is_interrupted};
use serde::Serialize;

use crate::{
    Error, FileTarget, Result,
    apply::{Workplace, collect_kind},
    file::{fragment_in, plan_file},
};

/// The most files that could not be cut and are named in the report.
const NAMED: usize = 10;

/// The result, measured by FIEMAP.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TreeReport {
    /// Files that have the requested number of extents.
    pub files: u64,
    /// Files that could not be cut and are unchanged.
    pub left: u64,
    /// The first unchanged files, with the reason.
    pub left_why: Vec<String>,
    /// Extents of all files, adjacent ones merged.
    pub extents: u64,
    /// Mean number of extents per file with blocks.
    pub extents_per_file: Option<f64>,
    /// Aggregate layout score, weighted by blocks.
    pub layout_score: Option<f64>,
}

/// Gives every regular file below `root`, on its file system, the number of extents of `target`, at
/// most its number of blocks. A layout score applies to all files together: the next file
/// compensates for the rounding of one file.
///
/// Errors: not ext4, XFS or Btrfs; the tree cannot be walked; the journal cannot be written; a
/// signal. Files that cannot be cut, because they are in use or for another reason, are in the
/// report. Cost: every file whose number of extents differs is written once.
pub fn fragment_tree(custodian: &Custodian, root: &Path, target: FileTarget) -> Result<TreeReport> {
    let paths = find_all(root)?;
    let (_, unit) = collect_kind(root)?;
    let (mut files, mut left, mut carry) = (0, Left::default(), 0.0);
    // One entry in the journal for consecutive files of a directory.
    let mut workplace: Option<(PathBuf, Workplace<'_>)> = None;
    for path in paths {
        check_interrupted("the fragmentation of a tree")?;
        let Some(blocks) = count_blocks(&path, unit)? else { continue };
        let dir = path.parent().unwrap_or(root).to_owned();
        let here = match workplace.take() {
            Some((known, here)) if known == dir => here,
            other => {
                drop(other);
                Workplace::open(custodian, &dir)?
            }
        };
        let fragmented = fragment_in(&here, &path, FileTarget::Extents(plan_extents(target, blocks, &mut carry)), None);
        workplace = Some((dir, here));
        match fragmented {
            Ok(_) => files += 1,
            Err(error) => left.add(error)?,
        }
    }
    drop(workplace);
    let mut scorer = LayoutScorer::new(collect_space(root)?, 4096);
    let mapped = collect_tree_extents(root, 1, &is_interrupted, &mut |file| {
        scorer.add_file(file.size_bytes, &file.extents);
    });
    check_interrupted("the map of a tree")?;
    mapped?;
    let figures = scorer.finish();
    let (extents_per_file, layout_score) = (figures.extents_per_file, figures.layout_score);
    let Left { count: left, why: left_why } = left;
    Ok(TreeReport { files, left, left_why, extents: figures.extents, extents_per_file, layout_score })
}

/// The changes that a run would make to a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TreePlan {
    /// Files that would be written.
    pub files: u64,
    /// Bytes of the blocks that would be written.
    pub bytes: u64,
    /// Files that have the requested number of extents already.
    pub reached: u64,
    /// Files that cannot be cut.
    pub left: u64,
    /// The first files that cannot be cut, with the reason.
    pub left_why: Vec<String>,
}

/// Checks all files below `root` without a write.
///
/// Errors: those of [`fragment_tree`], without those of the journal. Whether the free space has
/// suitable pieces is not known.
pub fn plan_tree(root: &Path, target: FileTarget) -> Result<TreePlan> {
    let paths = find_all(root)?;
    let (_, unit) = collect_kind(root)?;
    let (mut plan, mut left, mut carry) = (TreePlan::default(), Left::default(), 0.0);
    for path in paths {
        check_interrupted("the fragmentation of a tree")?;
        let Some(blocks) = count_blocks(&path, unit)? else { continue };
        match plan_file(&path, FileTarget::Extents(plan_extents(target, blocks, &mut carry)), None) {
            Ok(planned) if planned.is_reached => plan.reached += 1,
            Ok(_) => {
                plan.files += 1;
                plan.bytes += blocks * unit;
            }
            Err(error) => left.add(error)?,
        }
    }
    Ok(TreePlan { left: left.count, left_why: left.why, ..plan })
}

/// Files that could not be cut.
#[derive(Default)]
struct Left {
    count: u64,
    why: Vec<String>,
}

impl Left {
    /// Counts a file. Errors: `error` concerns the whole tree.
    fn add(&mut self, error: Error) -> Result<()> {
        use senesce_volume::Error as Volume;
        match error {
            // Every file would fail.
            Error::Volume(Volume::Interrupted { .. } | Volume::Journal { .. }) => return Err(error),
            _ => self.count += 1,
        }
        if self.why.len() < NAMED {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let cause = cause.filter(|_| matches!(error, Error::Volume(_))).unwrap_or_default();
            self.why.push(format!("{error}{cause}"));
        }
        Ok(())
    }
}

/// The blocks of a file; `None` if it has none, or if another process removed it.
fn count_blocks(path: &Path, unit: u64) -> Result<Option<u64>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.len().div_ceil(unit)).filter(|blocks| *blocks > 0)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("look up", path)(error)),
    }
}

/// All regular files below `root`, on its file system.
fn find_all(root: &Path) -> Result<Vec<PathBuf>> {
    let device = fs::metadata(root).map_err(Error::io("look up", root))?.dev();
    let mut paths = Vec::new();
    find_files(root, device, &mut paths)?;
    Ok(paths)
}

/// Returns the number of extents for the next file, of `blocks` blocks. `carry` is the number of
/// following blocks that the files before lack.
fn plan_extents(target: FileTarget, blocks: u64, carry: &mut f64) -> u64 {
    match target {
        FileTarget::Extents(extents) => extents.min(blocks),
        FileTarget::LayoutScore(score) => {
            let wanted = score * (blocks - 1) as f64 + *carry;
            let following = wanted.round().clamp(0.0, (blocks - 1) as f64);
            *carry = wanted - following;
            blocks - following as u64
        }
    }
}

fn find_files(dir: &Path, device: u64, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(dir).map_err(Error::io("list", dir))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()
        .map_err(Error::io("list", dir))?;
    paths.sort();
    for path in paths {
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            found => found.map_err(Error::io("look up", &path))?,
        };
        if metadata.is_dir() && metadata.dev() == device {
            find_files(&path, device, found)?;
        } else if metadata.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_file_compensates_rounding() {
        let mut carry = 0.0;
        // In each file of two blocks, one can follow: in every second file it does.
        let extents: Vec<u64> = (0..6).map(|_| plan_extents(FileTarget::LayoutScore(0.5), 2, &mut carry)).collect();
        assert_eq!(extents.iter().sum::<u64>(), 9);
        assert_eq!(plan_extents(FileTarget::Extents(7), 3, &mut carry), 3);
    }
}
