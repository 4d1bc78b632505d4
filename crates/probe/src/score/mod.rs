//! Scores: pure functions of maps and repeated figures. Imports nothing from `collect`.

mod directories;
mod disturbance;
mod early_no_space;
mod extent_flags;
mod extent_sizes;
mod file_layout;
mod free_space;
mod jump_distance;
mod layout;
mod loss;
mod path_order;
mod space_warnings;
mod trace_score;
mod volume_map;

pub use directories::{DirectoryLayout, DirectoryScorer};
pub use disturbance::{
    CPU_WAIT_LIMIT, Cause, DRIVE_LIMIT, Disturbance, DriveBytes, LEAST_DRIVE_BYTES, LEAST_SECONDS, Load, LoadSample,
    MEMORY_WAIT_LIMIT, OTHERS_LIMIT, ProcessorTimes, STEAL_LIMIT,
};
pub use early_no_space::{compute_btrfs_warnings, compute_full_warning, compute_inode_warning};
pub use extent_flags::{ExtentKinds, ExtentTally};
pub use extent_sizes::{AlignedShare, ShortExtents};
pub use file_layout::{FileLayout, compute_file_layout};
pub use free_space::{FreeSpaceBucket, FreeSpaceFigures, compute_free_space};
pub use jump_distance::DistanceBucket;
pub use layout::{LayoutFigures, LayoutScorer, SizeClass};
pub use loss::{DataMap, DataMapBuilder, LossFigures, compute_trace_loss};
pub use path_order::PathOrderScorer;
pub use senesce_core::statistics::{
    Comparison, MannWhitney, Spread, compute_comparison, compute_mann_whitney, compute_median, compute_outliers,
    compute_quantile, compute_spread,
};
pub use space_warnings::{FreeSpaceWarning, WarningLimits, compute_free_space_warnings};
pub use trace_score::{AccessFigures, RequestSizeBucket, TraceFigures, compute_trace_figures};
pub use volume_map::{MapBuilder, MapCell, VolumeMap, compute_hilbert_place};
