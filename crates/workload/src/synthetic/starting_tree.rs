//! The starting tree of a synthetic history.

use senesce_core::Rng;

use super::{
    quantiles::{FILES_PER_DIRECTORY, START_SIZE},
    tree::{DirId, Tree},
};

/// Directories by depth: 16, 264, 575, 179, 41 at depths 1 to 5 in Linux 2.6.12 (counted in its
/// trace). The mean depth of its files, name included, is 3.6.
const DIRECTORIES_BY_DEPTH: [u64; 5] = [16, 264, 575, 179, 41];

/// Grows a tree of `files` files.
///
/// Small trees have the same median of files per directory, but no directory holds more than a
/// twelfth of all files. The top level always has at least three directories, so that a tree of 500
/// files is about as deep as a large one.
pub(super) fn grow_tree(rng: &mut Rng, files: u64) -> Tree {
    let mut tree = Tree::new();
    let limit = (files / 12).max(8);
    let mut by_depth: Vec<Vec<DirId>> = vec![vec![0]];
    let mut left = files - 6;
    fill(&mut tree, rng, 0, 6);
    while left > 0 {
        let depth = match by_depth.get(1).map_or(0, Vec::len) {
            0..3 => 1,
            // Never deeper than one level below the existing directories.
            _ => (rng.weighted(&DIRECTORIES_BY_DEPTH) + 1).min(by_depth.len()),
        };
        let parents = &by_depth[depth - 1];
        let parent = parents[rng.below(parents.len() as u64) as usize];
        let dir = tree.add_dir(rng, parent);
        if by_depth.len() == depth {
            by_depth.push(Vec::new());
        }
        by_depth[depth].push(dir);
        let here = FILES_PER_DIRECTORY.sample(rng).min(limit).min(left);
        fill(&mut tree, rng, dir, here);
        left -= here;
    }
    tree
}

fn fill(tree: &mut Tree, rng: &mut Rng, dir: DirId, files: u64) {
    for _ in 0..files {
        let size = START_SIZE.sample(rng);
        tree.add_file(rng, dir, size, 0);
    }
}
