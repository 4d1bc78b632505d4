//! Scores: pure functions of maps and repeated figures. Imports nothing from `collect`.

mod directories;
mod distance;
mod disturbance;
mod file_layout;
mod free_space;
mod kinds;
mod layout;
mod loss;
mod path_order;
mod pieces;
mod room;
mod trace;
mod volume_map;
mod warnings;

pub use directories::{DirectoryLayout, DirectoryScorer};
pub use distance::DistanceBucket;
pub use disturbance::{
    CPU_WAIT_LIMIT, Cause, DRIVE_LIMIT, Disturbance, DriveBytes, LEAST_DRIVE_BYTES, LEAST_SECONDS, Load, LoadSample,
    MEMORY_WAIT_LIMIT, OTHERS_LIMIT, ProcessorTimes, STEAL_LIMIT,
};
pub use file_layout::{FileLayout, compute_file_layout};
pub use free_space::{FreeSpaceBucket, FreeSpaceFigures, compute_free_space};
pub use kinds::{ExtentKinds, ExtentTally};
pub use layout::{LayoutFigures, LayoutScorer, SizeClass};
pub use loss::{DataMap, DataMapBuilder, LossFigures, compute_trace_loss};
pub use path_order::PathOrderScorer;
pub use pieces::{AlignedShare, ShortExtents};
pub use room::{compute_btrfs_warnings, compute_full_warning, compute_inode_warning};
pub use senesce_core::statistics::{
    Comparison, MannWhitney, Spread, compute_comparison, compute_mann_whitney, compute_median, compute_outliers,
    compute_quantile, compute_spread,
};
pub use trace::{AccessFigures, RequestSizeBucket, TraceFigures, compute_trace_figures};
pub use volume_map::{MapBuilder, MapCell, VolumeMap, compute_hilbert_place};
pub use warnings::{FreeSpaceWarning, WarningLimits, compute_free_space_warnings};
