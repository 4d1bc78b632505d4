//! `senesce device`: the devices that costs are modelled for.

mod transfer;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Bytes, Nanos, Printable, Seed};
use senesce_device::{
    BandwidthPoint, Calibration, DeviceKind, DeviceSpec, PUBLISHED_HDD_CURVE, ReadExperiment, Residual,
    compute_bandwidth_curve, compute_calibration, compute_derived_figures, compute_natural_transfer_size, find_preset,
    presets,
};
use senesce_experiment::read_description;
use senesce_probe::collect::{TransferLimit, TransferPoint, check_transfer_source, collect_transfer_curve};
use senesce_report::{TransferOptions, render_transfer, render_transfer_svg};
use serde::Serialize;
use serde_json::Value;

use self::transfer::{FRACTIONS, MeasuredPoint, Scale, curve_of};
pub(super) use self::transfer::{TRANSFER_SCHEMA, TransferDocument};
use super::output::{check_description, check_files};
use crate::{
    args::{DeviceArgs, DeviceVerb},
    clock::SystemClock,
    exit::usage,
    near::find_near,
    schema::document,
};

/// Places of reads follow from it.
const SEED: Seed = Seed(1);
/// The longest read of a curve that is shown.
const LARGEST: Bytes = Bytes(64 << 20);
/// The longest read of a curve that is measured. With 1000 reads of each size from a block on it is
/// the experiment of A. Conway et al., USENIX FAST 2017.
const LARGEST_MEASURED: u64 = 512 << 20;
/// Places that a read has at least, unless a longer one is requested: else it is read again and
/// again.
const LEAST_PLACES: u64 = 8;
/// From this error on, percent, a fitted description is said not to describe the device at that
/// size.
const WORST_ERROR_PERCENT: f64 = 25.0;

/// The device of which a curve was published.
const PUBLISHED_DEVICE: &str = "hdd-7200";

/// Lists, shows or measures them.
pub fn device(args: DeviceArgs) -> Result<()> {
    match args.verb {
        DeviceVerb::List { json } => list(json),
        DeviceVerb::Show { device, toml, curve } => show(&read_device(&device)?, toml, curve),
        DeviceVerb::Calibrate { path, base, name, reads, seconds, largest, out, dry_run, json, html, svg } => {
            let base = read_device(&base)?;
            check_description(Some(&out))?;
            check_files([&html, &svg], None)?;
            if dry_run {
                check_source(&path)?;
                let (path, out) = (Printable::new(&path), Printable::new(&out));
                println!("{path} would be read, and its description written to {out}; nothing was read or written");
                return Ok(());
            }
            let measured = measure(&path, &base, &name, (reads, seconds), largest)?;
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
                    println!("description: {}", Printable::new(&out));
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
        let near = find_near(name, presets().map(|(known, _)| known));
        let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        let hint = format!("{near}known devices: {known}; or the path of a description in TOML");
        return Err(usage(message, Some(&hint)));
    }
    let text = read_description(name).with_context(|| format!("cannot read {name}"))?;
    DeviceSpec::parse(&text).map_err(|error| usage(format!("{name}: {error}"), None))
}

/// The version of [`DevicesDocument`].
pub(super) const DEVICES_SCHEMA: &str = "senesce-devices/1";

/// The JSON output of `device list`.
#[derive(Serialize, JsonSchema)]
pub(super) struct DevicesDocument {
    /// The built-in models.
    devices: Vec<ListedDevice>,
}

/// A built-in model.
#[derive(Serialize, JsonSchema)]
struct ListedDevice {
    /// The name for `--device`.
    name: &'static str,
    /// The name of the model in words.
    title: String,
    /// The size of the device, bytes.
    capacity_bytes: u64,
    /// The rate of long reads, megabytes (10^6 bytes) per second. `None` if it is not known.
    sequential_megabytes_per_second: Option<f64>,
}

fn list(json: bool) -> Result<()> {
    let mut devices = Vec::new();
    if !json {
        println!("{:<12} {:<12} {:>10} {:>18}", "name", "model", "capacity", "sequential reads");
    }
    for (name, _) in presets() {
        let spec = read_device(name)?;
        // A disk is fastest on its outer tracks; a link limits an SSD.
        let rate = spec.constants.get("outer_rate").or(spec.constants.get("link_rate"));
        let rate = rate.map(|constant| constant.value);
        match json {
            true => devices.push(ListedDevice {
                name,
                capacity_bytes: spec.capacity_bytes(),
                title: spec.title,
                sequential_megabytes_per_second: rate,
            }),
            false => {
                let rate = rate.map_or("unknown".to_owned(), |rate| format!("{rate:.0} MB/s"));
                println!("{name:<12} {:<12} {:>10} {rate:>18}", spec.title, Bytes(spec.capacity_bytes()));
            }
        }
    }
    if json {
        println!("{:#}", document(DEVICES_SCHEMA, DevicesDocument { devices }));
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
    println!("\nderived figures:");
    for figure in compute_derived_figures(spec)? {
        println!("{:<40} {:>12} {}", figure.name, format!("{:.3}", figure.value), figure.unit);
    }
    if curve {
        let experiment = ReadExperiment::whole(spec, SEED);
        let points = compute_bandwidth_curve(spec, sizes(LARGEST), &experiment)?;
        println!("\neffective bandwidth of random reads over the whole device (model):");
        print_curve(&points);
        print_natural_sizes(&points)?;
        if spec.name == PUBLISHED_DEVICE {
            print_published(spec)?;
        }
    }
    Ok(())
}

/// The published curve, what the model gives where its authors read and over the whole device, and
/// by how much that is off.
fn print_published(spec: &DeviceSpec) -> Result<()> {
    /// As the authors read.
    const REGION: Bytes = Bytes(20 << 30);
    /// Enough for half a percent.
    const READS: u32 = 4000;
    let sizes = || PUBLISHED_HDD_CURVE.iter().map(|point| point.size_bytes);
    let whole = ReadExperiment { reads: READS, ..ReadExperiment::whole(spec, SEED) };
    let first = ReadExperiment { region_bytes: 0..REGION.0.min(spec.capacity_bytes()), ..whole.clone() };
    let first = compute_bandwidth_curve(spec, sizes(), &first)?;
    let whole = compute_bandwidth_curve(spec, sizes(), &whole)?;
    println!("\nagainst the published curve (A. Conway et al., USENIX FAST 2017, figure 1), MiB/s:");
    let headings = ["read size", "published", "first 20 GiB", "error", "whole device", "error"];
    println!(
        "{:>10}  {:>10}  {:>13}  {:>7}  {:>13}  {:>7}",
        headings[0], headings[1], headings[2], headings[3], headings[4], headings[5]
    );
    for ((published, first), whole) in PUBLISHED_HDD_CURVE.iter().zip(&first).zip(&whole) {
        let error = |got: &BandwidthPoint| (got.mib_per_second / published.mib_per_second - 1.0) * 100.0;
        println!(
            "{:>10}  {:>10.1}  {:>13.1}  {:>+6.1}%  {:>13.1}  {:>+6.1}%",
            Bytes(published.size_bytes).to_string(),
            published.mib_per_second,
            first.mib_per_second,
            error(first),
            whole.mib_per_second,
            error(whole)
        );
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
        let size = two_digits(compute_natural_transfer_size(points, fraction)?);
        println!("natural transfer size at {:.0}% of the peak: {size}", fraction * 100.0);
    }
    Ok(())
}

/// Bytes with two significant digits: between points that are a factor of two apart no more is
/// known.
fn two_digits(bytes: u64) -> String {
    let unit = bytes.max(1).ilog2() / 10;
    let names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let value = bytes as f64 / (1u64 << (10 * unit)) as f64;
    let name = names[unit as usize];
    match value {
        value if value < 9.95 && unit > 0 => format!("{value:.1} {name}"),
        value if value < 99.5 => format!("{value:.0} {name}"),
        value => format!("{:.0} {name}", (value / 10.0).round() * 10.0),
    }
}

/// From a block up, each twice as long as the one before.
fn sizes(largest: Bytes) -> impl Iterator<Item = u64> {
    (12..).map(|power| 1u64 << power).take_while(move |size| *size <= largest.0)
}

/// The smallest file or device with enough sizes of reads.
const LEAST_CALIBRATED: u64 = 1 << 20;
/// The hint for a file that cannot be measured.
const FULL_FILE: &str = "write a file without holes: dd if=/dev/urandom of=FILE bs=1M count=1024";

/// A device's curve, and the model that was fitted to it.
struct Measured {
    path: PathBuf,
    length: Bytes,
    reads: u32,
    sizes: Vec<u64>,
    measured: Vec<TransferPoint>,
    points: Vec<BandwidthPoint>,
    fitted: Calibration,
}

/// The length of a file or device that can be measured, bytes.
fn check_source(path: &Path) -> Result<u64> {
    let length = file_length(path)?;
    if length < LEAST_CALIBRATED {
        let message = format!(
            "{} has {}; a calibration needs at least {}",
            path.display(),
            Bytes(length),
            Bytes(LEAST_CALIBRATED)
        );
        return Err(usage(message, Some(FULL_FILE)));
    }
    check_transfer_source(path).map_err(of_source)?;
    Ok(length)
}

fn of_source(error: senesce_probe::Error) -> anyhow::Error {
    match &error {
        senesce_probe::Error::BadTransfer { .. } => usage(error.to_string(), Some(FULL_FILE)),
        _ => error.into(),
    }
}

fn measure(
    path: &Path,
    base: &DeviceSpec,
    name: &str,
    (reads, seconds): (u32, Option<u32>),
    largest: Option<Bytes>,
) -> Result<Measured> {
    let clock = SystemClock::start();
    let length = check_source(path)?;
    let largest = largest.unwrap_or(Bytes(LARGEST_MEASURED.min(length / LEAST_PLACES)));
    let sizes: Vec<u64> = sizes(largest).collect();
    let most = Bytes(sizes.iter().sum::<u64>() * u64::from(reads));
    let until = match seconds {
        Some(seconds) => format!(", at most {seconds} s for each of {} sizes", sizes.len()),
        None => format!(" in reads of {} sizes; --seconds and --reads end it earlier", sizes.len()),
    };
    eprintln!("reading {most} at random from {}{until}", Printable::new(&path));
    let time = seconds.map(|seconds| Nanos(u64::from(seconds) * 1_000_000_000));
    let limit = TransferLimit { reads: u64::from(reads), time };
    let measured = collect_transfer_curve(path, &sizes, limit, SEED, &clock).map_err(of_source)?;
    let points: Vec<BandwidthPoint> = measured
        .iter()
        .filter_map(|point| {
            Some(BandwidthPoint { size_bytes: point.size_bytes, mib_per_second: point.mib_per_second()? })
        })
        .collect();
    let reads_of_model = reads.min(reads_of_model(base.kind, largest));
    let region_bytes = 0..length.min(base.capacity_bytes());
    let experiment = ReadExperiment { region_bytes, reads: reads_of_model, seed: SEED };
    let title = format!("{name} (calibrated)");
    let fitted = compute_calibration(base, name, &title, &points, &experiment)?;
    Ok(Measured { path: path.to_owned(), length: Bytes(length), reads, sizes, measured, points, fitted })
}

/// How often a model reads each size while it is fitted, a hundred times over: a disk costs the
/// same whatever it reads, an SSD by its size, and one of its reads is much like another.
fn reads_of_model(kind: DeviceKind, largest: Bytes) -> u32 {
    match kind {
        DeviceKind::Hdd => 1000,
        DeviceKind::Ssd => ((8u64 << 30) / largest.0.max(1)).clamp(16, 400) as u32,
    }
}

impl Measured {
    fn print(&self, base: &DeviceSpec) -> Result<()> {
        println!("effective bandwidth of random reads, MiB/s:");
        println!(
            "{:>10}  {:>6}  {:>10}  {:>7}  {:>10}  {:>7}",
            "read size", "reads", "measured", "spread", "fitted", "error"
        );
        for residual in &self.fitted.residuals {
            let point = self.measured.iter().find(|point| point.size_bytes == residual.size_bytes);
            let spread = point.and_then(TransferPoint::spread).map(|spread| format!("{:.0}%", spread * 100.0));
            println!(
                "{:>10}  {:>6}  {:>10.1}  {:>7}  {:>10.1}  {:>6.1}%",
                Bytes(residual.size_bytes).to_string(),
                point.map_or(0, |point| point.reads),
                residual.measured_mib_per_second,
                spread.unwrap_or("–".to_owned()),
                residual.modelled_mib_per_second,
                residual.error_percent
            );
        }
        println!("spread: the range of the middle half of the read times, divided by their median");
        print_natural_sizes(&self.points)?;
        for (keys, scale) in &self.fitted.scales {
            println!("{} {}: times {scale:.3}", base.name, keys.join(", "));
        }
        for warning in misfits(&self.fitted.residuals) {
            println!("warning: {warning}");
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
            curve_of("measured", "measured", &self.points)?,
            curve_of(&self.fitted.spec.name, "fitted", &modelled.collect::<Vec<_>>())?,
        ];
        let mut models = presets().map(|(name, _)| read_device(name)).collect::<Result<Vec<_>>>()?;
        if find_preset(&base.name).is_none() {
            models.push(base.clone());
        }
        for spec in models {
            let whole = ReadExperiment::whole(&spec, SEED);
            let largest = Bytes(self.sizes.last().copied().unwrap_or_default());
            let experiment = ReadExperiment { reads: whole.reads.min(reads_of_model(spec.kind, largest)), ..whole };
            let points = compute_bandwidth_curve(&spec, self.sizes.iter().copied(), &experiment)?;
            curves.push(curve_of(&spec.title, "model", &points)?);
        }
        let scales = self.fitted.scales.iter().map(|(keys, factor)| Scale { keys: keys.clone(), factor: *factor });
        let measured = self.measured.iter().map(|point| MeasuredPoint {
            size_bytes: point.size_bytes,
            reads: point.reads,
            wall_seconds: point.wall.as_secs_f64(),
            spread: point.spread(),
        });
        let transfer = TransferDocument {
            senesce_version: crate::VERSION,
            path: self.path.display().to_string(),
            length_bytes: self.length.0,
            reads: self.reads,
            base: base.name.clone(),
            curves,
            measured: measured.collect(),
            residuals: self.fitted.residuals.clone(),
            warnings: misfits(&self.fitted.residuals),
            scales: scales.collect(),
        };
        Ok(document(TRANSFER_SCHEMA, transfer))
    }
}

/// Sizes at which the fitted description does not describe what was measured.
fn misfits(residuals: &[Residual]) -> Vec<String> {
    let bad = residuals.iter().filter(|residual| residual.error_percent.abs() > WORST_ERROR_PERCENT);
    let said = bad.map(|residual| {
        format!(
            "the fitted description is {:.0}% too {} for reads of {}: it does not describe this device there",
            residual.error_percent.abs(),
            if residual.error_percent > 0.0 { "fast" } else { "slow" },
            Bytes(residual.size_bytes)
        )
    });
    said.collect()
}

fn draw(transfer: &Value, html: Option<&Path>, svg: Option<&Path>) -> Result<()> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("written: {}", Printable::new(&path));
        anyhow::Ok(())
    };
    if let Some(path) = html {
        let options = TransferOptions { senesce_version: crate::VERSION.to_owned(), made_at: None };
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
    if path.is_dir() {
        let hint = "name a block device, or a large file on it";
        return Err(usage(format!("{} is a directory", path.display()), Some(hint)));
    }
    let mut file = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.seek(SeekFrom::End(0)).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_digits() {
        let said = [800, 4096, 10_000, 1_258_291, 12_473_856, 104_000_000, 1 << 30].map(two_digits);
        assert_eq!(said, ["800 B", "4.0 KiB", "9.8 KiB", "1.2 MiB", "12 MiB", "99 MiB", "1.0 GiB"]);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let residual = |size_bytes, error_percent| Residual {
            size_bytes,
            measured_mib_per_second: 1.0,
            modelled_mib_per_second: 1.0,
            error_percent,
        };
        let said = misfits(&[residual(4096, -48.2), residual(8192, 24.9), residual(1 << 20, 31.0)]);
        assert_eq!(said.len(), 2);
        assert!(said[0].contains("48% too slow for reads of 4") && said[1].contains("31% too fast"), "{said:?}");
    }

    #[test]
    fn a_fit_costs_no_more_for_long_reads() {
        assert_eq!(reads_of_model(DeviceKind::Ssd, Bytes(512 << 20)), 16);
        assert_eq!(reads_of_model(DeviceKind::Ssd, Bytes(1 << 20)), 400);
    }
}
