//! Measurements that touch the system. Nothing here decides, scores or prints.
//!
//! Time comes from [`senesce_core::Clock`], CPU time from the kernel's accounting of the calling
//! thread or of the child. All walks use one walker, so that the grep test and the extent map see
//! the files in the same order.

mod block_trace;
mod btrfs;
mod census;
mod extents;
mod f2fs;
mod free_space;
mod gnu_grep;
mod grep;
mod ioctl;
mod load;
mod rusage;
mod search;
mod survey;
mod transfer;
mod walk;
mod xfs;

pub use block_trace::{
    BlockTracer, StaleInstances, TraceDevice, TraceOptions, check_block_tracing, clean_stale_trace_instances,
    collect_trace_device,
};
pub use btrfs::{BtrfsSubvolume, collect_btrfs_subvolumes};
pub use btrfs::{collect_btrfs_free_space, collect_btrfs_free_space_as_it_is};
pub use census::{Census, CensusFile, CensusOptions, collect_census};
pub use extents::{
    TreeExtentsFigures, TreeItem, collect_extents, collect_space, collect_tree_extents, collect_tree_map,
};
pub use free_space::{collect_free_extents, collect_free_extents_as_it_is};
pub use gnu_grep::collect_gnu_grep;
pub use grep::{GrepFigures, GrepOptions, collect_grep};
pub use load::{collect_disk_bytes, collect_load};
pub use rusage::{CpuTimes, collect_process_times, collect_thread_read_bytes};
pub use search::compute_pattern;
pub use survey::{EntryKind, SurveyFigures, Surveyed, collect_survey};
pub use transfer::{TransferLimit, TransferPoint, check_transfer_source, collect_transfer_curve};
pub use walk::{ItemError, Order};
pub use xfs::{collect_xfs_has_reflink, collect_xfs_inode_chunk_bytes};
