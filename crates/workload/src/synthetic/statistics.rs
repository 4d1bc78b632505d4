//! The statistics of any history along first parents.

use std::collections::{HashMap, HashSet};

use senesce_core::RelPath;

use super::{SyntheticChange, SyntheticCommit};

/// One change against the first parent. Sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the variants say what their fields are
pub enum HistoryChange {
    /// A new file.
    Add { path: RelPath, size: u64 },
    /// A new version of an existing file.
    Modify { path: RelPath, size: u64 },
    /// A file is removed.
    Delete { path: RelPath },
    /// A file moves to another path, with `size` bytes.
    Rename { from: RelPath, to: RelPath, size: u64 },
}

/// One commit of the main line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCommit {
    /// Whether it has more than one parent.
    pub merge: bool,
    /// The differences from its first parent.
    pub changes: Vec<HistoryChange>,
}

/// Integers, for their mean and quantiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    pub(super) sorted: Vec<u64>,
}

impl Distribution {
    /// A distribution of values in any order.
    pub fn new(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self { sorted: values }
    }

    /// The arithmetic mean; 0 if there are no values.
    pub fn mean(&self) -> f64 {
        let sum: u128 = self.sorted.iter().map(|&v| u128::from(v)).sum();
        if self.sorted.is_empty() { 0.0 } else { sum as f64 / self.sorted.len() as f64 }
    }

    /// The smallest value that at least `permille` thousandths of the values do not exceed; 0 if
    /// there are no values.
    pub fn quantile(&self, permille: u64) -> u64 {
        let rank = (self.sorted.len() as u64 * permille).div_ceil(1000).max(1);
        self.sorted.get(rank as usize - 1).copied().unwrap_or(0)
    }

    /// The largest value; 0 if there are no values.
    pub fn max(&self) -> u64 {
        self.sorted.last().copied().unwrap_or(0)
    }

    /// Mean and standard deviation of the natural logarithm; values of 0 count as 1.
    fn logarithms(&self) -> (f64, f64) {
        let n = self.sorted.len().max(1) as f64;
        let logs = || self.sorted.iter().map(|&v| (v.max(1) as f64).ln());
        let mean = logs().sum::<f64>() / n;
        let variance = logs().map(|l| (l - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }
}

/// One figure of a history, by the names of [`REFERENCE`](super::REFERENCE).
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The counted quantity.
    pub group: &'static str,
    /// The name of the figure.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// The result of [`compute_history_statistics`].
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryStatistics {
    /// Counted commits, without the start.
    pub commits: u64,
    figures: Vec<Figure>,
}

impl HistoryStatistics {
    /// All figures, in the order of the reference.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// One figure; `None` if no figure has these names.
    pub fn get(&self, group: &str, name: &str) -> Option<f64> {
        self.figures.iter().find(|f| f.group == group && f.name == name).map(|f| f.value)
    }
}

struct Live {
    size: u64,
    born: u64,
}

#[derive(Default)]
pub(super) struct Counter {
    live: HashMap<RelPath, Live>,
    /// Files directly in each directory; empty directories are left out.
    dirs: HashMap<RelPath, u64>,
    pub(super) commits: u64,
    pub(super) merges: u64,
    pub(super) plain_touched: Vec<u64>,
    pub(super) merge_touched: Vec<u64>,
    /// Added, modified, deleted, renamed, by commit.
    pub(super) by_kind: [Vec<u64>; 4],
    dirs_touched: Vec<u64>,
    bytes_written: Vec<u64>,
    kinds: HashMap<[bool; 4], u64>,
    pub(super) added_sizes: Vec<u64>,
    pub(super) modified_sizes: Vec<u64>,
    pub(super) size_changes: Vec<u64>,
    pub(super) grown: u64,
    pub(super) shrunk: u64,
    /// Number of modifications of each file and the commit of the last one, by its current path.
    modified: HashMap<RelPath, (u64, u64)>,
    /// Number of modifications of each removed file.
    modified_gone: Vec<u64>,
    gaps: Vec<u64>,
    lifetimes: Vec<u64>,
    adds_making_dirs: u64,
    deletes_emptying_dirs: u64,
}

impl Counter {
    /// A counter of a history that starts with these files (path, bytes), and their sizes.
    pub(super) fn start(files: impl IntoIterator<Item = (RelPath, u64)>) -> (Self, Distribution) {
        let mut counter = Self::default();
        let mut sizes = Vec::new();
        for (path, size) in files {
            sizes.push(size);
            counter.enter(path, size, 0);
        }
        (counter, Distribution::new(sizes))
    }

    fn enter(&mut self, path: RelPath, size: u64, born: u64) -> bool {
        let dir = path.parent().unwrap_or_default();
        self.live.insert(path, Live { size, born });
        let files = self.dirs.entry(dir).or_default();
        *files += 1;
        *files == 1
    }

    fn leave(&mut self, path: &RelPath) -> (Option<Live>, bool) {
        let live = self.live.remove(path);
        let dir = path.parent().unwrap_or_default();
        let files = self.dirs.get_mut(&dir).map_or(0, |files| {
            *files -= u64::from(live.is_some());
            *files
        });
        if files == 0 {
            self.dirs.remove(&dir);
        }
        (live, files == 0)
    }

    pub(super) fn count(&mut self, commit: HistoryCommit) {
        self.commits += 1;
        let mut dirs = HashSet::new();
        let (mut kinds, mut written) = ([0u64; 4], 0);
        let touched = commit.changes.len() as u64;
        for change in commit.changes {
            let kind = match change {
                HistoryChange::Add { path, size } => {
                    dirs.insert(path.parent().unwrap_or_default());
                    written += size;
                    self.added_sizes.push(size);
                    self.adds_making_dirs += u64::from(self.enter(path, size, self.commits));
                    0
                }
                HistoryChange::Modify { path, size } => {
                    dirs.insert(path.parent().unwrap_or_default());
                    written += size;
                    self.modify(path, size);
                    1
                }
                HistoryChange::Delete { path } => {
                    dirs.insert(path.parent().unwrap_or_default());
                    let (live, emptied) = self.leave(&path);
                    self.lifetimes.extend(live.map(|live| self.commits - live.born));
                    self.deletes_emptying_dirs += u64::from(emptied);
                    self.modified_gone.extend(self.modified.remove(&path).map(|(count, _)| count));
                    2
                }
                HistoryChange::Rename { from, to, size } => {
                    dirs.extend([from.parent().unwrap_or_default(), to.parent().unwrap_or_default()]);
                    written += size;
                    let born = self.leave(&from).0.map_or(self.commits, |live| live.born);
                    if let Some(count) = self.modified.remove(&from) {
                        self.modified.insert(to.clone(), count);
                    }
                    self.enter(to, size, born);
                    3
                }
            };
            kinds[kind] += 1;
        }
        self.merges += u64::from(commit.merge);
        if commit.merge { &mut self.merge_touched } else { &mut self.plain_touched }.push(touched);
        kinds.iter().zip(&mut self.by_kind).for_each(|(&n, all)| all.push(n));
        *self.kinds.entry(kinds.map(|n| n > 0)).or_default() += 1;
        self.dirs_touched.push(dirs.len() as u64);
        self.bytes_written.push(written);
    }

    fn modify(&mut self, path: RelPath, size: u64) {
        if let Some(live) = self.live.get_mut(&path) {
            let old = std::mem::replace(&mut live.size, size);
            self.grown += u64::from(size > old);
            self.shrunk += u64::from(size < old);
            if size != old {
                self.size_changes.push(size.abs_diff(old));
            }
        }
        self.modified_sizes.push(size);
        match self.modified.get_mut(&path) {
            Some((count, last)) => {
                *count += 1;
                self.gaps.push(self.commits - *last);
                *last = self.commits;
            }
            None => {
                self.modified.insert(path, (1, self.commits));
            }
        }
    }

    pub(super) fn finish(mut self, start: &Distribution) -> HistoryStatistics {
        let mut figures = Vec::new();
        let mut put = |group, name, value| figures.push(Figure { group, name, value });
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        let take = |values: &mut Vec<u64>| Distribution::new(std::mem::take(values));
        let kilobytes = self.bytes_written.iter().map(|bytes| bytes.div_ceil(1000)).collect();
        let [added, modified, deleted, renamed] = &mut self.by_kind;
        for (group, distribution) in [
            ("files touched, plain", take(&mut self.plain_touched)),
            ("files touched, merges", take(&mut self.merge_touched)),
            ("added", take(added)),
            ("modified", take(modified)),
            ("deleted", take(deleted)),
            ("renamed", take(renamed)),
            ("directories touched", take(&mut self.dirs_touched)),
            ("KB written", Distribution::new(kilobytes)),
        ] {
            put(group, "mean", distribution.mean());
            for (name, permille) in
                [("p50", 500), ("p75", 750), ("p90", 900), ("p95", 950), ("p99", 990), ("p99.9", 999), ("max", 1000)]
            {
                put(group, name, distribution.quantile(permille) as f64);
            }
        }
        for (name, kinds) in [
            ("M only", [false, true, false, false]),
            ("A+M", [true, true, false, false]),
            ("M+D", [false, true, true, false]),
            ("A+M+D", [true, true, true, false]),
            ("M+R", [false, true, false, true]),
            ("A only", [true, false, false, false]),
        ] {
            put("kinds, % of commits", name, percent(self.kinds.get(&kinds).copied().unwrap_or(0), self.commits));
        }
        put("kinds, % of commits", "merges", percent(self.merges, self.commits));
        let (adds, modifications) = (self.added_sizes.len() as u64, self.modified_sizes.len() as u64);
        for (mu_name, sigma_name, distribution) in [
            ("start tree mu", "start tree sigma", start.clone()),
            ("added mu", "added sigma", take(&mut self.added_sizes)),
            ("modified mu", "modified sigma", take(&mut self.modified_sizes)),
            ("absolute change mu", "absolute change sigma", take(&mut self.size_changes)),
        ] {
            let (mu, sigma) = distribution.logarithms();
            put("sizes, ln of bytes", mu_name, mu);
            put("sizes, ln of bytes", sigma_name, sigma);
        }
        put("modifications, %", "grow", percent(self.grown, modifications));
        put("modifications, %", "shrink", percent(self.shrunk, modifications));
        put("modifications, %", "same size", percent(modifications - self.grown - self.shrunk, modifications));
        let mut counts: Vec<u64> = self.modified.values().map(|&(count, _)| count).collect();
        counts.append(&mut self.modified_gone);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        for (name, permille) in
            [("top 0.1%", 1), ("top 1%", 10), ("top 5%", 50), ("top 10%", 100), ("top 20%", 200), ("top 50%", 500)]
        {
            let top = (counts.len() * permille).div_ceil(1000);
            put("share of the hottest files, %", name, percent(counts[..top].iter().sum(), modifications));
        }
        let gaps = take(&mut self.gaps);
        for (name, permille) in [("p25", 250), ("p50", 500), ("p75", 750), ("p90", 900)] {
            put("commits until the same file again", name, gaps.quantile(permille) as f64);
        }
        let (at_start, at_end) = (start.sorted.len() as f64, self.live.len() as f64);
        put("tree", "files at start", at_start);
        put("tree", "files at end", at_end);
        put("tree", "files gained per commit", (at_end - at_start) / self.commits.max(1) as f64);
        let deletes = self.lifetimes.len() as u64;
        put("tree", "adds that make a directory, %", percent(self.adds_making_dirs, adds));
        put("tree", "deletes that empty a directory, %", percent(self.deletes_emptying_dirs, deletes));
        put("tree", "lifetime at deletion p50, commits", take(&mut self.lifetimes).quantile(500) as f64);
        let depth = |path: &RelPath| path.as_bytes().iter().filter(|&&b| b == b'/').count() as u64 + 1;
        let depths = Distribution::new(self.live.keys().map(depth).collect());
        put("tree", "depth mean", depths.mean());
        put("tree", "depth max", depths.max() as f64);
        let per_dir = Distribution::new(self.dirs.into_values().collect());
        put("files per directory", "mean", per_dir.mean());
        for (name, permille) in [("p50", 500), ("p90", 900), ("p99", 990), ("max", 1000)] {
            put("files per directory", name, per_dir.quantile(permille) as f64);
        }
        HistoryStatistics { commits: self.commits, figures }
    }
}

/// Counts a history. `start` is the tree that the first commit changes (path, bytes), `commits` the
/// main line after it.
///
/// Out: every figure of [`REFERENCE`](super::REFERENCE). KB are 1,000 bytes, rounded up per commit.
/// A renamed file counts as written. A file's *depth* includes its own name. *Directories* are
/// those that hold files. The logarithms of size changes leave out changes of 0.
///
/// Cost: memory for the live paths and for a few numbers per change.
pub fn compute_history_statistics(
    start: impl IntoIterator<Item = (RelPath, u64)>,
    commits: impl IntoIterator<Item = HistoryCommit>,
) -> HistoryStatistics {
    let (mut counter, sizes) = Counter::start(start);
    commits.into_iter().for_each(|commit| counter.count(commit));
    counter.finish(&sizes)
}

/// Counts the main line of a synthetic history, from its first commit on.
pub fn compute_synthetic_statistics(commits: impl IntoIterator<Item = SyntheticCommit>) -> HistoryStatistics {
    let mut main_line = as_history(commits.into_iter().filter(|commit| commit.main_line));
    let start = main_line.next().map_or(Vec::new(), |commit| commit.changes);
    let start = start.into_iter().filter_map(|change| match change {
        HistoryChange::Add { path, size } => Some((path, size)),
        _ => None,
    });
    compute_history_statistics(start.collect::<Vec<_>>(), main_line)
}

/// Converts commits of a synthetic history to the form that real histories have.
pub(super) fn as_history(commits: impl Iterator<Item = SyntheticCommit>) -> impl Iterator<Item = HistoryCommit> {
    let path = |text: &str| RelPath::new(text.as_bytes()).expect("synthetic paths are made of names and slashes");
    let mut sizes: HashMap<String, u64> = HashMap::new();
    commits.map(move |commit| {
        let change = |change: SyntheticChange| match change {
            SyntheticChange::Add { path: name, file } => {
                let (path, size) = (path(&name), file.text.len());
                sizes.insert(name, size);
                HistoryChange::Add { path, size }
            }
            SyntheticChange::Modify { path: name, file } => {
                let (path, size) = (path(&name), file.text.len());
                sizes.insert(name, size);
                HistoryChange::Modify { path, size }
            }
            SyntheticChange::Delete { path: name } => {
                sizes.remove(&name);
                HistoryChange::Delete { path: path(&name) }
            }
            SyntheticChange::Rename { from, to } => {
                let size = sizes.remove(&from).unwrap_or(0);
                let (from, new) = (path(&from), path(&to));
                sizes.insert(to, size);
                HistoryChange::Rename { from, to: new, size }
            }
        };
        HistoryCommit { merge: commit.parents.len() > 1, changes: commit.changes.into_iter().map(change).collect() }
    })
}
