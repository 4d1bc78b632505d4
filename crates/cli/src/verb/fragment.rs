//! `senesce fragment`: a fragmentation that is asked for.

use anyhow::Result;
use senesce_core::{Bytes, Seed};
use senesce_fragment::{
    Error, FILLER_NAME, FileTarget, FreeOptions, FreeReport, Histogram, fragment_file, fragment_free_space,
};

use crate::{args::FragmentArgs, exit::usage};

/// Fragments, and says what was reached.
pub fn fragment(args: FragmentArgs) -> Result<()> {
    let target = match (&args.free_space, args.extents, args.layout_score) {
        (Some(histogram), ..) => return free_space(&args, histogram),
        (None, Some(extents), _) => FileTarget::Extents(extents),
        (None, None, Some(score)) if (0.0..=1.0).contains(&score) => FileTarget::LayoutScore(score),
        (None, None, Some(score)) => return Err(usage(format!("--layout-score {score} is not within 0 and 1"), None)),
        (None, None, None) => unreachable!("one of them is required"),
    };
    let report = fragment_file(&args.path, target, args.size).map_err(explain)?;
    if args.json {
        let document = serde_json::json!({ "schema": "senesce-fragment-file/1", "reached": report });
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    let score = report.layout_score.map_or("none".to_owned(), |score| format!("{score:.6}"));
    let before = report.extents_before.map_or(String::new(), |before| format!(" (before: {before})"));
    println!("{}: {} in {} blocks, {}", args.path.display(), Bytes(report.size_bytes), report.blocks, report.method);
    println!("extents       {}{before}\nlayout score  {score}", report.extents);
    Ok(())
}

fn free_space(args: &FragmentArgs, histogram: &Histogram) -> Result<()> {
    let options = FreeOptions { free: args.free, within: args.within, seed: Seed(args.seed) };
    let report = fragment_free_space(&args.path, histogram, &options).map_err(explain)?;
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
        error => error.into(),
    }
}
