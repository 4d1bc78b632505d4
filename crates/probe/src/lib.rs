//! Measurements of a volume: `collect` touches the system, `score` computes figures from the
//! collected data.
//!
//! - [`collect::collect_grep`]: the grep test, read aging as the papers measure it.
//! - [`collect::collect_tree_extents`] and [`score::LayoutScorer`]: the locations of files, and
//!   their scores.
//! - [`collect::collect_free_extents`] and [`score::compute_free_space`]: the free extents and
//!   their histogram.
//! - [`collect::collect_btrfs_free_space`]: the free space of Btrfs, by block group and device.
//! - [`collect::BlockTracer`], [`trace::import_blkparse`] and [`score::compute_trace_figures`]: the
//!   requests of a device.
//! - [`collect::collect_transfer_curve`]: effective bandwidth by read size.
//! - [`score::compute_spread`]: median, quartiles and a bootstrap interval of repeated figures.
//!
//! Each public item states the definition of its figure.
//!
//! ```
//! use senesce_core::{Extent, Space};
//! use senesce_probe::{map::RawExtent, score::LayoutScorer};
//!
//! // A file of four blocks in two extents: two of three blocks follow their predecessor.
//! let piece = |logical, physical| RawExtent {
//!     extent: Extent { logical, physical, length: 8192 },
//!     flags: Default::default(),
//! };
//! let mut scorer = LayoutScorer::new(Space::Device, 4096);
//! scorer.add_file(16384, &[piece(0, 40960), piece(8192, 122880)]);
//! let figures = scorer.finish();
//! assert_eq!(figures.extents, 2);
//! assert_eq!(figures.layout_score, Some(2.0 / 3.0));
//! ```
//!
//! Other crates make the cache cold and mount (`volume`), and write results (`store`).

pub mod collect;
mod error;
pub mod map;
pub mod score;
pub mod trace;

pub use error::Error;
