//! The starting tree of a synthetic history.

use senesce_core::Rng;

use super::{
    model::HistoryModel,
    tree::{DirId, Tree},
};

/// Grows a tree of `files` files.
///
/// Small trees have the same median of files per directory, but no directory holds more than a
/// twelfth of all files. The top level always has at least three directories, so that a tree of 500
/// files is about as deep as a large one.
pub(super) fn grow_tree(rng: &mut Rng, model: &HistoryModel, files: u64) -> Tree {
    let mut tree = Tree::new(model);
    let shape = &model.tree;
    let limit = (files / 12).max(8);
    let mut by_depth: Vec<Vec<DirId>> = vec![vec![0]];
    let mut left = files - shape.top_files;
    fill(&mut tree, rng, model, 0, shape.top_files);
    while left > 0 {
        let depth = match by_depth.get(1).map_or(0, Vec::len) {
            0..3 => 1,
            // Never deeper than one level below the existing directories.
            _ => (rng.weighted(&shape.directories_by_depth) + 1).min(by_depth.len()),
        };
        let parents = &by_depth[depth - 1];
        let parent = parents[rng.below(parents.len() as u64) as usize];
        let dir = tree.add_dir(rng, parent);
        if by_depth.len() == depth {
            by_depth.push(Vec::new());
        }
        by_depth[depth].push(dir);
        let here = shape.files_per_directory.sample(rng).min(limit).min(left);
        fill(&mut tree, rng, model, dir, here);
        left -= here;
    }
    tree
}

fn fill(tree: &mut Tree, rng: &mut Rng, model: &HistoryModel, dir: DirId, files: u64) {
    for _ in 0..files {
        let size = model.sizes.start.sample(rng);
        tree.add_file(rng, dir, size, 0);
    }
}
