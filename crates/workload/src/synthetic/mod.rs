//! A synthetic history that looks like a real one: `linux-like`.
//!
//! It replaces a repository where none is available. From a seed it makes a starting tree and
//! commits whose statistics follow those of Linux from 2.6.12 on: files touched per commit, kinds
//! of change, sizes, hot files, growth, renames, directories. [`REFERENCE`] holds every figure with
//! its source. A merge has a real second parent: its change came over a side branch that left the
//! main line some commits before. All arithmetic is in integers, so every machine makes the same
//! bytes.
//!
//! ```
//! use senesce_workload::synthetic::{SyntheticHistory, SyntheticParameters, write_fast_import};
//! let default = SyntheticParameters::default();
//! let parameters = SyntheticParameters { start_files: 500, commits: 3, ..default };
//! let mut stream = Vec::new(); // what `git fast-import` reads
//! write_fast_import(SyntheticHistory::new(parameters).unwrap(), &mut stream).unwrap();
//! assert!(stream.ends_with(b"done\n"));
//! ```
//!
//! It copies no real content: texts are source-like nonsense that compresses like source. It makes
//! no symbolic links or submodules. [`compute_history_statistics`] accepts any history.

mod change_counts;
mod commit;
mod fast_import;
mod fit;
#[cfg(test)]
mod fit_tests;
mod generator;
mod model;
mod parameters;
mod quantiles;
mod reference;
mod render;
mod starting_tree;
mod statistics;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod weighted_choice;
mod words;

pub use change_counts::KindWeights;
pub use commit::{SyntheticChange, SyntheticCommit, SyntheticFile};
pub use fast_import::write_fast_import;
pub use fit::{FEWEST_COMMITS, FEWEST_START_FILES, FittedHistory, fit_history};
pub use generator::SyntheticHistory;
pub use model::{Choice, HISTORY_MODEL_FORMAT, HistoryModel, Shares, Sizes, Touched, TreeShape};
pub use parameters::SyntheticParameters;
pub use quantiles::Quantiles;
pub use reference::{REFERENCE, ReferenceFigure};
pub use render::{render_fit, render_statistics};
pub use statistics::{
    Distribution, Figure, HistoryChange, HistoryCommit, HistoryStatistics, compute_history_statistics,
    compute_synthetic_statistics,
};
pub use text::Text;
