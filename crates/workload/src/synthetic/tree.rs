//! The live tree of the main line's tip, and random choices of its files.

use std::{collections::HashSet, sync::Arc};

use senesce_core::Rng;

use super::{
    commit::SyntheticFile,
    model::HistoryModel,
    quantiles::{Quantiles, size_weight},
    text::Text,
    weighted_choice::Weights,
    words::{ENDINGS, WORDS},
};

/// Index of a live or removed file.
pub(super) type FileId = usize;
/// Index of a directory; 0 is the root.
pub(super) type DirId = usize;

#[derive(Debug)]
pub(super) struct FileState {
    pub dir: DirId,
    pub name: String,
    pub file: Arc<SyntheticFile>,
    /// Thousandths.
    pub heat: u64,
    /// The last commit of the main line that touched it.
    pub touched_at: u64,
    /// Position in `Tree::live`; meaningless after removal.
    live_at: usize,
}

#[derive(Debug)]
pub(super) struct DirState {
    /// Empty for the root, otherwise ends in a slash.
    pub prefix: String,
    pub depth: u32,
    pub files: Vec<FileId>,
    /// Every name ever used here. Names are never reused, so a branch may start at any commit of
    /// the main line.
    used: HashSet<String>,
}

/// All files and directories.
#[derive(Debug)]
pub(super) struct Tree {
    pub files: Vec<FileState>,
    pub dirs: Vec<DirState>,
    pub live: Vec<FileId>,
    weights: Weights,
    blobs: u64,
    heat: Quantiles,
    size_weights: Vec<u64>,
}

impl Tree {
    pub fn new(model: &HistoryModel) -> Self {
        let root = DirState { prefix: String::new(), depth: 0, files: Vec::new(), used: HashSet::new() };
        Self {
            files: Vec::new(),
            dirs: vec![root],
            live: Vec::new(),
            weights: Weights::default(),
            blobs: 0,
            heat: model.choice.heat.clone(),
            size_weights: model.choice.size_weights.clone(),
        }
    }

    pub fn path(&self, file: FileId) -> String {
        let file = &self.files[file];
        format!("{}{}", self.dirs[file.dir].prefix, file.name)
    }

    /// A name in `dir` that was never used there.
    fn fresh_name(&mut self, rng: &mut Rng, dir: DirId, ending: &str) -> String {
        let word = |rng: &mut Rng| WORDS[rng.below(WORDS.len() as u64) as usize];
        let mut stem = word(rng).to_owned();
        if rng.chance(3, 5) {
            stem.push('_');
            stem.push_str(word(rng));
        }
        let used = &mut self.dirs[dir].used;
        let mut name = format!("{stem}{ending}");
        let mut number = 2;
        while used.contains(&name) {
            name = format!("{stem}{number}{ending}");
            number += 1;
        }
        used.insert(name.clone());
        name
    }

    pub fn fresh_file_name(&mut self, rng: &mut Rng, dir: DirId) -> String {
        for plain in ["Makefile", "Kconfig"] {
            if self.dirs[dir].used.len() > 3 && !self.dirs[dir].used.contains(plain) {
                self.dirs[dir].used.insert(plain.to_owned());
                return plain.to_owned();
            }
        }
        let ending = ENDINGS[rng.weighted(&ENDINGS.map(|(_, weight)| weight))].0;
        self.fresh_name(rng, dir, ending)
    }

    pub fn add_dir(&mut self, rng: &mut Rng, parent: DirId) -> DirId {
        let name = self.fresh_name(rng, parent, "");
        let (prefix, depth) = (format!("{}{name}/", self.dirs[parent].prefix), self.dirs[parent].depth + 1);
        self.dirs.push(DirState { prefix, depth, files: Vec::new(), used: HashSet::new() });
        self.dirs.len() - 1
    }

    pub fn add_file(&mut self, rng: &mut Rng, dir: DirId, size: u64, commit: u64) -> FileId {
        let name = self.fresh_file_name(rng, dir);
        let text = Text::new(rng.next_u64(), u32::try_from(size).unwrap_or(u32::MAX));
        let executable = name.ends_with(".sh");
        let file = self.version(executable, text);
        let id = self.files.len();
        let heat = self.heat.sample(rng);
        self.weights.push(self.weight(heat, size));
        self.dirs[dir].files.push(id);
        self.live.push(id);
        self.files.push(FileState { dir, name, file, heat, touched_at: commit, live_at: self.live.len() - 1 });
        id
    }

    fn version(&mut self, executable: bool, text: Text) -> Arc<SyntheticFile> {
        self.blobs += 1;
        Arc::new(SyntheticFile { blob: self.blobs, executable, text })
    }

    pub fn set_text(&mut self, id: FileId, text: Text) {
        let executable = self.files[id].file.executable;
        self.weights.set(id, self.weight(self.files[id].heat, text.len()));
        self.files[id].file = self.version(executable, text);
    }

    pub fn remove(&mut self, id: FileId) {
        self.weights.set(id, 0);
        let at = self.files[id].live_at;
        self.live.swap_remove(at);
        if let Some(&moved) = self.live.get(at) {
            self.files[moved].live_at = at;
        }
        self.leave_dir(id);
    }

    fn leave_dir(&mut self, id: FileId) {
        self.dirs[self.files[id].dir].files.retain(|&other| other != id);
    }

    pub fn rename(&mut self, rng: &mut Rng, id: FileId, dir: DirId) {
        let ending = self.files[id].name.rfind('.').map_or(String::new(), |at| self.files[id].name[at..].to_owned());
        let name = self.fresh_name(rng, dir, &ending);
        self.leave_dir(id);
        self.dirs[dir].files.push(id);
        self.files[id].dir = dir;
        self.files[id].name = name;
    }

    /// A live file, by its weight.
    pub fn pick_hot(&self, rng: &mut Rng) -> FileId {
        self.weights.sample(rng)
    }

    /// A file of a non-empty directory, by its weight.
    pub fn pick_hot_in(&self, rng: &mut Rng, dir: DirId) -> FileId {
        let files = &self.dirs[dir].files;
        let mut left = rng.below(files.iter().map(|&id| self.weights.get(id)).sum());
        for &id in files {
            let weight = self.weights.get(id);
            if left < weight {
                return id;
            }
            left -= weight;
        }
        unreachable!("the draw is below the sum of the weights")
    }

    /// A live file, preferring old files and small directories. Deletions often remove whole small
    /// directories, and deleted files had long lifetimes (documented: 5.2% of deletions empty a
    /// directory, median lifetime 14,966 commits).
    pub fn pick_old_and_lonely(&self, rng: &mut Rng) -> FileId {
        let old = |rng: &mut Rng| self.pick_any(rng).min(self.pick_any(rng));
        let (one, other, third) = (old(rng), old(rng), old(rng));
        let size = |&id: &FileId| self.dirs[self.files[id].dir].files.len();
        [one, other, third].into_iter().min_by_key(size).expect("there are three")
    }

    /// A live file, all equally likely.
    pub fn pick_any(&self, rng: &mut Rng) -> FileId {
        self.live[rng.below(self.live.len() as u64) as usize]
    }

    /// The weight of a file. Never zero, so that every live file can be chosen.
    fn weight(&self, heat: u64, size: u64) -> u64 {
        (size_weight(&self.size_weights, size) / 64).max(1) * heat.max(1)
    }
}
