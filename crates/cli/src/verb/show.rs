//! `senesce show`: the summary of a run.

use anyhow::Result;
use senesce_experiment::RunPaths;
use senesce_report::{equivalence_table, sparklines, summary_table};
use senesce_store::{ResultStore, Results};

use crate::{args::ShowArgs, exit::usage, fit::fit, verb::export::write_json};

/// Prints the summary table and the slowdown over the checkpoints, or all tables as JSON.
///
/// Errors: the directory holds no results; the run has no such arm.
pub fn show(args: ShowArgs) -> Result<()> {
    let mut results = read_results(&args.run)?;
    keep_arms(&mut results, &args.arm)?;
    if args.json {
        return write_json(&results);
    }
    let mut text = render_summary(&results);
    if args.equivalence {
        text.push('\n');
        text.push_str(&equivalence_table(&results));
    }
    print!("{}", fit(&text));
    Ok(())
}

/// The summary table, and the slowdown over the checkpoints.
pub fn render_summary(results: &Results) -> String {
    let mut text = summary_table(results);
    let lines = sparklines(results);
    if !lines.is_empty() {
        text.push('\n');
        text.push_str(&lines);
    }
    text
}

/// Leaves out the other arms, if `names` are given.
fn keep_arms(results: &mut Results, names: &[String]) -> Result<()> {
    let mut known: Vec<String> = results.cells.iter().map(|cell| cell.key.arm.clone()).collect();
    known.sort();
    known.dedup();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(usage(format!("the run has no arm {unknown}"), Some(&format!("it has: {}", known.join(", ")))));
    }
    if !names.is_empty() {
        let keep = |arm: &str| names.iter().any(|name| name == arm);
        results.cells.retain(|row| keep(&row.key.arm));
        results.grep.retain(|row| keep(&row.key.arm));
        results.load.retain(|row| keep(&row.key.arm));
        results.layout.retain(|row| keep(&row.key.arm));
        results.modelled.retain(|row| keep(&row.key.arm));
        results.trace.retain(|row| keep(&row.key.arm));
        results.trace_buckets.retain(|row| keep(&row.key.arm));
        results.maps.retain(|row| keep(&row.key.arm));
        results.free_space.retain(|row| keep(&row.key.arm));
        results.aging.retain(|row| keep(&row.key.arm));
        results.latency.retain(|row| keep(&row.key.arm));
        results.steps.retain(|row| keep(&row.key.arm));
        results.cures.retain(|row| keep(&row.key.arm));
        results.circumstances.retain(|row| row.arm.is_empty() || keep(&row.arm));
    }
    Ok(())
}

/// The results of the run in a directory.
pub fn read_results(run: &std::path::Path) -> Result<Results> {
    let paths = RunPaths::new(run);
    // The results directory itself may be given too.
    let dir = if paths.results().exists() { paths.results() } else { run.to_owned() };
    Ok(ResultStore::open_read_only(&dir)?.read_all()?)
}
