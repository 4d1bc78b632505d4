//! `senesce device`: the devices that costs are modelled for.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Seed};
use senesce_device::{
    BandwidthPoint, DeviceSpec, ReadExperiment, compute_bandwidth_curve, compute_calibration, compute_derived_figures,
    compute_natural_transfer_size, find_preset, presets,
};
use senesce_probe::collect::collect_transfer_curve;

use crate::{
    args::{DeviceArgs, DeviceVerb},
    clock::SystemClock,
    exit::usage,
};

/// Places of reads follow from it.
const SEED: Seed = Seed(1);
/// The longest read of a curve that is shown.
const LARGEST: Bytes = Bytes(64 << 20);

/// Lists, shows or measures them.
pub fn device(args: DeviceArgs) -> Result<()> {
    match args.verb {
        DeviceVerb::List => list(),
        DeviceVerb::Show { device, toml, curve } => show(&read_device(&device)?, toml, curve),
        DeviceVerb::Calibrate { path, base, name, reads, largest, out } => {
            calibrate(&path, &read_device(&base)?, &name, reads, largest, &out)
        }
    }
}

/// A preset by its name, or a description in a file.
pub fn read_device(name: &str) -> Result<DeviceSpec> {
    if let Some(spec) = find_preset(name) {
        return Ok(spec);
    }
    if !Path::new(name).exists() {
        let known = presets().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let message = format!("there is no device and no file {name:?}");
        return Err(usage(message, Some(&format!("known devices: {known}; or the path of a description in TOML"))));
    }
    let text = fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
    DeviceSpec::parse(&text).map_err(|error| usage(format!("{name}: {error}"), None))
}

fn list() -> Result<()> {
    for (name, _) in presets() {
        let spec = read_device(name)?;
        println!("{name:<12} {:<12} {}", spec.title, Bytes(spec.capacity_bytes()));
    }
    Ok(())
}

fn show(spec: &DeviceSpec, toml: bool, curve: bool) -> Result<()> {
    if toml {
        print!("{}", spec.render()?);
        return Ok(());
    }
    println!("{} (model: {})\n\n{}\n", spec.name, spec.title, spec.description.trim());
    for (key, constant) in &spec.constants {
        println!("{key:<24} {:>10} {:<8} {}", constant.value, constant.unit, constant.source);
    }
    println!("\nwhat follows:");
    for figure in compute_derived_figures(spec)? {
        println!("{:<40} {:>12} {}", figure.name, format!("{:.3}", figure.value), figure.unit);
    }
    if curve {
        let experiment = ReadExperiment::whole(spec, SEED);
        let points = compute_bandwidth_curve(spec, sizes(LARGEST), &experiment)?;
        println!("\neffective bandwidth of random reads over the whole device (model):");
        print_curve(&points);
        print_natural_sizes(&points)?;
    }
    Ok(())
}

fn print_curve(points: &[BandwidthPoint]) {
    let most = points.iter().map(|point| point.mib_per_second).fold(1.0, f64::max);
    for point in points {
        let bar = "▇".repeat((point.mib_per_second / most * 40.0).round() as usize);
        println!("{:>10}  {:>9.1} MiB/s  {bar}", Bytes(point.size_bytes).to_string(), point.mib_per_second);
    }
}

fn print_natural_sizes(points: &[BandwidthPoint]) -> Result<()> {
    for fraction in [0.5, 0.9] {
        let size = Bytes(compute_natural_transfer_size(points, fraction)?);
        println!("natural transfer size at {:.0}% of the peak: {size}", fraction * 100.0);
    }
    Ok(())
}

/// From a block up, each twice as long as the one before.
fn sizes(largest: Bytes) -> impl Iterator<Item = u64> {
    (12..).map(|power| 1u64 << power).take_while(move |size| *size <= largest.0)
}

/// Measures, fits and tells how well it fits.
fn calibrate(path: &Path, base: &DeviceSpec, name: &str, reads: u32, largest: Bytes, out: &Path) -> Result<()> {
    let clock = SystemClock::start();
    let sizes: Vec<u64> = sizes(largest).collect();
    eprintln!("reading {} at random from {}", Bytes(sizes.iter().sum::<u64>() * u64::from(reads)), path.display());
    let measured = collect_transfer_curve(path, &sizes, u64::from(reads), SEED, &clock)?;
    let points: Vec<BandwidthPoint> = measured
        .iter()
        .filter_map(|point| {
            Some(BandwidthPoint { size_bytes: point.size_bytes, mib_per_second: point.mib_per_second()? })
        })
        .collect();
    let region = file_length(path)?.min(base.capacity_bytes());
    let experiment = ReadExperiment { region_bytes: 0..region, reads, seed: SEED };
    let title = format!("{name} (calibrated)");
    let fitted = compute_calibration(base, name, &title, &points, &experiment)?;
    println!("effective bandwidth of random reads, MiB/s:");
    println!("{:>10}  {:>10}  {:>10}  {:>7}", "read size", "measured", "fitted", "error");
    for residual in &fitted.residuals {
        println!(
            "{:>10}  {:>10.1}  {:>10.1}  {:>6.1}%",
            Bytes(residual.size_bytes).to_string(),
            residual.measured_mib_per_second,
            residual.modelled_mib_per_second,
            residual.error_percent
        );
    }
    print_natural_sizes(&points)?;
    for (keys, scale) in &fitted.scales {
        println!("{} {}: times {scale:.3}", base.name, keys.join(", "));
    }
    fs::write(out, fitted.spec.render()?).with_context(|| format!("cannot write {}", out.display()))?;
    println!("description: {}", out.display());
    Ok(())
}

/// The length of a file or block device.
fn file_length(path: &Path) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.seek(SeekFrom::End(0)).with_context(|| format!("cannot look at {}", path.display()))
}
