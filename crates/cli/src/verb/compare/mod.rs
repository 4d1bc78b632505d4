//! `senesce compare`: compares two runs, two inspections or two trees.

mod conclusion;
pub(super) mod figures;
pub(super) mod gate;
mod inspections;
mod names;
mod trees;
pub(super) mod unfinished;
pub(super) mod unlike;

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::{
    Printable,
    statistics::{Comparison, Judgement, Outcome},
};
use senesce_experiment::{RunPaths, plan::Plan};
use serde::Serialize;

pub use figures::FigurePattern;

use self::{
    conclusion::{conclude, order, select},
    figures::{
        Kind, Missing, SLOWDOWN, add_slowdowns, collect_figures, compare_figures, find_last_common, find_missing,
    },
    gate::{Gate, Scope, judge},
    inspections::compare_inspections,
    names::{Names, find_headline},
    trees::compare_trees,
    unfinished::{add_unfinished, find_unfinished, unfinished_notes},
    unlike::{Unlike, compute_unlike},
};
use super::show::read_results;
use crate::{
    args::CompareArgs,
    exit::{different, undecided, usage},
    fit::fit,
    near::find_near_run,
    schema::document,
    table::{render_table, tell_p, tell_ratio, tell_value},
};

/// The schema of a comparison as JSON.
pub(in crate::verb) const COMPARE_SCHEMA: &str = "senesce-compare/3";

/// The JSON output of `compare`.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct ComparisonDocument<'a> {
    /// The gate of `--fail-if`. `None` without it.
    gate: &'a Option<Gate>,
    /// The figures of both sides.
    rows: &'a [Row],
    /// The limits of the comparison, as sentences.
    notes: &'a [String],
    /// States that are not compared, because a side has no valid result of them.
    missing: &'a [Missing],
    /// Circumstances in which the sides differ.
    unlike: &'a [Unlike],
}

/// One figure of both sides. The keys of the statistics (`a`, `b`, `ratio`, `ratio_low`,
/// `ratio_high`, `test`, `outliers_a`, `outliers_b`) are absent if the median of A is 0.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct Row {
    /// Arm, volume, checkpoint. For inspections: `tree`. Absent for two trees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::verb) of: Vec<String>,
    /// The figure with its unit.
    pub(in crate::verb) figure: String,
    /// The origin of the values.
    pub(in crate::verb) kind: Kind,
    /// Whether a larger figure is better.
    pub(in crate::verb) more_is_better: bool,
    /// The values of A.
    pub(in crate::verb) figures_a: Vec<f64>,
    /// The values of B.
    pub(in crate::verb) figures_b: Vec<f64>,
    /// None if the median of A is 0.
    #[serde(flatten)]
    pub(in crate::verb) comparison: Option<Comparison>,
    /// The outcome of the gate for this figure. `None` if the gate does not judge it.
    pub(in crate::verb) outcome: Option<Outcome>,
    /// The probability, and the smallest effect that the gate could have detected. `None` if the
    /// gate does not judge the figure, or if the figure has no noise.
    pub(in crate::verb) judgement: Option<Judgement>,
}

impl Row {
    /// The smaller number of values of both sides.
    pub(in crate::verb) fn repetitions(&self) -> usize {
        self.figures_a.len().min(self.figures_b.len())
    }

    /// Arm, volume, checkpoint and figure as words.
    pub(in crate::verb) fn name(&self) -> String {
        let name = format!("{} {}", self.of.join(" "), self.figure);
        Printable::new(name.trim_start()).to_string()
    }
}

/// Compares and prints. With `--fail-if` the gate's outcome is the exit code.
pub fn compare(args: CompareArgs) -> Result<()> {
    let is_run = |path: &Path| path.join("results").is_dir() || path.join("run.json").exists();
    for path in [&args.a, &args.b] {
        std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let near = find_near_run(path).map(|near| format!("did you mean {near}?"));
                usage(format!("{} does not exist", path.display()), Some(near.as_deref().unwrap_or("check the name")))
            }
            _ => usage(format!("cannot read {}: {error}", path.display()), None),
        })?;
    }
    let (mut unlike, mut missing, mut notes_above) = (Vec::new(), Vec::new(), Vec::new());
    let mut headline = None;
    let mut rows = match (is_run(&args.a), is_run(&args.b)) {
        (true, true) => {
            let other_workloads = find_other_workloads(&args)?;
            if let (Some((a, b)), true) = (other_workloads, args.fail_if.is_some()) {
                let message = format!("a gate needs runs of one workload: A was aged by {a} and B by {b}");
                return Err(usage(message, Some("give two runs of one workload, or leave --fail-if out")));
            }
            let (a, b) = (read_results(&args.a)?, read_results(&args.b)?);
            unlike = compute_unlike(&a, &b);
            missing = find_missing(&a, &b, (&read_planned_arms(&args.b)?, "B"), &args.select);
            let (of_a, of_b) = (add_slowdowns(collect_figures(&a)), add_slowdowns(collect_figures(&b)));
            let last_common = find_last_common(&of_a, &of_b);
            let rows = compare_figures(of_a, of_b, &args.select)?;
            let unfinished = find_unfinished(&rows, &last_common, (&a, "A"), (&b, "B"));
            notes_above.extend(
                other_workloads
                    .map(|(a, b)| format!("A was aged by {a} and B by {b}: the figures compare different workloads.")),
            );
            notes_above.extend(unfinished_notes(&unfinished));
            add_unfinished(&mut missing, unfinished);
            headline = find_headline(&rows, &a);
            rows
        }
        (false, false) if args.a.is_dir() && args.b.is_dir() => compare_trees(&args)?,
        (false, false) if !args.a.is_dir() && !args.b.is_dir() => {
            let compared = compare_inspections(&args)?;
            (unlike, missing, headline) = (compared.unlike, compared.missing, compared.headline);
            notes_above.extend(missing.iter().map(Missing::sentence));
            compared.rows
        }
        (is_a, is_b) => {
            let kind = |is_run: bool, path: &Path| match (is_run, path.is_dir()) {
                (true, _) => "a run",
                (false, true) => "a tree",
                (false, false) => "a file",
            };
            let (a, b) = (kind(is_a, &args.a), kind(is_b, &args.b));
            let message = format!("{} is {a} and {} is {b}", Printable::new(&args.a), Printable::new(&args.b));
            let hint =
                "give two runs, two directories to read, or two files of `senesce inspect PLACE --json --no-map`";
            return Err(usage(message, Some(hint)));
        }
    };
    let scope = Scope { select: &args.select, measured: args.measured, free_extents: false };
    let gate = args.fail_if.map(|limit| judge(&mut rows, &missing, scope, limit)).transpose()?;
    match args.json {
        true => {
            let parts = ComparisonDocument {
                gate: &gate,
                rows: &rows,
                notes: &notes_above,
                missing: &missing,
                unlike: &unlike,
            };
            println!("{}", document(COMPARE_SCHEMA, parts));
        }
        false => {
            for note in &notes_above {
                print!("{}", fit(&format!("{}\n\n", Printable::new(note))));
            }
            // Any other outcome is an error, whose message is the last line.
            let passed = gate.as_ref().filter(|gate| gate.outcome == Outcome::Pass);
            let passed = passed.map_or(String::new(), |gate| format!("{}\n", gate.text));
            let (mut shown, left_out) = select(&rows);
            order(&mut shown, headline.as_deref());
            // A note above has the missing parts of inspections.
            missing.retain(|missing| !notes_above.contains(&missing.sentence()));
            let notes = notes(&rows, &shown, &missing, &unlike, &args);
            let parts = [passed, conclude(&rows, headline.as_deref()), table(&shown, left_out, &rows), notes];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            print!("{}", fit(&parts.join("\n")));
        }
    }
    end(gate, &args)
}

/// The workloads of both runs, if they differ.
fn find_other_workloads(args: &CompareArgs) -> Result<Option<(&'static str, &'static str)>> {
    let kind = |run: &Path| Ok::<_, anyhow::Error>(read_plan(run)?.map(|plan| plan.workload.kind));
    Ok(match (kind(&args.a)?, kind(&args.b)?) {
        (Some(a), Some(b)) if a != b => Some((a.as_str(), b.as_str())),
        _ => None,
    })
}

/// The arms of the plan of a run. Empty for a directory of results without a plan.
///
/// Errors: a plan that cannot be read. A gate that does not know the arms could pass without one of
/// them.
pub(super) fn read_planned_arms(run: &Path) -> Result<BTreeSet<String>> {
    Ok(read_plan(run)?.map_or_else(BTreeSet::new, |plan| plan.arms().into_iter().map(|arm| arm.name).collect()))
}

/// The plan of a run. `None` for a directory of results without a plan.
pub(super) fn read_plan(run: &Path) -> Result<Option<Plan>> {
    let plan = RunPaths::new(run).plan();
    if !plan.try_exists()? {
        return Ok(None);
    }
    Ok(Some(Plan::read_kept(&plan)?))
}

/// Turns the gate's outcome into the result of the command.
fn end(gate: Option<Gate>, args: &CompareArgs) -> Result<()> {
    let Some(gate) = gate else { return Ok(()) };
    match (gate.outcome, args.on_undecided) {
        (Outcome::Pass, _) => Ok(()),
        (Outcome::Fail, _) | (Outcome::Undecided, Outcome::Fail) => Err(different(gate.text)),
        (Outcome::Undecided, Outcome::Undecided) => Err(undecided(gate.text)),
        (Outcome::Undecided, Outcome::Pass) => {
            eprintln!("senesce: {}", gate.text);
            Ok(())
        }
    }
}

/// Notes below the table: how the figures were measured, and which circumstances differ.
fn notes(rows: &[Row], shown: &[&Row], missing: &[Missing], unlike: &[Unlike], args: &CompareArgs) -> String {
    let mut text = format!("A is {}, B is {}.\n", Printable::new(&args.a), Printable::new(&args.b));
    let measured = || rows.iter().filter(|row| row.kind == Kind::Measured);
    if measured().filter_map(|row| row.comparison.as_ref()).any(|comparison| !comparison.is_enough()) {
        text.push_str(
            "p needs at least four figures on each side; with fewer, a difference cannot be distinguished from chance.\n",
        );
    }
    if rows.iter().all(|row| row.of.is_empty()) {
        text.push_str(match args.cold {
            true => "The machine's caches were dropped before every grep test.\n",
            false => "The caches were not dropped: data in memory cost no reading (--cold drops the caches).\n",
        });
    }
    if shown.iter().any(|row| row.figure.ends_with(SLOWDOWN)) {
        text.push_str(
            "slowdown is the cost of a volume divided by its fresh copy's: its age. A lower cost is not a lower age.\n",
        );
    }
    for missing in missing {
        text.push_str(&format!("not compared: {missing}\n"));
    }
    // The names and circumstances of a run may be a stranger's.
    for line in unlike.iter().map(Unlike::to_string) {
        text.push_str(&format!("unlike: {}\n", Printable::new(&line)));
    }
    text
}

/// The table. The decisive columns are first, because a narrow terminal shows the first ones.
fn table(shown: &[&Row], left_out: usize, rows: &[Row]) -> String {
    let heading = ["B/A", "gate", "volume", "figure", "A", "B", "95% interval", "p", "outliers"];
    if shown.is_empty() {
        return String::new();
    }
    let names = Names::of(rows);
    let mut lines: Vec<Vec<String>> = shown.iter().map(|row| line(row, names.of_figure(&row.figure))).collect();
    // An empty column has no heading, and is left out.
    let is_filled = |column: usize| lines.iter().any(|line| line.get(column).is_some_and(|cell| !cell.is_empty()));
    let heading =
        heading.iter().enumerate().map(|(at, name)| if is_filled(at) { (*name).to_owned() } else { String::new() });
    let heading = heading.collect();
    for cell in lines.iter_mut().flatten() {
        *cell = Printable::new(&*cell).to_string();
    }
    lines.insert(0, heading);
    let end = match left_out {
        0 => String::new(),
        _ => format!("{left_out} figures without a difference are left out; --json has them.\n"),
    };
    render_table(&lines) + &end
}

fn line(row: &Row, figure: String) -> Vec<String> {
    let is_measured = row.kind == Kind::Measured;
    let side = |figures: &[f64]| {
        let median = senesce_core::statistics::compute_median(figures).unwrap_or(f64::NAN);
        match is_measured || figures.len() > 1 {
            true => format!("{} (n={})", tell_value(median), figures.len()),
            false => tell_value(median),
        }
    };
    let of_row = |ratio: String, interval: String, p: String| {
        let names = [ratio, tell_outcome(row), row.of.join(" "), figure.clone()];
        let figures = [side(&row.figures_a), side(&row.figures_b), interval, p];
        names.into_iter().chain(figures).collect::<Vec<_>>()
    };
    let Some(compared) = &row.comparison else {
        let same = row.figures_a.iter().chain(&row.figures_b).all(|figure| *figure == 0.0);
        let ratio = if same { "1.000" } else { "A is 0" };
        return of_row(ratio.to_owned(), row.kind.tell().to_owned(), "–".to_owned());
    };
    let interval = match (is_measured, row.repetitions()) {
        (false, _) => row.kind.tell().to_owned(),
        (true, 1) => "unknown".to_owned(),
        (true, _) => format!("{}..{}", tell_ratio(compared.ratio_low), tell_ratio(compared.ratio_high)),
    };
    let p = if is_measured { tell_p(compared) } else { "–".to_owned() };
    let mut cells = of_row(tell_ratio(compared.ratio), interval, p);
    let outliers = compared.outliers_a.iter().map(|figure| format!("A {}", tell_value(*figure)));
    let outliers = outliers.chain(compared.outliers_b.iter().map(|figure| format!("B {}", tell_value(*figure))));
    cells.push(outliers.filter(|_| is_measured).collect::<Vec<_>>().join(", "));
    cells
}

fn tell_outcome(row: &Row) -> String {
    match row.outcome {
        None => "",
        Some(Outcome::Pass) => "pass",
        Some(Outcome::Undecided) => "undecided",
        Some(Outcome::Fail) => "FAIL",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use senesce_core::{Seed, statistics::compute_comparison};

    use super::*;
    use crate::fit::fit_to;

    fn row(of: &[&str], figure: &str, (a, b): (f64, f64), outcome: Option<Outcome>) -> Row {
        Row {
            of: of.iter().map(|word| (*word).to_owned()).collect(),
            figure: figure.to_owned(),
            kind: Kind::Modelled,
            more_is_better: false,
            figures_a: vec![a],
            figures_b: vec![b],
            comparison: compute_comparison(&[a], &[b], Seed(1)),
            outcome,
            judgement: None,
        }
    }

    #[test]
    fn empty_columns_have_no_head() {
        let row = |a, outcome| row(&["btrfs", "unaged", "1000"], "layout score", (a, 13097.0), outcome);
        let wide = table(&[&row(12474.0, Some(Outcome::Fail))], 0, &[]);
        assert!(wide.contains("12,474") && wide.contains("gate") && !wide.contains("outliers"), "{wide}");
        assert!(!table(&[&row(12474.0, None)], 0, &[]).contains("gate"));
        assert!(table(&[&row(0.0, None)], 0, &[]).contains("A is 0"));
    }

    #[test]
    fn narrow_terminals_show_volume_figure_both_sides_and_ratio() {
        let volumes: [&[&str]; 3] = [&["ext4", "full", "40"], &["btrfs", "unaged", "1000"], &["tree"]];
        let figures = [
            ("model: HDD 7.2K (virtual-time) requests", "HDD 7.2K requests"),
            ("model: SATA SSD (extents) slowdown", "SATA SSD slowdown"),
            ("share of files with the next file adjacent", "share of files with the next file adjacent"),
        ];
        for (volume, outcome) in volumes.into_iter().flat_map(|of| [(of, None), (of, Some(Outcome::Fail))]) {
            let rows: Vec<Row> =
                figures.iter().map(|(figure, _)| row(volume, figure, (12474.0, 13097.0), outcome)).collect();
            let wide = table(&rows.iter().collect::<Vec<_>>(), 0, &rows);
            for columns in [60, 80, 100] {
                let narrow = fit_to(&wide, columns);
                assert!(narrow.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{narrow}");
                for part in ["12,474", "13,097", "1.050"] {
                    assert_eq!(narrow.matches(part).count(), figures.len(), "{part} at {columns}:\n{narrow}");
                }
                assert_eq!(narrow.contains("FAIL"), outcome.is_some(), "{narrow}");
                // A name may be on several lines, beside others.
                for word in volume.iter().copied().chain(figures.iter().flat_map(|(_, name)| name.split(' '))) {
                    assert!(narrow.split_whitespace().any(|found| found == word), "{word} at {columns}:\n{narrow}");
                }
                assert!(!narrow.contains("model: ") && !narrow.contains("virtual-time"), "{narrow}");
            }
        }
    }

    #[test]
    fn figures_of_two_methods_keep_their_method() {
        let figures = ["model: HDD (extents) s/GiB", "model: HDD (trace) s/GiB"];
        let rows = figures.map(|figure| row(&["ext4", "full", "40"], figure, (1.0, 2.0), None));
        let shown = table(&[&rows[0], &rows[1]], 0, &rows);
        assert!(shown.contains("HDD (extents) s/GiB") && shown.contains("HDD (trace) s/GiB"), "{shown}");
    }
}
