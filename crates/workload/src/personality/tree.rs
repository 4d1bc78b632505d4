//! The files of a set: their sizes and their directory tree.

use senesce_core::{RelPath, Rng};
use senesce_oplog::ScriptFile;

use super::{Fileset, check::compute_halves, gamma::draw_gamma};

/// Directories (parents first) and files of a set.
pub(super) struct Tree {
    pub directories: Vec<RelPath>,
    /// None exists yet.
    pub files: Vec<ScriptFile>,
}

/// Plans the tree of a set of `entries` files. All files have the same depth. Widths and sizes are
/// drawn from gamma distributions.
pub(super) fn plan_tree(set: &Fileset, entries: u64, mean_bytes: u64, rng: &mut Rng) -> Tree {
    let mut planter = Planter {
        set,
        entries,
        mean_bytes,
        depth: compute_depth(entries, set.dir_width),
        rng,
        tree: Tree { directories: Vec::new(), files: Vec::new() },
    };
    let root = name(set.name.clone());
    planter.tree.directories.push(root.clone());
    while planter.is_wanting() {
        let number = planter.tree.directories.len();
        planter.plant(&root, number, 1);
    }
    planter.tree
}

/// log(entries) / log(width), rounded, at least 1. Integer arithmetic gives the same result on
/// every machine.
fn compute_depth(entries: u64, width: u64) -> u32 {
    let square = u128::from(entries) * u128::from(entries);
    let mut depth = 1;
    // depth + 1/2 <= log(entries) / log(width)
    while u128::from(width).checked_pow(2 * depth + 1).is_some_and(|power| power <= square) {
        depth += 1;
    }
    depth
}

fn name(text: String) -> RelPath {
    RelPath::try_from(text.as_str()).expect("names are letters, digits, '-' and '_'")
}

struct Planter<'a> {
    set: &'a Fileset,
    entries: u64,
    mean_bytes: u64,
    depth: u32,
    rng: &'a mut Rng,
    tree: Tree,
}

impl Planter<'_> {
    fn is_wanting(&self) -> bool {
        (self.tree.files.len() as u64) < self.entries
    }

    fn plant(&mut self, parent: &RelPath, number: usize, level: u32) {
        let here = parent.join(&name(format!("{number:08}")));
        self.tree.directories.push(here.clone());
        let halves = compute_halves(self.set.dir_gamma).unwrap_or_default();
        let width = draw_gamma(self.rng, self.set.dir_width, halves).max(1);
        for child in 1..=width {
            if !self.is_wanting() {
                return;
            }
            if level < self.depth {
                self.plant(&here, child as usize, level + 1);
                continue;
            }
            let halves = compute_halves(self.set.size_gamma).unwrap_or_default();
            let bytes = draw_gamma(self.rng, self.mean_bytes, halves).max(1);
            let path = here.join(&name(format!("{child:08}")));
            self.tree.files.push(ScriptFile { path, bytes, preallocated: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_rounded_logarithms() {
        for (entries, width, depth) in
            [(1000, 1_000_000, 1), (10_000, 20, 3), (1000, 20, 2), (10, 1024, 1), (1, 2, 1), (89, 20, 1), (90, 20, 2)]
        {
            assert_eq!(compute_depth(entries, width), depth, "{entries} / {width}");
        }
    }
}
