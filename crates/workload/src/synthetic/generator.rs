//! The history itself: the changes of the main line in order, some of them over side branches.

use std::collections::VecDeque;

use senesce_core::{Rng, Seed};

use super::{
    change_counts::{Counts, draw_counts},
    commit::{SyntheticChange, SyntheticCommit},
    model::HistoryModel,
    parameters::SyntheticParameters,
    quantiles::{BRANCH_AGE, MILLION, REWRITTEN},
    starting_tree::grow_tree,
    tree::{DirId, FileId, Tree},
};
use crate::WorkloadError;

/// Commits of the main line that a branch may start from.
const BRANCH_POINTS: usize = 301;
/// The most files that a history makes, removed ones included. A model of a stranger could state
/// more than memory holds.
const MOST_FILES: u64 = 20_000_000;
/// A tree with fewer files loses none.
const FEWEST_FILES: usize = 16;
/// Commits with at most this number of modified files prefer larger files. Half of all commits
/// touch a single file, and yet the median commit writes 45 KB, three times the median modified
/// file. Changes of a few lines are therefore mostly in large files.
const SMALL_CHANGE: u64 = 2;

/// A synthetic history as a stream of commits, parents before children. The last one is the tip of
/// the main line.
///
/// Cost: memory for the live tree's names and pieces of text (about 300 bytes per file and 32 per
/// edit), and for one change of the main line. 34,000 commits of the main line on 17,360 files need
/// a second without texts.
#[derive(Debug)]
pub struct SyntheticHistory {
    model: HistoryModel,
    parameters: SyntheticParameters,
    tree: Tree,
    rng: Rng,
    started: bool,
    /// Commits of the main line made so far, not counting the first.
    main_commits: u64,
    next_number: u64,
    /// Numbers of the last commits of the main line, newest last.
    main_line: VecDeque<u64>,
    ready: VecDeque<SyntheticCommit>,
}

/// One change, and the last commit of the main line that touched its file before.
struct Touch {
    change: SyntheticChange,
    before: u64,
}

impl SyntheticHistory {
    /// The history of these parameters, at its start.
    ///
    /// Errors: [`WorkloadError::Parameter`] if a parameter is out of its range.
    pub fn new(parameters: SyntheticParameters) -> Result<Self, WorkloadError> {
        parameters.check()?;
        Ok(Self::build(HistoryModel::linux_like().clone(), parameters))
    }

    /// A history that follows `model`, at its start. It has the numbers of files and commits that
    /// the model states.
    pub fn like(model: HistoryModel, seed: Seed) -> Self {
        let parameters = SyntheticParameters { seed, start_files: model.files, commits: model.commits };
        Self::build(model, parameters)
    }

    /// The parameters, with the files and commits of the model if there is one.
    pub fn parameters(&self) -> SyntheticParameters {
        self.parameters
    }

    fn build(model: HistoryModel, parameters: SyntheticParameters) -> Self {
        let mut rng = Rng::for_purpose(parameters.seed, "synthetic start");
        let tree = grow_tree(&mut rng, &model, parameters.start_files);
        Self {
            model,
            parameters,
            tree,
            rng: Rng::for_purpose(parameters.seed, "synthetic commits"),
            started: false,
            main_commits: 0,
            next_number: 0,
            main_line: VecDeque::with_capacity(BRANCH_POINTS + 1),
            ready: VecDeque::new(),
        }
    }

    fn commit(&mut self, parents: Vec<u64>, main_line: bool, message: String, changes: Vec<SyntheticChange>) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        if main_line {
            self.main_line.push_back(number);
            if self.main_line.len() > BRANCH_POINTS {
                self.main_line.pop_front();
            }
        }
        self.ready.push_back(SyntheticCommit { number, parents, main_line, message, changes });
        number
    }

    fn first_commit(&mut self) {
        let tree = &self.tree;
        let add = |&id: &FileId| SyntheticChange::Add { path: tree.path(id), file: tree.files[id].file.clone() };
        let changes = tree.live.iter().map(add).collect();
        self.commit(Vec::new(), true, "Start\n".to_owned(), changes);
    }

    /// Makes the next commit of the main line, after those of the side branch that it merges.
    fn next_change(&mut self) {
        self.main_commits += 1;
        let merge = self.rng.chance(self.model.merges, MILLION);
        let table = if merge { &self.model.touched.merges } else { &self.model.touched.plain };
        // The largest changes do not fit a small tree.
        let touched = table.sample(&mut self.rng).min(self.tree.live.len() as u64 / 4).max(1);
        let counts = draw_counts(&mut self.rng, &self.model, touched);
        let touches = self.touch(counts);
        let tip = *self.main_line.back().expect("the first commit is there");
        let name = self.main_commits;
        if !merge || touches.is_empty() {
            let changes = touches.into_iter().map(|touch| touch.change).collect();
            self.commit(vec![tip], true, format!("Change {name}\n"), changes);
            return;
        }
        let side = self.side_branch(&touches);
        let changes = touches.into_iter().map(|touch| touch.change).collect();
        self.commit(vec![tip, side], true, format!("Merge branch of change {name}\n"), changes);
    }

    /// Makes the commits of a side branch that together are the change; returns the last one's
    /// number.
    ///
    /// The branch starts after every commit that touched one of its files, so that the merge of
    /// both sides is exactly the change.
    fn side_branch(&mut self, touches: &[Touch]) -> u64 {
        let last_main = self.main_commits - 1;
        let oldest = last_main + 1 - self.main_line.len() as u64;
        let wanted = last_main.saturating_sub(BRANCH_AGE.sample(&mut self.rng));
        let base = touches.iter().map(|touch| touch.before).fold(wanted.max(oldest), u64::max);
        let mut parent = self.main_line[(base - oldest) as usize];
        let (mut rest, mut part) = (touches, 1);
        while !rest.is_empty() {
            let size = (self.model.touched.plain.sample(&mut self.rng) as usize).clamp(1, rest.len());
            let (now, later) = rest.split_at(size);
            let changes = now.iter().map(|touch| touch.change.clone()).collect();
            let message = format!("Change {}, part {part}\n", self.main_commits);
            parent = self.commit(vec![parent], false, message, changes);
            (rest, part) = (later, part + 1);
        }
        parent
    }

    /// Applies a change with these counts of files to the tree.
    fn touch(&mut self, counts: Counts) -> Vec<Touch> {
        let mut touches = Vec::new();
        let mut dirs = Vec::new();
        for _ in 0..counts.modified {
            if let Some(id) = self.pick_to_modify(&mut dirs, counts.modified <= SMALL_CHANGE) {
                touches.push(self.modify(id));
            }
        }
        let mut dir = None;
        for _ in 0..counts.deleted {
            if let Some(id) = self.pick_to_move(&mut dir) {
                let (path, before) = (self.tree.path(id), self.mark(id));
                self.tree.remove(id);
                touches.push(Touch { change: SyntheticChange::Delete { path }, before });
            }
        }
        (dir, dirs) = (None, self.with_files(dirs));
        let mut target = None;
        for _ in 0..counts.renamed {
            if let Some(id) = self.pick_to_move(&mut dir) {
                touches.push(self.rename(id, &mut target));
            }
        }
        dirs = self.with_files(dirs);
        let mut new_dir = None;
        let room = MOST_FILES.saturating_sub(self.tree.files.len() as u64);
        for _ in 0..counts.added.min(room) {
            touches.push(self.add(&mut dirs, &mut new_dir, counts.added));
        }
        // Without a shuffle, each commit of the side branch would have only one kind of change.
        self.rng.shuffle(&mut touches);
        touches
    }

    fn with_files(&self, mut dirs: Vec<DirId>) -> Vec<DirId> {
        dirs.retain(|&dir| !self.tree.dirs[dir].files.is_empty());
        dirs
    }

    /// Marks a file as touched by this commit; returns the commit of the main line that touched it
    /// before.
    fn mark(&mut self, id: FileId) -> u64 {
        std::mem::replace(&mut self.tree.files[id].touched_at, self.main_commits)
    }

    fn is_free(&self, id: FileId) -> bool {
        self.tree.files[id].touched_at != self.main_commits
    }

    fn pick_to_modify(&mut self, dirs: &mut Vec<DirId>, is_small: bool) -> Option<FileId> {
        let next = &self.model.choice.next_directory;
        let step = (dirs.len().max(1).ilog2() as usize).min(next.len() - 1);
        let stay = !dirs.is_empty() && !self.rng.chance(next[step], MILLION);
        for attempt in 0..40 {
            let id = if stay && attempt < 6 {
                let dir = dirs[self.rng.below(dirs.len() as u64) as usize];
                self.tree.pick_hot_in(&mut self.rng, dir)
            } else if attempt < 30 {
                self.pick_hot(is_small)
            } else {
                self.tree.pick_any(&mut self.rng)
            };
            if self.is_free(id) {
                dirs.push(self.tree.files[id].dir);
                return Some(id);
            }
        }
        None
    }

    /// A file by its weight; for a small change the larger of two.
    fn pick_hot(&mut self, is_small: bool) -> FileId {
        let one = self.tree.pick_hot(&mut self.rng);
        if !is_small {
            return one;
        }
        let other = self.tree.pick_hot(&mut self.rng);
        let size = |id: FileId| self.tree.files[id].file.text.len();
        if size(other) > size(one) { other } else { one }
    }

    /// A file to delete or rename, mostly from the directory of the previous one.
    fn pick_to_move(&mut self, dir: &mut Option<DirId>) -> Option<FileId> {
        if self.tree.live.len() < FEWEST_FILES {
            return None;
        }
        for attempt in 0..20 {
            let near = dir.filter(|&dir| attempt < 3 && !self.tree.dirs[dir].files.is_empty());
            let id = match near {
                Some(dir) if self.rng.chance(4, 5) => {
                    let files = &self.tree.dirs[dir].files;
                    files[self.rng.below(files.len() as u64) as usize]
                }
                _ => self.tree.pick_old_and_lonely(&mut self.rng),
            };
            if self.is_free(id) {
                *dir = Some(self.tree.files[id].dir);
                return Some(id);
            }
        }
        None
    }

    fn modify(&mut self, id: FileId) -> Touch {
        let before = self.mark(id);
        let (rng, change) = (&mut self.rng, &self.model.sizes.change);
        let text = &self.tree.files[id].file.text;
        let len = text.len();
        let rewritten = REWRITTEN.sample(rng).min(len / 2);
        let (removed, inserted) = match rng.weighted(&self.model.sizes.grow_shrink_same) {
            0 => (rewritten, rewritten + change.sample(rng)),
            1 => {
                // At least one byte stays; a text that is too short to shrink grows.
                let gone = change.sample(rng).min(len.saturating_sub(rewritten + 1));
                if gone == 0 { (rewritten, rewritten + 1) } else { (rewritten + gone, rewritten) }
            }
            _ => (rewritten.max(len.min(1)), rewritten.max(1)),
        };
        let at = rng.between(0, len - removed.min(len));
        let inserted = u32::try_from(inserted).expect("quantile tables end far below 4 GiB");
        let text = text.edited(at, removed, rng.next_u64(), inserted);
        self.tree.set_text(id, text);
        let (path, file) = (self.tree.path(id), self.tree.files[id].file.clone());
        Touch { change: SyntheticChange::Modify { path, file }, before }
    }

    fn rename(&mut self, id: FileId, target: &mut Option<DirId>) -> Touch {
        let from = self.tree.path(id);
        let before = self.mark(id);
        let dir = match *target {
            Some(dir) if self.rng.chance(9, 10) => dir,
            // Half of the renames stay in their directory, some make a new one, the rest move to
            // directories of other files.
            _ => match self.rng.below(10) {
                0..5 => self.tree.files[id].dir,
                5..7 => self.tree.add_dir(&mut self.rng, self.tree.files[id].dir),
                _ => self.tree.files[self.tree.pick_any(&mut self.rng)].dir,
            },
        };
        *target = Some(dir);
        self.tree.rename(&mut self.rng, id, dir);
        Touch { change: SyntheticChange::Rename { from, to: self.tree.path(id) }, before }
    }

    fn add(&mut self, dirs: &mut Vec<DirId>, new_dir: &mut Option<DirId>, added: u64) -> Touch {
        let near = match dirs.len() {
            0 => self.tree.files[self.tree.pick_hot(&mut self.rng)].dir,
            n => dirs[self.rng.below(n as u64) as usize],
        };
        let makes_one = self.rng.chance(self.model.choice.new_directory[usize::from(added > 2)], MILLION);
        let dir = match *new_dir {
            _ if makes_one && self.tree.dirs[near].depth < 9 => {
                let dir = self.tree.add_dir(&mut self.rng, near);
                *new_dir = Some(dir);
                dir
            }
            Some(dir) if self.rng.chance(4, 5) => dir,
            _ => near,
        };
        if dirs.is_empty() {
            dirs.push(near);
        }
        let size = self.model.sizes.added.sample(&mut self.rng);
        let id = self.tree.add_file(&mut self.rng, dir, size, self.main_commits);
        let (path, file) = (self.tree.path(id), self.tree.files[id].file.clone());
        Touch { change: SyntheticChange::Add { path, file }, before: 0 }
    }
}

impl Iterator for SyntheticHistory {
    type Item = SyntheticCommit;

    fn next(&mut self) -> Option<SyntheticCommit> {
        if !self.started {
            self.started = true;
            self.first_commit();
        } else if self.ready.is_empty() && self.main_commits < self.parameters.commits {
            self.next_change();
        }
        self.ready.pop_front()
    }
}
