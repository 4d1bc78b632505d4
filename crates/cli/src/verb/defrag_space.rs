//! `senesce defrag --free-space`: free space in fewer and longer extents.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Bytes, Clock, Printable};
use senesce_defrag::{
    Applied, ApplyOptions, Left, LeftWhy, PlanOptions, Tree, apply_space, balance_group, collect_tree, find_left,
    find_mover, find_segments, free_lengths, hold_in_thought, next_group, plan_balance, plan_space,
    predict_free_lengths,
};
use senesce_probe::{
    collect::{
        collect_btrfs_free_space, collect_btrfs_free_space_as_it_is, collect_free_extents,
        collect_free_extents_as_it_is,
    },
    map::{BtrfsFreeSpace, FreeExtent},
    score::{FreeSpaceFigures, compute_free_space},
};
use senesce_volume::interrupted;
use serde::Serialize;

use super::defrag::{Pace, figure, interrupted_or, left_lines, skipped_lines, steps_line, warn_of};
use crate::{
    args::DefragArgs,
    clock::SystemClock,
    exit::failed,
    machine::count_threads,
    progress::{Counter, Stretch},
    table::render_table,
};

/// The schema of [`Report`] as JSON.
pub(super) const SCHEMA: &str = "senesce-defrag-space/1";
/// The most that moves without `--budget`, bytes.
const MOST_BYTES: u64 = 1 << 30;
/// Nor does more than one part in this number of the free space move.
const FREE_SHARE: u64 = 4;

/// The whole result as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Report {
    /// The name of the schema and its version.
    schema: &'static str,
    /// The free space before.
    before: FreeSpaceFigures,
    /// The free space after all moves of the plan, as predicted.
    predicted: FreeSpaceFigures,
    /// Bytes of contents that the plan moves, and so writes.
    moved_bytes: u64,
    /// The files whose contents cannot move. Not counted on Btrfs, where the kernel moves block
    /// groups.
    left: BTreeMap<LeftWhy, Left>,
    /// The result of the moves. `None` if nothing was moved.
    applied: Option<Done>,
}

/// The result of the moves.
#[derive(Serialize, JsonSchema)]
struct Done {
    #[serde(flatten)]
    applied: Applied,
    /// Wall time of the whole command, seconds.
    seconds: f64,
    /// The free space after the moves.
    after: FreeSpaceFigures,
}

/// Plans which contents move, prints what that gains, and moves them.
pub fn defrag_space(args: &DefragArgs, quiet: bool) -> Result<()> {
    let clock = SystemClock::start();
    let (mut mover, options) = find_mover(&args.path, args.programs)?;
    if let Ok(space) = collect_btrfs_free_space_as_it_is(&args.path) {
        return balance(args, &space, &clock);
    }
    let free = collect_free_extents_as_it_is(&args.path).context("cannot read the free extents, which needs root")?;
    let counter = Counter::for_stderr(quiet, "entries", None);
    let stop = || interrupted().is_some();
    let tree = collect_tree(&args.path, count_threads(args.threads), &stop).map_err(interrupted_or)?;
    counter.finish();
    warn_of(&tree);
    let before = figures(&free);
    let budget = args.budget.map_or_else(|| MOST_BYTES.min(before.bytes / FREE_SHARE), |budget| budget.0);
    let (predicted, moved_bytes) = predict(&tree, &options, &free, budget);
    let left = find_left(&tree, &options);
    let mut report = Report { schema: SCHEMA, before, predicted, moved_bytes, left, applied: None };
    if !args.json {
        print!("{}", plan_screen(args, &report));
    }
    if !args.dry_run && moved_bytes > 0 {
        let mut bar = Stretch::for_stderr(quiet, "moving", "MiB", moved_bytes >> 20);
        let mut pace = Pace::new(args, &clock);
        let apply_options = ApplyOptions {
            pace: &mut |bytes| pace.may_continue(bytes),
            progress: &mut |bytes| bar.reach(bytes >> 20),
            clock: &clock,
        };
        let (_, applied) = apply_space(&tree, (&options, budget), &mut *mover, apply_options)?;
        let after = figures(&collect_free_extents(&args.path)?);
        let seconds = clock.now().as_secs_f64();
        if !args.json {
            print!("{}", done_screen(&report, &applied, &after, seconds));
        }
        report.applied = Some(Done { applied, seconds, after });
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    if let Some(signal) = interrupted() {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    let is_in_vain = |done: &Done| done.applied.files == 0 && !done.applied.skipped.is_empty();
    if report.applied.as_ref().is_some_and(is_in_vain) {
        return Err(failed("no file could be moved"));
    }
    Ok(())
}

/// Empties the worst block groups of a Btrfs, one after the other.
fn balance(args: &DefragArgs, space: &BtrfsFreeSpace, clock: &SystemClock) -> Result<()> {
    let before = compute_free_space(free_lengths(space));
    let budget = args.budget.map_or_else(|| MOST_BYTES.min(before.bytes / FREE_SHARE), |budget| budget.0);
    let groups = plan_balance(space, budget);
    let predicted = compute_free_space(predict_free_lengths(space, &groups));
    let moved_bytes = groups.iter().map(|group| group.used_bytes).sum();
    let left = BTreeMap::new();
    let mut report = Report { schema: SCHEMA, before, predicted, moved_bytes, left, applied: None };
    let mut end = Ok(());
    if !args.json {
        print!("{}", plan_screen(args, &report));
    }
    if !args.dry_run && moved_bytes > 0 {
        let mut pace = Pace::new(args, clock);
        let mut applied = Applied::default();
        let mut failure = Ok(());
        let mut unread = None;
        let mut now = space.clone();
        let mut waiting = groups;
        while let Some(group) = next_group(&now, &mut waiting, budget - applied.written_bytes) {
            if !pace.may_continue(group.used_bytes) {
                applied.is_stopped = true;
                break;
            }
            failure = balance_group(&args.path, &group);
            if failure.is_err() {
                break;
            }
            applied.moved_bytes += group.used_bytes;
            applied.written_bytes += group.used_bytes;
            match collect_btrfs_free_space(&args.path) {
                Ok(found) => now = found,
                Err(error) => {
                    unread = Some(error);
                    break;
                }
            }
        }
        if unread.is_none() {
            now = collect_btrfs_free_space(&args.path)?;
        }
        let after = compute_free_space(free_lengths(&now));
        let seconds = clock.now().as_secs_f64();
        if !args.json {
            print!("{}", done_screen(&report, &applied, &after, seconds));
        }
        report.applied = Some(Done { applied, seconds, after });
        // The report has the groups that were emptied before the error.
        end = failure.map_err(Into::into).and(unread.map_or(Ok(()), |error| Err(error.into())));
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    match interrupted() {
        Some(signal) => Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into()),
        None => end,
    }
}

fn figures(free: &[FreeExtent]) -> FreeSpaceFigures {
    compute_free_space(free.iter().map(|free| free.length_bytes))
}

/// The free space after the moves, and the bytes that move.
fn predict(tree: &Tree, options: &PlanOptions, free: &[FreeExtent], budget: u64) -> (FreeSpaceFigures, u64) {
    let held = hold_in_thought(free.iter().map(|free| (free.start_bytes, free.length_bytes)));
    let segments = find_segments(tree, options, &held, &[]);
    let plan = plan_space(&segments, budget, options.align_bytes);
    let after = plan.free_after(&segments).into_iter().map(|(_, length)| length);
    (compute_free_space(after), plan.bytes())
}

fn space_row(name: &str, figures: &FreeSpaceFigures) -> Vec<String> {
    vec![
        name.to_owned(),
        Bytes(figures.bytes).to_string(),
        figures.extents.to_string(),
        Bytes(figures.largest_bytes).to_string(),
        figures.mean_bytes.map_or("–".to_owned(), |mean| Bytes(mean as u64).to_string()),
    ]
}

fn header() -> Vec<String> {
    ["free space", "bytes", "extents", "largest", "mean"].map(str::to_owned).to_vec()
}

fn plan_screen(args: &DefragArgs, report: &Report) -> String {
    let (path, left) = (Printable::new(&args.path), left_lines(&report.left));
    if report.moved_bytes == 0 {
        let now = render_table(&[header(), space_row("now", &report.before)]);
        return format!("{path}: no content can move that would make free space contiguous\n{now}{left}");
    }
    let rows = [header(), space_row("now", &report.before), space_row("predicted", &report.predicted)];
    format!("{path}: {} of contents to move\n{}{left}", Bytes(report.moved_bytes), render_table(&rows))
}

fn done_screen(report: &Report, applied: &Applied, after: &FreeSpaceFigures, seconds: f64) -> String {
    let rows = [header(), space_row("before", &report.before), space_row("now", after)];
    format!(
        "moved           {}{} written, {} s{}\n{}{}{}",
        if applied.files > 0 { format!("ranges of {} files, ", applied.files) } else { String::new() },
        Bytes(applied.written_bytes),
        figure(seconds),
        if applied.is_stopped { "; stopped early, --resume continues" } else { "" },
        steps_line(applied),
        render_table(&rows),
        skipped_lines(applied),
    )
}
