//! A model of a history: the figures that a synthetic history follows.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    change_counts::{KindWeights, LINUX_KINDS},
    quantiles::{self, MILLION, Quantiles},
};
use crate::WorkloadError;

/// The version of the format of model files.
pub const HISTORY_MODEL_FORMAT: &str = "senesce-history-model/1";

/// The figures that a synthetic history follows. A model has counts, shares and sizes, but no names
/// and no contents of the history that it was fitted to.
///
/// Shares are parts per million (ppm) unless a field states otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryModel {
    /// The version of the format.
    pub format: String,
    /// Files in the first commit.
    pub files: u64,
    /// Commits of the main line after the first one.
    pub commits: u64,
    /// The share of merges among the commits of the main line, ppm.
    pub merges: u64,
    /// Files touched by one commit.
    pub touched: Touched,
    /// The kinds of changes of a commit, by the number of files that it touches.
    pub kinds: Vec<KindWeights>,
    /// Shares of the kinds of changes among the files of a commit that has several kinds.
    pub shares: Shares,
    /// Sizes of files and of their changes.
    pub sizes: Sizes,
    /// The directories of the first commit.
    pub tree: TreeShape,
    /// Which files and directories a commit touches.
    pub choice: Choice,
}

/// Files touched by one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Touched {
    /// By a commit with one parent.
    pub plain: Quantiles,
    /// By a merge, against its first parent.
    pub merges: Quantiles,
}

/// Shares among the files of a commit that has several kinds of changes, parts per thousand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// Added files.
    pub added: Quantiles,
    /// Deleted files.
    pub deleted: Quantiles,
    /// Renamed files.
    pub renamed: Quantiles,
}

/// Sizes, bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// A file of the first commit.
    pub start: Quantiles,
    /// An added file.
    pub added: Quantiles,
    /// The absolute change of size by a modification, without changes of 0.
    pub change: Quantiles,
    /// Shares of modifications that grow, shrink and keep the size, ppm.
    pub grow_shrink_same: [u64; 3],
}

/// The directories of the first commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeShape {
    /// Files in the top directory.
    pub top_files: u64,
    /// Directories with files at depths 1, 2 and so on, relative to each other.
    pub directories_by_depth: Vec<u64>,
    /// Files in a directory that has files.
    pub files_per_directory: Quantiles,
}

/// Which files and directories a commit touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The tendency of a file to be modified, besides its size. Only ratios count.
    pub heat: Quantiles,
    /// The weights of sizes at the powers of two from 1 to 64 KiB, for the choice of a file to
    /// modify.
    pub size_weights: Vec<u64>,
    /// The probability that a commit, after 2^i files, moves to another directory for the next
    /// file, ppm.
    pub next_directory: Vec<u64>,
    /// New directories per million added files: in commits that add one or two files, and in
    /// commits that add more.
    pub new_directory: [u64; 2],
}

/// The model `linux-like`. Comments separate documented figures from those that we chose.
static LINUX: LazyLock<HistoryModel> = LazyLock::new(|| HistoryModel {
    format: HISTORY_MODEL_FORMAT.into(),
    files: 17_300,
    commits: 34_000,
    // Documented: 20%.
    merges: 200_000,
    touched: Touched { plain: quantiles::TOUCHED_PLAIN, merges: quantiles::TOUCHED_MERGE },
    kinds: LINUX_KINDS.to_vec(),
    shares: Shares {
        added: quantiles::ADDED_SHARE,
        deleted: quantiles::DELETED_SHARE,
        renamed: quantiles::RENAMED_SHARE,
    },
    sizes: Sizes {
        start: quantiles::START_SIZE,
        added: quantiles::ADDED_SIZE,
        change: quantiles::SIZE_CHANGE,
        // Documented: 60%, 37%, 3%.
        grow_shrink_same: [600_000, 370_000, 30_000],
    },
    tree: TreeShape {
        top_files: 6,
        // Directories of Linux 2.6.12, counted in its trace. The mean depth of its files, name
        // included, is 3.6.
        directories_by_depth: vec![16, 264, 575, 179, 41],
        files_per_directory: quantiles::FILES_PER_DIRECTORY,
    },
    choice: Choice {
        heat: quantiles::HEAT,
        size_weights: quantiles::LINUX_SIZE_WEIGHTS.to_vec(),
        // It follows the slope of the documented `directories ~ files^0.75`: 75% * 2^(-i/4), times
        // 0.8. The factor allows for commits that find no other file in the same directory.
        next_directory: [600, 505, 424, 357, 300, 252, 212, 178, 150, 126, 106, 89, 75, 63].map(|p| p * 1_000).into(),
        // New directories come with several files. Documented: 5.5% of adds make a directory.
        new_directory: [10_000, 60_000],
    },
});

impl HistoryModel {
    /// The model of Linux' history from 2.6.12 on.
    pub fn linux_like() -> &'static Self {
        &LINUX
    }

    /// Reads a model file.
    ///
    /// Errors: the text is no TOML, has another version, or states figures that no history can
    /// have. `name` is the file in the error.
    pub fn parse(text: &str, name: &str) -> Result<Self, WorkloadError> {
        let wrong = |problem: String| WorkloadError::HistoryModel { name: name.to_owned(), problem };
        let model: Self = toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        model.checked(name)
    }

    /// Returns the model if a history can follow it. `name` is its source in the error.
    pub fn checked(self, name: &str) -> Result<Self, WorkloadError> {
        let wrong = |problem: String| WorkloadError::HistoryModel { name: name.to_owned(), problem };
        if self.format != HISTORY_MODEL_FORMAT {
            let problem = format!("the format is {:?}, and this program reads {HISTORY_MODEL_FORMAT:?}", self.format);
            return Err(wrong(problem));
        }
        self.check().map_err(|(field, problem)| wrong(format!("{field} {problem}")))?;
        Ok(self)
    }

    /// The text of a model file.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a model has only tables, lists and numbers")
    }

    /// Errors: the first wrong field, and its fault.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let field = |field: &'static str| move |problem: &'static str| (field, problem);
        let within = |name, good: bool, problem| if good { Ok(()) } else { Err((name, problem)) };
        within("files", FILES.contains(&self.files), "must be 20 to 1,000,000")?;
        within("commits", self.commits <= MOST_COMMITS, "must be at most 10,000,000")?;
        within("merges", self.merges <= MILLION, "must be at most 1,000,000")?;
        for (name, quantiles, most) in [
            ("touched.plain", &self.touched.plain, MILLION),
            ("touched.merges", &self.touched.merges, MILLION),
            ("shares.added", &self.shares.added, 1_000),
            ("shares.deleted", &self.shares.deleted, 1_000),
            ("shares.renamed", &self.shares.renamed, 1_000),
            ("sizes.start", &self.sizes.start, LARGEST_FILE),
            ("sizes.added", &self.sizes.added, LARGEST_FILE),
            ("sizes.change", &self.sizes.change, LARGEST_FILE),
            ("tree.files_per_directory", &self.tree.files_per_directory, MILLION),
            ("choice.heat", &self.choice.heat, quantiles::MOST_HEAT),
        ] {
            quantiles.check(most).map_err(field(name))?;
        }
        within("touched.plain", self.touched.plain.at(0) > 0, "must be at least 1")?;
        within("touched.merges", self.touched.merges.at(0) > 0, "must be at least 1")?;
        within("sizes.change", self.sizes.change.at(0) > 0, "must not have a change of 0")?;
        within("tree.files_per_directory", self.tree.files_per_directory.at(0) > 0, "must be at least 1")?;
        within("tree.top_files", self.tree.top_files < self.files, "must be less than files")?;
        let weights = |weights: &[u64]| {
            weights.iter().all(|&weight| weight <= MILLION) && weights.iter().any(|&weight| weight > 0)
        };
        within("sizes.grow_shrink_same", weights(&self.sizes.grow_shrink_same), WEIGHTS)?;
        let depths = &self.tree.directories_by_depth;
        within("tree.directories_by_depth", (1..=64).contains(&depths.len()), "needs 1 to 64 numbers")?;
        within("tree.directories_by_depth", weights(depths), WEIGHTS)?;
        within("kinds", (1..=64).contains(&self.kinds.len()), "needs 1 to 64 rows")?;
        within("kinds", self.kinds.iter().all(|row| weights(&row.weights)), WEIGHTS)?;
        within("kinds", self.kinds.last().is_some_and(|row| row.up_to.is_none()), "needs a last row without up_to")?;
        let next = &self.choice.next_directory;
        within("choice.next_directory", (1..=64).contains(&next.len()), "needs 1 to 64 numbers")?;
        within("choice.next_directory", next.iter().all(|&ppm| ppm <= MILLION), "must be at most 1,000,000")?;
        let new = &self.choice.new_directory;
        within("choice.new_directory", new.iter().all(|&ppm| ppm <= MILLION), "must be at most 1,000,000")?;
        let sizes = &self.choice.size_weights;
        within("choice.size_weights", sizes.len() == 17, "needs 17 numbers")?;
        within(
            "choice.size_weights",
            sizes.is_sorted() && sizes[16] <= quantiles::MOST_SIZE_WEIGHT,
            "must ascend to at most 268,435,456",
        )
    }
}

/// The files that the first commit of a model can have.
const FILES: std::ops::RangeInclusive<u64> = 20..=1_000_000;
/// The most commits of a model.
pub(super) const MOST_COMMITS: u64 = 10_000_000;
/// The largest file of a model, bytes.
const LARGEST_FILE: u64 = 1 << 31;
const WEIGHTS: &str = "needs numbers up to 1,000,000, and at least one above 0";
