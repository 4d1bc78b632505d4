//! A made-up transfer curve.

use serde_json::json;

/// A measured curve beside five others, in the form of `senesce device calibrate --json`.
pub fn transfer() -> serde_json::Value {
    const LARGEST: f64 = (64 << 20) as f64;
    // Best bandwidth, MiB/s, and the fixed cost of a read, as the bytes that could be read in that
    // time.
    let curve = |name: &str, kind: &str, best: f64, beside: f64, natural: [u64; 2]| {
        let points: Vec<_> = (12..=26)
            .map(|power| {
                let size = f64::from(power).exp2();
                let share = size / (size + beside) * (LARGEST + beside) / LARGEST;
                json!({ "size_bytes": 1u64 << power, "mib_per_second": best * share })
            })
            .collect();
        let natural: Vec<_> = [0.5, 0.9]
            .iter()
            .zip(natural)
            .map(|(fraction, size)| json!({ "fraction": fraction, "size_bytes": size }))
            .collect();
        json!({ "name": name, "kind": kind, "points": points, "natural_transfer_sizes": natural })
    };
    let kib = |kib: u64| kib << 10;
    let curves = [
        curve("measured", "measured", 1100.0, 200e3, [kib(200), 1_258_291]),
        curve("calibrated", "fitted", 1080.0, 230e3, [kib(225), kib(1800)]),
        curve("HDD 10K", "model", 180.0, 1.3e6, [kib(1300), kib(9000)]),
        curve("HDD 7.2K", "model", 181.0, 1.8e6, [kib(1800), kib(12_000)]),
        curve("NVMe", "model", 3200.0, 3e3, [kib(4), kib(27)]),
        curve("SATA SSD", "model", 530.0, 60e3, [kib(60), kib(500)]),
    ];
    let residual = |size: u64, measured: f64, modelled: f64| {
        let error = (modelled / measured - 1.0) * 100.0;
        json!({
            "size_bytes": size, "measured_mib_per_second": measured, "modelled_mib_per_second": modelled,
            "error_percent": error,
        })
    };
    json!({
        "schema": "senesce-transfer/1", "senesce_version": "0.1.0", "path": "/dev/<sdb>", "length_bytes": 10u64 << 30,
        "reads": 100, "base": "nvme", "curves": curves,
        "residuals": [residual(4096, 30.5, 28.4), residual(1 << 20, 952.0, 949.0), residual(64 << 20, 1100.0, 1080.0)],
        "scales": [{ "keys": ["link_rate", "channel_rate"], "factor": 0.337 }],
    })
}
