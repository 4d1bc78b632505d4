//! `senesce compare`: two runs, or two trees, against each other.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::Result;
use senesce_core::{Clock, Seed};
use senesce_experiment::ErrorKind;
use senesce_probe::{
    collect::{GrepOptions, Order, collect_grep, compute_pattern},
    score::{Comparison, compute_comparison},
};
use senesce_store::{CellKey, Results, Role};
use serde::Serialize;

use super::show::read_results;
use crate::{
    args::{CompareArgs, FailIf},
    clock::SystemClock,
    exit::{Failure, different, failed, usage},
    table::{render_table, tell_p},
};

/// The schema of a comparison as JSON.
const COMPARE_SCHEMA: &str = "senesce-compare/1";

/// One figure of both.
#[derive(Serialize)]
struct Row {
    /// Arm, volume, checkpoint; empty for trees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    of: Vec<String>,
    /// The figure with its unit.
    figure: String,
    #[serde(flatten)]
    comparison: Comparison,
    /// Whether `--fail-if` holds.
    fails: bool,
}

/// Compares and prints; fails with its own code if `--fail-if` holds for any figure.
pub fn compare(args: CompareArgs) -> Result<()> {
    let is_run = |path: &Path| path.join("results").is_dir() || path.join("run.json").exists();
    let mut unlike = Vec::new();
    let mut rows = match (is_run(&args.a), is_run(&args.b)) {
        (true, true) => {
            let (a, b) = (read_results(&args.a)?, read_results(&args.b)?);
            unlike = compute_unlike(&a, &b);
            compare_runs(&a, &b, args.all)
        }
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
        true => {
            let document = serde_json::json!({ "schema": COMPARE_SCHEMA, "rows": rows, "unlike": unlike });
            println!("{document}");
        }
        false => print!("{}{}", table(&rows), notes(&rows, &unlike, args.cold)),
    }
    let failing = rows.iter().filter(|row| row.fails).count();
    match (failing, args.fail_if) {
        (0, _) | (_, None) => Ok(()),
        (_, Some(limit)) => Err(different(format!("{failing} figure(s) differ by more than {limit}"))),
    }
}

/// Whether the second is beyond the limit: its whole interval, or for few figures its median.
fn fails(comparison: &Comparison, limit: FailIf) -> bool {
    let factor = 1.0 + limit.percent / 100.0;
    match (limit.percent > 0.0, comparison.is_enough()) {
        (true, true) => comparison.ratio_low > factor,
        (true, false) => comparison.ratio > factor,
        (false, true) => comparison.ratio_high < factor,
        (false, false) => comparison.ratio < factor,
    }
}

/// Costs of the cells that both runs have; of the last common checkpoint, or of all.
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
            rows.push(Row { of, figure: figure.clone(), comparison, fails: false });
        }
    }
    rows
}

/// A circumstance that two runs do not share.
#[derive(Serialize)]
struct Unlike {
    /// Arm (none: the whole run) and key.
    key: String,
    a: String,
    b: String,
}

/// Circumstances that may explain a difference by themselves; names, places and times of runs do not.
fn compute_unlike(a: &Results, b: &Results) -> Vec<Unlike> {
    const OF_RUNS: [&str; 6] =
        ["plan.hash", "plan.seed", "history.origin", "senesce.version", "measure.scanner", "measure.order"];
    const OF_VOLUMES: [&str; 15] = [
        "backend",
        "block_bytes",
        "cpu_count",
        "cpu_model",
        "device_bytes",
        "device_read_ahead_kib",
        "device_scheduler",
        "host_file_system",
        "image_in_memory",
        "kernel_release",
        "loop_direct_io",
        "memory_bytes",
        "mkfs_version",
        "mount_options",
        "virtual_device",
    ];
    let is_telling = |arm: &str, key: &str| match arm {
        "" => OF_RUNS.contains(&key),
        _ => key.split_once('.').is_some_and(|(_, of)| OF_VOLUMES.contains(&of)),
    };
    let telling = |results: &Results| -> BTreeMap<String, String> {
        let rows = results.circumstances.iter().filter(|row| is_telling(&row.arm, &row.key));
        rows.map(|row| (format!("{} {}", row.arm, row.key).trim_start().to_owned(), row.value.clone())).collect()
    };
    let (a, b) = (telling(a), telling(b));
    let both = a.iter().filter_map(|(key, a)| Some((key, a, b.get(key)?)));
    both.filter(|(_, a, b)| a != b).map(|(key, a, b)| Unlike { key: key.clone(), a: a.clone(), b: b.clone() }).collect()
}

/// What a reader of the table must know: how figures came about, and what differs besides them.
fn notes(rows: &[Row], unlike: &[Unlike], is_cold: bool) -> String {
    let mut text = String::from("\n");
    if rows.iter().any(|row| !row.comparison.is_enough()) {
        text.push_str(
            "p is given from four figures on each side; with fewer, a difference cannot be told from chance.\n",
        );
    }
    if rows.iter().all(|row| row.of.is_empty()) {
        text.push_str(match is_cold {
            true => "The machine's caches were dropped before every grep test.\n",
            false => "The caches were as they were: what memory still held cost no reading (--cold drops them).\n",
        });
    }
    for Unlike { key, a, b } in unlike {
        text.push_str(&format!("unlike: {key} is {a} in A, {b} in B\n"));
    }
    text
}

type FigureKey = (String, &'static str, u64, String);

/// Every figure of the valid cells. All are costs: more is worse.
fn figures(results: &Results) -> BTreeMap<FigureKey, Vec<f64>> {
    let valid = |arm: &str, role: Role, pulls: u64| {
        results
            .cells
            .iter()
            .any(|cell| cell.valid && cell.key.arm == arm && cell.key.role == role && cell.key.pulls == pulls)
    };
    let mut found: BTreeMap<FigureKey, Vec<f64>> = BTreeMap::new();
    let mut add = |key: &CellKey, figure: &str, value: f64| {
        if value.is_finite() && valid(&key.arm, key.role, key.pulls) {
            found.entry((key.arm.clone(), key.role.name(), key.pulls, figure.to_owned())).or_default().push(value);
        }
    };
    // On a disk in virtual time wall time is that of memory, and the disk's own time is the cost.
    let is_virtual = |key: &CellKey| results.modelled.iter().any(|row| row.key == *key && row.method == "virtual-time");
    for row in results.grep.iter().filter(|row| !is_virtual(&row.key)) {
        add(&row.key, "grep s/GiB", row.seconds_per_gib);
    }
    for row in &results.modelled {
        add(&row.key, &format!("{} ({}) s/GiB", row.device, row.method), row.seconds_per_gib);
    }
    for row in &results.layout {
        add(&row.key, "extents per file", row.extents_per_file);
    }
    found
}

/// Grep tests of two trees in turn, with the caches as they are or dropped.
fn compare_trees(args: &CompareArgs) -> Result<Vec<Row>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let pattern = compute_pattern(Seed(1));
    let run = |path: &Path| -> Result<f64> {
        if args.cold {
            drop_caches()?;
        }
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
        .map(|comparison| Row { of: Vec::new(), figure: "grep s/GiB".to_owned(), comparison, fails: false })
        .collect())
}

/// Makes the machine forget what it read.
fn drop_caches() -> Result<()> {
    const SWITCH: &str = "/proc/sys/vm/drop_caches";
    rustix::fs::sync();
    std::fs::write(SWITCH, "3\n").map_err(|error| {
        let hint = Some("run as root, or without --cold".to_owned());
        Failure { kind: ErrorKind::Environment, message: format!("cannot write {SWITCH}: {error}"), hint }.into()
    })
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![["", "figure", "A", "B", "B/A", "95% interval", "p", "outliers"].map(str::to_owned).to_vec()];
    for row in rows {
        let Comparison { a, b, ratio, ratio_low, ratio_high, outliers_a, outliers_b, .. } = &row.comparison;
        let one = a.count == 1 && b.count == 1;
        let outliers: Vec<String> = outliers_a
            .iter()
            .map(|figure| format!("A {figure:.3}"))
            .chain(outliers_b.iter().map(|figure| format!("B {figure:.3}")))
            .collect();
        lines.push(vec![
            row.of.join(" "),
            row.figure.clone(),
            format!("{:.3} (n={})", a.median, a.count),
            format!("{:.3} (n={})", b.median, b.count),
            format!("{ratio:.3}{}", if row.fails { " FAIL" } else { "" }),
            if one { "unknown".to_owned() } else { format!("{ratio_low:.3}..{ratio_high:.3}") },
            tell_p(&row.comparison),
            outliers.join(", "),
        ]);
    }
    render_table(&lines)
}
