//! The device time model: turns a sequence of block requests into nanoseconds on a described
//! device.
//!
//! - [`DeviceSpec`]: the description of a device, every constant with its source; [`presets`],
//!   [`find_preset`]. [`keys`] and [`compute_derived_figures`] help to show one.
//! - [`DeviceModel`]: a device in use. [`DeviceSpec::build`] makes one,
//!   [`DeviceSpec::build_with_flash`] one with used flash.
//! - [`compute_cost`]: the cost of a sequence of requests, by cause. The requests come from a
//!   trace, or from [`compute_cold_reads`], which predicts those of a cold grep test from extents
//!   alone.
//! - [`compute_bandwidth_curve`], [`compute_natural_transfer_size`]: effective bandwidth by read
//!   size; [`compute_calibration`] fits a description to a measured curve.
//! - [`Ftl`]: the translation layer of flash alone, for models of other shapes.
//!
//! ```
//! use senesce_core::{BlockOp, BlockRequest, Nanos};
//!
//! let mut disk = senesce_device::find_preset("hdd-7200").unwrap().build().unwrap();
//! let read = |sector| BlockRequest { issued: Nanos(0), op: BlockOp::Read, sector, sectors: 256 };
//! let first = disk.serve(&read(0), Nanos(0));
//! let next = disk.serve(&read(256), first); // continues where the first ended
//! let far = disk.serve(&read(500_000_000), next);
//! assert!(next.since(first) < Nanos(1_000_000));
//! assert!(far.since(next) > Nanos(4_000_000));
//! ```
//!
//! There are no files and no clocks. Times are integer nanoseconds, and randomness comes from the
//! seeded generator only. So the same requests take the same time on every machine. All figures are
//! of a *model*, and are named so.

mod bandwidth;
mod calibrate;
mod derived_figures;
mod error;
mod hdd;
mod model;
mod predict;
mod replay;
mod spec;
mod ssd;

pub use bandwidth::{
    BandwidthPoint, PUBLISHED_HDD_CURVE, ReadExperiment, compute_bandwidth_curve, compute_effective_bandwidth,
    compute_natural_transfer_size,
};
pub use calibrate::{Calibration, LineFit, Residual, compute_calibration, compute_line_fit};
pub use derived_figures::{DerivedFigure, compute_derived_figures};
pub use error::Error;
pub use model::{DeviceModel, ServiceTimes, Totals};
pub use predict::{ColdRead, Readahead, add_cold_reads, compute_cold_reads, compute_windows};
pub use replay::{DeviceCost, QueuePolicy, Replay, compute_cost};
pub use spec::{Constant, DeviceKind, DeviceSpec, FORMAT, KeyRule, find_preset, keys, presets};
pub use ssd::{Collected, FlashState, Ftl, compute_greedy_write_amplification};
