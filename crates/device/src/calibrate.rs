//! Fits a description to a measured curve.
//!
//! There are two steps, both without I/O. [`compute_line_fit`] reduces a measured curve to two
//! numbers: a time for each read and a rate. [`compute_calibration`] changes a base description
//! until its *model*, measured in the same way, has the same curve. It scales groups of constants
//! that belong together, and no others.
//!
//! | kind | scaled together |
//! |---|---|
//! | HDD | `outer_rate`, `inner_rate` |
//! | HDD | all seek times |
//! | HDD | `command_overhead` |
//! | SSD | `link_rate`, `channel_rate` |
//! | SSD | `page_read` |
//! | SSD | `command_overhead` |
//!
//! A curve of effective bandwidth does not distinguish overhead from seeks. Of descriptions that
//! fit equally well, the one nearest to the base is used.

use schemars::JsonSchema;
use senesce_core::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BandwidthPoint, DeviceKind, DeviceSpec, Error, ReadExperiment, compute_bandwidth_curve};

/// The largest scale of a constant, up or down, as a power of two.
const MOST_DOUBLINGS: f64 = 4.0;

/// The cost of a doubling of a group, in the unit of squared logarithms of errors: a tie breaker.
const PRICE_OF_DOUBLING: f64 = 1e-4;

/// A curve as a line: the time of a read is `positioning_seconds + bytes / rate`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineFit {
    /// Time of a read without moving its data, seconds; negative if the curve is not of this form.
    pub positioning_seconds: f64,
    /// Rate of moving data, MiB/s.
    pub mib_per_second: f64,
}

/// The measured and the modelled bandwidth at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Residual {
    /// Bytes of each read.
    pub size_bytes: u64,
    /// The measured bandwidth, MiB/s.
    pub measured_mib_per_second: f64,
    /// The bandwidth of the fitted model, MiB/s.
    pub modelled_mib_per_second: f64,
    /// The error of the model, percent; positive if it is too fast.
    pub error_percent: f64,
}

/// A fitted description.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The base with scaled constants. The source of each has the old value.
    pub spec: DeviceSpec,
    /// The quality of the fit for each point, in the given order.
    pub residuals: Vec<Residual>,
    /// The constants of each group, and their factor.
    pub scales: Vec<(Vec<&'static str>, f64)>,
}

/// The line that fits a curve with the smallest sum of squared relative errors of the time.
///
/// Errors: fewer than two points, equal sizes only, values that are not positive, a rate that would
/// not be positive.
pub fn compute_line_fit(points: &[BandwidthPoint]) -> Result<LineFit, Error> {
    check_points(points)?;
    // Least squares of 1 = a / t + b s / t for each point.
    let (mut aa, mut ab, mut bb, mut a1, mut b1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in points {
        let size = point.size_bytes as f64 / Bytes::MIB as f64;
        let seconds = size / point.mib_per_second;
        let (x, y) = (1.0 / seconds, size / seconds);
        aa += x * x;
        ab += x * y;
        bb += y * y;
        a1 += x;
        b1 += y;
    }
    let determinant = aa * bb - ab * ab;
    let slope = (aa * b1 - ab * a1) / determinant;
    // Equal sizes leave no determinant but rounding.
    if determinant <= 1e-12 * aa * bb || slope <= 0.0 {
        return Err(not_computable(
            "the points determine no line with a positive rate; reads of more sizes, or at a quieter time, would"
                .into(),
        ));
    }
    Ok(LineFit { positioning_seconds: (bb * a1 - ab * b1) / determinant, mib_per_second: 1.0 / slope })
}

/// The description nearest to `base` whose model has the measured curve.
///
/// In: `points` measured as in `experiment` (region, one read at a time). `name` and `title` are
/// those of the result. `base` is of the same kind of device, with the right capacity. Errors:
/// those of [`compute_line_fit`] and of the experiment; an impossible base. Cost: about a hundred
/// modelled experiments: half a second for a disk and ten for an SSD, with 400 reads of each size
/// up to 64 MiB.
pub fn compute_calibration(
    base: &DeviceSpec,
    name: &str,
    title: &str,
    points: &[BandwidthPoint],
    experiment: &ReadExperiment,
) -> Result<Calibration, Error> {
    compute_line_fit(points)?;
    base.check()?;
    let groups = groups(base.kind);
    let model = |doublings: &[f64]| {
        let spec = scaled(base, groups, doublings);
        let curve = compute_bandwidth_curve(&spec, points.iter().map(|point| point.size_bytes), experiment)?;
        Ok((spec, curve))
    };
    // A scale that makes a device impossible has the largest badness.
    let badness = |doublings: &[f64]| match model(doublings) {
        Ok((_, curve)) => {
            let errors = curve.iter().zip(points).map(|(got, want)| (got.mib_per_second / want.mib_per_second).ln());
            errors.map(|error| error * error).sum::<f64>()
                + doublings.iter().map(|by| by * by * PRICE_OF_DOUBLING).sum::<f64>()
        }
        Err::<_, Error>(_) => f64::INFINITY,
    };
    let best = minimise(groups.len(), badness);
    let (mut spec, curve) = model(&best)?;
    (spec.name, spec.title) = (name.to_owned(), title.to_owned());
    spec.description = format!("{} fitted to a measured curve of {} read sizes.", base.name, points.len());
    spec.check()?;
    let residuals = curve.iter().zip(points).map(|(got, want)| Residual {
        size_bytes: want.size_bytes,
        measured_mib_per_second: want.mib_per_second,
        modelled_mib_per_second: got.mib_per_second,
        error_percent: (got.mib_per_second / want.mib_per_second - 1.0) * 100.0,
    });
    let scales = groups.iter().zip(&best).map(|(keys, by)| (keys.to_vec(), by.exp2())).collect();
    Ok(Calibration { spec, residuals: residuals.collect(), scales })
}

fn groups(kind: DeviceKind) -> &'static [&'static [&'static str]] {
    match kind {
        DeviceKind::Hdd => &[
            &["outer_rate", "inner_rate"],
            &[
                "track_to_track_read",
                "track_to_track_write",
                "mean_seek_read",
                "mean_seek_write",
                "full_stroke_read",
                "full_stroke_write",
            ],
            &["command_overhead"],
        ],
        DeviceKind::Ssd => &[&["link_rate", "channel_rate"], &["page_read"], &["command_overhead"]],
    }
}

fn scaled(base: &DeviceSpec, groups: &[&[&str]], doublings: &[f64]) -> DeviceSpec {
    let mut spec = base.clone();
    for (keys, by) in groups.iter().zip(doublings) {
        for key in *keys {
            let Some(constant) = spec.constants.get_mut(*key) else { continue };
            if *by != 0.0 {
                constant.source = format!(
                    "fitted to a measured curve; in {} it was {} {} ({})",
                    base.name, constant.value, constant.unit, constant.source
                );
                constant.value *= by.exp2();
            }
        }
    }
    spec
}

/// The vector of this length with the smallest `badness`. The search goes along each axis with
/// steps that shrink. It uses no derivatives and no randomness, so the result is the same on every
/// machine.
fn minimise(length: usize, badness: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut best = vec![0.0; length];
    let mut least = badness(&best);
    let mut step = 1.0;
    while step > 0.003 {
        let mut improved = false;
        for axis in 0..length {
            for by in [step, -step] {
                let mut tried = best.clone();
                tried[axis] = f64::clamp(tried[axis] + by, -MOST_DOUBLINGS, MOST_DOUBLINGS);
                let got = badness(&tried);
                if got < least {
                    (best, least, improved) = (tried, got, true);
                }
            }
        }
        if !improved {
            step /= 2.0;
        }
    }
    best
}

fn check_points(points: &[BandwidthPoint]) -> Result<(), Error> {
    if points.len() < 2 {
        return Err(not_computable(format!("{} points determine nothing; 2 of different sizes would", points.len())));
    }
    match points
        .iter()
        .find(|point| point.size_bytes == 0 || !(point.mib_per_second > 0.0 && point.mib_per_second.is_finite()))
    {
        Some(bad) => {
            Err(not_computable(format!("{} MiB/s with {} bytes is not possible", bad.mib_per_second, bad.size_bytes)))
        }
        None => Ok(()),
    }
}

fn not_computable(problem: String) -> Error {
    Error::NotComputable { figure: "calibration", problem }
}

#[cfg(test)]
mod tests {
    use senesce_core::Seed;

    use super::*;
    use crate::{PUBLISHED_HDD_CURVE, find_preset};

    fn point(size_bytes: u64, mib_per_second: f64) -> BandwidthPoint {
        BandwidthPoint { size_bytes, mib_per_second }
    }

    fn sizes() -> impl Iterator<Item = u64> {
        PUBLISHED_HDD_CURVE.iter().map(|point| point.size_bytes)
    }

    #[test]
    fn line_fit_finds_a_line() {
        // 10 ms per read and 100 MiB/s.
        let points: Vec<_> = sizes()
            .map(|size| {
                let mib = size as f64 / Bytes::MIB as f64;
                point(size, mib / (0.010 + mib / 100.0))
            })
            .collect();
        let line = compute_line_fit(&points).unwrap();
        assert!((line.positioning_seconds - 0.010).abs() < 1e-9, "{line:?}");
        assert!((line.mib_per_second - 100.0).abs() < 1e-6, "{line:?}");
    }

    #[test]
    fn published_curve_fits_line_except_first_point() {
        let line = compute_line_fit(&PUBLISHED_HDD_CURVE[1..]).unwrap();
        assert!((line.positioning_seconds - 0.00596).abs() < 0.0001, "{line:?}");
        assert!((line.mib_per_second - 179.0).abs() < 0.1, "{line:?}");
    }

    #[test]
    fn meaningless_points_are_refused() {
        let ok = point(4096, 10.0);
        for points in [
            vec![],
            vec![ok],
            vec![ok, ok],
            vec![ok, point(8192, f64::NAN)],
            vec![ok, point(8192, 0.0)],
            vec![ok, point(0, 1.0)],
            vec![ok, point(8192, 100.0), point(1 << 20, 1e9)],
        ] {
            assert!(compute_line_fit(&points).is_err(), "{points:?}");
        }
    }

    #[test]
    fn calibration_finds_a_device_from_its_curve() {
        for (preset, changes) in [
            (
                "hdd-7200",
                [("outer_rate", 0.7), ("inner_rate", 0.7), ("mean_seek_read", 1.3), ("command_overhead", 1.0)],
            ),
            ("sata-ssd", [("link_rate", 0.5), ("channel_rate", 0.5), ("page_read", 1.7), ("command_overhead", 1.0)]),
        ] {
            let base = find_preset(preset).unwrap();
            let mut truth = base.clone();
            for (key, by) in changes {
                truth.constants.get_mut(key).unwrap().value *= by;
            }
            let experiment = ReadExperiment { reads: 100, ..ReadExperiment::whole(&base, Seed(1)) };
            let sizes = (12..23).map(|power| 1 << power);
            let measured = compute_bandwidth_curve(&truth, sizes, &experiment).unwrap();
            // Fitted with other places than those of the measurement.
            let experiment = ReadExperiment { seed: Seed(2), ..experiment };
            let fitted = compute_calibration(&base, "mine", "Mine", &measured, &experiment).unwrap();
            for residual in &fitted.residuals {
                assert!(residual.error_percent.abs() < 5.0, "{preset} {residual:?}");
            }
            let rate = changes[0].0;
            let (got, want) = (fitted.spec.constants[rate].value, truth.constants[rate].value);
            assert!((got / want - 1.0).abs() < 0.06, "{preset} {rate}: {got} {want}");
            let text = fitted.spec.render().unwrap();
            assert_eq!(DeviceSpec::parse(&text).unwrap(), fitted.spec);
            assert!(fitted.spec.constants[rate].source.starts_with("fitted to a measured curve; in "));
        }
    }

    #[test]
    fn published_curve_calibrates_the_10k_disk_too() {
        let mut base = find_preset("hdd-10k").unwrap();
        base.constants.get_mut("rotation").unwrap().value = 7200.0;
        let experiment = ReadExperiment { region_bytes: 0..20 * Bytes::GIB, reads: 200, seed: Seed(1) };
        let fitted = compute_calibration(&base, "mine", "Mine", &PUBLISHED_HDD_CURVE[1..], &experiment).unwrap();
        for residual in &fitted.residuals {
            assert!(residual.error_percent.abs() < 10.0, "{residual:?}");
        }
    }
}
