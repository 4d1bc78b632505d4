//! `senesce device`: the devices that costs are modelled for.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Seed};
use senesce_device::{
    BandwidthPoint, Calibration, DeviceSpec, ReadExperiment, compute_bandwidth_curve, compute_calibration,
    compute_derived_figures, compute_natural_transfer_size, find_preset, presets,
};
use senesce_probe::collect::collect_transfer_curve;
use senesce_report::{TransferOptions, render_transfer, render_transfer_svg};
use serde_json::{Value, json};

use crate::{
    args::{DeviceArgs, DeviceVerb},
    clock::SystemClock,
    exit::usage,
};

/// Places of reads follow from it.
const SEED: Seed = Seed(1);
/// The longest read of a curve that is shown.
const LARGEST: Bytes = Bytes(64 << 20);

/// Of the best bandwidth, for natural transfer sizes. Source: A. Conway et al., USENIX FAST 2017.
const FRACTIONS: [f64; 2] = [0.5, 0.9];

/// Lists, shows or measures them.
pub fn device(args: DeviceArgs) -> Result<()> {
    match args.verb {
        DeviceVerb::List => list(),
        DeviceVerb::Show { device, toml, curve } => show(&read_device(&device)?, toml, curve),
        DeviceVerb::Calibrate { path, base, name, reads, largest, out, json, html, svg } => {
            let base = read_device(&base)?;
            let measured = measure(&path, &base, &name, reads, largest)?;
            fs::write(&out, measured.fitted.spec.render()?)
                .with_context(|| format!("cannot write {}", out.display()))?;
            let transfer = if json || html.is_some() || svg.is_some() { Some(measured.to_json(&base)?) } else { None };
            if let Some(transfer) = &transfer {
                draw(transfer, html.as_deref(), svg.as_deref())?;
            }
            match transfer.filter(|_| json) {
                Some(transfer) => println!("{}", serde_json::to_string_pretty(&transfer)?),
                None => {
                    measured.print(&base)?;
                    println!("description: {}", out.display());
                }
            }
            Ok(())
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
    for fraction in FRACTIONS {
        let size = Bytes(compute_natural_transfer_size(points, fraction)?);
        println!("natural transfer size at {:.0}% of the peak: {size}", fraction * 100.0);
    }
    Ok(())
}

/// From a block up, each twice as long as the one before.
fn sizes(largest: Bytes) -> impl Iterator<Item = u64> {
    (12..).map(|power| 1u64 << power).take_while(move |size| *size <= largest.0)
}

/// A device's curve, and the model that was fitted to it.
struct Measured {
    path: PathBuf,
    length: Bytes,
    reads: u32,
    sizes: Vec<u64>,
    points: Vec<BandwidthPoint>,
    fitted: Calibration,
}

fn measure(path: &Path, base: &DeviceSpec, name: &str, reads: u32, largest: Bytes) -> Result<Measured> {
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
    let length = file_length(path)?;
    let experiment = ReadExperiment { region_bytes: 0..length.min(base.capacity_bytes()), reads, seed: SEED };
    let title = format!("{name} (calibrated)");
    let fitted = compute_calibration(base, name, &title, &points, &experiment)?;
    Ok(Measured { path: path.to_owned(), length: Bytes(length), reads, sizes, points, fitted })
}

impl Measured {
    fn print(&self, base: &DeviceSpec) -> Result<()> {
        println!("effective bandwidth of random reads, MiB/s:");
        println!("{:>10}  {:>10}  {:>10}  {:>7}", "read size", "measured", "fitted", "error");
        for residual in &self.fitted.residuals {
            println!(
                "{:>10}  {:>10.1}  {:>10.1}  {:>6.1}%",
                Bytes(residual.size_bytes).to_string(),
                residual.measured_mib_per_second,
                residual.modelled_mib_per_second,
                residual.error_percent
            );
        }
        print_natural_sizes(&self.points)?;
        for (keys, scale) in &self.fitted.scales {
            println!("{} {}: times {scale:.3}", base.name, keys.join(", "));
        }
        Ok(())
    }

    /// The measured curve, the fitted one, and those of all devices that come with the program.
    fn to_json(&self, base: &DeviceSpec) -> Result<Value> {
        let modelled = self.fitted.residuals.iter().map(|residual| BandwidthPoint {
            size_bytes: residual.size_bytes,
            mib_per_second: residual.modelled_mib_per_second,
        });
        let mut curves = vec![
            curve_json("measured", "measured", &self.points)?,
            curve_json(&self.fitted.spec.name, "fitted", &modelled.collect::<Vec<_>>())?,
        ];
        let mut models = presets().map(|(name, _)| read_device(name)).collect::<Result<Vec<_>>>()?;
        if find_preset(&base.name).is_none() {
            models.push(base.clone());
        }
        for spec in models {
            let points =
                compute_bandwidth_curve(&spec, self.sizes.iter().copied(), &ReadExperiment::whole(&spec, SEED))?;
            curves.push(curve_json(&spec.title, "model", &points)?);
        }
        let scales = self.fitted.scales.iter().map(|(keys, factor)| json!({ "keys": keys, "factor": factor }));
        Ok(json!({
            "schema": "senesce-transfer/1",
            "senesce_version": env!("CARGO_PKG_VERSION"),
            "path": self.path.display().to_string(),
            "length_bytes": self.length.0,
            "reads": self.reads,
            "base": base.name,
            "curves": curves,
            "residuals": self.fitted.residuals,
            "scales": scales.collect::<Vec<_>>(),
        }))
    }
}

fn curve_json(name: &str, kind: &str, points: &[BandwidthPoint]) -> Result<Value> {
    let natural = |fraction: f64| -> Result<Value> {
        Ok(json!({ "fraction": fraction, "size_bytes": compute_natural_transfer_size(points, fraction)? }))
    };
    let natural = FRACTIONS.map(natural).into_iter().collect::<Result<Vec<_>>>()?;
    Ok(json!({ "name": name, "kind": kind, "points": points, "natural_transfer_sizes": natural }))
}

fn draw(transfer: &Value, html: Option<&Path>, svg: Option<&Path>) -> Result<()> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("written: {}", path.display());
        anyhow::Ok(())
    };
    if let Some(path) = html {
        let options = TransferOptions { senesce_version: env!("CARGO_PKG_VERSION").to_owned(), made_at: None };
        write(path, render_transfer(transfer, &options)?)?;
    }
    if let Some(path) = svg {
        write(path, render_transfer_svg(transfer))?;
    }
    Ok(())
}

/// The length of a file or block device.
fn file_length(path: &Path) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.seek(SeekFrom::End(0)).with_context(|| format!("cannot look at {}", path.display()))
}
