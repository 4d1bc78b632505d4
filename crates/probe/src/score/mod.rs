//! Scores: pure arithmetic on maps and on repeated figures. Imports nothing of `collect`.

mod comparison;
mod distance;
mod free_space;
mod layout;
mod statistics;
mod trace;
mod volume_map;

pub use comparison::{Comparison, MannWhitney, compute_comparison, compute_mann_whitney, compute_outliers};
pub use distance::DistanceBucket;
pub use free_space::{FreeSpaceBucket, FreeSpaceFigures, compute_free_space};
pub use layout::{FileLayout, LayoutFigures, LayoutScorer, SizeClass, compute_file_layout};
pub use statistics::{Spread, compute_median, compute_quantile, compute_spread};
pub use trace::{AccessFigures, RequestSizeBucket, TraceFigures, compute_trace_figures};
pub use volume_map::{MapBuilder, MapCell, VolumeMap, compute_hilbert_place};
