//! Fits a model to a history.

use std::collections::HashMap;

use senesce_core::{RelPath, Seed};

use super::{
    HistoryCommit, HistoryModel, HistoryStatistics, SyntheticHistory,
    change_counts::{COMBINATIONS, KindWeights, LINUX_KINDS, ROW_ENDS},
    compute_synthetic_statistics,
    model::{Choice, HISTORY_MODEL_FORMAT, MOST_COMMITS, Shares, Sizes, Touched, TreeShape},
    quantiles::{MILLION, Quantiles, size_weights},
    statistics::Counter,
};
use crate::WorkloadError;

/// The fewest commits of the main line, after the start, that a model is fitted to.
pub const FEWEST_COMMITS: u64 = 50;
/// The fewest files of a starting tree that a model is fitted to.
pub const FEWEST_START_FILES: u64 = 20;
/// The number of synthetic histories that find the figures that cannot be counted.
const ROUNDS: u32 = 12;
/// The share of a difference that one round corrects. With 1, chance makes the fit oscillate.
const STEP: f64 = 0.7;

/// A model, and both histories' figures.
#[derive(Clone, Debug)]
pub struct FittedHistory {
    /// The model.
    pub model: HistoryModel,
    /// Figures of the history that it was fitted to.
    pub real: HistoryStatistics,
    /// Figures of a synthetic history that follows the model, of the same length.
    pub synthetic: HistoryStatistics,
}

/// Fits a model to a history. `start` is the tree that the first commit changes (path, bytes),
/// `commits` the main line after it; commits without changes are left out.
///
/// Counts, shares and sizes are copied. Four figures have no count in a history: the tendency of
/// files to change, its dependence on the size, moves to another directory, and new directories.
/// They are found by synthetic histories, whose figures approach those of the real one in 12
/// rounds. Before each, `progress` is called with the number of the round and of all rounds; the
/// fit ends early if it returns false.
///
/// Errors: [`WorkloadError::HistoryModel`] if the history is too short or its tree too small.
/// `name` is the history in the error. Cost: 12 synthetic histories of the length of this one. A
/// history of 34,000 commits on 17,360 files takes a second.
pub fn fit_history(
    name: &str,
    start: impl IntoIterator<Item = (RelPath, u64)>,
    commits: impl IntoIterator<Item = HistoryCommit>,
    progress: &mut dyn FnMut(u32, u32) -> bool,
) -> Result<FittedHistory, WorkloadError> {
    let wrong = |problem: String| WorkloadError::HistoryModel { name: name.to_owned(), problem };
    let start: Vec<(RelPath, u64)> = start.into_iter().collect();
    let files = start.len() as u64;
    if !(FEWEST_START_FILES..=MILLION).contains(&files) {
        return Err(wrong(format!(
            "its first tree has {files} files; a model needs {FEWEST_START_FILES} to 1,000,000"
        )));
    }
    let tree = shape_of(&start);
    let (mut counter, sizes) = Counter::start(start);
    for commit in commits.into_iter().filter(|commit| !commit.changes.is_empty()) {
        counter.count(commit);
    }
    if !(FEWEST_COMMITS..=MOST_COMMITS).contains(&counter.commits) {
        let problem = "commits with changes follow its first tree; a model needs";
        return Err(wrong(format!("{} {problem} {FEWEST_COMMITS} to 10,000,000", counter.commits)));
    }
    let counted = HistoryModel {
        format: HISTORY_MODEL_FORMAT.into(),
        files,
        commits: counter.commits,
        merges: counter.merges * MILLION / counter.commits,
        touched: touched_of(&counter),
        kinds: kinds_of(&counter),
        shares: shares_of(&counter),
        sizes: sizes_of(&counter, &sizes.sorted),
        tree,
        choice: HistoryModel::linux_like().choice.clone(),
    };
    let real = counter.finish(&sizes);
    let (model, synthetic) = approach(counted, &real, progress);
    Ok(FittedHistory { model, real, synthetic })
}

/// The quantiles of values in any order; those of `other` if there are none.
fn quantiles_of(mut values: Vec<u64>, most: u64, other: &Quantiles) -> Quantiles {
    if values.is_empty() {
        return other.clone();
    }
    values.iter_mut().for_each(|value| *value = (*value).min(most));
    values.sort_unstable();
    Quantiles::of(&values)
}

fn shape_of(start: &[(RelPath, u64)]) -> TreeShape {
    let mut by_directory: HashMap<RelPath, u64> = HashMap::new();
    for (path, _) in start {
        *by_directory.entry(path.parent().unwrap_or_default()).or_default() += 1;
    }
    let top_files = by_directory.remove(&RelPath::default()).unwrap_or(0).min(start.len() as u64 - 1);
    let mut directories_by_depth = vec![0; 1];
    for directory in by_directory.keys() {
        let depth = directory.as_bytes().iter().filter(|&&byte| byte == b'/').count().min(63);
        directories_by_depth.resize(directories_by_depth.len().max(depth + 1), 0);
        directories_by_depth[depth] += 1;
    }
    if by_directory.is_empty() {
        directories_by_depth[0] = 1;
    }
    let linux = &HistoryModel::linux_like().tree;
    let files_per_directory = quantiles_of(by_directory.into_values().collect(), MILLION, &linux.files_per_directory);
    TreeShape { top_files, directories_by_depth, files_per_directory }
}

fn touched_of(counter: &Counter) -> Touched {
    // A history without merges draws none, so its table of merges is never read.
    let linux = &HistoryModel::linux_like().touched;
    Touched {
        plain: quantiles_of(counter.plain_touched.clone(), MILLION, &linux.plain),
        merges: quantiles_of(counter.merge_touched.clone(), MILLION, &linux.merges),
    }
}

/// Added, modified, deleted and renamed files of each commit.
fn counts_of(counter: &Counter) -> impl Iterator<Item = [u64; 4]> {
    let [added, modified, deleted, renamed] = &counter.by_kind;
    (0..added.len()).map(|at| [added[at], modified[at], deleted[at], renamed[at]])
}

fn kinds_of(counter: &Counter) -> Vec<KindWeights> {
    let mut rows = LINUX_KINDS.map(|row| KindWeights { weights: [0; 15], ..row });
    for counts in counts_of(counter) {
        let touched: u64 = counts.iter().sum();
        let row = ROW_ENDS.iter().position(|&end| touched <= end).unwrap_or(ROW_ENDS.len());
        let kinds = counts.map(|count| count > 0);
        let combination = COMBINATIONS.iter().position(|&known| known == kinds);
        let weight = &mut rows[row].weights[combination.expect("a commit with changes has a kind")];
        *weight = (*weight + 1).min(MILLION);
    }
    // The table of merges can draw a number of touched files that no counted commit has.
    for (row, linux) in rows.iter_mut().zip(LINUX_KINDS) {
        if row.weights.iter().all(|&weight| weight == 0) {
            row.weights = linux.weights;
        }
    }
    rows.into()
}

fn shares_of(counter: &Counter) -> Shares {
    // A commit of one kind has no share, and the kind that takes the rest needs none.
    let shares = |kind: usize| {
        let kinds = |counts: &[u64; 4]| counts.iter().filter(|&&count| count > 0).count();
        let several = counts_of(counter).filter(|counts| counts[kind] > 0 && kinds(counts) > 1);
        several.map(|counts| (counts[kind] * 1_000 / counts.iter().sum::<u64>()).max(1)).collect()
    };
    let linux = &HistoryModel::linux_like().shares;
    Shares {
        added: quantiles_of(shares(0), 1_000, &linux.added),
        deleted: quantiles_of(shares(2), 1_000, &linux.deleted),
        renamed: quantiles_of(shares(3), 1_000, &linux.renamed),
    }
}

fn sizes_of(counter: &Counter, start: &[u64]) -> Sizes {
    let linux = &HistoryModel::linux_like().sizes;
    let most = 1 << 31;
    let modifications = counter.modified_sizes.len() as u64;
    let share = |part: u64| part * MILLION / modifications.max(1);
    let (grow, shrink) = (share(counter.grown), share(counter.shrunk));
    Sizes {
        start: quantiles_of(start.to_vec(), most, &linux.start),
        added: quantiles_of(counter.added_sizes.clone(), most, &linux.added),
        change: quantiles_of(counter.size_changes.clone(), most, &linux.change),
        grow_shrink_same: [grow, shrink, MILLION - grow - shrink],
    }
}

/// The four figures that cannot be counted. Each is 1 for Linux, except the exponent.
#[derive(Clone, Copy, Debug)]
struct Guess {
    /// The power to which ratios of heat are raised.
    heat: f64,
    /// The exponent of the size in the choice of a file to modify.
    size_exponent: f64,
    /// The factor of moves to another directory.
    next_directory: f64,
    /// The factor of new directories.
    new_directory: f64,
}

impl Guess {
    fn choice(self) -> Choice {
        let linux = &HistoryModel::linux_like().choice;
        let scaled = |ppm: u64, factor: f64| ((ppm as f64 * factor).round() as u64).min(MILLION);
        Choice {
            heat: linux.heat.spread(self.heat),
            size_weights: size_weights(self.size_exponent),
            next_directory: linux.next_directory.iter().map(|&ppm| scaled(ppm, self.next_directory)).collect(),
            new_directory: linux.new_directory.map(|ppm| scaled(ppm, self.new_directory)),
        }
    }

    /// The next guess, from figures of the real history and of one that this guess made.
    fn corrected(self, real: &HistoryStatistics, made: &HistoryStatistics) -> Self {
        let both = |group, name| (real.get(group, name).unwrap_or(0.0), made.get(group, name).unwrap_or(0.0));
        let ratio = |(real, made): (f64, f64)| (real.max(0.01) / made.max(0.01)).powf(STEP);
        let (hot_real, hot_made) = both("share of the hottest files, %", "top 10%");
        let (mu_real, mu_made) = both("sizes, ln of bytes", "modified mu");
        // The weight size^e moves the mean of the logarithm by e times the variance.
        let variance = real.get("sizes, ln of bytes", "start tree sigma").unwrap_or(1.0).powi(2).max(0.25);
        let (dirs_real, dirs_made) = both("directories touched", "mean");
        Self {
            heat: (self.heat + STEP * (hot_real - hot_made) / 25.0).clamp(0.0, 3.0),
            size_exponent: (self.size_exponent + STEP * (mu_real - mu_made) / variance).clamp(0.0, 1.1),
            next_directory: (self.next_directory * ratio((dirs_real - 1.0, dirs_made - 1.0))).clamp(0.01, 4.0),
            new_directory: (self.new_directory * ratio(both("tree", "adds that make a directory, %")))
                .clamp(0.01, 16.0),
        }
    }
}

/// The distance of the four figures that a guess changes; each part is 1 at the limit of likeness.
fn distance(real: &HistoryStatistics, made: &HistoryStatistics) -> f64 {
    const FIGURES: [(&str, &str, f64); 4] = [
        ("share of the hottest files, %", "top 10%", 4.0),
        ("sizes, ln of bytes", "modified mu", 0.2),
        ("directories touched", "mean", 0.5),
        ("tree", "adds that make a directory, %", 1.5),
    ];
    let part = |(group, name, limit): (&str, &str, f64)| {
        (real.get(group, name).unwrap_or(0.0) - made.get(group, name).unwrap_or(0.0)).abs() / limit
    };
    FIGURES.into_iter().map(part).sum()
}

fn approach(
    counted: HistoryModel,
    real: &HistoryStatistics,
    progress: &mut dyn FnMut(u32, u32) -> bool,
) -> (HistoryModel, HistoryStatistics) {
    let mut guess = Guess { heat: 1.0, size_exponent: 0.59, next_directory: 1.0, new_directory: 1.0 };
    let mut best: Option<(f64, HistoryModel)> = None;
    for round in 1..=ROUNDS {
        let goes_on = progress(round, ROUNDS);
        let model = HistoryModel { choice: guess.choice(), ..counted.clone() };
        let made = compute_synthetic_statistics(SyntheticHistory::like(model.clone(), Seed(u64::from(round))));
        let next = guess.corrected(real, &made);
        let far = distance(real, &made);
        if best.as_ref().is_none_or(|&(least, _)| far < least) {
            best = Some((far, model));
        }
        if !goes_on {
            break;
        }
        guess = next;
    }
    let (_, model) = best.expect("there is a round");
    // No round used this seed: the best of several would look nearer than a user's history is.
    let made = compute_synthetic_statistics(SyntheticHistory::like(model.clone(), Seed(u64::from(ROUNDS) + 1)));
    (model, made)
}
