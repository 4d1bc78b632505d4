//! Fragments all files below a directory, one at a time.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use senesce_probe::{
    collect::{collect_space, collect_tree_extents},
    score::LayoutScorer,
};
use senesce_volume::{Custodian, check_interrupted, is_interrupted};
use serde::Serialize;

use crate::{
    Error, FileTarget, Result,
    apply::{Workplace, collect_kind},
    file::fragment_in,
};

/// The most files that could not be cut and are named in the report.
const NAMED: usize = 10;

/// The result, measured by FIEMAP.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeReport {
    /// Files that have the requested number of extents.
    pub files: u64,
    /// Files that could not be cut and are unchanged.
    pub left: u64,
    /// The first of them, with the reason.
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
/// Errors: not ext4, XFS or Btrfs; the tree cannot be walked; a file in use; a signal. Other files
/// that cannot be cut are in the report. Cost: every file whose number of extents differs is
/// written once.
pub fn fragment_tree(custodian: &Custodian, root: &Path, target: FileTarget) -> Result<TreeReport> {
    let (_, unit) = collect_kind(root)?;
    let device = fs::metadata(root).map_err(Error::io("look up", root))?.dev();
    let mut paths = Vec::new();
    find_files(root, device, &mut paths)?;
    let (mut files, mut left, mut left_why, mut carry) = (0, 0, Vec::new(), 0.0);
    // One entry in the journal for consecutive files of a directory.
    let mut workplace: Option<(PathBuf, Workplace<'_>)> = None;
    for path in paths {
        check_interrupted("the fragmentation of a tree")?;
        let size = fs::symlink_metadata(&path).map_err(Error::io("look up", &path))?.len();
        let blocks = size.div_ceil(unit);
        if blocks == 0 {
            continue;
        }
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
            Err(Error::Volume(error)) => return Err(error.into()),
            Err(error) => {
                left += 1;
                if left_why.len() < NAMED {
                    left_why.push(error.to_string());
                }
            }
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
    Ok(TreeReport { files, left, left_why, extents: figures.extents, extents_per_file, layout_score })
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
        let metadata = fs::symlink_metadata(&path).map_err(Error::io("look up", &path))?;
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
