//! The 7.2K preset against the published curve: the table in its comments.

use senesce_core::{Bytes, Seed};
use senesce_device::{
    PUBLISHED_HDD_CURVE, ReadExperiment, compute_bandwidth_curve, compute_natural_transfer_size, find_preset,
};

#[test]
fn preset_follows_the_published_curve_within_its_table() {
    let spec = find_preset("hdd-7200").unwrap();
    let sizes: Vec<u64> = PUBLISHED_HDD_CURVE.iter().map(|point| point.size_bytes).collect();
    let outside = ReadExperiment { region_bytes: 0..20 * Bytes::GIB, reads: 4000, seed: Seed(1) };
    let whole = ReadExperiment { reads: 4000, ..ReadExperiment::whole(&spec, Seed(1)) };
    let outside = compute_bandwidth_curve(&spec, sizes.iter().copied(), &outside).unwrap();
    let whole = compute_bandwidth_curve(&spec, sizes, &whole).unwrap();
    // The largest allowed errors, percent: those of the table, plus half a percent for other seeds.
    let allowed = [48.6, 7.2, 1.7, 2.0, 2.7, 1.9, 1.8, 1.1];
    for (((published, model), whole), allowed) in PUBLISHED_HDD_CURVE.iter().zip(&outside).zip(&whole).zip(allowed) {
        let error = |got: f64| (got / published.mib_per_second - 1.0) * 100.0;
        println!(
            "{:>9}: published {:>3} MiB/s, model in the first 20 GiB {:>5.1} ({:+.1}%), over the whole disk {:>5.1} ({:+.1}%)",
            Bytes(published.size_bytes).to_string(),
            published.mib_per_second,
            model.mib_per_second,
            error(model.mib_per_second),
            whole.mib_per_second,
            error(whole.mib_per_second),
        );
        assert!(error(model.mib_per_second).abs() <= allowed, "{published:?} {model:?}");
    }
    // Both curves reach 90% of their peak between 8 and 16 MiB, and half of it between 1 and 2 MiB.
    for (fraction, range) in [(0.5, 1..2), (0.9, 7..16)] {
        for curve in [&PUBLISHED_HDD_CURVE[..], &outside] {
            let size = compute_natural_transfer_size(curve, fraction).unwrap();
            assert!((range.start * Bytes::MIB..=range.end * Bytes::MIB).contains(&size), "{fraction}: {size}");
        }
    }
}
