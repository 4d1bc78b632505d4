//! `senesce trace`: the block requests of one device during a command, or of a recorded trace,
//! scored and costed.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufReader, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{
    BlockOp, BlockRequest, Bytes, Printable,
    numbers::{score, three_digits},
};
use senesce_device::{DeviceCost, QueuePolicy, compute_cost};
use senesce_inspect::{Access, Target, find_btrfs_devices, find_target};
use senesce_probe::{
    collect::BlockTracer,
    score::{AccessFigures, TraceFigures, compute_trace_figures},
    trace::{BlockTrace, import_blkparse},
};
use senesce_volume::{LinuxHost, install_signal_cleanup, interrupted};
use serde::Serialize;

use super::{
    device::read_device,
    little::{allocated_at_least, warn_of_little},
    output::{check_files, print_file_preview},
    place::check_program,
};
use crate::{
    args::TraceArgs,
    exit::{failed, usage},
    fit::fit,
    schema::document,
};

/// The schema of a trace's figures as JSON.
pub(super) const TRACE_SCHEMA: &str = "senesce-trace/1";

/// The JSON output of `trace`.
#[derive(Serialize, JsonSchema)]
pub(super) struct TraceDocument {
    /// Events that the trace lost. If this is not 0, requests are missing.
    lost_events: u64,
    /// Requests of all kinds.
    requests: usize,
    /// The figures of the layout.
    figures: TraceFigures,
    /// The cost of the reads on each device.
    modelled_reads: Vec<DeviceCost>,
    /// Limits of the figures, in words.
    warnings: Vec<String>,
}

/// Blocks that seeks are counted in.
const BLOCK_BYTES: u64 = 4096;

/// Traces or imports, and prints figures.
pub fn trace(args: TraceArgs, quiet: bool) -> Result<()> {
    check_files([&args.requests], None)?;
    let devices = args.device.iter().map(|name| read_device(name)).collect::<Result<Vec<_>>>()?;
    let (trace, ended, traced) = match (&args.blkparse, &args.on, args.command.split_first()) {
        (Some(path), None, None) => {
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            if args.dry_run {
                import_blkparse(BufReader::new(file))?;
                return preview(&args, path, "read");
            }
            (import_blkparse(BufReader::new(file))?, None, None)
        }
        (None, on, Some((program, arguments))) => {
            install_signal_cleanup().context("cannot handle signals")?;
            let on = match on {
                Some(path) => device_of(path)?,
                None => device_of_current_directory(quiet)?,
            };
            check_program(program, Some(Path::new(".")))?;
            if args.dry_run {
                // Fails if this user may not trace.
                BlockTracer::start(&on)?.stop()?;
                return preview(&args, &on, "traced");
            }
            let tracer = BlockTracer::start(&on)?;
            let status = Command::new(program)
                .args(arguments)
                .stdout(std::io::stderr())
                .status()
                .with_context(|| format!("cannot run {}", program.to_string_lossy()));
            // Whatever became of the command, the tracer goes.
            let trace = tracer.stop()?;
            (trace, Some(status?), Some(on))
        }
        _ => {
            let hint = "senesce trace [--on PATH] -- COMMAND…, or senesce trace --blkparse FILE";
            return Err(usage("either a command or --blkparse is needed, not both", Some(hint)));
        }
    };
    if let Some(path) = &args.requests {
        write_requests(&trace, path)?;
    }
    let figures = compute_trace_figures(trace.block_requests());
    let reads: Vec<BlockRequest> = trace.block_requests().filter(|request| request.op == BlockOp::Read).collect();
    let warning = traced.and_then(|device| warn_of_tree(&args, &device, figures.reads.bytes));
    let mut costs = Vec::new();
    for spec in &devices {
        costs.push(compute_cost(&mut *spec.build()?, &reads, QueuePolicy::default()));
    }
    match args.json {
        true => println!(
            "{}",
            document(
                TRACE_SCHEMA,
                TraceDocument {
                    lost_events: trace.lost,
                    requests: trace.requests.len(),
                    figures,
                    modelled_reads: costs,
                    warnings: Vec::from_iter(warning.clone()),
                }
            )
        ),
        false => print!("{}", fit(&text(&trace, &figures, &costs))),
    }
    if let Some(warning) = warning.filter(|_| !args.json) {
        println!("warning: {warning}");
    }
    if let Some(signal) = interrupted() {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    match ended {
        Some(status) if !status.success() => {
            let how = status.signal().map_or_else(|| status.to_string(), |signal| format!("signal {signal}"));
            Err(failed(format!("the traced command ended with {how}")))
        }
        _ => Ok(()),
    }
}

/// Prints what a trace would do with the device or the file, and the files that it would write.
fn preview(args: &TraceArgs, what: &Path, done: &str) -> Result<()> {
    println!("{} would be {done}; nothing was written", Printable::new(what));
    args.requests.iter().for_each(|path| print_file_preview(path));
    Ok(())
}

/// Returns a warning if the command read almost nothing of the trees that it names, or of the tree
/// that `--on` names. Trees on other devices are not counted.
fn warn_of_tree(args: &TraceArgs, device: &Path, read_bytes: u64) -> Option<String> {
    let is_tree = |path: &Path| path.is_dir() && device_of(path).is_ok_and(|found| found == device);
    let named: BTreeSet<PathBuf> = args
        .command
        .iter()
        .map(Path::new)
        .filter(|path| is_tree(path))
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let trees = if named.is_empty() { args.on.iter().filter(|on| is_tree(on)).cloned().collect() } else { named };
    let allocated = trees.iter().map(|tree| allocated_at_least(tree, read_bytes)).sum();
    warn_of_little(read_bytes, allocated)
}

/// The device of the file system of the current directory; printed to stderr. A path on it
/// where only the kernel's number of it is known.
fn device_of_current_directory(quiet: bool) -> Result<PathBuf> {
    let directory = std::env::current_dir().context("cannot find the current directory")?;
    let device = device_of(&directory)?;
    if !quiet {
        let what = if device == directory { "the device".to_owned() } else { device.display().to_string() };
        eprintln!("tracing {what}, which holds the current directory (--on PATH traces another)");
    }
    Ok(device)
}

/// The device of the file system of a directory or file; the path itself if it is a
/// device, or if only the kernel's number of the device is known.
///
/// Errors: it is on several devices.
fn device_of(path: &Path) -> Result<PathBuf> {
    let absolute = path.canonicalize().with_context(|| format!("cannot look up {}", path.display()))?;
    if !absolute.is_dir() && !absolute.is_file() {
        return Ok(absolute);
    }
    // The place of a file counts, not its contents.
    let directory = if absolute.is_dir() { &absolute } else { absolute.parent().unwrap_or(&absolute) };
    let devices = find_btrfs_devices(directory);
    if devices.len() > 1 {
        let names: Vec<String> = devices.iter().map(|device| device.display().to_string()).collect();
        let problem = format!("{} is on a Btrfs of {} devices: {}", path.display(), devices.len(), names.join(", "));
        let hint = format!("trace one of them: --on {}", names[0]);
        return Err(usage(problem, Some(&hint)));
    }
    Ok(match find_target(directory, Access::ThroughMount, &LinuxHost::default()) {
        Ok(Target::Mounted(mounted)) => mounted.device.unwrap_or(absolute),
        _ => absolute,
    })
}

fn text(trace: &BlockTrace, figures: &TraceFigures, costs: &[DeviceCost]) -> String {
    let mut text = format!(
        "{} requests, {}\n",
        trace.requests.len(),
        match trace.lost {
            0 => "no event lost".to_owned(),
            lost => format!("AT LEAST {lost} EVENTS LOST: the figures lack them"),
        }
    );
    for (name, access) in [("reads", &figures.reads), ("writes", &figures.writes)] {
        if access.requests > 0 {
            text.push_str(&access_text(name, access));
        }
    }
    if figures.discards + figures.flushes > 0 {
        text.push_str(&format!(
            "discards: {} ({}), flushes: {}\n",
            figures.discards,
            Bytes(figures.discarded_bytes),
            figures.flushes
        ));
    }
    for cost in costs {
        text.push_str(&format!(
            "{}: the reads alone would take {} s\n  {} s seeking, {} s rotating, {} s moving data\n",
            cost.device,
            three_digits(cost.seconds),
            three_digits(cost.seek_seconds),
            three_digits(cost.rotation_seconds),
            three_digits(cost.transfer_seconds)
        ));
    }
    text
}

fn access_text(name: &str, access: &AccessFigures) -> String {
    let score = access.dynamic_layout_score.map_or("–".to_owned(), score);
    let chain = access.blocks_per_request.map_or("–".to_owned(), |blocks| format!("{blocks:.1}"));
    let mean_seek = Bytes(access.seek_sectors.saturating_mul(512) / access.requests.max(1));
    let mut text = format!(
        "{name}: {} requests, {}\n  dynamic layout score {score}; {chain} blocks a request\n  {} jumps, mean distance \
         between requests {mean_seek}\n",
        access.requests,
        Bytes(access.bytes),
        access.discontinuities,
    );
    if let Some(blocks) = access.blocks_per_chain {
        text.push_str(&format!("  {} runs of adjacent requests, {blocks:.1} blocks each\n", access.chains));
    }
    let sizes = access.request_sizes.iter().filter(|bucket| bucket.requests > 0);
    let sizes = sizes.map(|bucket| (format!("{}…", Bytes(bucket.at_least_bytes)), vec![bucket.requests]));
    text.push_str(&histogram("size", &["requests"], &sizes.collect::<Vec<_>>()));
    let seeks = access.seeks.iter().filter(|bucket| bucket.forward + bucket.backward > 0);
    let seeks = seeks.map(|bucket| {
        let distance = match bucket.at_least_blocks {
            0 => "none".to_owned(),
            blocks => format!("{}…", Bytes(blocks.saturating_mul(BLOCK_BYTES))),
        };
        (distance, vec![bucket.forward, bucket.backward])
    });
    text.push_str(&histogram("distance", &["forward", "backward"], &seeks.collect::<Vec<_>>()));
    text
}

/// A histogram as a table with a bar for the sum of each row. At most 60 columns, so that it fits
/// on a narrow terminal. Empty if it has no rows.
fn histogram(heading: &str, columns: &[&str], rows: &[(String, Vec<u64>)]) -> String {
    const BAR: f64 = 20.0;
    let most = rows.iter().map(|(_, counts)| counts.iter().sum::<u64>()).max().unwrap_or(0).max(1);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("  {heading:>13}");
    columns.iter().for_each(|column| text.push_str(&format!(" {column:>9}")));
    text.push('\n');
    for (bucket, counts) in rows {
        text.push_str(&format!("  {bucket:>13}"));
        counts.iter().for_each(|count| text.push_str(&format!(" {count:>9}")));
        let share = counts.iter().sum::<u64>() as f64 / most as f64;
        let bar = "▇".repeat(((share * BAR).round() as usize).max(1));
        text.push_str(&format!("  {bar}\n"));
    }
    text
}

/// One line a request: issued (ns), kind, first sector, sectors, completed (ns).
fn write_requests(trace: &BlockTrace, path: &std::path::Path) -> Result<()> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut file = std::io::BufWriter::new(file);
    writeln!(file, "issued_ns,op,sector,sectors,completed_ns")?;
    for traced in &trace.requests {
        let op = match traced.request.op {
            BlockOp::Read => "read",
            BlockOp::Write => "write",
            BlockOp::Discard => "discard",
            BlockOp::Flush => "flush",
        };
        let completed = traced.completed.map(|time| time.0.to_string()).unwrap_or_default();
        let BlockRequest { issued, sector, sectors, .. } = traced.request;
        writeln!(file, "{},{op},{sector},{sectors},{completed}", issued.0)?;
    }
    file.flush().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_fits_on_60_columns() {
        let rows = [
            ("none".to_owned(), vec![210, 0]),
            ("512 MiB…".to_owned(), vec![100, 5]),
            ("1 GiB…".to_owned(), vec![0, 1]),
        ];
        let text = histogram("distance", &["forward", "backward"], &rows);
        assert_eq!(
            text,
            "       distance   forward  backward\n           none       210         0  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n       512 \
             MiB…       100         5  ▇▇▇▇▇▇▇▇▇▇\n         1 GiB…         0         1  ▇\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert_eq!(histogram("size", &["requests"], &[]), "");
    }
}
