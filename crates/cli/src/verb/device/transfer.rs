//! The result of a calibration as JSON.

use anyhow::Result;
use schemars::JsonSchema;
use senesce_device::{BandwidthPoint, Residual, compute_natural_transfer_size};
use serde::Serialize;

/// The shares of the best bandwidth that define natural transfer sizes. Source: A. Conway et al.,
/// USENIX FAST 2017.
pub const FRACTIONS: [f64; 2] = [0.5, 0.9];

/// The version of [`TransferDocument`].
pub const TRANSFER_SCHEMA: &str = "senesce-transfer/1";

/// The JSON output of `device calibrate`.
#[derive(Serialize, JsonSchema)]
pub struct TransferDocument {
    /// The version of senesce.
    pub senesce_version: &'static str,
    /// The device or file that was read.
    pub path: String,
    /// The length of the device or file, bytes.
    pub length_bytes: u64,
    /// Reads of each size.
    pub reads: u32,
    /// The model that the fit started from.
    pub base: String,
    /// The measured, fitted and modelled curves of bandwidth by size.
    pub curves: Vec<Curve>,
    /// The measured times.
    pub measured: Vec<MeasuredPoint>,
    /// The errors of the fitted model.
    pub residuals: Vec<Residual>,
    /// Sizes at which the fitted model does not describe the device, in words.
    pub warnings: Vec<String>,
    /// The factors of the fit.
    pub scales: Vec<Scale>,
}

/// The measured reads of one size.
#[derive(Serialize, JsonSchema)]
pub struct MeasuredPoint {
    /// Bytes of each read.
    pub size_bytes: u64,
    /// The number of reads.
    pub reads: u64,
    /// Wall time of all reads of this size, seconds.
    pub wall_seconds: f64,
    /// The interquartile range of the times of single reads, divided by their median. `None` if the
    /// median is 0.
    pub spread: Option<f64>,
}

/// Constants of a model that the fit scaled together.
#[derive(Serialize, JsonSchema)]
pub struct Scale {
    /// The keys of the constants in the model.
    pub keys: Vec<&'static str>,
    /// The factor of these constants.
    pub factor: f64,
}

/// A bandwidth curve.
#[derive(Serialize, JsonSchema)]
pub struct Curve {
    /// The device or model.
    pub name: String,
    /// `measured`, `fitted` or `model`.
    pub kind: &'static str,
    /// Bandwidth by size.
    pub points: Vec<BandwidthPoint>,
    /// The smallest sizes whose reads reach certain shares of the best bandwidth.
    pub natural_transfer_sizes: Vec<NaturalSize>,
}

/// A natural transfer size.
#[derive(Serialize, JsonSchema)]
pub struct NaturalSize {
    /// The share of the best bandwidth.
    pub fraction: f64,
    /// The smallest size whose reads reach this share, bytes.
    pub size_bytes: u64,
}

/// A curve with its natural transfer sizes.
pub fn curve_of(name: &str, kind: &'static str, points: &[BandwidthPoint]) -> Result<Curve> {
    let natural = |fraction: f64| -> Result<NaturalSize> {
        Ok(NaturalSize { fraction, size_bytes: compute_natural_transfer_size(points, fraction)? })
    };
    let natural_transfer_sizes = FRACTIONS.map(natural).into_iter().collect::<Result<_>>()?;
    Ok(Curve { name: name.to_owned(), kind, points: points.to_vec(), natural_transfer_sizes })
}
