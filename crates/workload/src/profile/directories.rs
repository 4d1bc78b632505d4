//! The directories of an aged volume. Each level has the width of the profile. A directory is made
//! when a file needs it.

use std::collections::HashMap;

use senesce_core::{RelPath, Rng};

use super::format::DepthDistribution;

/// Existing directories, by number.
pub(super) struct Directories {
    /// The largest number of directories of each level; the root is level 0.
    widths: Vec<u64>,
    known: HashMap<(usize, u64), u32>,
    paths: Vec<RelPath>,
}

impl Directories {
    pub fn new(depth: &DepthDistribution) -> Self {
        let deepest = depth.values.last().copied().unwrap_or(0) as usize;
        let mut widths = vec![1; deepest + 1];
        for (&level, &width) in depth.values.iter().zip(&depth.subdirs).filter(|(level, _)| **level > 0) {
            widths[level as usize] = width.max(1);
        }
        Self { widths, known: HashMap::from([((0, 0), 0)]), paths: vec![RelPath::root()] }
    }

    /// Returns a random directory of this depth, all equally likely. Appends the directories to
    /// make to `missing`.
    pub fn pick(&mut self, depth: u64, rng: &mut Rng, missing: &mut Vec<RelPath>) -> u32 {
        let level = depth as usize;
        let index = rng.below(self.widths[level]);
        self.find(level, index, missing)
    }

    fn find(&mut self, level: usize, index: u64, missing: &mut Vec<RelPath>) -> u32 {
        if let Some(&known) = self.known.get(&(level, index)) {
            return known;
        }
        let parent = self.find(level - 1, index % self.widths[level - 1], missing);
        let name = RelPath::new(format!("d{index}").as_bytes()).expect("letters and digits are a name");
        let path = self.paths[parent as usize].join(&name);
        missing.push(path.clone());
        let number = self.paths.len() as u32;
        self.paths.push(path);
        self.known.insert((level, index), number);
        number
    }

    /// The path of a file.
    pub fn file_path(&self, directory: u32, serial: u64) -> RelPath {
        let name = RelPath::new(format!("f{serial}").as_bytes()).expect("letters and digits are a name");
        self.paths[directory as usize].join(&name)
    }
}
