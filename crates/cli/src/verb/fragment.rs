//! `senesce fragment`: a requested fragmentation.

use anyhow::{Context, Result};
use senesce_core::{Bytes, Printable, Seed};
use senesce_fragment::{
    Error, FILLER_NAME, FileTarget, FreeOptions, FreeReport, Histogram, fragment_file, fragment_free_space,
    fragment_tree,
};

use senesce_volume::install_signal_cleanup;

use super::home::with_home;
use crate::{
    args::FragmentArgs,
    exit::{failed, usage},
};

/// Fragments, and says what was reached.
pub fn fragment(args: FragmentArgs) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    if args.free_space.is_none() && (args.free.is_some() || args.within.is_some() || args.seed.is_some()) {
        return Err(usage("--free, --within and --seed are for --free-space", None));
    }
    let target = match (&args.free_space, args.extents, args.layout_score) {
        (Some(histogram), ..) => return free_space(&args, histogram),
        (None, Some(extents), _) => FileTarget::Extents(extents),
        (None, None, Some(score)) if (0.0..=1.0).contains(&score) => FileTarget::LayoutScore(score),
        (None, None, Some(score)) => {
            return Err(usage(format!("--layout-score {score} is impossible"), Some("write a number from 0 to 1")));
        }
        (None, None, None) => unreachable!("one of them is required"),
    };
    if args.path.is_dir() {
        return tree(&args, target);
    }
    let report = with_home(|custodian| fragment_file(custodian, &args.path, target, args.size).map_err(explain))?;
    if args.json {
        let document = serde_json::json!({ "schema": "senesce-fragment-file/1", "reached": report });
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    let score = report.layout_score.map_or("none".to_owned(), |score| format!("{score:.6}"));
    let before = report.extents_before.map_or(String::new(), |before| format!(" (before: {before})"));
    println!(
        "{}: {} in {} blocks, {}",
        Printable::new(&args.path),
        Bytes(report.size_bytes),
        report.blocks,
        report.method
    );
    println!("extents       {}{before}\nlayout score  {score}", report.extents);
    Ok(())
}

/// The allowed distance of the layout score of a tree from the requested one.
const SCORE_TOLERANCE: f64 = 0.001;

fn tree(args: &FragmentArgs, target: FileTarget) -> Result<()> {
    if args.size.is_some() {
        return Err(usage("--size is for a new file, and the path is a directory", None));
    }
    let report = with_home(|custodian| fragment_tree(custodian, &args.path, target).map_err(explain))?;
    if args.json {
        let document = serde_json::json!({ "schema": "senesce-fragment-tree/1", "reached": report });
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        let figure = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.6}"));
        println!("{}: {} files cut, {} left as they were", Printable::new(&args.path), report.files, report.left);
        println!("extents           {}\nextents per file  {}", report.extents, figure(report.extents_per_file));
        println!("layout score      {}", figure(report.layout_score));
    }
    let mut wrong = report.left_why.clone();
    if let (FileTarget::LayoutScore(wanted), Some(found)) = (target, report.layout_score)
        && (wanted - found).abs() > SCORE_TOLERANCE
    {
        wrong.push(format!("the layout score is {found:.6}, not {wanted}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(failed(format!("not reached:\n  {}", wrong.join("\n  ")))) }
}

fn free_space(args: &FragmentArgs, histogram: &Histogram) -> Result<()> {
    let options =
        FreeOptions { free: args.free, within: args.within.unwrap_or(0.05), seed: Seed(args.seed.unwrap_or(1)) };
    let report =
        with_home(|custodian| fragment_free_space(custodian, &args.path, histogram, &options).map_err(explain))?;
    if args.json {
        let document = serde_json::json!({ "schema": "senesce-fragment-free-space/1", "reached": report });
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    print_free(args, histogram, &report);
    Ok(())
}

fn print_free(args: &FragmentArgs, histogram: &Histogram, report: &FreeReport) {
    println!(
        "free  {} in {} extents (before: {} in {}); {} holes in {}, which keeps {}",
        Bytes(report.after.bytes),
        report.after.extents,
        Bytes(report.before.bytes),
        report.before.extents,
        report.holes,
        args.path.join(FILLER_NAME).display(),
        Bytes(report.filler_bytes)
    );
    println!("{:>12} {:>10} {:>12} {:>8} {:>8}", "from", "extents", "free", "share", "asked");
    for bucket in report.after.buckets.iter().filter(|bucket| bucket.extents > 0) {
        let asked =
            histogram.shares.iter().find(|(size, _)| *size == bucket.bucket_bytes).map_or(0.0, |(_, share)| *share);
        println!(
            "{:>12} {:>10} {:>12} {:>7.2}% {:>7.2}%",
            Bytes(bucket.bucket_bytes),
            bucket.extents,
            Bytes(bucket.bytes),
            100.0 * bucket.bytes as f64 / report.after.bytes.max(1) as f64,
            100.0 * asked
        );
    }
    println!("distance {:.4}; the file system's own reserves: {}", report.distance, Bytes(report.reserved_bytes));
}

/// A target that makes no sense is a matter of usage.
fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::Target { .. } | Error::NotSupported { .. } => usage(error.to_string(), None),
        // Unchanged, so that a signal is reported as a signal.
        Error::Volume(error) => error.into(),
        Error::Probe(error) => error.into(),
        error => error.into(),
    }
}
