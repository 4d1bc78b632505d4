//! Statistics of repeated figures: medians, quartiles, bootstrap intervals, outliers, the
//! Mann-Whitney test, gates.
//!
//! ```
//! use senesce_core::{Seed, statistics::{compute_comparison, compute_outliers, compute_spread}};
//!
//! let seconds = [2.0, 2.1, 1.9, 2.0, 2.2, 9.0];
//! let spread = compute_spread(&seconds, Seed(1)).unwrap();
//! assert_eq!(spread.median, 2.05);
//! assert_eq!(compute_outliers(&seconds), [9.0]); // shown, and not removed
//! assert_eq!(compute_comparison(&seconds, &seconds, Seed(1)).unwrap().ratio, 1.0);
//! ```
//!
//! The same figures and the same seed have the same results.

mod comparison;
pub mod forecast;
mod gate;
mod ranking;
mod spread;

pub use comparison::{Comparison, MannWhitney, compute_comparison, compute_mann_whitney, compute_outliers};
pub use gate::{
    FAIL_BELOW, Judgement, Limit, Outcome, PASS_BELOW, compute_least_repetitions, judge_counted, judge_measured,
    judge_measured_below,
};
pub use ranking::{Change, ENOUGH_FIGURES, Figures, Ranking, Row, SURE_BELOW, compute_ranking, compute_rows};
pub use spread::{Spread, compute_median, compute_quantile, compute_spread};
