//! The natural transfer size experiment: reads of one size at random aligned places, and their
//! bandwidth.

use std::ops::Range;

use schemars::JsonSchema;
use senesce_core::{BlockOp, BlockRequest, Bytes, Nanos, Rng, SECTOR_BYTES, Seed};
use serde::{Deserialize, Serialize};

use crate::{DeviceModel, DeviceSpec, Error};

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BandwidthPoint {
    /// Bytes of each read.
    pub size_bytes: u64,
    /// Bytes read / time, MiB/s.
    pub mib_per_second: f64,
}

/// The published effective bandwidth of the disk of the aging experiments, as measured by their
/// authors (public raw data of: A. Conway et al., File Systems Fated for Senescence? Nonsense, Says
/// Science!, USENIX FAST 2017, figure 1).
pub const PUBLISHED_HDD_CURVE: [BandwidthPoint; 8] = [
    point(64 * Bytes::KIB, 18.0),
    point(256 * Bytes::KIB, 35.0),
    point(Bytes::MIB, 84.0),
    point(2 * Bytes::MIB, 114.0),
    point(4 * Bytes::MIB, 139.0),
    point(8 * Bytes::MIB, 158.0),
    point(16 * Bytes::MIB, 169.0),
    point(64 * Bytes::MIB, 181.0),
];

const fn point(size_bytes: u64, mib_per_second: f64) -> BandwidthPoint {
    BandwidthPoint { size_bytes, mib_per_second }
}

/// The region and the number of reads of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadExperiment {
    /// The part of the device that is read, bytes.
    pub region_bytes: Range<u64>,
    /// Reads of each size.
    pub reads: u32,
    /// The seed of the random places.
    pub seed: Seed,
}

impl ReadExperiment {
    /// 400 reads in the whole device.
    pub fn whole(spec: &DeviceSpec, seed: Seed) -> Self {
        Self { region_bytes: 0..spec.capacity_bytes(), reads: 400, seed }
    }
}

/// The effective bandwidth, MiB/s, of reads of `size_bytes`. The places are drawn uniformly from
/// the multiples of the size within the region. One read follows the other, without pause.
///
/// In: a model that has not served requests yet. Errors: no reads; a size that is not a multiple of
/// the sector size, or does not fit into the region.
pub fn compute_effective_bandwidth(
    model: &mut dyn DeviceModel,
    size_bytes: u64,
    experiment: &ReadExperiment,
) -> Result<f64, Error> {
    let error = |problem| Err(Error::NotComputable { figure: "effective bandwidth", problem });
    let region = &experiment.region_bytes;
    let sectors = size_bytes / SECTOR_BYTES;
    if sectors == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES) || u32::try_from(sectors).is_err() {
        return error(format!("reads of {size_bytes} bytes are not possible; a multiple of {SECTOR_BYTES} would be"));
    }
    let first = region.start.div_ceil(size_bytes);
    let slots = (region.end / size_bytes).saturating_sub(first);
    if slots == 0 || experiment.reads == 0 {
        let problem = format!(
            "{} reads of {size_bytes} bytes within bytes {} to {} are not possible; at least one that fits would be",
            experiment.reads, region.start, region.end
        );
        return error(problem);
    }
    let mut rng = Rng::for_purpose(experiment.seed, "effective bandwidth");
    let start = model.now();
    let mut now = start;
    for _ in 0..experiment.reads {
        let sector = (first + rng.below(slots)) * sectors;
        now = model.serve(&BlockRequest { issued: now, op: BlockOp::Read, sector, sectors: sectors as u32 }, now);
    }
    let bytes = u64::from(experiment.reads) * size_bytes;
    Ok(bytes as f64 / Bytes::MIB as f64 / now.since(Nanos(start.0)).as_secs_f64())
}

/// The bandwidth for each size, each on a new device.
pub fn compute_bandwidth_curve(
    spec: &DeviceSpec,
    sizes_bytes: impl IntoIterator<Item = u64>,
    experiment: &ReadExperiment,
) -> Result<Vec<BandwidthPoint>, Error> {
    let measure = |size_bytes| {
        let mib_per_second = compute_effective_bandwidth(&mut *spec.build()?, size_bytes, experiment)?;
        Ok(BandwidthPoint { size_bytes, mib_per_second })
    };
    sizes_bytes.into_iter().map(measure).collect()
}

/// The natural transfer size: the smallest read that reaches `fraction` (0..1) of the curve's peak
/// bandwidth, bytes.
///
/// Between two points, the bandwidth is linear in the logarithm of the size. If the smallest
/// measured size reaches the fraction, the function returns that size; the true one may be smaller.
/// Errors: an empty curve, a fraction outside of 0..1, sizes that do not rise, bandwidths that are
/// not positive. Source: the term, with 0.5 and 0.9 for the fraction, is of A. Conway et al., FAST
/// 2017.
pub fn compute_natural_transfer_size(curve: &[BandwidthPoint], fraction: f64) -> Result<u64, Error> {
    let error = |problem| Err(Error::NotComputable { figure: "natural transfer size", problem });
    if !(fraction > 0.0 && fraction <= 1.0) {
        return error(format!("a fraction of {fraction} is not possible; above 0 and at most 1 would be"));
    }
    if curve.is_empty() {
        return error("the curve has no points".into());
    }
    if let Some(pair) = curve.windows(2).find(|pair| pair[0].size_bytes >= pair[1].size_bytes) {
        return error(format!("size {} does not rise from {}", pair[1].size_bytes, pair[0].size_bytes));
    }
    if let Some(bad) = curve.iter().find(|point| !(point.mib_per_second > 0.0 && point.mib_per_second.is_finite())) {
        return error(format!("{} MiB/s at {} bytes is not possible", bad.mib_per_second, bad.size_bytes));
    }
    let best = curve.iter().map(|point| point.mib_per_second).fold(0.0, f64::max);
    let wanted = fraction * best;
    let reached = curve.iter().position(|point| point.mib_per_second >= wanted).unwrap_or(curve.len() - 1);
    let to = curve[reached];
    let Some(from) = reached.checked_sub(1).map(|before| curve[before]) else { return Ok(to.size_bytes) };
    let share = (wanted - from.mib_per_second) / (to.mib_per_second - from.mib_per_second);
    let (low, high) = ((from.size_bytes as f64).log2(), (to.size_bytes as f64).log2());
    Ok((low + share * (high - low)).exp2().round() as u64)
}
