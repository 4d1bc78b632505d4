//! `senesce compare`: two runs, or two trees, against each other.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::Result;
use senesce_core::{Clock, Seed};
use senesce_probe::{
    collect::{GrepOptions, Order, collect_grep, compute_pattern},
    score::{Comparison, compute_comparison},
};
use senesce_store::{Results, Role};
use serde::Serialize;

use super::show::read_results;
use crate::{
    args::{CompareArgs, FailIf},
    clock::SystemClock,
    exit::{different, failed, usage},
};

/// The schema of a comparison as JSON.
const COMPARE_SCHEMA: &str = "senesce-compare/1";
/// From so many figures on each side on the interval decides, not the medians alone.
const ENOUGH_FIGURES: u64 = 4;

/// One figure of both.
#[derive(Serialize)]
struct Row {
    /// Arm, volume, checkpoint; empty for trees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    of: Vec<String>,
    /// The figure with its unit.
    figure: &'static str,
    #[serde(flatten)]
    comparison: Comparison,
    /// Whether `--fail-if` holds.
    fails: bool,
}

/// Compares and prints; fails with its own code if `--fail-if` holds for any figure.
pub fn compare(args: CompareArgs) -> Result<()> {
    let is_run = |path: &Path| path.join("results").is_dir() || path.join("run.json").exists();
    let mut rows = match (is_run(&args.a), is_run(&args.b)) {
        (true, true) => compare_runs(&read_results(&args.a)?, &read_results(&args.b)?, args.all),
        (false, false) => compare_trees(&args)?,
        _ => {
            let message = format!("{} is a run and the other one is not", args.a.display());
            return Err(usage(message, Some("give two directories of runs, or two directories to read")));
        }
    };
    if rows.is_empty() {
        let hint = "arms are compared that have the same name in both, at checkpoints that both have";
        return Err(usage("the two have nothing in common to compare", Some(hint)));
    }
    for row in &mut rows {
        row.fails = args.fail_if.is_some_and(|limit| fails(&row.comparison, limit));
    }
    match args.json {
        true => println!("{}", serde_json::json!({ "schema": COMPARE_SCHEMA, "rows": rows })),
        false => print!("{}", table(&rows)),
    }
    let failing = rows.iter().filter(|row| row.fails).count();
    match (failing, args.fail_if) {
        (0, _) | (_, None) => Ok(()),
        (_, Some(limit)) => Err(different(format!("{failing} figure(s) differ by more than {limit}"))),
    }
}

/// Whether the second is beyond the limit: its whole interval, or for few figures its median.
fn fails(comparison: &Comparison, limit: FailIf) -> bool {
    let is_sure = comparison.a.count >= ENOUGH_FIGURES && comparison.b.count >= ENOUGH_FIGURES;
    let factor = 1.0 + limit.percent / 100.0;
    match (limit.percent > 0.0, is_sure) {
        (true, true) => comparison.ratio_low > factor,
        (true, false) => comparison.ratio > factor,
        (false, true) => comparison.ratio_high < factor,
        (false, false) => comparison.ratio < factor,
    }
}

/// Grep costs and layouts of the cells that both runs have; of the last common checkpoint, or of all.
fn compare_runs(a: &Results, b: &Results, all: bool) -> Vec<Row> {
    let (costs_a, costs_b) = (figures(a), figures(b));
    let mut last: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (arm, role, pulls, _) in costs_a.keys().filter(|key| costs_b.contains_key(*key)) {
        let last = last.entry((arm, role)).or_default();
        *last = (*last).max(*pulls);
    }
    let mut rows = Vec::new();
    for (key, of_a) in &costs_a {
        let (arm, role, pulls, figure) = key;
        let is_wanted = all || last.get(&(arm.as_str(), *role)) == Some(pulls);
        let Some(of_b) = costs_b.get(key).filter(|_| is_wanted) else { continue };
        if let Some(comparison) = compute_comparison(of_a, of_b, Seed(1)) {
            let of = vec![arm.clone(), (*role).to_owned(), pulls.to_string()];
            rows.push(Row { of, figure, comparison, fails: false });
        }
    }
    rows
}

type FigureKey = (String, &'static str, u64, &'static str);

/// Every figure of the valid cells. All are costs: more is worse.
fn figures(results: &Results) -> BTreeMap<FigureKey, Vec<f64>> {
    let valid = |arm: &str, role: Role, pulls: u64| {
        results
            .cells
            .iter()
            .any(|cell| cell.valid && cell.key.arm == arm && cell.key.role == role && cell.key.pulls == pulls)
    };
    let mut found: BTreeMap<FigureKey, Vec<f64>> = BTreeMap::new();
    let mut add = |key: &senesce_store::CellKey, figure: &'static str, value: f64| {
        if value.is_finite() && valid(&key.arm, key.role, key.pulls) {
            found.entry((key.arm.clone(), key.role.name(), key.pulls, figure)).or_default().push(value);
        }
    };
    for row in &results.grep {
        add(&row.key, "grep s/GiB", row.seconds_per_gib);
    }
    for row in &results.layout {
        add(&row.key, "extents per file", row.extents_per_file);
    }
    found
}

/// Grep tests of two trees in turn, with the caches as they are.
fn compare_trees(args: &CompareArgs) -> Result<Vec<Row>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let pattern = compute_pattern(Seed(1));
    let run = |path: &Path| -> Result<f64> {
        let options = GrepOptions { order: Order::Readdir, pattern: pattern.clone() };
        let figures = collect_grep(path, &options, &*clock)?;
        if figures.errors_count > 0 {
            return Err(failed(format!("{} file(s) below {} could not be read", figures.errors_count, path.display())));
        }
        let nothing = || usage(format!("{} holds nothing to read", path.display()), None);
        figures.seconds_per_gib().filter(|cost| cost.is_finite()).ok_or_else(nothing)
    };
    for _ in 0..args.warmups {
        run(&args.a)?;
        run(&args.b)?;
    }
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for number in 0..args.runs {
        // Who goes first changes, so that whatever else the machine does hits both alike.
        if number % 2 == 0 {
            of_a.push(run(&args.a)?);
            of_b.push(run(&args.b)?);
        } else {
            of_b.push(run(&args.b)?);
            of_a.push(run(&args.a)?);
        }
    }
    let comparison = compute_comparison(&of_a, &of_b, Seed(1));
    Ok(comparison
        .into_iter()
        .map(|comparison| Row { of: Vec::new(), figure: "grep s/GiB", comparison, fails: false })
        .collect())
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![["", "figure", "A", "B", "B/A", "95% interval", "p", "outliers"].map(str::to_owned)];
    for row in rows {
        let Comparison { a, b, ratio, ratio_low, ratio_high, test, outliers_a, outliers_b } = &row.comparison;
        let one = a.count == 1 && b.count == 1;
        let outliers: Vec<String> = outliers_a
            .iter()
            .map(|figure| format!("A {figure:.3}"))
            .chain(outliers_b.iter().map(|figure| format!("B {figure:.3}")))
            .collect();
        lines.push([
            row.of.join(" "),
            row.figure.to_owned(),
            format!("{:.3} (n={})", a.median, a.count),
            format!("{:.3} (n={})", b.median, b.count),
            format!("{ratio:.3}{}", if row.fails { " FAIL" } else { "" }),
            if one { "unknown".to_owned() } else { format!("{ratio_low:.3}..{ratio_high:.3}") },
            test.map_or("–".to_owned(), |test| format!("{:.3}", test.p)),
            outliers.join(", "),
        ]);
    }
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim());
        text.push('\n');
    }
    text
}
