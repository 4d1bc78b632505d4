//! `senesce fragment`: a requested fragmentation.

use anyhow::{Context, Result};
use senesce_core::{Bytes, Printable, Seed, numbers::score};
use senesce_fragment::{
    Error, FILLER_NAME, FileTarget, FreeOptions, FreeReport, Histogram, fragment_file, fragment_free_space,
    fragment_tree, plan_file, plan_free_space, plan_tree,
};

use schemars::JsonSchema;
use senesce_experiment::ErrorKind;
use senesce_volume::install_signal_cleanup;
use serde::Serialize;

use super::home::with_home;
use crate::{
    args::FragmentArgs,
    exit::{Failure, failed, usage},
    schema::document,
};

pub(super) const FILE_SCHEMA: &str = "senesce-fragment-file/1";
pub(super) const FILE_PLAN_SCHEMA: &str = "senesce-fragment-file-plan/1";
pub(super) const TREE_PLAN_SCHEMA: &str = "senesce-fragment-tree-plan/1";
pub(super) const TREE_SCHEMA: &str = "senesce-fragment-tree/1";
pub(super) const FREE_SPACE_SCHEMA: &str = "senesce-fragment-free-space/1";
pub(super) const FREE_SPACE_PLAN_SCHEMA: &str = "senesce-fragment-free-space-plan/1";

/// The JSON output of a run.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reached<T> {
    /// The reached fragmentation.
    reached: T,
}

/// The JSON output of a dry run.
#[derive(Serialize, JsonSchema)]
pub(super) struct Planned<T> {
    /// The changes that a run would make.
    plan: T,
}

/// Fragments, and says what was reached.
pub fn fragment(args: FragmentArgs) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    if args.free_space.is_none() && (args.free.is_some() || args.within.is_some() || args.seed.is_some()) {
        let hint = "add --free-space HISTOGRAM, or leave out --free, --within and --seed";
        return Err(usage("--free, --within and --seed have an effect with --free-space only", Some(hint)));
    }
    let target = match (&args.free_space, args.extents, args.layout_score) {
        (Some(histogram), ..) => return free_space(&args, histogram),
        (None, Some(extents), _) => FileTarget::Extents(extents),
        (None, None, Some(score)) if (0.0..=1.0).contains(&score) => FileTarget::LayoutScore(score),
        (None, None, Some(score)) => {
            return Err(usage(format!("--layout-score {score} is not a score"), Some("write a number from 0 to 1")));
        }
        (None, None, None) => unreachable!("one of them is required"),
    };
    if args.path.is_dir() {
        return tree(&args, target);
    }
    if args.dry_run {
        return preview_file(&args, target);
    }
    let report = with_home(|custodian| fragment_file(custodian, &args.path, target, args.size).map_err(explain))?;
    if args.json {
        println!("{:#}", document(FILE_SCHEMA, Reached { reached: report }));
        return Ok(());
    }
    let score = report.layout_score.map_or("none".to_owned(), score);
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

/// Prints how a run would change a file.
fn preview_file(args: &FragmentArgs, target: FileTarget) -> Result<()> {
    let plan = plan_file(&args.path, target, args.size).map_err(explain)?;
    if args.json {
        println!("{:#}", document(FILE_PLAN_SCHEMA, Planned { plan }));
        return Ok(());
    }
    let before = plan.extents_before.map_or(String::new(), |before| format!(" (now: {before})"));
    let what = if plan.is_reached { "stays as it is" } else { "would be written" };
    println!("{}: {} in {} blocks, {what}", Printable::new(&args.path), Bytes(plan.size_bytes), plan.blocks);
    println!("extents       {}{before}", plan.extents);
    Ok(())
}

/// Prints how a run would change the files of a tree. Files that cannot be cut are a failure, as in
/// the run.
fn preview_tree(args: &FragmentArgs, target: FileTarget) -> Result<()> {
    let plan = plan_tree(&args.path, target).map_err(explain)?;
    if args.json {
        println!("{:#}", document(TREE_PLAN_SCHEMA, Planned { plan: &plan }));
    } else {
        let (files, bytes) = (plan.files, Bytes(plan.bytes));
        println!(
            "{}: {files} files of {bytes} would be written, {} stay as they are, {} cannot be cut",
            Printable::new(&args.path),
            plan.reached,
            plan.left
        );
    }
    refuse_left(plan.left, plan.left_why)
}

/// Errors: a part of the target was not reached.
fn refuse_left(left: u64, mut wrong: Vec<String>) -> Result<()> {
    let more = left.saturating_sub(wrong.len() as u64);
    if more > 0 {
        wrong.push(format!("{more} more files"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(failed(format!("not reached:\n  {}", wrong.join("\n  ")))) }
}

/// The allowed distance of the layout score of a tree from the requested one.
const SCORE_TOLERANCE: f64 = 0.001;

fn tree(args: &FragmentArgs, target: FileTarget) -> Result<()> {
    if args.size.is_some() {
        return Err(usage("--size is for a new file, and the path is a directory", None));
    }
    if args.dry_run {
        return preview_tree(args, target);
    }
    let report = with_home(|custodian| fragment_tree(custodian, &args.path, target).map_err(explain))?;
    if args.json {
        println!("{:#}", document(TREE_SCHEMA, Reached { reached: &report }));
    } else {
        let figure = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.6}"));
        println!("{}: {} files cut, {} left as they were", Printable::new(&args.path), report.files, report.left);
        println!("extents           {}\nextents per file  {}", report.extents, figure(report.extents_per_file));
        println!("layout score      {}", report.layout_score.map_or("none".to_owned(), score));
    }
    refuse_left(report.left, report.left_why)?;
    if let (FileTarget::LayoutScore(wanted), Some(found)) = (target, report.layout_score)
        && (wanted - found).abs() > SCORE_TOLERANCE
    {
        return Err(failed(format!("not reached:\n  the layout score is {found:.6}, not {wanted}")));
    }
    Ok(())
}

fn free_space(args: &FragmentArgs, histogram: &Histogram) -> Result<()> {
    let options =
        FreeOptions { free: args.free, within: args.within.unwrap_or(0.05), seed: Seed(args.seed.unwrap_or(1)) };
    if args.dry_run {
        return preview_free(args, histogram, &options);
    }
    let report =
        with_home(|custodian| fragment_free_space(custodian, &args.path, histogram, &options).map_err(explain))?;
    if args.json {
        println!("{:#}", document(FREE_SPACE_SCHEMA, Reached { reached: report }));
        return Ok(());
    }
    print_free(args, histogram, &report);
    Ok(())
}

/// Prints how the free space would change.
fn preview_free(args: &FragmentArgs, histogram: &Histogram, options: &FreeOptions) -> Result<()> {
    let plan = plan_free_space(&args.path, histogram, options).map_err(explain)?;
    if args.json {
        println!("{:#}", document(FREE_SPACE_PLAN_SCHEMA, Planned { plan }));
        return Ok(());
    }
    // Only Btrfs has space outside of its block groups.
    let unallocated = match plan.available_bytes.saturating_sub(plan.before.bytes) {
        0 => String::new(),
        bytes => format!(" and {} unallocated", Bytes(bytes)),
    };
    println!(
        "{}: of {} free in {} extents{unallocated}, {} would stay free as {histogram}; {FILLER_NAME} would take the rest",
        Printable::new(&args.path),
        Bytes(plan.before.bytes),
        plan.before.extents,
        Bytes(plan.free_bytes)
    );
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
    println!("{:>12} {:>10} {:>12} {:>8} {:>8}", "from", "extents", "free", "share", "requested");
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
        Error::NoSpace { .. } => {
            let hint = Some("free some space, or name another place".to_owned());
            Failure { kind: ErrorKind::Environment, message: error.to_string(), hint }.into()
        }
        // Unchanged, so that a signal is reported as a signal.
        Error::Volume(error) => error.into(),
        Error::Probe(error) => error.into(),
        error => error.into(),
    }
}
